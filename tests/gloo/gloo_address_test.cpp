// What ranks publish for Gloo's rendezvous, read and made wrong.
#include "gradsync/backends/gloo/gloo_address.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/support/catch.hpp"

using namespace gradsync;

namespace {

/// As Gloo has them: a sockaddr_storage and a sequence number.
void append_address(std::vector<char>& bytes, std::uint16_t port, std::int64_t number) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(0x0a000007);  // 10.0.0.7
  const auto* raw = reinterpret_cast<const char*>(&storage);
  bytes.insert(bytes.end(), raw, raw + sizeof(storage));
  raw = reinterpret_cast<const char*>(&number);
  bytes.insert(bytes.end(), raw, raw + sizeof(number));
}

}  // namespace

TEST_CASE("gloo address: found in what a rank publishes, one or several, and made nobody's") {
  std::vector<char> pairs;  // 2022: an address for each peer
  append_address(pairs, 40000, -1);
  append_address(pairs, 40001, -1);
  std::vector<char> device{'h', 'o', 's', 't', 2, 0, 0, 0};  // 2023: one, after a name and a size
  append_address(device, 40002, 2);
  for (std::vector<char> published : {pairs, device}) {
    const std::vector<char> before = published;
    CHECK(published_address(published) == "10.0.0.7");
    CHECK_FALSE(is_nobodys(published_address(published)));
    make_nobodys(published, 1234);
    CHECK(published.size() == before.size());
    CHECK(published_address(published) == "0.0.0.0");
    CHECK(is_nobodys(published_address(published)));
  }
  CHECK(published_address({'h', 'o', 's', 't'}).empty());
}

TEST_CASE("gloo address: at a dead port a connection is refused") {
  const DeadPort port(AF_INET);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.number()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0);
  CHECK(errno == ECONNREFUSED);
  ::close(fd);
}
