#include "harness/measure/warm_up.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/core/clock.h"
#include "harness/stats/stats.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr std::int64_t kRoundNs = 20'000'000;
constexpr std::int64_t kLookNs = 2'000'000;

/// Whether two values differ by no more than a share of the smaller, or than `resolution`.
bool are_close(double a, double b, double share, double resolution) {
  return std::abs(a - b) <= std::max(share * std::min(a, b), resolution);
}

}  // namespace

bool SteadyStart::steady() const {
  if (rounds_.size() < 2 * kGroup) return false;
  const std::span last = std::span(rounds_).last(kGroup);
  const std::span before = std::span(rounds_).last(2 * kGroup).first(kGroup);
  for (const auto time : {&Round::call_ns, &Round::roundtrip_ns}) {
    const auto mean = [&](std::span<const Round> rounds) {
      double sum = 0;
      for (const Round& round : rounds) sum += round.*time;
      return sum / static_cast<double>(rounds.size());
    };
    const auto [least, most] = std::ranges::minmax(last, {}, time);
    if (!are_close(mean(last), mean(before), kMostDrift, kDriftResolutionNs) ||
        !are_close(least.*time, most.*time, kMostSpread, kSpreadResolutionNs))
      return false;
  }
  std::vector<double> clocks;
  for (const Round& round : last) {
    if (round.clock_mhz) clocks.push_back(*round.clock_mhz);
  }
  if (clocks.empty()) return true;
  const auto [slowest, fastest] = std::ranges::minmax(clocks);
  return are_close(slowest, fastest, kMostClockSpread, 0);
}

bool WarmUp::launch_until_steady(double most_seconds) {
  SteadyStart start;
  double seconds = 0;
  SteadyStart::Round round;
  while (!start.steady() && seconds < most_seconds) {
    round = launch_for_(kRoundNs);
    if (clock_mhz_) round.clock_mhz = clock_mhz_();
    start.add(round);
    latest_ = round;
    seconds += round.seconds;
    ++result_.rounds;
  }
  result_.seconds += seconds;
  // What never became steady is nothing to compare with.
  if (start.steady() || result_.again == 0) result_.last = round;
  return start.steady();
}

void WarmUp::warm_up() {
  result_.steady = launch_until_steady(kFirstSeconds);
}

bool WarmUp::is_slower(const SteadyStart::Round& round) const {
  const auto slower = [](double now, double before) {
    return now - before > std::max(kMostCooling * before, SteadyStart::kSpreadResolutionNs);
  };
  return slower(round.call_ns, result_.last.call_ns) ||
         slower(round.roundtrip_ns, result_.last.roundtrip_ns);
}

/// Only a second look says that it was not somebody else who had the CPU.
bool WarmUp::cooled_down() {
  return is_slower(launch_for_(kLookNs)) && is_slower(launch_for_(kLookNs));
}

bool WarmUp::keep() {
  if (!result_.steady || !cooled_down()) return true;
  ++result_.again;
  return launch_until_steady(kAgainSeconds) || !is_slower(latest_);
}

WarmUp::LaunchFor empty_launches(Device& device, std::function<void()> after_round) {
  return [&device,
          kernel = std::shared_ptr<Kernel>(device.load(kernels::null_kernel)),
          after_round = std::move(after_round)](std::int64_t nanoseconds) {
    // No stream is kept: a case must find the device as if nothing had been before it. The host has
    // a worker for each stream, and places it by their number.
    const std::unique_ptr<Stream> stream = device.create_stream();
    std::vector<double> calls, roundtrips;
    const std::int64_t begin = now_ns();
    std::int64_t waited = begin;
    while (waited - begin < nanoseconds) {
      const std::int64_t called = now_ns();
      stream->launch(*kernel, {1, 1}, nullptr);
      const std::int64_t returned = now_ns();
      stream->wait();
      waited = now_ns();
      calls.push_back(static_cast<double>(returned - called));
      roundtrips.push_back(static_cast<double>(waited - called));
    }
    const auto lower_quartile = [](std::vector<double>& values) {
      std::ranges::sort(values);
      return *stats::quantile(values, 0.25);
    };
    after_round();
    return SteadyStart::Round{lower_quartile(calls),
                              lower_quartile(roundtrips),
                              std::nullopt,
                              static_cast<double>(now_ns() - begin) * 1e-9};
  };
}

void SteadyRule::add(const Block& block) {
  for (std::size_t metric = 0; metric < block.metrics().size(); ++metric) {
    std::vector<double> values(block.values(metric).begin(), block.values(metric).end());
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (const auto median = stats::median(std::move(values)))
      medians_[block.metrics()[metric]].push_back(*median);
  }
}

bool SteadyRule::steady() const {
  return !medians_.empty() && std::ranges::all_of(medians_, [](const auto& entry) {
    std::vector<double> medians = entry.second;
    std::ranges::sort(medians);
    const auto interval = stats::median_interval(medians);
    if (!interval) return false;
    return interval->high - interval->low <= kWidth * std::abs(*stats::quantile(medians, 0.5));
  });
}

}  // namespace launchgap
