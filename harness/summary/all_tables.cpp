#include "harness/summary/all_tables.h"

#include <algorithm>
#include <array>

#include "harness/core/csv_writer.h"
#include "harness/core/environment_variables.h"
#include "harness/core/errors.h"
#include "harness/core/finding.h"
#include "harness/core/metric.h"
#include "harness/core/trace_state.h"
#include "harness/core/verdict.h"
#include "harness/core/vocabulary.h"
#include "harness/device/allocator.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/telemetry.h"
#include "harness/summary/job_answer.h"
#include "harness/summary/table_makers.h"

namespace launchgap {

std::string_view name_of(CellKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"text", "number", "count", "flag"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(TableUse use) {
  constexpr std::array<std::string_view, 7> kNames = {
      "session", "details", "fleet", "every_page", "export", "comparison", "comparison_cases"};
  return kNames.at(static_cast<std::size_t>(use));
}

namespace {

namespace fs = std::filesystem;

/// Thrown out of a table that has more rows than are wanted.
struct Enough {};

struct Written {
  bool any = false, cut = false;
};

Written write_table(const Table& table,
                    const TableInputs& inputs,
                    const fs::path& folder,
                    std::size_t most_rows) {
  std::vector<std::string> header;
  for (const ColumnInfo& column : table.columns) header.emplace_back(column.key);
  CsvWriter out(folder / table.name, header);
  std::size_t rows = 0;
  bool cut = false;
  try {
    table.fill(inputs, [&](std::vector<std::string> cells) {
      if (rows == most_rows) throw Enough();
      cells.insert(cells.begin(), inputs.session.id);
      out.row(cells);
      ++rows;
    });
  } catch (const Enough&) {
    cut = true;
  }
  out.commit();
  return {rows > 0, cut};
}

/// Whether a table belongs where those of `use` are written.
bool is_wanted(TableUse table, TableUse use) {
  if (table == use) return true;
  const bool of_page =
      use == TableUse::session || use == TableUse::details || use == TableUse::fleet;
  switch (table) {
    case TableUse::every_page:
      return of_page;
    case TableUse::session:
    case TableUse::fleet:
      return use == TableUse::details;
    case TableUse::comparison:
      return use == TableUse::comparison_cases;
    default:
      return false;
  }
}

Json described(const ColumnInfo& column) {
  return {{"key", column.key},
          {"kind", name_of(column.kind)},
          {"unit", column.unit},
          {"heading", column.heading},
          {"meaning", column.meaning}};
}

Json described(const Figure& figure) {
  Json lines = Json::array();
  for (const FigureLine& line : figure.lines) {
    Json params = Json::object();
    for (const auto& [axis, value] : line.params) params[axis] = value;
    lines.push_back({{"label", line.label}, {"params", params}, {"metric", line.metric}});
  }
  return {{"caption", figure.caption},
          {"lines", lines},
          {"axis", figure.axis},
          {"axis_unit", figure.axis_unit},
          {"each_device", figure.each_device},
          {"each", figure.each}};
}

/// The one benchmark that has it; empty for a metric that several share.
std::string bringer_of(const Metric& metric) {
  for (const Benchmark& benchmark : all_benchmarks()) {
    if (std::ranges::find(benchmark.own_metrics, metric.key, &Metric::key) !=
        benchmark.own_metrics.end())
      return benchmark.name;
  }
  return "";
}

Json described(const Headline& headline) {
  return {{"place", place_of(headline)},
          {"heading", headline.heading},
          {"params", headline.params},
          {"metric", headline.metric},
          {"of", name_of(headline.of)}};
}

Json described(const Benchmark& benchmark) {
  Json axes = Json::array(), headlines = Json::array(), figures = Json::array();
  for (const Axis& axis : benchmark.axes)
    axes.push_back({{"key", axis.name}, {"meaning", axis.meaning}});
  for (const Headline& headline : benchmark.headlines) headlines.push_back(described(headline));
  for (const Figure& figure : benchmark.figures) figures.push_back(described(figure));
  return {{"key", benchmark.name},
          {"question", benchmark.question},
          {"axes", axes},
          {"headlines", headlines},
          {"place", place_of_figures(benchmark)},
          {"figures", figures}};
}

}  // namespace

Json describe_tables() {
  Json all;
  for (const Table& table : all_tables()) {
    Json columns = Json::array();
    for (const ColumnInfo& column : table.columns) columns.push_back(described(column));
    all["tables"].push_back({{"name", table.name},
                             {"use", name_of(table.use)},
                             {"one_row_per", table.one_row_per},
                             {"columns", columns}});
  }
  for (const Metric& metric : all_metrics()) {
    all["metrics"].push_back({{"key", metric.key},
                              {"benchmark", bringer_of(metric)},
                              {"unit", metric.unit},
                              {"direction", name_of(metric.direction)},
                              {"source", metric.source},
                              {"meaning", metric.meaning},
                              {"excludes", metric.excludes}});
  }
  for (const TelemetryQuantity& quantity : telemetry_quantities()) {
    all["telemetry"].push_back({{"key", quantity.key},
                                {"unit", quantity.unit},
                                {"counter", quantity.counter},
                                {"meaning", quantity.meaning}});
  }
  const auto put_names = [&all](const char* key, const auto& infos) {
    for (const auto& info : infos)
      all[key].push_back({{"key", info.name}, {"meaning", info.meaning}});
  };
  put_names("statuses", statuses());
  put_names("run_statuses", run_statuses());
  put_names("verdicts", verdicts());
  put_names("steadiness", steadiness_verdicts());
  put_names("severities", severities());
  put_names("job_verdicts", job_verdicts());
  put_names("tail_causes", kTailCauses);
  for (const ExitCodeInfo& exit_code : exit_codes()) {
    all["exit_codes"].push_back({{"key", std::to_string(static_cast<int>(exit_code.code))},
                                 {"meaning", exit_code.meaning},
                                 {"when", exit_code.when}});
  }
  for (const TraceStateInfo& state : trace_states()) {
    all["trace_states"].push_back(
        {{"key", state.name}, {"meaning", state.meaning}, {"remedy", state.remedy}});
  }
  for (const EnvironmentVariable& variable : environment_variables()) {
    all["environment_variables"].push_back(
        {{"key", variable.name}, {"use", name_of(variable.use)}, {"meaning", variable.meaning}});
  }
  for (const AllocatorKindInfo& kind : allocator_kinds()) {
    all["allocators"].push_back(
        {{"key", kind.name}, {"on_gpu", kind.on_gpu}, {"on_host", kind.on_host}});
  }
  for (const Benchmark& benchmark : all_benchmarks())
    all["benchmarks"].push_back(described(benchmark));
  for (const Word& word : all_words())
    all["words"].push_back({{"key", word.word}, {"meaning", word.meaning}});
  return all;
}

const std::vector<Table>& all_tables() {
  static const std::vector<Table> tables = {
      devices_table(),
      sessions_table(),
      missing_table(),
      fleet_devices_table(),
      fleet_metrics_table(),
      fleet_values_table(),
      fleet_outliers_table(),
      fleet_scores_table(),
      fleet_failures_table(),
      findings_table(),
      runs_table(),
      summary_table(),
      samples_table(),
      run_quantiles_table(),
      quantiles_table(),
      sequence_table(),
      telemetry_table(),
      choices_table(),
      selections_table(),
      headlines_table(),
      variation_table(),
      outlier_devices_table(),
      fallback_table(),
      observer_table(),
      parts_table(),
      flag_check_table(),
      kernels_table(),
      memory_table(),
      traces_table(),
      slow_samples_table(),
      timelines_table(),
      recordings_table(),
      record_costs_table(),
      tail_table(),
      ranks_table(),
      recorded_shares_table(),
      answers_table(),
      published_table(),
      fit_table(),
      check_answers_table(),
      verdicts_table(),
      nights_table(),
      replays_table(),
      replay_answers_table(),
      replay_moments_table(),
      replay_epochs_table(),
      blocking_table(),
      interference_table(),
      patterns_table(),
      predicted_patterns_table(),
      slow_causes_table(),
      run_factors_table(),
      ceilings_table(),
      bits_table(),
      cliffs_table(),
      skew_table(),
      ladder_table(),
      gap_devices_table(),
      gap_ratios_table(),
      gap_recorded_table(),
      gap_answers_table(),
      gap_values_table(),
      gap_classes_table(),
      gap_cases_table(),
      gap_limits_table(),
      gap_tuned_table(),
  };
  return tables;
}

std::vector<std::string_view> write_tables(const TableInputs& inputs,
                                           TableUse use,
                                           const fs::path& folder,
                                           std::size_t most_rows) {
  std::vector<std::string_view> empty;
  Json cut = Json::array();
  for (const Table& table : all_tables()) {
    if (!is_wanted(table.use, use)) continue;
    const Written written = write_table(table, inputs, folder, most_rows);
    if (!written.any) empty.push_back(table.name);
    if (written.cut) cut.push_back(table.name);
  }
  if (use == TableUse::details || use == TableUse::fleet) {
    Json described = describe_tables();
    if (!cut.empty()) described["cut"] = cut;
    write_file(folder / "tables.json", text_of_json(described, 1) + "\n");
  }
  return empty;
}

}  // namespace launchgap
