#include "gradsync/backends/store/tcp_store_server.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <asio.hpp>

#include "gradsync/backends/store/store_keys.hpp"
#include "gradsync/backends/store/tcp_store_session.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

using asio::ip::tcp;

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
        std::make_shared<TcpStoreSession>(std::move(socket), keys, [this] {
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
  StoreKeys keys;
  // Declared after the keys, so destroyed before them: pending handlers own sessions that refer to
  // the keys.
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
