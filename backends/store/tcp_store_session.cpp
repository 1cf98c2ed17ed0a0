#include "gradsync/backends/store/tcp_store_session.hpp"

#include <span>
#include <string_view>

namespace gradsync {

using namespace store_protocol;

void TcpStoreSession::proceed() {
  try {
    handle_arrived();
    read();
  } catch (const Malformed&) {
    close();
  }
}

void TcpStoreSession::close() {
  // Cancels the pending operations; the last of their handlers releases the session.
  asio::error_code ignored;
  socket_.close(ignored);
}

void TcpStoreSession::read() {
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

void TcpStoreSession::write() {
  asio::async_write(socket_, asio::buffer(answers_.front()),
                    [self = shared_from_this()](asio::error_code error, std::size_t) {
                      if (error) return self->close();
                      self->answers_.pop_front();
                      if (!self->answers_.empty()) return self->write();
                      self->proceed();
                    });
}

void TcpStoreSession::handle_arrived() {
  constexpr std::size_t kMaxQueuedAnswers = 16;
  std::size_t handled = 0;
  while (answers_.size() < kMaxQueuedAnswers) {
    Reader reader(std::span<const char>(arrived_).subspan(handled));
    if (!handle(reader)) break;
    handled += reader.position();
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(handled));
}

bool TcpStoreSession::handle(Reader& reader) {
  Opcode opcode{};
  if (!reader.number(opcode)) return false;
  if (!validated_ && opcode != Opcode::kValidate) throw Malformed{"not a store client"};
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
    case Opcode::kNumKeys:
      send(Writer().number(keys_.size()).take());
      return true;
    case Opcode::kCancelWait:
      keys_.cancel_wait(*this);
      send(Writer().number(WaitAnswer::kCancelled).take());
      return true;
    case Opcode::kCheck:
    case Opcode::kWait:
    case Opcode::kMultiGet:
      return handle_keys(opcode, reader);
    case Opcode::kMultiSet:
      return handle_multi_set(reader);
    default:
      return handle_key(opcode, reader);
  }
}

bool TcpStoreSession::handle_key(Opcode opcode, Reader& reader) {
  std::string_view key;
  std::string_view value;
  switch (opcode) {
    case Opcode::kSet:
      if (!reader.key(key) || !reader.value(value)) return false;
      keys_.set(std::string(key), std::string(value));
      return true;
    case Opcode::kCompareSet: {
      std::string_view desired;
      if (!reader.key(key) || !reader.value(value) || !reader.value(desired)) return false;
      send(Writer().text(keys_.compare_set(std::string(key), value, desired)).take());
      return true;
    }
    case Opcode::kGet:
      if (!reader.key(key)) return false;
      send(Writer().text(keys_.get(std::string(key))).take());
      return true;
    case Opcode::kAdd: {
      std::int64_t amount = 0;
      if (!reader.key(key) || !reader.number(amount)) return false;
      send(Writer().number(keys_.add(std::string(key), amount)).take());
      return true;
    }
    case Opcode::kDelete:
      if (!reader.key(key)) return false;
      send(Writer().number(keys_.remove(std::string(key))).take());
      return true;
    case Opcode::kAppend:
      if (!reader.key(key) || !reader.value(value)) return false;
      keys_.append(std::string(key), value);
      return true;
    default:
      throw Malformed{"unknown opcode"};
  }
}

bool TcpStoreSession::handle_keys(Opcode opcode, Reader& reader) {
  std::vector<std::string> keys;
  if (!reader.keys(keys)) return false;
  if (opcode == Opcode::kWait) {
    keys_.wait(*this, keys);
  } else if (opcode == Opcode::kCheck) {
    send(
        Writer().number(keys_.has_all(keys) ? CheckAnswer::kReady : CheckAnswer::kNotReady).take());
  } else {
    Writer answer;
    for (const std::string& wanted : keys) answer.text(keys_.get(wanted));
    send(answer.take());
  }
  return true;
}

bool TcpStoreSession::handle_multi_set(Reader& reader) {
  std::string_view key;
  std::string_view value;
  std::uint64_t count = 0;
  if (!reader.count(count)) return false;
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!reader.key(key) || !reader.value(value)) return false;
    pairs.emplace_back(key, value);
    reader.limit(kMaxMultiSetBytes, "too much in one request");
  }
  for (const auto& [name, text] : pairs) keys_.set(std::string(name), std::string(text));
  return true;
}

void TcpStoreSession::keys_exist() {
  send(Writer().number(WaitAnswer::kStopWaiting).take());
}

void TcpStoreSession::send(std::string bytes) {
  answers_.push_back(std::move(bytes));
  if (answers_.size() == 1) write();
}

}  // namespace gradsync
