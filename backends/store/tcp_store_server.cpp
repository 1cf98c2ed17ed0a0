#include "gradsync/backends/store/tcp_store_server.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <asio.hpp>

#include "gradsync/backends/store/store_protocol.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

using asio::ip::tcp;
using namespace store_protocol;

class Session;

/// The keys and their waiters. Used only by the server's thread.
class Table {
 public:
  void set(const std::string& key, std::string value) {
    values_[key] = std::move(value);
    wake(key);
  }
  std::string get(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string() : found->second;
  }
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired) {
    const auto found = values_.find(key);
    if (found == values_.end() && !expected.empty()) return std::string(expected);
    if (found == values_.end() || found->second == expected) set(key, std::string(desired));
    return values_[key];
  }
  std::int64_t add(const std::string& key, std::int64_t amount);
  void append(const std::string& key, std::string_view value) {
    values_[key] += value;
    wake(key);
  }
  std::int64_t remove(const std::string& key) {
    return static_cast<std::int64_t>(values_.erase(key));
  }
  bool has_all(const std::vector<std::string>& keys) const {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return values_.count(key) > 0; });
  }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

  /// Answers at once if all keys exist, otherwise when the last of them is set.
  void wait(Session& session, const std::vector<std::string>& keys);
  void cancel_wait(Session& session);

 private:
  void wake(const std::string& key);

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::set<Session*>> waiting_for_;
  std::unordered_map<Session*, std::set<std::string>> missing_of_;
};

/// One client connection: reads requests and answers them in order. Stops reading while too many
/// answers are queued, so that a client that never reads cannot exhaust the server's memory.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Table& table, std::function<void()> on_end)
      : socket_(std::move(socket)), table_(table), on_end_(std::move(on_end)) {}
  ~Session() {
    table_.cancel_wait(*this);
    on_end_();
  }

  void start() {
    asio::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    proceed();
  }
  void send(std::string bytes) {
    answers_.push_back(std::move(bytes));
    if (answers_.size() == 1) write();
  }

 private:
  /// Handles the received requests, then reads on; closes the connection on malformed input.
  void proceed();
  void close();
  void read();
  void write();
  /// Handles completely received requests while few answers are queued.
  void handle_arrived();
  /// Handles one request; returns false if it is incomplete.
  bool handle(Reader& reader);

  tcp::socket socket_;
  Table& table_;
  std::function<void()> on_end_;
  bool validated_ = false;
  bool reading_ = false;
  std::vector<char> arrived_;
  std::array<char, 64 * 1024> chunk_;
  std::deque<std::string> answers_;
};

std::int64_t Table::add(const std::string& key, std::int64_t amount) {
  const std::string old = get(key);
  std::int64_t sum = 0;
  if (!old.empty()) {
    const auto parsed = std::from_chars(old.data(), old.data() + old.size(), sum);
    if (parsed.ec != std::errc() || parsed.ptr != old.data() + old.size()) {
      throw Malformed{"add to a value that is not a number"};
    }
  }
  if (__builtin_add_overflow(sum, amount, &sum)) throw Malformed{"counter overflow"};
  set(key, std::to_string(sum));
  return sum;
}

void Table::wait(Session& session, const std::vector<std::string>& keys) {
  cancel_wait(session);
  std::set<std::string> missing;
  for (const std::string& key : keys) {
    if (values_.count(key) == 0) missing.insert(key);
  }
  if (missing.empty()) {
    session.send(Writer().number(WaitAnswer::kStopWaiting).take());
    return;
  }
  for (const std::string& key : missing) waiting_for_[key].insert(&session);
  missing_of_[&session] = std::move(missing);
}

void Table::cancel_wait(Session& session) {
  const auto found = missing_of_.find(&session);
  if (found == missing_of_.end()) return;
  for (const std::string& key : found->second) {
    const auto waiting = waiting_for_.find(key);
    waiting->second.erase(&session);
    if (waiting->second.empty()) waiting_for_.erase(waiting);
  }
  missing_of_.erase(found);
}

void Table::wake(const std::string& key) {
  const auto found = waiting_for_.find(key);
  if (found == waiting_for_.end()) return;
  const std::set<Session*> sessions = std::move(found->second);
  waiting_for_.erase(found);
  for (Session* session : sessions) {
    const auto missing = missing_of_.find(session);
    missing->second.erase(key);
    if (!missing->second.empty()) continue;
    missing_of_.erase(missing);
    session->send(Writer().number(WaitAnswer::kStopWaiting).take());
  }
}

void Session::proceed() {
  try {
    handle_arrived();
    read();
  } catch (const Malformed&) {
    close();
  }
}

void Session::close() {
  // Cancels the pending operations; the last of their handlers releases the session.
  asio::error_code ignored;
  socket_.close(ignored);
}

void Session::read() {
  if (reading_ || !answers_.empty()) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](asio::error_code error, std::size_t bytes) {
                            self->reading_ = false;
                            if (error) return self->close();
                            const auto* begin = self->chunk_.data();
                            self->arrived_.insert(self->arrived_.end(), begin, begin + bytes);
                            self->proceed();
                          });
}

void Session::write() {
  asio::async_write(socket_, asio::buffer(answers_.front()),
                    [self = shared_from_this()](asio::error_code error, std::size_t) {
                      if (error) return self->close();
                      self->answers_.pop_front();
                      if (!self->answers_.empty()) return self->write();
                      self->proceed();
                    });
}

void Session::handle_arrived() {
  constexpr std::size_t kMaxQueuedAnswers = 16;
  std::size_t handled = 0;
  while (answers_.size() < kMaxQueuedAnswers) {
    Reader reader(std::span<const char>(arrived_).subspan(handled));
    if (!handle(reader)) break;
    handled += reader.position();
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(handled));
}

bool Session::handle(Reader& reader) {
  Opcode opcode{};
  if (!reader.number(opcode)) return false;
  if (!validated_ && opcode != Opcode::kValidate) throw Malformed{"not a store client"};

  std::string_view key;
  std::string_view value;
  std::vector<std::string> keys;
  switch (opcode) {
    case Opcode::kValidate: {
      std::uint32_t magic = 0;
      if (!reader.number(magic)) return false;
      if (magic != kMagic) throw Malformed{"not a store client"};
      validated_ = true;
      return true;
    }
    case Opcode::kPing: {
      std::uint32_t nonce = 0;
      if (!reader.number(nonce)) return false;
      send(Writer().number(nonce).take());
      return true;
    }
    case Opcode::kSet:
      if (!reader.key(key) || !reader.value(value)) return false;
      table_.set(std::string(key), std::string(value));
      return true;
    case Opcode::kCompareSet: {
      std::string_view desired;
      if (!reader.key(key) || !reader.value(value) || !reader.value(desired)) return false;
      send(Writer().text(table_.compare_set(std::string(key), value, desired)).take());
      return true;
    }
    case Opcode::kGet:
      if (!reader.key(key)) return false;
      send(Writer().text(table_.get(std::string(key))).take());
      return true;
    case Opcode::kAdd: {
      std::int64_t amount = 0;
      if (!reader.key(key) || !reader.number(amount)) return false;
      send(Writer().number(table_.add(std::string(key), amount)).take());
      return true;
    }
    case Opcode::kCheck:
      if (!reader.keys(keys)) return false;
      send(Writer()
               .number(table_.has_all(keys) ? CheckAnswer::kReady : CheckAnswer::kNotReady)
               .take());
      return true;
    case Opcode::kWait:
      if (!reader.keys(keys)) return false;
      table_.wait(*this, keys);
      return true;
    case Opcode::kNumKeys:
      send(Writer().number(table_.size()).take());
      return true;
    case Opcode::kDelete:
      if (!reader.key(key)) return false;
      send(Writer().number(table_.remove(std::string(key))).take());
      return true;
    case Opcode::kAppend:
      if (!reader.key(key) || !reader.value(value)) return false;
      table_.append(std::string(key), value);
      return true;
    case Opcode::kMultiGet: {
      if (!reader.keys(keys)) return false;
      Writer answer;
      for (const std::string& wanted : keys) answer.text(table_.get(wanted));
      send(answer.take());
      return true;
    }
    case Opcode::kMultiSet: {
      std::uint64_t count = 0;
      if (!reader.count(count)) return false;
      std::vector<std::pair<std::string_view, std::string_view>> pairs;
      for (std::uint64_t i = 0; i < count; ++i) {
        if (!reader.key(key) || !reader.value(value)) return false;
        pairs.emplace_back(key, value);
        reader.limit(kMaxMultiSetBytes, "too much in one request");
      }
      for (const auto& [name, text] : pairs) table_.set(std::string(name), std::string(text));
      return true;
    }
    case Opcode::kCancelWait:
      table_.cancel_wait(*this);
      send(Writer().number(WaitAnswer::kCancelled).take());
      return true;
  }
  throw Malformed{"unknown opcode"};
}

tcp::acceptor listen(asio::io_context& io, const TcpStoreServer::Options& options) {
  tcp::acceptor acceptor(io);
  const auto open = [&](const tcp::endpoint& endpoint) {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false));
    acceptor.bind(endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections);
  };
  try {
    if (!options.bind_address.empty()) {
      open(tcp::endpoint(asio::ip::make_address(options.bind_address), options.port));
      return acceptor;
    }
    try {
      open(tcp::endpoint(tcp::v6(), options.port));
    } catch (const asio::system_error& e) {
      if (e.code() == asio::error::address_in_use) throw;
      acceptor = tcp::acceptor(io);  // a machine without IPv6
      open(tcp::endpoint(tcp::v4(), options.port));
    }
    return acceptor;
  } catch (const asio::system_error& e) {
    throw Error(
        ErrorCode::kBackendUnavailable,
        fmt::format("store: cannot listen on {}:{}: {}. Is another job using the port? Choose "
                    "another with --master-port or MASTER_PORT",
                    options.bind_address.empty() ? "*" : options.bind_address, options.port,
                    e.code().message()));
  }
}

}  // namespace

struct TcpStoreServer::Impl {
  explicit Impl(const Options& options)
      : acceptor(listen(io, options)), port(acceptor.local_endpoint().port()) {
    accept();
    thread = std::thread([this] { io.run(); });
  }

  ~Impl() {
    io.stop();
    thread.join();
  }

  void accept() {
    acceptor.async_accept([this](asio::error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        change_clients(+1);
        std::make_shared<Session>(std::move(socket), table, [this] {
          change_clients(-1);
        })->start();
        accept();
        return;
      }
      // Most likely out of file descriptors: retry, since some may be closed soon.
      retry.expires_after(std::chrono::milliseconds(50));
      retry.async_wait([this](asio::error_code cancelled) {
        if (!cancelled) accept();
      });
    });
  }

  void change_clients(int by) {
    const std::lock_guard lock(mutex);
    clients += by;
    if (clients == 0) idle.notify_all();
  }

  std::mutex mutex;
  std::condition_variable idle;
  int clients = 0;
  Table table;
  // Declared after the table, so destroyed before it: pending handlers own sessions that refer to
  // the table.
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::steady_timer retry{io};
  std::uint16_t port;
  std::thread thread;
};

TcpStoreServer::TcpStoreServer(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
TcpStoreServer::~TcpStoreServer() = default;

std::uint16_t TcpStoreServer::port() const noexcept {
  return impl_->port;
}

bool TcpStoreServer::wait_until_idle(Seconds timeout) {
  std::unique_lock lock(impl_->mutex);
  return impl_->idle.wait_for(lock, timeout, [&] { return impl_->clients == 0; });
}

}  // namespace gradsync
