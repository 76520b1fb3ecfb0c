// The figures of pairs of processes, put together metric by metric, and what compare says of each.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/regression/report.h"
#include "harness/regression/session_figures.h"
#include "harness/rules/paired.h"

namespace launchgap::regression {

/// What both processes of a pair measured, on one device.
class PairedMetrics {
 public:
  /// Adds a pair. Where A and B measured different cases (`compared_as` of B), what both have of
  /// them counts, under B's.
  void add(const SessionFigures& a, const SessionFigures& b, const CaseKey* compared_as = nullptr);

  /// Whether more pairs than there are, of `planned`, would change no verdict.
  bool decided(std::size_t planned) const;

  /// A result for each metric that a process of either side had; no more pairs will come.
  std::vector<Result> results(std::size_t planned) const;

  std::size_t pairs() const { return pairs_; }
  bool simulated() const { return simulated_; }

 private:
  struct Series {
    MetricFigures a, b;  // their processes, one of each pair
    std::vector<double> log_ratios;
    std::vector<rules::ProcessSpread> spread_a, spread_b;
    std::vector<double> p99_a, p99_b;
    std::string problem;  // of the first pair that does not count
  };

  void add_pair(Series& series, const MetricFigures* a, const MetricFigures* b);
  rules::PairedVerdict judge(const Series& series, std::size_t planned, bool ended) const;
  Result result(const SeriesKey& key, const Series& series, std::size_t planned) const;

  std::map<SeriesKey, Series> series_;
  std::map<std::string, std::string> device_names_;
  std::string node_, mixed_;  // why nothing counts: one side is simulated
  std::size_t pairs_ = 0;
  bool simulated_ = false;
};

}  // namespace launchgap::regression
