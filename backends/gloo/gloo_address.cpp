#include "gradsync/backends/gloo/gloo_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

/// Calls `found(offset, sockaddr_in or sockaddr_in6)` for every address; no other bytes have the
/// family, a port and the zeros that the kernel puts into an address. `found` returns whether to
/// continue.
template <typename Found>
void for_each_address(const std::vector<char>& bytes, const Found& found) {
  for (std::size_t at = 0; at + sizeof(sockaddr_in) <= bytes.size(); ++at) {
    sockaddr_in v4{};
    std::memcpy(&v4, bytes.data() + at, sizeof(v4));
    constexpr std::array<unsigned char, sizeof(v4.sin_zero)> kZeros{};
    const bool is_v4 = v4.sin_family == AF_INET && v4.sin_port != 0 &&
                       std::memcmp(v4.sin_zero, kZeros.data(), kZeros.size()) == 0;
    if (is_v4) {
      if (!found(at, v4)) return;
      at += sizeof(v4) - 1;
      continue;
    }
    if (at + sizeof(sockaddr_in6) > bytes.size()) continue;
    sockaddr_in6 v6{};
    std::memcpy(&v6, bytes.data() + at, sizeof(v6));
    if (v6.sin6_family != AF_INET6 || v6.sin6_port == 0 || v6.sin6_flowinfo != 0) continue;
    if (!found(at, v6)) return;
    at += sizeof(v6) - 1;
  }
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
}

std::string text_of(const sockaddr_in6& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
}

void set_nobodys(sockaddr_in& address, int port) {
  address.sin_addr.s_addr = INADDR_ANY;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
}

void set_nobodys(sockaddr_in6& address, int port) {
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
}

}  // namespace

std::string published_address(const std::vector<char>& published) {
  std::string text;
  for_each_address(published, [&](std::size_t, const auto& address) {
    text = text_of(address);
    return false;
  });
  return text;
}

bool is_nobodys(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

DeadPort::DeadPort(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);  // zeros: all interfaces, any free port
  socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (fd_ < 0 || ::bind(fd_, raw, length) != 0 || ::getsockname(fd_, raw, &length) != 0) {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    throw Error(ErrorCode::kInternal,
                fmt::format("no port for a wrong address: {}", std::strerror(error)));
  }
  number_ = ntohs(family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                    : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

DeadPort::~DeadPort() {
  ::close(fd_);
}

void make_nobodys(std::vector<char>& published, int port) {
  std::vector<char> changed = published;
  for_each_address(published, [&](std::size_t at, auto address) {
    set_nobodys(address, port);
    std::memcpy(changed.data() + at, &address, sizeof(address));
    return true;
  });
  published = std::move(changed);
}

}  // namespace gradsync
