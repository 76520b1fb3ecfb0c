// The few numbers per device that a person looks for first; each benchmark names its own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "harness/measure/benchmark.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// A headline with the benchmark that it is of.
struct NamedHeadline {
  const Benchmark* benchmark;
  const Headline* headline;
};
/// Those of all benchmarks, from the left to the right.
std::vector<NamedHeadline> all_headlines();

/// What the rows of a device say to a headline: by the plain runs of the usual configuration.
struct HeadlineValue {
  const SummaryRow* row = nullptr;  // none: it was not measured
  std::optional<double> value;
  std::string_view unit;
};
HeadlineValue headline_value(const std::vector<const SummaryRow*>& of_device,
                             const NamedHeadline& headline);

}  // namespace launchgap
