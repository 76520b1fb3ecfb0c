#include <algorithm>
#include <map>

#include "harness/core/plan.h"
#include "harness/measure/telemetry.h"
#include "harness/record/reader.h"
#include "harness/stats/stats.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

struct Sample {
  const RunInfo& run;
  const SampleBlock& block;
  std::size_t metric, index;
};

/// The samples of one metric in one run.
struct RunSamples {
  const CaseKey& key;
  const std::string& metric;
  int replicate;
  std::vector<double> sorted;
};

struct Quantile {
  const RunSamples& run;
  double p;
};

struct BlockStatistics {
  const CaseKey& key;
  const std::string& metric;
  const BlockInfo& block;
  std::vector<double> sorted;
};

struct TelemetryRow {
  const TelemetryInfo& reading;
  const TelemetryInfo* before;  // one block earlier, where there is one
};

const std::vector<double>& probabilities() {
  static const std::vector<double> all = [] {
    std::vector<double> p;
    for (int i = 0; i <= 40; ++i) p.push_back(i / 40.0);
    for (const double tail :
         {0.001, 0.01, 0.96, 0.97, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999})
      p.push_back(tail);
    std::ranges::sort(p);
    return p;
  }();
  return all;
}

void each_sample(const TableInputs& from, const auto& put) {
  for (const RunInfo& run : from.session.runs) {
    read_records(records_path(from.session, run),
                 {[&](SampleBlock&& block) {
                    use_current_keys(block);
                    for (std::size_t m = 0; m < block.metrics.size(); ++m) {
                      for (std::size_t i = 0; i < block.values[m].size(); ++i)
                        put({run, block, m, i});
                    }
                  },
                  [](const Json&) {}});
  }
}

void each_run(const TableInputs& from, const auto& put) {
  for (const auto& [key, data] : from.session.cases) {
    for (const auto& [metric, by_replicate] : data.samples) {
      for (const auto& [replicate, samples] : by_replicate) {
        if (samples.empty()) continue;
        RunSamples run{key, metric, replicate, samples};
        std::ranges::sort(run.sorted);
        put(run);
      }
    }
  }
}

void each_quantile(const TableInputs& from, const auto& put) {
  static const std::vector<double> median = {0.5};
  each_run(from, [&](const RunSamples& run) {
    // What others have published is one value and no distribution.
    for (const double p : run.key.arm == kPublished ? median : probabilities()) put({run, p});
  });
}

void each_block(const TableInputs& from, const auto& put) {
  for (const auto& [key, data] : from.session.cases) {
    for (const std::string& metric : data.metric_order) {
      std::map<int, std::size_t> first;  // of the block's samples in its run
      for (const BlockInfo& block : data.blocks) {
        const auto count = block.counts.find(metric);
        if (count == block.counts.end() || count->second == 0) continue;
        const std::vector<double>& run = data.samples.at(metric).at(block.replicate);
        const auto begin = run.begin() + static_cast<std::ptrdiff_t>(first[block.replicate]);
        first[block.replicate] += count->second;
        std::vector<double> sorted(begin, begin + static_cast<std::ptrdiff_t>(count->second));
        std::ranges::sort(sorted);
        put({key, metric, block, std::move(sorted)});
      }
    }
  }
}

/// Whether a reading was taken one block after another.
bool follows(const TelemetryInfo& reading, const TelemetryInfo* before) {
  return before != nullptr && reading.block >= 0 && before->block == reading.block - 1 &&
         before->id() == reading.id() && before->case_name == reading.case_name;
}

void each_reading(const TableInputs& from, const auto& put) {
  const TelemetryInfo* before = nullptr;
  for (const TelemetryInfo& reading : from.session.telemetry) {
    put({reading, follows(reading, before) ? before : nullptr});
    before = &reading;
  }
}

/// As read; of a counter, its change over the block.
std::optional<double> value_of(const TelemetryRow& row, const TelemetryQuantity& quantity) {
  const auto read = [&](const TelemetryInfo* reading) -> std::optional<double> {
    if (!reading) return std::nullopt;
    const auto value = reading->values.find(std::string(quantity.key));
    return value == reading->values.end() ? std::nullopt : std::optional(value->second);
  };
  const std::optional<double> now = read(&row.reading);
  if (!quantity.counter || !now) return now;
  const std::optional<double> earlier = read(row.before);
  return earlier ? std::optional(*now - *earlier) : std::nullopt;
}

}  // namespace

Table samples_table() {
  using Row = const Sample&;
  return make_table<Sample>(
      "samples.csv",
      "sample and metric",
      TableUse::export_only,
      [](const TableInputs& from, const auto& put) { each_sample(from, put); },
      {{"node", [](Row row) { return row.run.node; }},
       {"device_id", [](Row row) { return row.run.device; }},
       {"replicate", [](Row row) { return row.run.replicate; }},
       {"attempt", [](Row row) { return row.run.attempt; }},
       {"arm", [](Row row) { return row.run.arm; }},
       {"process_config", [](Row row) { return row.run.process_config.text(); }},
       {"case", [](Row row) { return row.block.case_name; }},
       {"block", "The block, from 0.", [](Row row) { return row.block.block; }},
       {"sample",
        "The sample, counted through the blocks of a case in one run.",
        [](Row row) { return row.block.first + row.index; }},
       {"metric", [](Row row) { return row.block.metrics[row.metric]; }},
       {"value",
        "In the metric's unit; empty: missing.",
        [](Row row) { return row.block.values[row.metric][row.index]; },
        kUnitOfMetric},
       {"key",
        "The payload of the sample's NVTX range, by which `launchgap join` finds it in a report; "
        "empty if the build had no NVTX.",
        [](Row row) {
          return row.block.key ? std::optional(*row.block.key + row.index) : std::nullopt;
        }}});
}

namespace {

/// Which samples of which run they are; `of(row)` are the samples.
template <class Row>
std::vector<TableColumn<Row>> columns_of_run(const RunSamples& (*of)(const Row&)) {
  return {{"device_id", [of](const Row& row) { return of(row).key.device; }},
          {"arm", [of](const Row& row) { return of(row).key.arm; }},
          {"process_config", [of](const Row& row) { return of(row).key.process_config.text(); }},
          {"case", [of](const Row& row) { return of(row).key.name.text(); }},
          {"metric", [of](const Row& row) { return of(row).metric; }},
          {"unit", [of](const Row& row) { return unit_of(of(row).metric); }},
          {"replicate", [of](const Row& row) { return of(row).replicate; }},
          {"n", "Samples of the run.", [of](const Row& row) { return of(row).sorted.size(); }}};
}

}  // namespace

Table run_quantiles_table() {
  auto columns =
      columns_of_run<RunSamples>([](const RunSamples& run) -> const RunSamples& { return run; });
  const auto add = [&](std::string_view key, std::string_view says, double p) {
    columns.emplace_back(
        key,
        says,
        [p](const RunSamples& run) { return stats::quantile(run.sorted, p); },
        kUnitOfMetric);
  };
  add("min", "The smallest.", 0);
  add("p05", "One in twenty is below.", 0.05);
  add("p25", "A quarter is below.", 0.25);
  add("p50", "Their median.", 0.5);
  add("p75", "A quarter is above.", 0.75);
  add("p95", "One in twenty is above.", 0.95);
  add("p99", "One in a hundred is above.", 0.99);
  add("p999", "One in a thousand is above.", 0.999);
  add("max", "The largest.", 1);
  return make_table<RunSamples>(
      "run_quantiles.csv",
      "case, metric and run",
      TableUse::details,
      [](const TableInputs& from, const auto& put) { each_run(from, put); },
      std::move(columns));
}

Table quantiles_table() {
  auto columns =
      columns_of_run<Quantile>([](const Quantile& row) -> const RunSamples& { return row.run; });
  columns.emplace_back("p", "Probability.", &Quantile::p);
  columns.emplace_back(
      "value",
      "The quantile.",
      [](const Quantile& row) { return stats::quantile(row.run.sorted, row.p); },
      kUnitOfMetric);
  return make_table<Quantile>(
      "quantiles.csv",
      "case, metric, run and probability",
      TableUse::export_only,
      [](const TableInputs& from, const auto& put) { each_quantile(from, put); },
      std::move(columns));
}

Table sequence_table() {
  using Row = const BlockStatistics&;
  return make_table<BlockStatistics>(
      "sequence.csv",
      "case, metric and block, in the order of time",
      TableUse::details,
      [](const TableInputs& from, const auto& put) { each_block(from, put); },
      {{"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"metric", [](Row row) { return row.metric; }},
       {"unit", [](Row row) { return unit_of(row.metric); }},
       {"replicate", [](Row row) { return row.block.replicate; }},
       {"block", "The block, from 0.", [](Row row) { return row.block.block; }},
       {"begin_ns",
        "Its start, on the machine's monotonic clock.",
        [](Row row) { return row.block.begin_ns; }},
       {"end_ns", "Its end.", [](Row row) { return row.block.end_ns; }},
       {"n", "Its samples.", [](Row row) { return row.sorted.size(); }},
       {"p50",
        "Their median.",
        [](Row row) { return stats::quantile(row.sorted, 0.5); },
        kUnitOfMetric},
       {"p99",
        "One in a hundred is above.",
        [](Row row) { return stats::quantile(row.sorted, 0.99); },
        kUnitOfMetric},
       {"max", "The largest.", [](Row row) { return row.sorted.back(); }, kUnitOfMetric}});
}

Table telemetry_table() {
  using Row = const TelemetryRow&;
  std::vector<TableColumn<TelemetryRow>> columns = {
      {"device_id", [](Row row) { return row.reading.device; }},
      {"arm", [](Row row) { return row.reading.arm; }},
      {"process_config", [](Row row) { return row.reading.process_config.text(); }},
      {"replicate", [](Row row) { return row.reading.replicate; }},
      {"case", [](Row row) { return row.reading.case_name; }},
      {"block",
       "The block after which it was read; -1: before the first.",
       [](Row row) { return row.reading.block; }},
      {"at_ns", "When, on the machine's monotonic clock.", [](Row row) {
         return row.reading.at_ns;
       }}};
  for (const TelemetryQuantity& quantity : telemetry_quantities()) {
    columns.emplace_back(
        quantity.key,
        quantity.meaning,
        [&quantity](Row row) { return value_of(row, quantity); },
        quantity.unit);
  }
  return make_table<TelemetryRow>(
      "telemetry.csv",
      "reading; of counters, their change over the block",
      TableUse::details,
      [](const TableInputs& from, const auto& put) { each_reading(from, put); },
      std::move(columns));
}

}  // namespace launchgap
