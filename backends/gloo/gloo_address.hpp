#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// What a rank publishes for Gloo's rendezvous is bytes of Gloo's own, which hold a socket address:
/// one for each peer (2022), or one for all (since 2023), whatever else stands around them.

/// The first address in what was published, without its port, as Gloo writes it in its errors:
/// "127.0.0.1"; empty where there is none.
std::string published_address(const std::vector<char>& published);

/// Whether it is the address of a socket that is bound to all interfaces, 0.0.0.0 or ::, which is
/// nobody's.
bool is_nobodys(const std::string& address);

/// A port of this machine that nobody listens at, and nobody will as long as the object lives.
class DeadPort {
 public:
  explicit DeadPort(int family);
  ~DeadPort();
  DeadPort(const DeadPort&) = delete;
  DeadPort& operator=(const DeadPort&) = delete;
  int number() const noexcept { return number_; }

 private:
  int fd_;
  int number_ = 0;
};

/// Puts 0.0.0.0 (or ::) and `port` in the place of every address. Gloo lets the rank with the
/// higher address connect, so all others try to, and are refused.
void make_nobodys(std::vector<char>& published, int port);

}  // namespace gradsync
