#include "gradsync/simulator/kernel/link_loads.hpp"

#include <algorithm>
#include <limits>

#include "gradsync/core/error.hpp"

namespace gradsync {

LinkLoads::Number LinkLoads::number(Link* link) {
  const auto [known, is_new] = numbers_.emplace(link, static_cast<Number>(links_.size()));
  if (is_new) {
    Account account;
    account.link = link;
    account.nominal = link->get_bandwidth();
    links_.push_back(std::move(account));
  }
  return known->second;
}

LinkLoads::Way LinkLoads::way(const std::vector<Link*>& links) {
  Way numbers;
  for (Link* link : links) numbers.push_back(number(link));
  return numbers;
}

void LinkLoads::change(Account& account, double share, int closed) {
  if (account.bytes > 0 && !account.always_solve) {
    throw Error(ErrorCode::kInternal,
                "the bandwidth of link " + account.link->get_name() +
                    " changes while the simulation runs, and always_solve was not called for it");
  }
  const Seconds now = engine_->now();
  account.capacity += account.nominal * account.effective_share() * (now - account.since).count();
  account.since = now;
  account.share = share;
  closed_ += closed - account.closed;
  account.closed = closed;
  set_bandwidth(account, account.effective_share());
}

void LinkLoads::set_bandwidth(const Account& account, double share) {
  constexpr double kNothing = 1e-12;
  account.link->set_bandwidth(account.nominal * std::max(share, kNothing));
}

void LinkLoads::expect_recovery(Link* link) {
  links_[number(link)].recovers = true;
  any_recovers_ = true;
}

void LinkLoads::show_nominal(const Way& way, bool nominal) {
  for (const Number link : way) {
    const Account& account = links_[link];
    if (!account.recovers || account.effective_share() >= 1) continue;
    set_bandwidth(account, nominal ? 1 : account.effective_share());
  }
}

void LinkLoads::set_share(Link* link, double share) {
  Account& account = links_[number(link)];
  change(account, share, account.closed);
}

void LinkLoads::close(Link* link, Seconds date) {
  Account& account = links_[number(link)];
  account.opens = std::max(account.opens, date);
  change(account, account.share, account.closed + 1);
}

void LinkLoads::open(Link* link) {
  Account& account = links_[number(link)];
  change(account, account.share, account.closed - 1);
}

Seconds LinkLoads::time_to_open(const Way& way) const {
  constexpr Seconds kMargin{1e-9};  // events at the same time are unordered
  Seconds longest{0};
  if (closed_ == 0) return longest;
  for (const Number link : way) {
    const Account& account = links_[link];
    if (account.closed == 0) continue;
    longest = std::max(longest, account.opens - engine_->now() + kMargin);
  }
  return longest;
}

bool LinkLoads::is_plain(const Way& way) const {
  return !way.empty() && std::none_of(way.begin(), way.end(),
                                      [&](const Number link) { return links_[link].always_solve; });
}

bool LinkLoads::is_cut(const Way& way) const {
  return std::any_of(way.begin(), way.end(),
                     [&](const Number link) { return links_[link].effective_share() <= 0; });
}

void LinkLoads::lose_packets(Link* link, const LossPeriod& period) {
  links_[number(link)].losses.push_back(period);
}

std::vector<LossPeriod> LinkLoads::losses(const Way& way) const {
  std::vector<LossPeriod> all;
  for (const Number link : way) {
    all.insert(all.end(), links_[link].losses.begin(), links_[link].losses.end());
  }
  return all;
}

BytesPerSecond LinkLoads::nominal_bandwidth(const Way& way) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Number link : way) least = std::min(least, links_[link].nominal);
  return {least};
}

void LinkLoads::describe(Link* link, const std::string& condition) {
  std::string& text = links_[number(link)].condition;
  text += (text.empty() ? "" : ", ") + condition;
}

void LinkLoads::begin_communication() {
  if (++communications_ == 1) communication_begin_ = engine_->now();
}

void LinkLoads::end_communication() {
  if (--communications_ == 0) communication_ += engine_->now() - communication_begin_;
}

NetworkLoad LinkLoads::result(Seconds end) const {
  NetworkLoad load;
  load.communication = communication_;
  for (const Account& account : links_) {
    const double capacity = account.capacity + account.nominal * account.effective_share() *
                                                   (end - account.since).count();
    if (account.bytes == 0 || capacity <= 0 || communication_ <= Seconds{0}) continue;
    LinkLoad link;
    link.name = account.link->get_name();
    link.bandwidth = {capacity / end.count()};
    link.bytes = account.bytes;
    link.bytes_of_others = account.bytes_of_others;
    link.use = account.bytes / (link.bandwidth.value * communication_.count());
    link.use_by_others = account.bytes_of_others / capacity;
    link.condition = account.condition;
    load.links.push_back(std::move(link));
  }
  std::stable_sort(load.links.begin(), load.links.end(), [](const auto& a, const auto& b) {
    return a.use + a.use_by_others > b.use + b.use_by_others;
  });
  if (load.links.empty()) return load;
  constexpr double kAlike = 0.99;
  const double busiest = load.links.front().use + load.links.front().use_by_others;
  load.as_busy = std::count_if(load.links.begin(), load.links.end(), [&](const LinkLoad& link) {
    return link.use + link.use_by_others >= busiest * kAlike;
  });
  if (load.links.size() > kListed) load.links.resize(kListed);
  return load;
}

}  // namespace gradsync
