#include "harness/investigate/joined_cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/csv_writer.h"
#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/stats/stats.h"

namespace launchgap::investigate {
namespace {

/// The column of a metric in a block; null if it has none.
const std::vector<double>* column_of(const SampleBlock& block, const std::string& metric) {
  const auto found = std::ranges::find(block.metrics, metric);
  if (found == block.metrics.end()) return nullptr;
  return &block.values[static_cast<std::size_t>(found - block.metrics.begin())];
}

bool is_time(const std::string& key) {
  const Metric* const metric = find_metric(key);
  return metric && metric->unit == "ns" && metric->source != "trace";
}

double median_of(const SampleBlock& block, const std::string& metric) {
  std::vector<double> values = *column_of(block, metric);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return stats::median(std::move(values)).value_or(0);
}

/// Of a case, by one of its blocks.
std::string longest_metric(const SampleBlock& block) {
  std::string longest;
  for (const std::string& metric : block.metrics) {
    if (!is_time(metric)) continue;
    if (longest.empty() || median_of(block, metric) > median_of(block, longest)) longest = metric;
  }
  return longest.empty() && !block.metrics.empty() ? block.metrics.front() : longest;
}

}  // namespace

std::vector<JoinedCase> joined_cases(const JoinedReport& report, const std::string& metric) {
  std::vector<JoinedCase> cases;
  std::set<std::string> known;
  for (const JoinedBlock& joined : report.blocks) {
    const SampleBlock& block = joined.block;
    known.insert(block.metrics.begin(), block.metrics.end());
    if (!metric.empty() && !column_of(block, metric)) continue;
    auto own = std::ranges::find_if(cases, [&](const JoinedCase& one) {
      return one.device == joined.run->device && one.name == block.case_name;
    });
    if (own == cases.end()) {
      cases.push_back({joined.run->device,
                       block.case_name,
                       metric.empty() ? longest_metric(block) : metric,
                       0,
                       {}});
      own = std::prev(cases.end());
    }
    const std::vector<double>* const values = column_of(block, own->metric);
    if (!values) continue;
    own->keys += values->size();
    for (const JoinedSample& sample : joined.samples) {
      const double value = (*values)[sample.index];
      if (std::isfinite(value))
        own->observations.push_back({value, sample.range_ns, sample.parts_ns});
    }
  }
  if (!metric.empty() && cases.empty()) {
    throw UsageError("no case of the session has the metric '{}': choose one of {}",
                     printable(metric),
                     printable(fmt::format("{}", fmt::join(known, ", "))));
  }
  return cases;
}

void write_joined(const JoinedReport& report,
                  const std::vector<JoinedCase>& cases,
                  const std::string& session_id,
                  const std::filesystem::path& file) {
  std::map<std::pair<std::string, std::string>, std::string> metrics;
  for (const JoinedCase& one : cases) metrics[{one.device, one.name}] = one.metric;
  std::vector<std::string> header = {"session_id",
                                     "device_id",
                                     "replicate",
                                     "attempt",
                                     "process_config",
                                     "case",
                                     "block",
                                     "sample",
                                     "key",
                                     "metric",
                                     "value",
                                     "range_ns",
                                     "launches",
                                     "kernels",
                                     "launch_ns"};
  for (std::size_t i = 0; i < kParts; ++i) header.emplace_back(info_of(static_cast<Part>(i)).key);
  CsvWriter csv(file, header);
  for (const JoinedBlock& joined : report.blocks) {
    const auto metric = metrics.find({joined.run->device, joined.block.case_name});
    if (metric == metrics.end()) continue;
    const std::vector<double>* const values = column_of(joined.block, metric->second);
    if (!values) continue;
    for (const JoinedSample& sample : joined.samples) {
      const double value = (*values)[sample.index];
      std::vector<std::string> cells = {
          session_id,
          joined.run->device,
          std::to_string(joined.run->replicate),
          std::to_string(joined.run->attempt),
          joined.run->process_config.text(),
          joined.block.case_name,
          std::to_string(joined.block.block),
          std::to_string(joined.block.first + sample.index),
          std::to_string(sample.key),
          metric->second,
          cell(std::isfinite(value) ? std::optional(value) : std::nullopt),
          std::to_string(sample.range_ns),
          std::to_string(sample.launches),
          std::to_string(sample.kernels),
          sample.launch_ns ? std::to_string(*sample.launch_ns) : ""};
      for (const std::int64_t part : sample.parts_ns) cells.push_back(std::to_string(part));
      csv.row(cells);
    }
  }
  csv.commit();
}

}  // namespace launchgap::investigate
