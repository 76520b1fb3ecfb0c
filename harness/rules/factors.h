// Whether something that differs between runs explains how fast they are, or may only seem to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap::rules {

inline constexpr std::size_t kFewestRunsForFactors = 6;

/// A run's value of something that may explain its speed; text where it is no number.
struct FactorValue {
  std::string text;
  std::optional<double> number = {};
};

/// How far a factor explains what some runs came to.
struct Explained {
  double variance_share = 0;  // of the variance of the logarithms of their medians
  double chance = 1;          // that a factor without effect explains as much
};

/// By groups of equal text: one-way analysis of variance, and the F distribution; no less than by
/// how many ways the runs can be divided so. By numbers: the squared correlation of ranks
/// (Spearman's), and Student's t. Absent below kFewestRunsForFactors runs, where all runs
/// have one value or each has another text, and where nothing varies. `logs`: of the runs' medians.
std::optional<Explained> explained(const std::vector<double>& logs,
                                   const std::vector<FactorValue>& values);

enum class FactorVerdict { explains, in_part, may_be_chance };
/// "explains", "in-part", "may-be-chance".
std::string_view name_of(FactorVerdict verdict);

/// `explains`: it has half of the variance or more, and chance, times the factors that were tried,
/// is 1 % at most. `in_part`: the latter alone. `may_be_chance`: neither.
FactorVerdict verdict_of(const Explained& found, std::size_t tried);

}  // namespace launchgap::rules
