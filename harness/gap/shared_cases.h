// The cases that two GPUs both ran, and how many times as fast the newer one is in each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/rules/ratio.h"
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

/// Whether both were timed in one way, as far as their methods say it and a ratio depends on it.
bool timed_alike(const SummaryRow& a, const SummaryRow& b);

/// How many times as fast the newer of two medians of a metric is.
double times_as_fast(const Metric& metric, double newer, double older);
/// The same with its intervals, by the medians of both sides' runs.
rules::Speedup speedup_of(const Metric& metric,
                          double times,
                          std::span<const double> newer,
                          std::span<const double> older,
                          std::size_t comparisons);

/// A kernel of the ladder: it says what an idiom gives, and nothing of what the GPU can do.
bool is_rung(const CaseName& name);

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
  rules::Speedup speedup;
};

/// Two GPUs, the older first, and what they share: of each case every metric by which it is judged
/// (a rate, or a time that is computed from no other metric). None where one of them alone is
/// simulated, or where a case was timed in another way on each.
///
/// times = newer / older of a rate, older / newer of a time, by the medians over all samples;
/// rules/ratio.h has its interval and its verdict.
struct GpuPair {
  const GpuColumn* older = nullptr;
  const GpuColumn* newer = nullptr;
  std::vector<SharedCase> cases;
  std::size_t timed_otherwise = 0;  // cases of which no ratio was formed
};

GpuPair compare_pair(const GpuColumn& older, const GpuColumn& newer);

}  // namespace launchgap::gap
