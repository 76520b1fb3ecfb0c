#include "harness/trace/trace_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/core/clock.h"

namespace launchgap {

TraceClock::Bracket TraceClock::narrowest() const {
  constexpr int kTries = 9;
  Bracket best;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = now_ns();
    const std::int64_t trace = trace_now_();
    const std::int64_t after = now_ns();
    const std::int64_t half = (after - before + 1) / 2;
    if (i == 0 || half < best.half_width_ns) best = {before + half, trace - (before + half), half};
  }
  return best;
}

void TraceClock::bracket() {
  before_ = last_;
  last_ = narrowest();
  if (brackets_++ == 0) {
    first_ = before_ = last_;
    return;
  }
  const double allowed =
      static_cast<double>(last_.host_ns - before_.host_ns) * kMostDriftPpm * 1e-6 +
      static_cast<double>(kStepNs + last_.half_width_ns + before_.half_width_ns);
  const std::int64_t change = last_.offset_ns - before_.offset_ns;
  if (static_cast<double>(std::abs(change)) > allowed && std::abs(change) > std::abs(step_ns_))
    step_ns_ = change;
}

std::int64_t TraceClock::trace_time(std::int64_t host_ns) const {
  const std::int64_t span = last_.host_ns - before_.host_ns;
  if (span <= 0) return host_ns + last_.offset_ns;
  const double share = std::clamp(
      static_cast<double>(host_ns - before_.host_ns) / static_cast<double>(span), 0.0, 1.0);
  const double change = share * static_cast<double>(last_.offset_ns - before_.offset_ns);
  return host_ns + before_.offset_ns + static_cast<std::int64_t>(std::llround(change));
}

std::int64_t TraceClock::uncertainty_ns() const {
  return std::max(before_.half_width_ns, last_.half_width_ns);
}

std::optional<double> TraceClock::drift_ppm() const {
  if (last_.host_ns <= first_.host_ns) return std::nullopt;
  return static_cast<double>(last_.offset_ns - first_.offset_ns) /
         static_cast<double>(last_.host_ns - first_.host_ns) * 1e6;
}

}  // namespace launchgap
