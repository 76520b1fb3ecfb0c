#include "harness/summary/headlines.h"

#include <algorithm>

#include "harness/core/plan.h"

namespace launchgap {

std::vector<NamedHeadline> all_headlines() {
  std::vector<NamedHeadline> all;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const Headline& headline : benchmark.headlines) all.push_back({&benchmark, &headline});
  }
  std::ranges::stable_sort(
      all, {}, [](const NamedHeadline& named) { return place_of(*named.headline); });
  return all;
}

HeadlineValue headline_value(const std::vector<const SummaryRow*>& of_device,
                             const NamedHeadline& named) {
  const Headline& headline = *named.headline;
  HeadlineValue found;
  for (const SummaryRow* one : of_device) {
    const SummaryRow& row = *one;
    if (row.key.arm != name_of(Arm::plain) || !row.key.process_config.usual() ||
        row.key.name.benchmark != named.benchmark->name || row.metric != headline.metric ||
        !row.key.name.has(headline.params)) {
      continue;
    }
    const auto& value = headline.of == Headline::Of::one_in_1000 ? row.p999 : row.p50;
    const bool better = headline.of == Headline::Of::best_median && found.value < value;
    if (!found.row || better) found = {&row, value, unit_of(row.metric)};
  }
  return found;
}

}  // namespace launchgap
