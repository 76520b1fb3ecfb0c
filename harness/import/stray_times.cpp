#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "harness/import/repairs.h"

namespace launchgap::recording {
namespace {

constexpr std::int64_t kFarAway = std::int64_t{86'400} * 1'000'000'000;

/// Of records with begins and ends, the first and the last that can be.
std::pair<std::int64_t, std::int64_t> usual_times(std::vector<std::int64_t> times) {
  constexpr std::size_t kFewest = 20, kOneOf = 100;  // of ten records, each with two times
  std::pair<std::int64_t, std::int64_t> usual{0, std::numeric_limits<std::int64_t>::max()};
  if (times.size() < kFewest) return usual;
  std::ranges::sort(times);
  // Both times of one record are away, and those of more only of many records.
  const std::size_t most = 2 * std::max<std::size_t>(1, times.size() / 2 / kOneOf);
  for (std::size_t n = 1; n <= most; ++n) {
    const std::size_t last = times.size() - n - 1;
    if (times[n] - times[n - 1] >= kFarAway) usual.first = times[n];
    if (times[last + 1] - times[last] >= kFarAway) usual.second = times[last];
  }
  return usual;
}

template <class... Records>
std::uint64_t forget(Records&... records) {
  std::vector<std::int64_t> times;
  const auto add = [&](const auto& all) {
    for (const auto& record : all) {
      if (has_times(record)) times.insert(times.end(), {record.begin_ns, record.end_ns});
    }
  };
  (add(records), ...);
  const auto usual = usual_times(std::move(times));  // Clang 14 captures no structured binding
  std::uint64_t strays = 0;
  const auto drop = [&](auto& all) {
    for (auto& record : all) {
      if (!has_times(record) || (record.begin_ns >= usual.first && record.end_ns <= usual.second))
        continue;
      record.begin_ns = record.end_ns = 0;
      ++strays;
    }
  };
  (drop(records), ...);
  return strays;
}

}  // namespace

void forget_stray_times(Recording& recording) {
  for (Process& process : recording.processes) {
    activity::Trace& trace = process.trace;
    // The clock of the GPU may be days ahead of the host's.
    recording.leave_out("times of calls that are a day or more from all others",
                        forget(trace.calls));
    recording.leave_out("times of work that are a day or more from all others",
                        forget(trace.kernels, trace.transfers, trace.graphs));
  }
}

}  // namespace launchgap::recording
