#include "harness/measure/warm_up.h"

#include <algorithm>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/stats/stats.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

constexpr std::int64_t kRoundNs = 20'000'000;
constexpr std::int64_t kMostNs = 2'000'000'000;

/// Whether values stay within a share of the smallest, or within `resolution` of it.
bool are_close(const std::vector<double>& values, double share, double resolution) {
  const auto [least, most] = std::ranges::minmax(values);
  return most - least <= std::max(share * least, resolution);
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
  if (rounds_.size() < kRounds) return false;
  std::vector<double> calls, roundtrips, clocks;
  for (std::size_t i = rounds_.size() - kRounds; i < rounds_.size(); ++i) {
    calls.push_back(rounds_[i].call_ns);
    roundtrips.push_back(rounds_[i].roundtrip_ns);
    if (rounds_[i].clock_mhz) clocks.push_back(*rounds_[i].clock_mhz);
  }
  return are_close(calls, kMostChange, kResolutionNs) &&
         are_close(roundtrips, kMostChange, kResolutionNs) &&
         (clocks.empty() || are_close(clocks, kMostClockChange, 0));
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
