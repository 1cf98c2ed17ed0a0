#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// Access to the socket addresses that ranks publish for Gloo's rendezvous. The published bytes
/// have a Gloo-internal format that contains one address per peer (2022) or a single address (since
/// 2023).

/// The first published address, without its port, as Gloo prints it in errors: "127.0.0.1"; empty
/// if there is none.
std::string published_address(const std::vector<char>& published);

/// Whether this is the wildcard address 0.0.0.0 or ::, to which nobody can connect.
bool is_nobodys(const std::string& address);

/// A port of this machine on which nothing listens, reserved for the lifetime of the object.
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

/// Replaces every address by 0.0.0.0 (or ::) and `port`. In Gloo the rank with the higher address
/// connects, so all other ranks connect to this one and are refused.
void make_nobodys(std::vector<char>& published, int port);

}  // namespace gradsync
