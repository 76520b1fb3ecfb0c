#include "harness/rules/who_is_late.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {
namespace {

constexpr double kChance = 0.01;

/// Whether `hits` of `steps` are more than one of n would have by chance, for all n at once.
bool beyond_chance(std::size_t hits, std::size_t steps, std::size_t n) {
  if (hits == 0 || steps == 0) return false;
  const double at_least = stats::binomial_at_least(
      static_cast<double>(steps), 1.0 / static_cast<double>(n), static_cast<double>(hits));
  return at_least < kChance / static_cast<double>(n);
}

double median_of(const std::vector<double>& values) {
  return stats::median(values).value_or(0);
}

class Judge {
 public:
  Judge(std::span<const StepTimes> devices, double uncertainty)
      : devices_(devices), uncertainty_(uncertainty), steps_(devices[0].host.size()) {
    for (const StepTimes& device : devices) {
      std::vector<double>& own = times_.emplace_back();
      for (std::size_t s = 0; s < steps_; ++s) own.push_back(device.host[s] + device.work[s]);
      medians_.push_back(median_of(own));
      hosts_.push_back(median_of(device.host));
      works_.push_back(median_of(device.work));
    }
    last_.assign(devices.size(), 0);
    for (std::size_t s = 0; s < steps_; ++s) {
      std::size_t last = 0;
      for (std::size_t d = 1; d < times_.size(); ++d) {
        if (times_[d][s] > times_[last][s]) last = d;
      }
      ++last_[last];
    }
  }

  WhoIsLate judge() {
    WhoIsLate found = always(), other = at_times();
    if (by_step(other) > by_step(found)) std::swap(found, other);
    found.last = std::move(last_);
    return found;
  }

 private:
  /// What it makes a step longer by, on average; of one that is always late its median.
  static double by_step(const WhoIsLate& found) {
    return found.lateness == Lateness::at_times ? found.late_ns * found.late_share : found.late_ns;
  }

  WhoIsLate always() const {
    WhoIsLate found;
    std::vector<double> sorted = medians_;
    std::ranges::sort(sorted);
    const double quick = sorted[(sorted.size() - 1) / 4];
    std::vector<std::size_t> who;
    std::vector<double> late, hosts, works;
    std::size_t last = 0;
    for (std::size_t d = 0; d < medians_.size(); ++d) {
      if (medians_[d] - quick > std::max(uncertainty_, kLeastLateAlways * quick)) {
        who.push_back(d);
        late.push_back(medians_[d]);
        last += last_[d];
      } else {
        hosts.push_back(hosts_[d]);
        works.push_back(works_[d]);
      }
    }
    if (who.empty() || 2 * last < steps_) return found;
    if (who.size() == 1 && !beyond_chance(last, steps_, times_.size())) return found;
    const double host = median_of(hosts), work = median_of(works);
    std::size_t by_host = 0;
    for (const std::size_t d : who) by_host += hosts_[d] - host > works_[d] - work;
    found.lateness = who.size() == 1 ? Lateness::one : Lateness::some;
    found.by_host = 2 * by_host > who.size();
    found.who = std::move(who);
    found.late_ns = median_of(late) - host - work;
    found.late_share = static_cast<double>(last) / static_cast<double>(steps_);
    return found;
  }

  WhoIsLate at_times() const {
    WhoIsLate found;
    std::vector<double> away;
    for (std::size_t d = 0; d < times_.size(); ++d) {
      for (const double time : times_[d]) away.push_back(std::abs(time - medians_[d]));
    }
    const double far = std::max(
        {uncertainty_, kLeastLateAtTimes * median_of(medians_), 5 * 1.4826 * median_of(away)});
    std::vector<std::size_t> hits(times_.size(), 0);
    std::vector<double> late;
    std::size_t by_host = 0;
    for (std::size_t s = 0; s < steps_; ++s) {
      std::size_t who = 0;
      for (std::size_t d = 1; d < times_.size(); ++d) {
        if (times_[d][s] - medians_[d] > times_[who][s] - medians_[who]) who = d;
      }
      const double by = times_[who][s] - medians_[who];
      if (by <= far) continue;
      ++hits[who];
      late.push_back(by);
      if (devices_[who].host[s] - hosts_[who] > devices_[who].work[s] - works_[who]) ++by_host;
    }
    const double share = static_cast<double>(late.size()) / static_cast<double>(steps_);
    if (late.size() < kLeastLateCount || share < kLeastLateSteps) return found;
    found.lateness = Lateness::at_times;
    found.late_ns = median_of(late);
    found.late_share = share;
    found.by_host = 2 * by_host > late.size();
    const auto most = std::ranges::max_element(hits);
    if (2 * *most >= late.size() && beyond_chance(*most, late.size(), times_.size()))
      found.who = {static_cast<std::size_t>(most - hits.begin())};
    return found;
  }

  std::span<const StepTimes> devices_;
  double uncertainty_;
  std::size_t steps_;
  std::vector<std::vector<double>> times_;
  std::vector<double> medians_, hosts_, works_;  // by device
  std::vector<std::size_t> last_;
};

}  // namespace

std::string_view name_of(Lateness lateness) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "one", "some", "at-times", "unclear"};
  return kNames.at(static_cast<std::size_t>(lateness));
}

WhoIsLate who_is_late(std::span<const StepTimes> devices, double uncertainty) {
  WhoIsLate nothing;
  nothing.last.assign(devices.size(), 0);
  if (devices.size() < 2) return nothing;
  const std::size_t steps = devices[0].host.size();
  const auto is_whole = [steps](const StepTimes& device) {
    return device.host.size() == steps && device.work.size() == steps;
  };
  if (steps == 0 || !std::ranges::all_of(devices, is_whole)) return nothing;
  return Judge(devices, uncertainty).judge();
}

WhoIsLate in_each(std::span<const WhoIsLate> processes) {
  WhoIsLate all;
  if (processes.empty()) return all;
  const WhoIsLate& first = processes.front();
  all.last.assign(first.last.size(), 0);
  std::vector<double> late, shares;
  bool agree = true;
  for (const WhoIsLate& one : processes) {
    agree = agree && one.lateness == first.lateness && one.who == first.who &&
            one.by_host == first.by_host;
    late.push_back(one.late_ns);
    shares.push_back(one.late_share);
    for (std::size_t d = 0; d < std::min(all.last.size(), one.last.size()); ++d)
      all.last[d] += one.last[d];
  }
  const auto quiet =
      static_cast<std::size_t>(std::ranges::count(processes, Lateness::none, &WhoIsLate::lateness));
  if (2 * quiet > processes.size()) {
    all.otherwise = processes.size() - quiet;
    return all;
  }
  // One that is late in each process, and in most of them alone: another one beside it in the rest
  // does not change that. In some of them it may be so at times only.
  std::vector<std::size_t> common = first.who;
  std::size_t alone = 0, at_times = 0;
  bool one_cause = true;
  for (const WhoIsLate& one : processes) {
    one_cause = one_cause && one.by_host == first.by_host;
    alone += one.who.size() == 1;
    at_times += one.lateness == Lateness::at_times;
    std::erase_if(common, [&one](std::size_t who) {
      return std::ranges::find(one.who, who) == one.who.end();
    });
  }
  const bool always = at_times == 0;
  if (one_cause && common.size() == 1 &&
      (always ? 2 * alone > processes.size() : alone == processes.size())) {
    all.lateness = always ? Lateness::one : Lateness::at_times;
  } else {
    all.lateness = agree ? first.lateness : Lateness::unclear;
    if (!agree) return all;
  }
  all.who = std::move(common);
  all.by_host = first.by_host;
  all.late_ns = median_of(late);
  all.late_share = median_of(shares);
  return all;
}

}  // namespace launchgap::rules
