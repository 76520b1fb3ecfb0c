#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/device/backend.h"
#include "harness/summary/generations.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

struct DeviceRow : DeviceFacts {
  const SessionData& session;

  Release released() const {
    return is_gpu(*this) ? release_of(*this).value_or(Release()) : Release();
  }
};

struct RunRow : RunInfo {
  const SessionData& session;
};

/// "cuBLAS 13.1.0 (/path); cuDNN 9.19.0 (/path)".
std::string libraries_text(const DeviceRow& row) {
  std::vector<std::string> texts;
  for (const RunInfo& run : row.session.runs) {
    if (run.device != row.uuid) continue;
    for (const LoadedLibrary& library : run.libraries) {
      std::string text = fmt::format("{} {}", library.name, library.version);
      // Where others have measured, nobody tells it.
      if (!library.path.empty()) text += fmt::format(" ({})", library.path);
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

const DeviceFacts& device_of(const SummaryRow& row) {
  static const DeviceFacts unknown;
  const DeviceFacts* const device = row.session->device(row.key.device);
  return device ? *device : unknown;
}

bool is_simulated(const SummaryRow& row) {
  return device_of(row).simulated ||
         std::ranges::any_of(row.session->runs, [&](const RunInfo& run) {
           return run.device == row.key.device && run.simulated;
         });
}

const Metric& metric_of(const SummaryRow& row) {
  static const Metric kUnknown{"", "", Direction::lower_is_better, "", "", ""};
  const Metric* const known = find_metric(row.metric);
  return known ? *known : kUnknown;
}

std::string run_medians_text(const SummaryRow& row) {
  std::string text;
  for (const double median : row.run_medians) text += (text.empty() ? "" : " ") + cell(median);
  return text;
}

}  // namespace

Table devices_table() {
  using Row = const DeviceRow&;
  return make_table<DeviceRow>(
      "devices.csv",
      "selected device",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const DeviceFacts& device : from.session.devices) put({device, from.session});
      },
      {{"node", [](Row row) { return row.session.node_of(row.uuid); }},
       {"device_id", &DeviceRow::uuid},
       {"device_index", "In the driver's order; 0 for the host.", &DeviceRow::index},
       {"device_name", &DeviceRow::name},
       {"backend", &DeviceRow::backend},
       {"compute_capability", &DeviceRow::compute_capability},
       {"released",
        "Year and month of its release, by its name or else by its compute capability; empty: "
        "neither tells.",
        [](Row row) { return row.released().month; }},
       {"release_known",
        "Whether its name tells it.",
        [](Row row) { return row.released().by_name; }},
       {"uuid", "The same as device_id.", &DeviceRow::uuid},
       {"pci_bus_id", "Where it is on the PCI bus.", &DeviceRow::pci_bus_id},
       {"memory_bytes", "Its memory.", &DeviceRow::memory_bytes},
       {"multiprocessors",
        "SMs; of the host the CPUs that the process may use.",
        &DeviceRow::multiprocessors},
       {"clock_mhz", "The highest clock, not the one that was running.", &DeviceRow::clock_mhz},
       {"memory_clock_mhz", "The highest clock of its memory.", &DeviceRow::memory_clock_mhz},
       {"memory_bus_bits", "Width of its memory's bus.", &DeviceRow::memory_bus_bits, "bit"},
       {"l2_bytes", "Its last level of cache; of the host L3.", &DeviceRow::last_level_cache_bytes},
       {"driver_version", "The CUDA version that the driver serves.", &DeviceRow::driver_version},
       {"libraries",
        "Name, version and path of what was loaded, separated by `; `.",
        libraries_text},
       {"host_cpu",
        "The model of the machine's CPU.",
        [](Row row) { return row.session.host.cpu_model; }},
       {"usable", "Whether anything can be launched on it.", &DeviceRow::usable},
       {"reason", "Why not.", &DeviceRow::reason},
       {"simulated", &DeviceRow::simulated}});
}

Table runs_table() {
  using Row = const RunRow&;
  return make_table<RunRow>(
      "runs.csv",
      "records file",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const RunInfo& run : from.session.runs) put({run, from.session});
      },
      {{"node", &RunRow::node},
       {"device_id", &RunRow::device},
       {"device_name",
        [](Row row) {
          const DeviceFacts* const device = row.session.device(row.device);
          return device ? device->name : std::string();
        }},
       {"replicate", &RunRow::replicate},
       {"arm", &RunRow::arm},
       {"process_config", [](Row row) { return row.process_config.text(); }},
       {"attempt", &RunRow::attempt},
       {"status", "ok, failed, stopped, or incomplete: it has no end.", &RunRow::status},
       {"reason", "Why the status is not ok.", &RunRow::reason},
       {"begin_utc", "When it began.", &RunRow::begin_utc},
       {"duration_s", "How long it took.", &RunRow::duration_s, "s"},
       {"pid", "The process.", &RunRow::pid},
       {"cpus", "CPUs of the launching thread.", &RunRow::cpus},
       {"side_by_side",
        "How many runs may have been going on at once; 1: alone.",
        &RunRow::side_by_side},
       {"cases_ok", "Cases that are ok.", &RunRow::cases_ok},
       {"cases_failed", "Cases that are neither ok nor unsupported.", &RunRow::cases_failed},
       {"kernel_form",
        "native: machine code of the build; portable: PTX; host.",
        &RunRow::kernel_form},
       {"jit", "Whether the driver compiled the kernels when they were loaded.", &RunRow::jit},
       {"records_file", "Its records.", &RunRow::file},
       {"simulated", &RunRow::simulated},
       {"begin_ns",
        "When it began, on the machine's monotonic clock: the order of runs.",
        &RunRow::begin_ns},
       {"fingerprint",
        "What should be equal for results to be comparable, as JSON.",
        [](Row row) { return text_of_json(row.fingerprint); }},
       {"trace_state",
        "`off` in plain runs, `ok`, or why the run is not traced.",
        &RunRow::trace_state},
       {"measured_under_tool",
        "The profiler or debugger that the process ran under.",
        &RunRow::measured_under_tool},
       {"other_processes",
        "Most other processes that computed on the GPU at once.",
        &RunRow::other_processes},
       {"telemetry_missing",
        "What the system does not count for the launching CPU, and why, separated by `; `: no "
        "slow block can be blamed on it.",
        [](Row row) {
          std::vector<std::string> lines;
          for (const auto& [key, why] : row.telemetry_missing)
            lines.push_back(fmt::format("{}: {}", key, why));
          return fmt::format("{}", fmt::join(lines, "; "));
        }},
       {"memory_kept_bytes",
        "How much less of a GPU's memory was free after the last case than before the first: "
        "what the driver and libraries keep is in it, and what other processes took. Empty where "
        "a process is one sample, and for the host.",
        &RunRow::memory_kept_bytes},
       {"memory_kept_by",
        "The case during which most of it went. It is the device's memory: what other processes "
        "took meanwhile is in it.",
        &RunRow::memory_kept_by},
       {"steady", "Whether calls and clocks were steady when measuring began.", &RunRow::steady},
       {"restless_cases",
        "Cases that began while launches were slower than at the end of the warm-up, and not "
        "steady.",
        [](Row row) { return row.restless_cases.size(); }}});
}

Table summary_table() {
  using Row = const SummaryRow&;
  return make_table<SummaryRow>(
      "summary.csv",
      "device, arm, process configuration, case and metric",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const SummaryRow& row : from.rows) put(row);
        if (!from.impossible) return;
        for (const SummaryRow& row : *from.impossible) put(row);
      },
      {{"node", [](Row row) { return row.session->host.node; }},
       {"device_id", [](Row row) { return row.key.device; }},
       {"device_name", [](Row row) { return device_of(row).name; }},
       {"backend", [](Row row) { return device_of(row).backend; }},
       {"compute_capability", [](Row row) { return device_of(row).compute_capability; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"benchmark", "The workload.", [](Row row) { return row.key.name.benchmark; }},
       {"params",
        "The workload's axes and their values.",
        [](Row row) { return row.key.name.params_text(); }},
       {"metric", &SummaryRow::metric},
       {"unit",
        "Unit of the statistics from min to mad, and of the ends of the median's interval.",
        [](Row row) { return metric_of(row).unit; }},
       {"direction",
        "Which way is better.",
        [](Row row) {
          const Metric* const known = find_metric(row.metric);
          return known ? name_of(known->direction) : std::string_view();
        }},
       {"status",
        "ok, failed, skipped, invalid (measured, and not to be trusted) or unsupported.",
        [](Row row) { return name_of(row.status); }},
       {"reason", "Why the status is not ok, or what was cut short.", &SummaryRow::reason},
       {"runs", "Fresh processes that measured it.", &SummaryRow::runs},
       {"n", "Samples, over all runs.", &SummaryRow::n},
       {"min", "Smallest sample.", &SummaryRow::min, kUnitOfMetric},
       {"q1", "First quartile.", &SummaryRow::q1, kUnitOfMetric},
       {"p50", "Median of all samples of all runs.", &SummaryRow::p50, kUnitOfMetric, "median"},
       {"q3", "Third quartile.", &SummaryRow::q3, kUnitOfMetric},
       {"p90", "One sample in ten is above.", &SummaryRow::p90, kUnitOfMetric},
       {"p99", "One sample in a hundred is above.", &SummaryRow::p99, kUnitOfMetric},
       {"p999", "One sample in a thousand is above.", &SummaryRow::p999, kUnitOfMetric, "p99.9"},
       {"max", "Largest sample.", &SummaryRow::max, kUnitOfMetric},
       {"mean", "Arithmetic mean.", &SummaryRow::mean, kUnitOfMetric},
       {"sd", "Standard deviation of all samples.", &SummaryRow::sd, kUnitOfMetric},
       {"mad",
        "Median absolute deviation from the median: spread that outliers do not move.",
        &SummaryRow::mad,
        kUnitOfMetric},
       {"p50_ci_lo",
        "Lower end of the 95 % interval of the median over runs (six runs or more).",
        &SummaryRow::p50_ci_lo,
        kUnitOfMetric,
        "CI low"},
       {"p50_ci_hi",
        "Upper end of the 95 % interval of the median over runs (six runs or more).",
        &SummaryRow::p50_ci_hi,
        kUnitOfMetric,
        "CI high"},
       {"within_run_cv",
        "Coefficient of variation within runs, from the standard deviation of the logarithms.",
        if_any(&SummaryRow::within_run_cv, &stats::Estimate::value),
        kShare,
        "cv within"},
       {"between_run_cv",
        "Coefficient of variation between runs, beyond what their samples explain.",
        if_any(&SummaryRow::between_run_cv, &stats::Estimate::value),
        kShare,
        "cv between"},
       {"icc",
        "Share of the variance of the logarithms that lies between runs: 0, any process is "
        "like another; 1, all that differs is the process.",
        if_any(&SummaryRow::icc, &stats::Estimate::value),
        kShare,
        "icc"},
       {"lag1",
        "Correlation of each sample with the next, within runs.",
        &SummaryRow::lag1,
        "1",
        "lag 1"},
       {"modes",
        "Modes of the distribution within a run, by the dip test; of the runs, what most have.",
        &SummaryRow::modes},
       {"outlier_share",
        "Share of samples beyond 1.5 interquartile ranges from the quartiles.",
        &SummaryRow::outlier_share,
        kShare,
        "outliers"},
       {"source",
        "What measured it: the host's clock, events on the device, the trace, derived from "
        "another metric; or recorded or published by somebody else.",
        [](Row row) -> std::string_view {
          const std::string& arm = row.key.arm;
          return arm == kRecorded || arm == kPublished ? std::string_view(arm)
                                                       : metric_of(row).source;
        }},
       {"simulated", is_simulated},
       {"method", "What did the work: library, call, algorithm.", &SummaryRow::method},
       {"within_run_cv_lo",
        "Lower end of the 95 % interval of within_run_cv.",
        if_any(&SummaryRow::within_run_cv, &stats::Estimate::low),
        kShare},
       {"within_run_cv_hi",
        "Upper end of the 95 % interval of within_run_cv.",
        if_any(&SummaryRow::within_run_cv, &stats::Estimate::high),
        kShare},
       {"between_run_cv_lo",
        "Lower end of the 95 % interval of between_run_cv.",
        if_any(&SummaryRow::between_run_cv, &stats::Estimate::low),
        kShare},
       {"between_run_cv_hi",
        "Upper end of the 95 % interval of between_run_cv.",
        if_any(&SummaryRow::between_run_cv, &stats::Estimate::high),
        kShare},
       {"icc_lo",
        "Lower end of the 95 % interval of icc.",
        if_any(&SummaryRow::icc, &stats::Estimate::low),
        kShare},
       {"icc_hi",
        "Upper end of the 95 % interval of icc.",
        if_any(&SummaryRow::icc, &stats::Estimate::high),
        kShare},
       {"run_median_range",
        "Largest less smallest median of a run, as a share of the median of the medians.",
        &SummaryRow::run_median_range,
        kShare,
        "run range"},
       {"impossible_records",
        "Records of the trace that cannot be or are missing, over all runs; their samples lack the "
        "traced metrics.",
        &SummaryRow::impossible_records},
       {"impossible",
        "Whether its rate is above what the GPU can do (ceilings.csv): then the row counts in no "
        "headline, digest or comparison.",
        &SummaryRow::impossible},
       {"run_medians",
        "The median of each run, in the order of replicates, separated by blanks.",
        run_medians_text}});
}

}  // namespace launchgap
