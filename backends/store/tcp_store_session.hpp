#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <asio.hpp>

#include "gradsync/backends/store/store_keys.hpp"
#include "gradsync/backends/store/store_protocol.hpp"

namespace gradsync {

/// One client connection: reads requests and answers them in order. Stops reading while too many
/// answers are queued, so that a client that never reads cannot exhaust the server's memory.
class TcpStoreSession final : public std::enable_shared_from_this<TcpStoreSession>,
                              public StoreWaiter {
 public:
  TcpStoreSession(asio::ip::tcp::socket socket, StoreKeys& keys, std::function<void()> on_end)
      : socket_(std::move(socket)), keys_(keys), on_end_(std::move(on_end)) {}
  ~TcpStoreSession() {
    keys_.cancel_wait(*this);
    on_end_();
  }

  void start() {
    asio::error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    proceed();
  }
  void keys_exist() override;

 private:
  /// Handles the received requests, then reads on; closes the connection on malformed input.
  void proceed();
  void close();
  void read();
  void write();
  /// Handles completely received requests while few answers are queued.
  void handle_arrived();
  /// Handles one request; returns false if it is incomplete.
  bool handle(store_protocol::Reader& reader);
  /// The requests that read keys or change them; `handle` has read the opcode.
  bool handle_key(store_protocol::Opcode opcode, store_protocol::Reader& reader);
  /// The requests for several keys.
  bool handle_keys(store_protocol::Opcode opcode, store_protocol::Reader& reader);
  bool handle_multi_set(store_protocol::Reader& reader);
  void send(std::string bytes);

  asio::ip::tcp::socket socket_;
  StoreKeys& keys_;
  std::function<void()> on_end_;
  bool validated_ = false;
  bool reading_ = false;
  std::vector<char> arrived_;
  std::array<char, 64 * 1024> chunk_;
  std::deque<std::string> answers_;
};

}  // namespace gradsync
