#include "gradsync/backends/store/store.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
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

constexpr Seconds kShort{0.05};

template <typename Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("no error was thrown");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("store: a value that was set is read by another client") {
  ServerOnLoopback world;
  TcpStore writer = world.client();
  TcpStore reader = world.client();
  const std::string binary("\0\xff\n value", 9);
  writer.set("key", binary, kPlenty);
  CHECK(reader.get("key", kPlenty) == binary);
  writer.set("key", "", kPlenty);
  CHECK(reader.get("key", kPlenty).empty());
}

TEST_CASE("store: get blocks until the key is set") {
  ServerOnLoopback world;
  TcpStore reader = world.client();
  auto value = std::async(std::launch::async, [&] { return reader.get("late", kPlenty); });
  CHECK(value.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  world.client().set("late", "here", kPlenty);
  CHECK(value.get() == "here");
}

TEST_CASE("store: a blocked thread does not delay another thread of the same client") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  auto blocked =
      std::async(std::launch::async, [&] { return store.get("never until now", kPlenty); });
  store.set("other", "1", kPlenty);
  CHECK(store.get("other", kPlenty) == "1");
  CHECK(store.add("counter", 2, kPlenty) == 2);
  store.set("never until now", "done", kPlenty);
  CHECK(blocked.get() == "done");
}

TEST_CASE("store: a wait that ends at its deadline lists the keys that are missing") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  store.set("b", "", kPlenty);
  try {
    store.wait({"a", "b", "c"}, kShort);
    FAIL("no error was thrown");
  } catch (const StoreTimeout& e) {
    CHECK(e.code() == ErrorCode::kTimeout);
    CHECK(e.missing_keys() == std::vector<std::string>{"a", "c"});
    CHECK_THAT(e.what(), test::contains("2 of 3 keys: a, c"));
  }
  // The connection on which the wait was cancelled is as good as before.
  store.set("a", "1", kPlenty);
  store.set("c", "1", kPlenty);
  store.wait({"a", "b", "c"}, kPlenty);
  CHECK(store.get("a", kPlenty) == "1");
}

TEST_CASE("store: with a timeout of zero get and wait only look") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  CHECK(code_of([&] { store.get("absent", Seconds(0)); }) == ErrorCode::kTimeout);
  store.set("present", "x", kPlenty);
  CHECK(store.get("present", Seconds(0)) == "x");
  CHECK_NOTHROW(store.wait({"present"}, Seconds(-1)));
}

TEST_CASE("store: add counts for many clients at once") {
  ServerOnLoopback world;
  constexpr int kClients = 16;
  constexpr int kAdds = 50;
  std::vector<std::future<void>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      TcpStore store = world.client();
      for (int k = 0; k < kAdds; ++k) store.add("sum", 1, kPlenty);
    }));
  }
  for (auto& client : clients) client.get();
  CHECK(world.client().add("sum", -3, kPlenty) == kClients * kAdds - 3);
  CHECK(world.client().get("sum", kPlenty) == "797");
}

TEST_CASE("store: exactly one of many wins a compare_set") {
  ServerOnLoopback world;
  constexpr int kClients = 12;
  std::vector<std::future<std::string>> results;
  for (int i = 0; i < kClients; ++i) {
    results.push_back(std::async(std::launch::async, [&world, i] {
      return world.client().compare_set("first", "", std::to_string(i), kPlenty);
    }));
  }
  const std::string winner = world.client().get("first", kPlenty);
  for (auto& result : results) CHECK(result.get() == winner);
  TcpStore store = world.client();
  CHECK(store.compare_set("first", "something else", "x", kPlenty) == winner);
  CHECK(store.compare_set("first", winner, "x", kPlenty) == "x");
  CHECK(store.compare_set("absent", "expected", "x", kPlenty) == "expected");
  CHECK_FALSE(store.check({"absent"}, kPlenty));
}

TEST_CASE("store: compare_set wakes those who wait for the key") {
  ServerOnLoopback world;
  TcpStore reader = world.client();
  auto value = std::async(std::launch::async, [&] { return reader.get("k", kPlenty); });
  world.client().compare_set("k", "", "v", kPlenty);
  CHECK(value.get() == "v");
}

TEST_CASE("store: check and remove") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  store.set("a", "", kPlenty);
  CHECK(store.check({"a"}, kPlenty));
  CHECK_FALSE(store.check({"a", "b"}, kPlenty));
  CHECK(store.remove("a", kPlenty));
  CHECK_FALSE(store.remove("a", kPlenty));
  CHECK_FALSE(store.check({"a"}, kPlenty));
}

TEST_CASE("store: values of many megabytes, whole and in chunks") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  std::string value(20 * 1024 * 1024 + 7, '\0');
  for (std::size_t i = 0; i < value.size(); ++i)
    value[i] = static_cast<char>(i * 2654435761u >> 13);
  store.set("whole", value, kPlenty);
  CHECK((store.get("whole", kPlenty) == value));
  set_large(store, "chunked", value, kPlenty);
  CHECK((get_large(store, "chunked", kPlenty) == value));
  set_large(store, "nothing", "", kPlenty);
  CHECK(get_large(store, "nothing", kPlenty).empty());
  CHECK(code_of([&] { get_large(store, "absent", kShort); }) == ErrorCode::kTimeout);
}

TEST_CASE("store: prefixes keep users of one server apart") {
  ServerOnLoopback world;
  auto base = std::make_shared<TcpStore>("127.0.0.1", world.server.port(), kPlenty);
  PrefixStore a("job/a", base);
  PrefixStore b("job/b", base);
  a.set("key", "of a", kPlenty);
  CHECK_FALSE(b.check({"key"}, kPlenty));
  b.set("key", "of b", kPlenty);
  CHECK(a.get("key", kPlenty) == "of a");
  CHECK(base->get("job/b/key", kPlenty) == "of b");
  try {
    a.wait({"key", "missing"}, kShort);
    FAIL("no error was thrown");
  } catch (const StoreTimeout& e) {
    CHECK(e.missing_keys() == std::vector<std::string>{"missing"});
  }
}

TEST_CASE("store: a client waits for a server that is late") {
  std::uint16_t port = 0;
  {
    TcpStoreServer probe({.bind_address = "127.0.0.1", .port = 0});
    port = probe.port();
  }
  auto client = std::async(std::launch::async, [&] {
    TcpStore store("127.0.0.1", port, kPlenty);
    store.set("k", "v", kPlenty);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  TcpStoreServer server({.bind_address = "127.0.0.1", .port = port});
  client.get();
  CHECK(TcpStore("127.0.0.1", port, kPlenty).get("k", kPlenty) == "v");
}

TEST_CASE("store: no server within the timeout is an error that names the address") {
  std::uint16_t port = 0;
  {
    TcpStoreServer probe({.bind_address = "127.0.0.1", .port = 0});
    port = probe.port();
  }
  try {
    TcpStore store("127.0.0.1", port, Seconds(0.2));
    FAIL("no error was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kTimeout);
    CHECK_THAT(e.what(), test::contains("127.0.0.1:" + std::to_string(port)));
    CHECK_THAT(e.what(), test::contains("MASTER_ADDR"));
  }
}

TEST_CASE("store: a port that is taken is an error that names it") {
  TcpStoreServer first({.bind_address = "127.0.0.1", .port = 0});
  try {
    TcpStoreServer second({.bind_address = "127.0.0.1", .port = first.port()});
    FAIL("no error was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kBackendUnavailable);
    CHECK_THAT(e.what(), test::contains(std::to_string(first.port())));
  }
}

TEST_CASE("store: the end of the server ends blocked calls") {
  auto server = std::make_unique<TcpStoreServer>(
      TcpStoreServer::Options{.bind_address = "127.0.0.1", .port = 0});
  TcpStore store("127.0.0.1", server->port(), kPlenty);
  auto code =
      std::async(std::launch::async, [&] { return code_of([&] { store.get("never", kPlenty); }); });
  CHECK(code.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  server.reset();
  CHECK(code.get() == ErrorCode::kRankDied);
}

TEST_CASE("store: close ends blocked calls of other threads and all later ones") {
  ServerOnLoopback world;
  TcpStore store = world.client();
  auto code =
      std::async(std::launch::async, [&] { return code_of([&] { store.get("never", kPlenty); }); });
  CHECK(code.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  store.close();
  CHECK(code.get() == ErrorCode::kInternal);
  CHECK(code_of([&] { store.set("k", "v", kPlenty); }) == ErrorCode::kInternal);
}

TEST_CASE("store: the server knows when its last client has gone") {
  ServerOnLoopback world;
  {
    TcpStore store = world.client();
    store.set("k", "v", kPlenty);
    CHECK_FALSE(world.server.wait_until_idle(kShort));
  }
  CHECK(world.server.wait_until_idle(kPlenty));
}

TEST_CASE("store: two hundred clients meet at one key") {
  ServerOnLoopback world;
  constexpr int kClients = 200;
  constexpr int kThreads = 8;
  std::atomic<int> woken = 0;
  std::vector<std::future<void>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(std::async(std::launch::async, [&] {
      std::vector<std::unique_ptr<TcpStore>> clients;
      for (int i = 0; i < kClients / kThreads; ++i) {
        clients.push_back(std::make_unique<TcpStore>("127.0.0.1", world.server.port(), kPlenty));
        clients.back()->add("arrived", 1, kPlenty);
      }
      for (auto& client : clients) {
        client->wait({"go"}, kPlenty);
        ++woken;
      }
    }));
  }
  TcpStore leader = world.client();
  while (leader.add("arrived", 0, kPlenty) < kClients) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  leader.set("go", "", kPlenty);
  for (auto& thread : threads) thread.get();
  CHECK(woken == kClients);
}
