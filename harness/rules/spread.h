// What is said of a metric, whatever it is compared with; how much more, or less, it must vary
// before that counts, the same for pairs, two sessions and nights; and when one session is called
// unstable.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/verdict.h"

namespace launchgap::rules {

/// What shows how much a metric varies within a session.
enum class SpreadFigure { within_run_cv, between_run_cv, tail, modes };
inline constexpr std::size_t kSpreadFigures = 4;
constexpr std::string_view name_of(SpreadFigure figure) {
  constexpr std::array<std::string_view, kSpreadFigures> kNames = {
      "within-run CV", "between-run CV", "p99/p50", "modes"};
  return kNames[static_cast<std::size_t>(figure)];
}

/// What is said of a metric, in the metric's unit, whatever it is compared with.
struct Judgement {
  Verdict verdict = Verdict::same;
  std::string reason;              // in words, without a full stop; empty if all is said
  std::size_t compared_with = 0;   // pairs, runs or sessions behind `baseline`
  std::optional<double> baseline;  // what it was compared with
  std::optional<double> baseline_p99;
  std::optional<double> change;  // as the value to `baseline`, less 1
  std::optional<double> z;       // distance in robust standard deviations; positive: slower
  Steadiness steadiness = Steadiness::same;
  std::string steadiness_reason;  // "within-run CV 2.1 times as large"
};

struct SpreadVerdict {
  Steadiness steadiness = Steadiness::same;
  std::string reason;  // "within-run CV 2.1 times as large", without a full stop
};

/// Of CVs, within a process and between processes.
inline constexpr double kLeastSpreadRatio = 1.5;
/// Of p99/p50, over nights and between two sessions; in pairs it is that of CVs.
inline constexpr double kLeastTailRatio = 1.25;
/// A CV counts only if it is that large, now or before.
inline constexpr double kLeastSpreadCv = 0.01;

/// A device whose launch call varies more between runs than this is unstable.
inline constexpr double kUnstableCv = 0.1;
/// With fewer runs what is not unstable is steady so far: fewer have no 95 % interval of their
/// median.
inline constexpr std::size_t kRunsToBeSure = 6;

}  // namespace launchgap::rules
