// The store's wire protocol, and input that is not of it.
#include "gradsync/backends/store/store.hpp"

#include <chrono>
#include <random>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gradsync/backends/store/tcp_store.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/loopback_store.hpp"

using namespace gradsync;
using gradsync::test::kPlenty;
using gradsync::test::ServerOnLoopback;

namespace {

/// A bare connection, for bytes that no client of ours would send.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    timeval limit{30, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~RawConnection() { ::close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  void send(const std::string& bytes) { ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// What arrives within the limit, at most `count` bytes; empty when the server closed.
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t got = 0;
    while (got < count) {
      const auto n = ::recv(fd_, bytes.data() + got, count - got, 0);
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    bytes.resize(got);
    return bytes;
  }

 private:
  int fd_;
};

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

const std::string kHello = std::string(1, '\0') + little_endian(0x3C85F7CE, 4);

}  // namespace

TEST_CASE("store: the wire protocol is that of PyTorch's TCPStore, byte for byte") {
  ServerOnLoopback world;
  const auto text = [](const std::string& s) { return little_endian(s.size(), 8) + s; };
  RawConnection raw(world.server.port());
  raw.send(kHello + '\x0d' + little_endian(0x01020304, 4));  // validate, ping
  CHECK(raw.receive(4) == little_endian(0x01020304, 4));
  raw.send('\x01' + text("/k") + text("value"));  // set
  raw.send('\x03' + text("/k"));                  // get
  CHECK(raw.receive(13) == text("value"));
  raw.send('\x02' + text("/k") + text("value") + text("other"));  // compare_set
  CHECK(raw.receive(13) == text("other"));
  raw.send('\x04' + text("/n") + little_endian(5, 8));  // add
  CHECK(raw.receive(8) == little_endian(5, 8));
  raw.send('\x05' + little_endian(2, 8) + text("/k") + text("/absent"));  // check: not ready
  CHECK(raw.receive(1) == "\x01");
  raw.send('\x06' + little_endian(1, 8) + text("/k"));  // wait: stop waiting
  CHECK(raw.receive(1) == std::string(1, '\0'));
  raw.send("\x07");  // number of keys
  CHECK(raw.receive(8) == little_endian(2, 8));
  raw.send('\x09' + text("/k") + text("!"));                         // append
  raw.send('\x0a' + little_endian(2, 8) + text("/k") + text("/n"));  // multi_get
  CHECK(raw.receive(14 + 9) == text("other!") + text("5"));
  raw.send('\x0b' + little_endian(1, 8) + text("/m") + text("multi"));  // multi_set
  raw.send('\x08' + text("/k"));                                        // delete
  CHECK(raw.receive(8) == little_endian(1, 8));
  raw.send('\x06' + little_endian(1, 8) + text("/k"));  // wait, then cancel_wait
  raw.send("\x0c");
  CHECK(raw.receive(1) == "\x01");
  // What our client sets is found under the name that PyTorch's client uses.
  TcpStore client = world.client();
  CHECK(client.get("m", kPlenty) == "multi");
}

TEST_CASE("store: malformed input ends its own connection only") {
  ServerOnLoopback world;
  TcpStore witness = world.client();
  witness.set("k", "v", kPlenty);
  const std::string huge = little_endian(0xffffffffffffffffull, 8);
  const std::vector<std::string> attacks = {
      "GET / HTTP/1.1\r\nHost: store\r\n\r\n",
      std::string(1, '\0') + little_endian(0xdeadbeef, 4),  // another magic number
      kHello + '\x7f',                                      // no such opcode
      kHello + '\x01' + huge,                               // length of a key
      kHello + '\x01' + little_endian(1, 8) + "k" + huge,   // length of a value
      kHello + '\x05' + huge,                               // number of keys
      kHello + '\x04' + little_endian(2, 8) + "/k" + huge,  // add to what is no number
      kHello + '\x04' + little_endian(2, 8) + "/n" + little_endian(1, 8) + '\x04' +
          little_endian(2, 8) + "/n" + little_endian(0x7fffffffffffffffull, 8),  // overflow
  };
  for (const std::string& attack : attacks) {
    RawConnection raw(world.server.port());
    raw.send(attack);
    raw.receive(64);  // returns when the server has closed the connection
    CHECK(witness.get("k", kPlenty) == "v");
  }
}

TEST_CASE("store: the server survives random bytes, cut requests and clients that do not read") {
  ServerOnLoopback world;
  TcpStore witness = world.client();
  witness.set("big", std::string(1 << 20, 'x'), kPlenty);
  std::mt19937 random(12345);
  std::vector<std::unique_ptr<RawConnection>> open;  // stay connected in the middle of a request
  for (int round = 0; round < 300; ++round) {
    std::string bytes = round % 3 == 0 ? "" : kHello;
    const auto length = random() % 200;
    for (std::size_t i = 0; i < length; ++i) {
      // Small values make opcodes and plausible lengths likely.
      bytes.push_back(static_cast<char>(random() % (round % 2 == 0 ? 16u : 256u)));
    }
    auto raw = std::make_unique<RawConnection>(world.server.port());
    raw->send(bytes);
    if (round % 4 == 0) open.push_back(std::move(raw));
  }
  RawConnection greedy(world.server.port());
  std::string requests = kHello;
  for (int i = 0; i < 2000; ++i) requests += '\x03' + little_endian(4, 8) + "/big";
  greedy.send(requests);
  CHECK(witness.add("still there", 1, kPlenty) == 1);
}
