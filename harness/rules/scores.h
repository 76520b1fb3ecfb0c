// Scores of devices as NVIDIA's resiliency extension (nvidia-resiliency-ext, its straggler
// detection) gives them to ranks, so that figures compare.
#pragma once

#include <optional>

namespace launchgap::rules {

/// A score below this makes a straggler, in all four of that extension's scores.
inline constexpr double kStragglerScore = 0.75;

/// Reference over own, of medians of times: 0.5 is twice as slow. The reference of a relative score
/// is the smallest median of all devices of a kind, of an individual score the smallest that the
/// device itself had.
constexpr double score(double reference, double own) {
  return own > 0 ? reference / own : 0;
}

/// The score of a device over all that it does: the mean of the scores, weighted with the time that
/// went into each.
class DeviceScore {
 public:
  /// `time`: in whatever unit, of the samples behind the score.
  void add(double score, double time) {
    sum_ += score * time;
    time_ += time;
  }
  /// Absent until something took time.
  std::optional<double> value() const {
    return time_ > 0 ? std::optional(sum_ / time_) : std::nullopt;
  }

 private:
  double sum_ = 0, time_ = 0;
};

constexpr bool is_straggler(double score) {
  return score < kStragglerScore;
}

}  // namespace launchgap::rules
