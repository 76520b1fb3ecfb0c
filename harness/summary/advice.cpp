#include "harness/summary/advice.h"

#include <algorithm>

#include "harness/measure/benchmark.h"
#include "harness/measure/order.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

/// Those with a rule, what is usually worth most first.
std::vector<const Benchmark*> advising_benchmarks() {
  std::vector<const Benchmark*> found;
  for (const Benchmark& benchmark : all_benchmarks()) {
    if (benchmark.advice) found.push_back(&benchmark);
  }
  std::ranges::stable_sort(found, {}, [](const Benchmark* b) { return place_of_advice(*b); });
  return found;
}

}  // namespace

std::string advice_code(std::string benchmark) {
  std::ranges::replace(benchmark, '/', '-');
  return benchmark;
}

std::vector<Finding> advice(const SessionData& session, const std::vector<SummaryRow>& rows) {
  std::vector<Finding> findings;
  const RowsByDevice by_device(rows);
  const std::vector<const Benchmark*> advising = advising_benchmarks();
  for (const DeviceFacts& device : session.devices) {
    const std::vector<const SummaryRow*>& own = by_device.of(device.uuid);
    if (own.empty()) continue;
    std::vector<const Benchmark*> silent;
    for (const Benchmark* benchmark : advising) {
      Adviser adviser(device, benchmark->name, own, findings);
      const std::size_t before = findings.size();
      benchmark->advice->rule(adviser);
      if (findings.size() == before && !adviser.rows.empty()) silent.push_back(benchmark);
    }
    std::ranges::stable_sort(silent, {}, [](const Benchmark* b) { return place_of_figures(*b); });
    for (const Benchmark* benchmark : silent) {
      Adviser(device, benchmark->name, own, findings)
          .say(Severity::open,
               "Nothing to compare: only one side of the question was measured here.",
               {});
    }
  }
  return findings;
}

}  // namespace launchgap
