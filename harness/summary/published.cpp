#include "harness/summary/published.h"

#include <algorithm>
#include <map>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/gpu_name.h"
#include "harness/core/plan.h"
#include "harness/device/backend.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// Which case repeats a published value's method.
struct Match {
  std::string_view quantity;
  std::string_view source;  // what the source begins with; empty: any
  std::string_view method;  // what the method begins with; empty: any
  std::string_view case_name;
  std::string_view metric;
};

constexpr std::string_view kCscs = "eth-cscs/";
constexpr std::string_view kSuperbench = "microsoft/superbenchmark";
constexpr Match kMatches[] = {
    {"launch_throughput", kCscs, "", "launch/cscs/wait:end", "wall_per_launch_ns"},
    {"launch_sync_roundtrip", kCscs, "", "launch/cscs/wait:each", "wall_per_launch_ns"},
    {"launch_sync_roundtrip", kSuperbench, "", "launch/superbench/mode:wall", "wall_per_launch_ns"},
    {"superbench_event_time",
     kSuperbench,
     "",
     "launch/superbench/mode:event",
     "event_per_launch_ns"},
    {"small_kernel_stream", "", "", "launch/small_kernels/method:stream/kib:64", "per_kernel_ns"},
    {"small_kernel_graph", "", "", "launch/small_kernels/method:graph/kib:64", "per_kernel_ns"},
    {"small_kernel_cooperative",
     "",
     "",
     "launch/small_kernels/method:cooperative/kib:64",
     "per_kernel_ns"},
    {"small_kernel_persistent",
     "",
     "",
     "launch/small_kernels/method:persistent/kib:64",
     "per_kernel_ns"},
    {"launch_call",
     "",
     "cuLaunchKernel, 0 arguments",
     "launch/null/api:driver/mode:idle",
     "api_ns"},
};

const Match* match_of(const LaunchAnchor& anchor) {
  const auto found = std::ranges::find_if(kMatches, [&](const Match& match) {
    return anchor.quantity == match.quantity && anchor.source.starts_with(match.source) &&
           anchor.method.starts_with(match.method);
  });
  return found == std::end(kMatches) ? nullptr : &*found;
}

bool is_plain(const SummaryRow& row) {
  return row.status == Status::ok && row.p50 && *row.p50 > 0 &&
         row.key.arm == name_of(Arm::plain) && row.key.process_config.usual();
}

struct Line {
  double offset, slope;
};

/// Least squares over points of at least two different x.
std::optional<Line> fit(const std::vector<double>& xs, const std::vector<double>& ys) {
  const double x_mean = *stats::mean(xs), y_mean = *stats::mean(ys);
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    xx += (xs[i] - x_mean) * (xs[i] - x_mean);
    xy += (xs[i] - x_mean) * (ys[i] - y_mean);
  }
  if (xx == 0) return std::nullopt;
  return Line{y_mean - xy / xx * x_mean, xy / xx};
}

std::optional<SmallKernelFit> fit_of(const std::vector<const SummaryRow*>& rows) {
  constexpr std::size_t kLeastSizes = 3;
  constexpr double kBytesPerKib = 1024;
  std::vector<double> bytes, medians;
  std::size_t runs = rows.front()->run_medians.size();
  for (const SummaryRow* row : rows) {
    bytes.push_back(kBytesPerKib * static_cast<double>(row->key.name.number("kib")));
    medians.push_back(*row->p50);
    runs = std::min(runs, row->run_medians.size());
  }
  const auto line = rows.size() < kLeastSizes ? std::nullopt : fit(bytes, medians);
  if (!line) return std::nullopt;
  SmallKernelFit result{rows.front()->key.device,
                        rows.front()->key.name.at("method"),
                        rows.size(),
                        runs,
                        line->offset,
                        {},
                        {},
                        {}};
  if (line->slope > 0) result.bytes_per_ns = 1 / line->slope;
  const bool whole = std::ranges::all_of(
      rows, [&](const SummaryRow* row) { return row->run_medians.size() == runs; });
  for (std::size_t run = 0; whole && run < runs; ++run) {
    std::vector<double> times;
    for (const SummaryRow* row : rows) times.push_back(row->run_medians[run]);
    const double offset = fit(bytes, times)->offset;
    result.overhead_min = std::min(offset, result.overhead_min.value_or(offset));
    result.overhead_max = std::max(offset, result.overhead_max.value_or(offset));
  }
  return result;
}

}  // namespace

std::vector<LaunchAnchor> parse_launch_anchors(std::string_view csv) {
  const CsvTable table = CsvTable::parse(csv, "data/launch_anchors.csv");
  std::vector<LaunchAnchor> anchors;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double microseconds = table.number(i, "value_us");
    if (!(microseconds > 0))
      throw Error(
          "{}: value_us '{}' is no positive number", table.where(i), table.at(i, "value_us"));
    anchors.push_back({table.at(i, "gpu"),
                       table.at(i, "quantity"),
                       1000 * microseconds,
                       table.at(i, "method"),
                       table.at(i, "host"),
                       table.at(i, "source")});
  }
  return anchors;
}

const std::vector<LaunchAnchor>& launch_anchors() {
  static const auto anchors = parse_launch_anchors(embedded_table("launch_anchors.csv"));
  return anchors;
}

std::vector<Published> published(const SessionData& session,
                                 const std::vector<SummaryRow>& rows,
                                 const std::vector<LaunchAnchor>& anchors) {
  std::vector<Published> found;
  for (const SummaryRow& row : rows) {
    const DeviceFacts* const device = session.device(row.key.device);
    if (!is_plain(row) || !device || !is_gpu(*device)) continue;
    for (const LaunchAnchor& anchor : anchors) {
      const Match* const match = match_of(anchor);
      if (match && row.metric == match->metric && row.key.name.text() == match->case_name)
        found.push_back({&row, &anchor, is_model(device->name, anchor.gpu)});
    }
  }
  return found;
}

bool is_model(std::string_view device_name, std::string_view model) {
  // A part of a GPU is not that GPU.
  return device_name.find(" MIG ") == std::string_view::npos &&
         is_board(parse_board_name(model), parse_board_name(device_name));
}

std::vector<SmallKernelFit> small_kernel_fits(const std::vector<SummaryRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const SummaryRow*>> groups;
  for (const SummaryRow& row : rows) {
    if (is_plain(row) && row.key.name.benchmark == "launch/small_kernels" &&
        row.metric == "per_kernel_ns" && !row.run_medians.empty())
      groups[{row.key.device, row.key.name.at("method")}].push_back(&row);
  }
  std::vector<SmallKernelFit> fits;
  for (const auto& [key, of_method] : groups) {
    if (auto fit = fit_of(of_method)) fits.push_back(*std::move(fit));
  }
  return fits;
}

namespace {

std::optional<double> smallest(const std::vector<double>& medians) {
  if (medians.empty()) return std::nullopt;
  return *std::ranges::min_element(medians);
}

std::optional<double> largest(const std::vector<double>& medians) {
  if (medians.empty()) return std::nullopt;
  return *std::ranges::max_element(medians);
}

}  // namespace

Table published_table() {
  using Row = const Published&;
  return make_table<Published>(
      "published.csv",
      "published value and device on which a case repeated its method",
      TableUse::details,
      [](const TableInputs& from) { return published(from.session, from.rows); },
      {{"device_id", [](Row row) { return row.ours->key.device; }},
       {"quantity", "What was published.", [](Row row) { return row.theirs->quantity; }},
       {"case", [](Row row) { return row.ours->key.name.text(); }},
       {"metric", [](Row row) { return row.ours->metric; }},
       {"runs", "Runs of ours.", [](Row row) { return row.ours->run_medians.size(); }},
       {"p50_ns", "Our median.", [](Row row) { return row.ours->p50; }},
       {"p50_ci_lo",
        "Lower end of its 95 % interval.",
        [](Row row) { return row.ours->p50_ci_lo; },
        "ns"},
       {"p50_ci_hi",
        "Upper end of its 95 % interval.",
        [](Row row) { return row.ours->p50_ci_hi; },
        "ns"},
       {"run_min",
        "The smallest median of a run.",
        [](Row row) { return smallest(row.ours->run_medians); },
        "ns"},
       {"run_max",
        "The largest median of a run.",
        [](Row row) { return largest(row.ours->run_medians); },
        "ns"},
       {"published_gpu", "The GPU of theirs.", [](Row row) { return row.theirs->gpu; }},
       {"published_ns", "Their value.", [](Row row) { return row.theirs->ns; }},
       {"method", "How they measured.", [](Row row) { return row.theirs->method; }},
       {"host", "Their machine.", [](Row row) { return row.theirs->host; }},
       {"source", "Where it was published.", [](Row row) { return row.theirs->source; }},
       {"ratio", "Our median to their value.", &Published::ratio},
       {"same_model", "Whether both GPUs are of one model, by name.", &Published::same_model}});
}

Table fit_table() {
  return make_table<SmallKernelFit>(
      "fit.csv",
      "device and way of running small kernels",
      TableUse::details,
      [](const TableInputs& from) { return small_kernel_fits(from.rows); },
      {{"device_id", &SmallKernelFit::device},
       {"method", "The way.", &SmallKernelFit::method},
       {"sizes", "Sizes that the line was fitted to.", &SmallKernelFit::sizes},
       {"runs", "Runs.", &SmallKernelFit::runs},
       {"overhead_ns", "What a kernel without data would take.", &SmallKernelFit::overhead_ns},
       {"overhead_min", "The smallest of single runs.", &SmallKernelFit::overhead_min, "ns"},
       {"overhead_max", "The largest of single runs.", &SmallKernelFit::overhead_max, "ns"},
       {"bytes_per_ns",
        "Throughput; missing where the time does not grow with the size.",
        &SmallKernelFit::bytes_per_ns,
        "B/ns"}});
}

}  // namespace launchgap
