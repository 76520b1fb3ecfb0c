// The trace's clock beside the host's: brackets tell their offset, and whether either jumped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace launchgap {

/// CUPTI's times are of CLOCK_REALTIME, which may be set while something runs; now_ns() never is.
/// Both are slewed alike, so that between two brackets their offset is a line.
class TraceClock {
 public:
  /// The most that the offset may change between two brackets beyond kMostDriftPpm.
  static constexpr std::int64_t kStepNs = 10'000;
  /// What two clocks of one machine may drift apart in parts per million.
  static constexpr double kMostDriftPpm = 200;

  explicit TraceClock(std::function<std::int64_t()> trace_now) : trace_now_(std::move(trace_now)) {}

  /// Reads {host, trace, host} several times and keeps the narrowest.
  void bracket();

  /// The trace's time at a host's time; between the last two brackets, or beyond them by the last
  /// offset.
  std::int64_t trace_time(std::int64_t host_ns) const;

  /// How far trace_time() may be off: half the width of the worse of the last two brackets.
  std::int64_t uncertainty_ns() const;
  /// How far the offset moved between the last two brackets.
  std::int64_t change_ns() const { return std::abs(last_.offset_ns - before_.offset_ns); }
  /// Change of the offset per time between first and last bracket; absent before there are two.
  std::optional<double> drift_ppm() const;
  /// The greatest jump between two brackets, 0 if there was none.
  std::int64_t step_ns() const { return step_ns_; }
  std::int64_t offset_ns() const { return last_.offset_ns; }

 private:
  struct Bracket {
    std::int64_t host_ns = 0;  // the middle
    std::int64_t offset_ns = 0;
    std::int64_t half_width_ns = 0;
  };

  Bracket narrowest() const;

  std::function<std::int64_t()> trace_now_;
  int brackets_ = 0;
  Bracket first_, before_, last_;
  std::int64_t step_ns_ = 0;
};

}  // namespace launchgap
