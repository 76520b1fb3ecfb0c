#include "harness/measure/warm_up.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/stats/stats.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

constexpr std::int64_t kRoundNs = 20'000'000;
constexpr std::int64_t kMostNs = 2'000'000'000;

/// Whether two values differ by no more than a share of the smaller, or than `resolution`.
bool are_close(double a, double b, double share, double resolution) {
  return std::abs(a - b) <= std::max(share * std::min(a, b), resolution);
}

SteadyStart::Round launch_for_a_round(Stream& stream, const Kernel& kernel) {
  std::vector<double> calls, roundtrips;
  const std::int64_t begin = now_ns();
  std::int64_t waited = begin;
  while (waited - begin < kRoundNs) {
    const std::int64_t called = now_ns();
    stream.launch(kernel, {1, 1}, nullptr);
    const std::int64_t returned = now_ns();
    stream.wait();
    waited = now_ns();
    calls.push_back(static_cast<double>(returned - called));
    roundtrips.push_back(static_cast<double>(waited - called));
  }
  const auto lower_quartile = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return *stats::quantile(values, 0.25);
  };
  return {lower_quartile(calls), lower_quartile(roundtrips), std::nullopt};
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

std::optional<WarmUp> warm_up(Device& device,
                              const std::function<std::optional<double>()>& clock_mhz,
                              const std::function<void()>& after_round) {
  const std::int64_t begin = now_ns();
  const std::unique_ptr<Stream> stream = device.create_stream();
  std::unique_ptr<Kernel> kernel;
  try {
    kernel = device.load(kernels::null_kernel);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
  SteadyStart start;
  while (!start.steady() && now_ns() - begin < kMostNs) {
    SteadyStart::Round round = launch_for_a_round(*stream, *kernel);
    round.clock_mhz = clock_mhz();
    start.add(round);
    after_round();
  }
  return WarmUp{
      start.steady(), static_cast<double>(now_ns() - begin) * 1e-9, start.rounds(), start.last()};
}

}  // namespace launchgap
