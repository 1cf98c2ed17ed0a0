#include "gradsync/backends/store/tcp_store.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <asio.hpp>

#include "gradsync/backends/store/store_protocol.hpp"

namespace gradsync {
namespace {

using asio::ip::tcp;
using namespace store_protocol;
using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

/// A deadline that never overflows, however long the timeout.
Deadline deadline_after(Seconds timeout) {
  const Seconds bounded = std::clamp(timeout, Seconds(0), Seconds(std::chrono::hours(24 * 365)));
  return SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(bounded);
}

/// The deadline of a read or write has passed. The connection is reusable only if the caller knows
/// what is still in flight on it.
struct DeadlineReached {};

/// Something listens on the port, but it does not speak the store's protocol.
struct NotAStore {};

/// One TCP connection with deadlines, used by one thread at a time (except `interrupt`).
class Connection {
 public:
  explicit Connection(std::atomic<bool>& closed) : closed_(closed) {}

  void connect(const std::string& host, std::uint16_t port, Deadline deadline) {
    asio::error_code error;
    tcp::resolver::results_type endpoints;
    tcp::resolver resolver(io_);
    resolver.async_resolve(host, std::to_string(port),
                           [&](asio::error_code e, tcp::resolver::results_type found) {
                             error = e;
                             endpoints = std::move(found);
                           });
    run(deadline, [&] { resolver.cancel(); });
    if (error) throw asio::system_error(error);
    asio::async_connect(socket_, endpoints,
                        [&](asio::error_code e, const tcp::endpoint&) { error = e; });
    run(deadline, [&] { close(); });
    if (error) throw asio::system_error(error);
    socket_.set_option(tcp::no_delay(true));
    socket_.set_option(asio::socket_base::keep_alive(true));

    // The answer to the ping proves that a store is listening, not just an open socket.
    const auto nonce = static_cast<std::uint32_t>(std::random_device{}());
    bool is_store = false;
    try {
      write(Writer(Opcode::kValidate).number(kMagic).take() +
                Writer(Opcode::kPing).number(nonce).take(),
            deadline);
      is_store = read_number<std::uint32_t>(deadline) == nonce;
    } catch (const DeadlineReached&) {
    } catch (const asio::system_error&) {
    }
    if (!is_store) throw NotAStore{};
  }

  void write(const std::string& bytes, Deadline deadline) {
    asio::error_code error;
    asio::async_write(socket_, asio::buffer(bytes),
                      [&](asio::error_code e, std::size_t) { error = e; });
    run(deadline, [&] { socket_.cancel(); });
    if (error) throw asio::system_error(error);
  }

  void read(char* bytes, std::size_t count, Deadline deadline) {
    asio::error_code error;
    asio::async_read(socket_, asio::buffer(bytes, count),
                     [&](asio::error_code e, std::size_t) { error = e; });
    run(deadline, [&] { socket_.cancel(); });
    if (error) throw asio::system_error(error);
  }

  template <typename T>
  T read_number(Deadline deadline) {
    T value{};
    read(reinterpret_cast<char*>(&value), sizeof(T), deadline);
    return value;
  }

  std::string read_text(Deadline deadline) {
    const auto length = read_number<std::uint64_t>(deadline);
    if (length > kMaxValueBytes) throw asio::system_error(asio::error::message_size);
    std::string text(static_cast<std::size_t>(length), '\0');
    read(text.data(), text.size(), deadline);
    return text;
  }

  /// Fails the blocked call on this connection and all later ones. May be called from any thread.
  void interrupt() {
    asio::post(io_, [this] { close(); });
  }

 private:
  /// Runs the operation that was just started to completion. At the deadline it is cancelled, and
  /// DeadlineReached is thrown after its handler (which refers to the caller's frame) has run.
  template <typename Cancel>
  void run(Deadline deadline, const Cancel& cancel) {
    io_.restart();
    io_.run_until(deadline);
    if (io_.stopped()) {
      if (closed_) throw asio::system_error(asio::error::operation_aborted);
      return;
    }
    cancel();
    io_.run();
    throw DeadlineReached{};
  }

  void close() {
    asio::error_code ignored;
    socket_.close(ignored);
  }

  std::atomic<bool>& closed_;
  asio::io_context io_;
  tcp::socket socket_{io_};
};

/// Timeout of answers that the server gives at once, if the caller's timeout is about something
/// else (keys that may never appear).
constexpr Seconds kAnswerTime{5};

std::string join(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + keys[i];
  }
  if (keys.size() > kShown) text += fmt::format(" and {} more", keys.size() - kShown);
  return text;
}

}  // namespace

struct TcpStore::Impl {
  Impl(std::string host_name, std::uint16_t port_number)
      : host(std::move(host_name)), port(port_number), address(fmt::format("{}:{}", host, port)) {}

  /// Takes an idle connection or opens a new one.
  std::shared_ptr<Connection> take(Deadline deadline) {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::shared_ptr<Connection> connection = std::move(idle.back());
        idle.pop_back();
        return connection;
      }
    }
    return connect(deadline);
  }

  std::shared_ptr<Connection> connect(Deadline deadline);

  /// Runs `talk(connection)` and converts its errors to store errors. The connection returns to the
  /// pool only after a complete exchange.
  template <typename Talk>
  auto call(const char* operation, const std::string& key, Deadline deadline, const Talk& talk) {
    try {
      std::shared_ptr<Connection> connection = take(deadline);
      auto result = talk(*connection);
      const std::lock_guard lock(mutex);
      idle.push_back(std::move(connection));
      return result;
    } catch (const DeadlineReached&) {
      throw StoreTimeout(fmt::format("store {}: {} of key {} timed out: the server does not answer",
                                     address, operation, key),
                         {});
    } catch (const asio::system_error& e) {
      if (closed) {
        throw Error(ErrorCode::kInternal,
                    fmt::format("store {}: {} of key {}: the store has been closed by this process",
                                address, operation, key));
      }
      throw Error(
          ErrorCode::kRankDied,
          fmt::format("store {}: {} of key {} failed: {}. The process that serves the store "
                      "has ended",
                      address, operation, key, e.code().message()));
    }
  }

  const std::string host;
  const std::uint16_t port;
  const std::string address;
  std::atomic<bool> closed{false};
  std::mutex mutex;
  std::vector<std::shared_ptr<Connection>> idle;
  std::vector<std::weak_ptr<Connection>> all;  // for close()
};

std::shared_ptr<Connection> TcpStore::Impl::connect(Deadline deadline) {
  // Pauses grow from 10 ms to 2 s: short for a server that is about to listen, and jittered for a
  // server that a thousand ranks contact at once.
  constexpr Seconds kLongestPause{2};
  Seconds pause{0.01};
  std::minstd_rand random(std::random_device{}());
  std::string reason = "no attempt succeeded";
  while (true) {
    auto connection = std::make_shared<Connection>(closed);
    {
      const std::lock_guard lock(mutex);
      std::erase_if(all, [](const auto& known) { return known.expired(); });
      all.push_back(connection);
    }
    if (closed) throw asio::system_error(asio::error::operation_aborted);
    try {
      connection->connect(host, port, deadline);
      return connection;
    } catch (const DeadlineReached&) {
    } catch (const NotAStore&) {
      if (closed) throw asio::system_error(asio::error::operation_aborted);
      reason = "a connection was accepted, but what answers is not a store";
    } catch (const asio::system_error& e) {
      if (closed) throw;
      reason = e.code().message();
    }
    const Seconds jittered = pause * std::uniform_real_distribution<double>(0.5, 1.0)(random);
    const Seconds left = deadline - SteadyClock::now();
    if (left <= Seconds(0)) {
      throw StoreTimeout(
          fmt::format("store {}: no connection before the timeout ended ({}). Is the rank or the "
                      "launcher that serves the store running, and do MASTER_ADDR and MASTER_PORT "
                      "lead to it?",
                      address, reason),
          {});
    }
    std::this_thread::sleep_for(std::min(jittered, left));
    pause = std::min(pause * 1.6, kLongestPause);
  }
}

TcpStore::TcpStore(std::string host, std::uint16_t port, Seconds timeout)
    : impl_(std::make_unique<Impl>(std::move(host), port)) {
  impl_->idle.push_back(impl_->connect(deadline_after(timeout)));
}

TcpStore::~TcpStore() = default;

const std::string& TcpStore::address() const noexcept {
  return impl_->address;
}

void TcpStore::close() {
  impl_->closed = true;
  const std::lock_guard lock(impl_->mutex);
  impl_->idle.clear();
  for (const auto& known : impl_->all) {
    if (const auto connection = known.lock()) connection->interrupt();
  }
}

void TcpStore::set(const std::string& key, std::string_view value, Seconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  // A set has no answer. The following ping has one, which confirms that the set is done.
  impl_->call("set", key, deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kSet).key(key).text(value).take() +
                         Writer(Opcode::kPing).number(std::uint32_t{0}).take(),
                     deadline);
    return connection.read_number<std::uint32_t>(deadline);
  });
}

std::string TcpStore::get(const std::string& key, Seconds timeout) {
  wait({key}, timeout);
  const Deadline deadline = deadline_after(std::max(timeout, kAnswerTime));
  return impl_->call("get", key, deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kGet).key(key).take(), deadline);
    return connection.read_text(deadline);
  });
}

void TcpStore::wait(const std::vector<std::string>& keys, Seconds timeout) {
  if (keys.empty()) return;
  const Deadline deadline = deadline_after(timeout);
  const Deadline connected = deadline_after(std::max(timeout, kAnswerTime));
  const bool complete = impl_->call("wait", join(keys), connected, [&](Connection& connection) {
    connection.write(Writer(Opcode::kWait).keys(keys).take(), connected);
    try {
      connection.read_number<WaitAnswer>(deadline);
      return true;
    } catch (const DeadlineReached&) {
    }
    // The keys may be set while the cancellation is in flight; then both answers arrive.
    const Deadline soon = deadline_after(kAnswerTime);
    connection.write(Writer(Opcode::kCancelWait).take(), soon);
    if (connection.read_number<WaitAnswer>(soon) == WaitAnswer::kCancelled) return false;
    connection.read_number<WaitAnswer>(soon);
    return true;
  });
  if (complete) return;
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!check({key}, kAnswerTime)) missing.push_back(key);
  }
  if (missing.empty()) return;  // they have just appeared
  const std::string message = fmt::format(
      "store {}: timed out after {} waiting for {} of {} keys: {}", impl_->address,
      format_duration(std::max(timeout, Seconds(0))), missing.size(), keys.size(), join(missing));
  throw StoreTimeout(message, std::move(missing));
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t amount, Seconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  return impl_->call("add", key, deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kAdd).key(key).number(amount).take(), deadline);
    return connection.read_number<std::int64_t>(deadline);
  });
}

std::string TcpStore::compare_set(const std::string& key, std::string_view expected,
                                  std::string_view desired, Seconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  return impl_->call("compare_set", key, deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kCompareSet).key(key).text(expected).text(desired).take(),
                     deadline);
    return connection.read_text(deadline);
  });
}

bool TcpStore::check(const std::vector<std::string>& keys, Seconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  return impl_->call("check", join(keys), deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kCheck).keys(keys).take(), deadline);
    return connection.read_number<CheckAnswer>(deadline) == CheckAnswer::kReady;
  });
}

bool TcpStore::remove(const std::string& key, Seconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  return impl_->call("delete", key, deadline, [&](Connection& connection) {
    connection.write(Writer(Opcode::kDelete).key(key).take(), deadline);
    return connection.read_number<std::int64_t>(deadline) > 0;
  });
}

}  // namespace gradsync
