#include "harness/summary/tables.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/measure/telemetry.h"
#include "harness/stats/stats.h"
#include "harness/summary/csv.h"
#include "harness/summary/fallback.h"
#include "harness/summary/findings.h"
#include "harness/summary/launch_cost_tables.h"
#include "harness/summary/table_writer.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

std::string number_in(const Json& object, const char* key) {
  const auto value = maybe<std::int64_t>(object, key);
  return value ? number(*value) : "";
}

void write_quantiles(const SessionData& session, const fs::path& folder) {
  static const std::vector<double> kProbabilities = [] {
    std::vector<double> p;
    for (int i = 0; i <= 40; ++i) p.push_back(i / 40.0);
    for (const double tail :
         {0.001, 0.01, 0.96, 0.97, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999})
      p.push_back(tail);
    std::ranges::sort(p);
    return p;
  }();
  CsvWriter quantiles(folder / "quantiles.csv",
                      {"session_id",
                       "device_id",
                       "arm",
                       "setup",
                       "case",
                       "metric",
                       "unit",
                       "replicate",
                       "n",
                       "p",
                       "value"});
  for (const auto& [key, data] : session.cases) {
    for (const auto& [metric, by_replicate] : data.samples) {
      const Metric* known = known_metric(metric);
      for (const auto& [replicate, samples] : by_replicate) {
        if (samples.empty()) continue;
        std::vector<double> sorted = samples;
        std::ranges::sort(sorted);
        for (const double p : kProbabilities) {
          quantiles.row({session.id,
                         key.device,
                         key.arm,
                         key.setup,
                         key.name.text(),
                         metric,
                         std::string(known ? known->unit : ""),
                         std::to_string(replicate),
                         std::to_string(sorted.size()),
                         cell(p),
                         cell(stats::quantile(sorted, p))});
        }
      }
    }
  }
  quantiles.commit();
}

void write_sequence(const SessionData& session, const fs::path& folder) {
  CsvWriter out(folder / "sequence.csv",
                {"session_id",
                 "device_id",
                 "arm",
                 "setup",
                 "case",
                 "metric",
                 "unit",
                 "replicate",
                 "block",
                 "begin_ns",
                 "end_ns",
                 "n",
                 "p50",
                 "p99",
                 "max"});
  for (const auto& [key, data] : session.cases) {
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
        out.row({session.id,
                 key.device,
                 key.arm,
                 key.setup,
                 key.name.text(),
                 metric,
                 unit_of(metric),
                 number(block.replicate),
                 number(block.block),
                 number(block.begin_ns),
                 number(block.end_ns),
                 number(sorted.size()),
                 cell(stats::quantile(sorted, 0.5)),
                 cell(stats::quantile(sorted, 0.99)),
                 cell(sorted.back())});
      }
    }
  }
  out.commit();
}

void write_telemetry(const SessionData& session, const fs::path& folder) {
  CsvWriter out(folder / "telemetry.csv",
                {"session_id",
                 "device_id",
                 "arm",
                 "setup",
                 "replicate",
                 "case",
                 "block",
                 "at_ns",
                 "quantity",
                 "unit",
                 "value"});
  const TelemetryInfo* before = nullptr;
  for (const TelemetryInfo& reading : session.telemetry) {
    const bool follows = before && reading.block >= 0 && before->block == reading.block - 1 &&
                         before->device == reading.device && before->arm == reading.arm &&
                         before->setup == reading.setup && before->replicate == reading.replicate &&
                         before->case_name == reading.case_name;
    for (const TelemetryQuantity& quantity : telemetry_quantities()) {
      const std::string key(quantity.key);
      const auto value = reading.values.find(key);
      if (value == reading.values.end()) continue;
      double shown = value->second;
      if (quantity.counter) {
        if (!follows) continue;
        const auto earlier = before->values.find(key);
        if (earlier == before->values.end()) continue;
        shown -= earlier->second;
      }
      out.row({session.id,
               reading.device,
               reading.arm,
               reading.setup,
               number(reading.replicate),
               reading.case_name,
               number(reading.block),
               number(reading.at_ns),
               key,
               std::string(quantity.unit),
               cell(std::optional(shown))});
    }
    before = &reading;
  }
  out.commit();
}

void write_variation(const SessionData& session,
                     const std::vector<SummaryRow>& rows,
                     const fs::path& folder) {
  using Row = const Variation&;
  write_table<Variation>(folder / "variation.csv",
                         session,
                         variations(session, rows),
                         {{"scope", [](Row row) { return row.scope; }},
                          {"device_id", [](Row row) { return row.key.device; }},
                          {"arm", [](Row row) { return row.key.arm; }},
                          {"setup", [](Row row) { return row.key.setup; }},
                          {"case", [](Row row) { return row.key.name.text(); }},
                          {"metric", [](Row row) { return row.metric; }},
                          {"level", [](Row row) { return std::string(name_of(row.level)); }},
                          {"groups", [](Row row) { return number(row.groups); }},
                          {"cv", [](Row row) { return cell(row.cv.value); }},
                          {"cv_lo", [](Row row) { return cell(row.cv.interval.low); }},
                          {"cv_hi", [](Row row) { return cell(row.cv.interval.high); }}});
}

void write_odd_devices(const SessionData& session,
                       const std::vector<SummaryRow>& rows,
                       const fs::path& folder) {
  using Row = const OddDevice&;
  write_table<OddDevice>(folder / "odd_devices.csv",
                         session,
                         odd_devices(session, rows),
                         {{"device_id", [](Row row) { return row.device; }},
                          {"arm", [](Row row) { return row.key.arm; }},
                          {"setup", [](Row row) { return row.key.setup; }},
                          {"case", [](Row row) { return row.key.name.text(); }},
                          {"metric", [](Row row) { return row.metric; }},
                          {"ratio", [](Row row) { return cell(row.ratio); }},
                          {"ratio_lo", [](Row row) { return cell(row.interval.low); }},
                          {"ratio_hi", [](Row row) { return cell(row.interval.high); }}});
}

void write_fallback_costs(const SessionData& session,
                          const std::vector<SummaryRow>& rows,
                          const fs::path& folder) {
  using Row = const FallbackCost&;
  write_table<FallbackCost>(folder / "fallback.csv",
                            session,
                            fallback_costs(session, rows),
                            {{"device_id", [](Row row) { return row.device; }},
                             {"case", [](Row row) { return row.name.text(); }},
                             {"gpu_ns", [](Row row) { return cell(row.gpu_ns); }},
                             {"host_ns", [](Row row) { return cell(row.host_ns); }},
                             {"ratio", [](Row row) { return cell(row.ratio()); }}});
  write_table<Sentence>(folder / "fallback_sentences.csv",
                        session,
                        fallback_sentences(session, fallback_costs(session, rows)),
                        {{"device_id", [](const Sentence& row) { return row.device; }},
                         {"sentence", [](const Sentence& row) { return row.text; }}});
}

void write_observer_effects(const SessionData& session,
                            const std::vector<SummaryRow>& rows,
                            const fs::path& folder) {
  using Row = const ObserverEffect&;
  write_table<ObserverEffect>(
      folder / "observer.csv",
      session,
      observer_effects(rows),
      {{"device_id", [](Row row) { return row.device; }},
       {"case", [](Row row) { return row.name.text(); }},
       {"metric", [](Row row) { return row.metric; }},
       {"unit", [](Row row) { return unit_of(row.metric); }},
       {"level", [](Row row) { return std::string(name_of(row.level)); }},
       {"plain_runs", [](Row row) { return number(row.plain_runs); }},
       {"traced_runs", [](Row row) { return number(row.traced_runs); }},
       {"plain", [](Row row) { return cell(row.plain); }},
       {"traced", [](Row row) { return cell(row.traced); }},
       {"effect", [](Row row) { return row.effect ? cell(row.effect->value) : ""; }},
       {"effect_lo", [](Row row) { return row.effect ? cell(row.effect->interval.low) : ""; }},
       {"effect_hi", [](Row row) { return row.effect ? cell(row.effect->interval.high) : ""; }}});
}

void write_launch_parts(const SessionData& session, const fs::path& folder) {
  using Row = const LaunchParts&;
  write_table<LaunchParts>(folder / "parts.csv",
                           session,
                           launch_parts(session),
                           {{"device_id", [](Row row) { return row.device; }},
                            {"case", [](Row row) { return row.name.text(); }},
                            {"quantile", [](Row row) { return row.quantile; }},
                            {"samples", [](Row row) { return number(row.samples); }},
                            {"call_ns", [](Row row) { return cell(row.call_ns); }},
                            {"queue_ns", [](Row row) { return cell(row.queue_ns); }},
                            {"kernel_ns", [](Row row) { return cell(row.kernel_ns); }},
                            {"overhead_ns", [](Row row) { return cell(row.overhead_ns); }}});
}

void write_flag_checks(const SessionData& session, const fs::path& folder) {
  using Row = const FlagCheck&;
  write_table<FlagCheck>(folder / "flag_check.csv",
                         session,
                         flag_checks(session),
                         {{"device_id", [](Row row) { return row.device; }},
                          {"samples", [](Row row) { return number(row.samples); }},
                          {"before_kernel", [](Row row) { return number(row.before_kernel); }},
                          {"excess_p50_ns", [](Row row) { return cell(row.excess_p50_ns); }},
                          {"limit_ns", [](Row row) { return cell(row.limit_ns); }},
                          {"agrees", [](Row row) { return cell(row.agrees); }}});
}

std::string shape_text(const Json& shape) {
  return shape.is_array() && shape.size() == 3
             ? fmt::format("{}x{}x{}", shape[0].dump(), shape[1].dump(), shape[2].dump())
             : "";
}

/// Kernels and memory of all runs of a case together; of those that traced everything and whose
/// trace can be believed.
void write_kernels_and_memory(const SessionData& session, const fs::path& folder) {
  struct KernelSums {
    std::uint64_t count = 0, total_ns = 0, shortest_ns = 0, longest_ns = 0;
  };
  std::map<std::array<std::string, 5>, KernelSums> kernels;  // device, case, name, grid, block
  std::map<std::array<std::string, 6>, std::uint64_t> memory;
  for (const TraceInfo& trace : session.traces) {
    if (trace.state != "ok" || family_of_setup(trace.setup) != trace.setup) continue;
    for (const Json& kernel : trace.record.value("kernels", Json::array())) {
      if (!kernel.is_object()) continue;
      const auto number_of = [&kernel](const char* key) {
        return maybe<std::uint64_t>(kernel, key).value_or(0);
      };
      KernelSums& sums = kernels[{trace.device,
                                  trace.case_name,
                                  maybe<std::string>(kernel, "name").value_or(""),
                                  shape_text(kernel.value("grid", Json())),
                                  shape_text(kernel.value("block", Json()))}];
      sums.shortest_ns = sums.count == 0 ? number_of("shortest_ns")
                                         : std::min(sums.shortest_ns, number_of("shortest_ns"));
      sums.longest_ns = std::max(sums.longest_ns, number_of("longest_ns"));
      sums.count += number_of("count");
      sums.total_ns += number_of("total_ns");
    }
    for (const Json& entry : trace.record.value("memory", Json::array())) {
      if (!entry.is_object()) continue;
      memory[{trace.device,
              trace.case_name,
              maybe<std::string>(entry, "operation").value_or(""),
              number_in(entry, "kind"),
              maybe<std::uint64_t>(entry, "pool").value_or(0) != 0 ? "yes" : "no",
              number_in(entry, "bytes")}] += maybe<std::uint64_t>(entry, "count").value_or(0);
    }
  }
  CsvWriter kernels_out(folder / "kernels.csv",
                        {"session_id",
                         "device_id",
                         "case",
                         "kernel",
                         "grid",
                         "block",
                         "count",
                         "total_ns",
                         "shortest_ns",
                         "longest_ns"});
  for (const auto& [key, sums] : kernels) {
    kernels_out.row({session.id,
                     key[0],
                     key[1],
                     key[2],
                     key[3],
                     key[4],
                     number(sums.count),
                     number(sums.total_ns),
                     number(sums.shortest_ns),
                     number(sums.longest_ns)});
  }
  kernels_out.commit();
  CsvWriter memory_out(
      folder / "memory.csv",
      {"session_id", "device_id", "case", "operation", "kind", "pool", "bytes", "count"});
  for (const auto& [key, count] : memory) {
    memory_out.row({session.id, key[0], key[1], key[2], key[3], key[4], key[5], number(count)});
  }
  memory_out.commit();
}

void write_traces(const SessionData& session, const fs::path& folder) {
  constexpr const char* kCounts[] = {"launches",
                                     "kernels",
                                     "joined",
                                     "kernels_without_launch",
                                     "launches_without_kernel",
                                     "dropped",
                                     "unknown",
                                     "zero",
                                     "inverted",
                                     "early",
                                     "duplicates",
                                     "overlap",
                                     "nested"};
  std::vector<std::string> header = {
      "session_id", "device_id", "setup", "replicate", "case", "state", "reason"};
  header.insert(header.end(), std::begin(kCounts), std::end(kCounts));
  header.insert(header.end(),
                {"clock_uncertainty_ns",
                 "clock_drift_ppm",
                 "clock_step_ns",
                 "impossible",
                 "doubtful",
                 "faults",
                 "conversion_error_ns",
                 "canary_tries"});
  CsvWriter out(folder / "traces.csv", header);
  for (const TraceInfo& trace : session.traces) {
    const Json counts =
        trace.record.value(trace.case_name.empty() ? "canary" : "counts", Json::object());
    const Json clock = trace.record.value("clock", Json::object());
    std::vector<std::string> cells = {session.id,
                                      trace.device,
                                      trace.setup,
                                      number(trace.replicate),
                                      trace.case_name,
                                      trace.state,
                                      trace.reason};
    for (const char* count : kCounts) cells.push_back(number_in(counts, count));
    cells.push_back(number_in(clock, "uncertainty_ns"));
    cells.push_back(cell(maybe<double>(clock, "drift_ppm")));
    cells.push_back(number_in(clock, "step_ns"));
    cells.push_back(number_in(trace.record, "impossible"));
    const auto doubtful = maybe<bool>(trace.record, "doubtful");
    cells.push_back(doubtful ? cell(*doubtful) : "");
    cells.push_back(maybe<std::string>(trace.record, "faults").value_or(""));
    cells.push_back(number_in(trace.record, "conversion_error_ns"));
    cells.push_back(number_in(trace.record, "canary_tries"));
    out.row(cells);
  }
  out.commit();
}

void write_sentences(const SessionData& session,
                     const std::vector<SummaryRow>& rows,
                     const fs::path& folder) {
  using Row = const Sentence&;
  write_table<Sentence>(folder / "sentences.csv",
                        session,
                        sentences(session, rows),
                        {{"device_id", [](Row row) { return row.device; }},
                         {"sentence", [](Row row) { return row.text; }}});
}

void write_glossary(const fs::path& folder) {
  Json glossary;
  for (const Metric& metric : all_metrics()) {
    glossary["metrics"].push_back({{"key", metric.key},
                                   {"unit", metric.unit},
                                   {"direction", name_of(metric.direction)},
                                   {"description", metric.description}});
  }
  for (const SummaryColumn& column : summary_columns()) {
    glossary["columns"].push_back({{"key", column.key}, {"description", column.description}});
  }
  for (const TelemetryQuantity& quantity : telemetry_quantities()) {
    glossary["telemetry"].push_back({{"key", quantity.key},
                                     {"unit", quantity.unit},
                                     {"counter", quantity.counter},
                                     {"description", quantity.description}});
  }
  write_file(folder / "metrics.json", glossary.dump(1) + "\n");
}

}  // namespace

void write_detail_tables(const SessionData& session,
                         const std::vector<SummaryRow>& rows,
                         const fs::path& folder) {
  write_quantiles(session, folder);
  write_sequence(session, folder);
  write_telemetry(session, folder);
  write_variation(session, rows, folder);
  write_odd_devices(session, rows, folder);
  write_fallback_costs(session, rows, folder);
  write_observer_effects(session, rows, folder);
  write_launch_parts(session, folder);
  write_flag_checks(session, folder);
  write_kernels_and_memory(session, folder);
  write_traces(session, folder);
  write_sentences(session, rows, folder);
  write_launch_cost_tables(session, rows, folder);
  write_glossary(folder);
}

}  // namespace launchgap
