#include "gradsync/backends/gloo/gloo_connect.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include "gradsync/backends/gloo/gloo_address.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/rank_list.hpp"

namespace gradsync {
namespace {

using std::chrono::milliseconds;

/// The store interface for Gloo's rendezvous.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<gradsync::Store> store, Seconds timeout)
      : store_(std::move(store)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::vector<char> published = data;
    if (wrong_port_ && !published_address(published).empty()) {
      make_nobodys(published, wrong_port_->number());
    }
    store_->set(key, {published.data(), published.size()}, timeout_);
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { store_->wait(keys, timeout_); }
  // Ignores Gloo's own timeout, which connect_gloo shortens for another reason (see there).
  void wait(const std::vector<std::string>& keys, const milliseconds&) override {
    store_->wait(keys, timeout_);
  }
#ifdef GLOO_STORE_HAS_STORE_V2
  bool has_v2_support() override {
    return false;
  }
#endif

  /// Fault injection: publish an unreachable address for this rank from now on.
  void publish_wrong_address(int family) {
    wrong_port_.emplace(family);
  }
  /// The address that `rank` has published; empty if none yet.
  std::string address_of(int rank) {
    constexpr Seconds kShort{0.1};  // the rendezvous has already failed
    try {
      const std::string value = store_->get(std::to_string(rank), kShort);
      return published_address({value.begin(), value.end()});
    } catch (const Error&) {
      return {};
    }
  }

 private:
  std::shared_ptr<gradsync::Store> store_;
  Seconds timeout_;
  std::optional<DeadPort> wrong_port_;
};

struct LocalAddress {
  std::string text;
  int family = AF_INET;
  bool loopback = false;
};

/// The local address from which packets to `host` are sent. Sends nothing.
LocalAddress address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), "9", &hints, &found);
  if (failed != 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("MASTER_ADDR {} cannot be resolved: {}", host, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  // IPv4 first: "localhost" often resolves to both, and Gloo's ranks must agree on one.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
      if (info->ai_family != family) continue;
      const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      sockaddr_storage local{};
      socklen_t length = sizeof(local);
      const bool ok = ::connect(fd, info->ai_addr, info->ai_addrlen) == 0 &&
                      ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0;
      ::close(fd);
      if (!ok) continue;
      std::array<char, NI_MAXHOST> text{};
      if (::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text.data(), text.size(),
                        nullptr, 0, NI_NUMERICHOST) != 0) {
        continue;
      }
      const std::string address = text.data();
      return {address, family, address.rfind("127.", 0) == 0 || address == "::1"};
    }
  }
  throw Error(ErrorCode::kUsage, fmt::format("this machine has no route to MASTER_ADDR {}", host));
}

/// The names of this machine's network interfaces that are up.
std::vector<std::string> interfaces() {
  std::vector<std::string> names;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const std::string name = entry->ifa_name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Refuses an interface that this machine does not have, or that is not the name of one.
void check_interface(int rank, const std::string& interface) {
  const std::vector<std::string> known = interfaces();
  if (known.empty() || std::find(known.begin(), known.end(), interface) != known.end()) return;
  const bool is_pattern = interface.find_first_of("^=,:* ") != std::string::npos;
  throw Error(
      ErrorCode::kMisuse,
      fmt::format("rank {}: \"{}\" is not a network interface of this machine, which has {}. {}",
                  rank, interface, fmt::join(known, ", "),
                  is_pattern ? "gloo.interface and GLOO_SOCKET_IFNAME take the name of one "
                               "interface; lists, ^NAME and =NAME are the syntax of "
                               "NCCL_SOCKET_IFNAME"
                             : "Set gloo.interface or GLOO_SOCKET_IFNAME to one of them, on each "
                               "node to its own"));
}

gloo::transport::tcp::attr device_attributes(const RankEnvironment& environment,
                                             const std::string& interface) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = interface;
  if (interface.empty()) {
    attributes.iface = process_environment("GLOO_SOCKET_IFNAME").value_or("");
  }
  if (!attributes.iface.empty()) {
    check_interface(environment.rank, attributes.iface);
    return attributes;
  }
  const LocalAddress local = address_towards(environment.master_addr);
  if (local.loopback && environment.local_world_size < environment.world_size) {
    throw Error(ErrorCode::kUsage,
                fmt::format("rank {}: MASTER_ADDR {} is a loopback address here ({}), which ranks "
                            "on other nodes cannot reach; set gloo.interface in the scenario or "
                            "GLOO_SOCKET_IFNAME to the network interface to use",
                            environment.rank, environment.master_addr, local.text));
  }
  attributes.hostname = local.text;
  attributes.ai_family = local.family;
  return attributes;
}

/// The ranks that Gloo's error refers to, by their published addresses: those with an unreachable
/// address, otherwise the rank that owns the address in the error, if it is unique.
std::vector<int> unreachable_ranks(GlooStore& store, const RankEnvironment& environment,
                                   const std::string& error) {
  std::vector<int> nowhere, named;
  for (int rank = 0; rank < environment.world_size; ++rank) {
    if (rank == environment.rank) continue;
    const std::string address = store.address_of(rank);
    if (address.empty()) continue;
    if (is_nobodys(address)) nowhere.push_back(rank);
    if (error.find("[" + address + "]") != std::string::npos) named.push_back(rank);
  }
  if (!nowhere.empty()) return nowhere;
  return named.size() == 1 ? named : std::vector<int>{};
}

}  // namespace

std::shared_ptr<gloo::Context> connect_gloo(const RankEnvironment& environment,
                                            std::shared_ptr<Store> store,
                                            const std::string& key_prefix,
                                            const std::string& interface, Seconds timeout,
                                            bool wrong_address) {
  const auto timeout_ms = std::max(milliseconds(1), std::chrono::ceil<milliseconds>(timeout));
  auto context =
      std::make_shared<gloo::rendezvous::Context>(environment.rank, environment.world_size);
  GlooStore gloo_store(std::make_shared<PrefixStore>(key_prefix, std::move(store)), timeout);
  try {
    const auto attributes = device_attributes(environment, interface);
    if (wrong_address) {
      gloo_store.publish_wrong_address(attributes.ai_family == AF_INET6 ? AF_INET6 : AF_INET);
    }
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    // Gloo's connect timeout is five times the context's timeout.
    constexpr int kGlooConnectFactor = 5;
    context->setTimeout(std::max(milliseconds(1), timeout_ms / kGlooConnectFactor));
    context->connectFullMesh(gloo_store, device);
  } catch (const gloo::EnforceNotMet& e) {
    throw Error(ErrorCode::kUsage, fmt::format("rank {}: Gloo cannot use the network interface: {}",
                                               environment.rank, e.what()));
  } catch (const gloo::Exception& e) {
    const std::vector<int> unreachable = unreachable_ranks(gloo_store, environment, e.what());
    throw ConnectError(
        fmt::format(
            "rank {}: Gloo could not connect to {} within {:.3g} s: {}. Do all nodes reach each "
            "other on the chosen interface (gloo.interface)?",
            environment.rank, unreachable.empty() ? "all other ranks" : rank_list(unreachable),
            timeout.count(), e.what()),
        unreachable);
  }
  context->setTimeout(timeout_ms);
  return context;
}

}  // namespace gradsync
