// The cases that two GPUs both ran, and how many times as fast the newer one is in each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/stats/stats.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// What a case measures.
enum class Work { launch, product, convolution, copy, allocation, other };
/// "launch", "product", …
std::string_view name_of(Work work);

/// Whether a product is one of several ("batched"), has a side of at most an eighth of another
/// ("skinny"), none below 1024 ("large"), or neither ("small"); "convolution" of a convolution,
/// else empty.
std::string shape_class_of(const CaseName& name);

/// Products of complex numbers count as four real ones, and may be made of three.
bool is_complex(const CaseName& name);

struct SharedCase {
  const CaseValue* older = nullptr;
  const CaseValue* newer = nullptr;
  Work work = Work::other;
  GapCaseRow row;
  /// How many times as much the newer GPU can do at most, by data sheets: of the GPUs that a name
  /// may mean, the least. Absent where nothing bounds the case, or it is not known.
  std::optional<double> promise;
  /// The interval of `times`, 95 % for all cases of the pair at once (Bonferroni): among many cases
  /// one is far off by chance. Absent where one GPU has a single run.
  std::optional<stats::Interval> certain;

  /// Its ends; `times` itself where there is none.
  double at_least() const;
  double at_most() const;
};

/// A difference below this, either way, is none.
inline constexpr double kSame = 1.02;

/// Two GPUs, the older first, and what they share: of each case every metric by which it is judged
/// (a rate, or a time that is computed from no other metric). None where one of them alone is
/// simulated, or where a case was timed in another way on each.
///
/// times = newer / older of a rate, older / newer of a time, by the medians over all samples. Its
/// interval is Welch's, 95 %, of the logarithms of the runs' medians (stats/compare.h); absent
/// where one has a single run.
struct GpuPair {
  const GpuColumn* older = nullptr;
  const GpuColumn* newer = nullptr;
  std::vector<SharedCase> cases;
  std::size_t timed_otherwise = 0;  // cases of which no ratio was formed
};

GpuPair compare_pair(const GpuColumn& older, const GpuColumn& newer);

}  // namespace launchgap::gap
