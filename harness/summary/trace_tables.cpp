#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/summary/findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A kernel of a case, over all runs that traced everything and whose trace can be believed.
struct KernelSums {
  std::string device, case_name, kernel, grid, block;
  std::uint64_t count = 0, total_ns = 0, shortest_ns = 0, longest_ns = 0;
};

struct MemorySums {
  std::string device, case_name, operation, pool;
  std::optional<std::int64_t> kind, bytes;
  std::uint64_t count = 0;
};

std::string shape_text(const Json& shape) {
  return shape.is_array() && shape.size() == 3
             ? fmt::format("{}x{}x{}", shape[0].dump(), shape[1].dump(), shape[2].dump())
             : "";
}

/// The objects of a list in the `trace` records that count.
template <class See>
void see_entries(const SessionData& session, const char* list, See&& see) {
  for (const TraceInfo& trace : session.traces) {
    if (trace.state != "ok" || !trace.setup.usual()) continue;
    for (const Json& entry : trace.record.value(list, Json::array())) {
      if (entry.is_object()) see(trace, entry);
    }
  }
}

std::string text_in(const Json& object, const char* key) {
  return maybe<std::string>(object, key).value_or("");
}

std::uint64_t count_in(const Json& object, const char* key) {
  return maybe<std::uint64_t>(object, key).value_or(0);
}

std::vector<KernelSums> sum_kernels(const Tabled& from) {
  std::map<std::array<std::string, 5>, KernelSums> sums;
  see_entries(from.session, "kernels", [&](const TraceInfo& trace, const Json& entry) {
    const std::string name = text_in(entry, "name");
    const std::string grid = shape_text(entry.value("grid", Json()));
    const std::string block = shape_text(entry.value("block", Json()));
    KernelSums& own = sums[{trace.device, trace.case_name, name, grid, block}];
    const bool first = own.count == 0;
    const std::uint64_t shortest_ns = count_in(entry, "shortest_ns");
    own = {trace.device,
           trace.case_name,
           name,
           grid,
           block,
           own.count + count_in(entry, "count"),
           own.total_ns + count_in(entry, "total_ns"),
           first ? shortest_ns : std::min(own.shortest_ns, shortest_ns),
           std::max(own.longest_ns, count_in(entry, "longest_ns"))};
  });
  std::vector<KernelSums> rows;
  for (auto& [key, own] : sums) rows.push_back(std::move(own));
  return rows;
}

std::vector<MemorySums> sum_memory(const Tabled& from) {
  const auto text = [](const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  std::map<std::array<std::string, 6>, MemorySums> sums;  // by text, which is the order of rows
  see_entries(from.session, "memory", [&](const TraceInfo& trace, const Json& entry) {
    const auto kind = maybe<std::int64_t>(entry, "kind");
    const auto bytes = maybe<std::int64_t>(entry, "bytes");
    const std::string operation = text_in(entry, "operation");
    const std::string pool = count_in(entry, "pool") != 0 ? "yes" : "no";
    MemorySums& own =
        sums[{trace.device, trace.case_name, operation, text(kind), pool, text(bytes)}];
    own = {trace.device,
           trace.case_name,
           operation,
           pool,
           kind,
           bytes,
           own.count + count_in(entry, "count")};
  });
  std::vector<MemorySums> rows;
  for (auto& [key, own] : sums) rows.push_back(std::move(own));
  return rows;
}

/// A number of the object `part` of a trace's record.
template <class Number>
auto number_in(const char* part, const char* key) {
  return [part, key](const TraceInfo& trace) {
    return maybe<Number>(trace.record.value(part, Json::object()), key);
  };
}

template <class Value>
auto field(const char* key) {
  return [key](const TraceInfo& trace) { return maybe<Value>(trace.record, key); };
}

/// What was counted: of the canary in the record of a run.
auto counted(const char* key) {
  return [key](const TraceInfo& trace) {
    const char* const part = trace.case_name.empty() ? "canary" : "counts";
    return maybe<std::int64_t>(trace.record.value(part, Json::object()), key);
  };
}

}  // namespace

Table parts_table() {
  return make_table<LaunchParts>(
      "parts.csv",
      "traced launch case and quantile",
      TableUse::details,
      [](const Tabled& from) { return launch_parts(from.session); },
      {{"device_id", meaning::kDevice, &LaunchParts::device},
       {"case", meaning::kCase, [](const LaunchParts& row) { return row.name.text(); }},
       {"quantile",
        "Of the time from the call to the end of the kernel: p50, p99 or p999.",
        &LaunchParts::quantile},
       {"samples", "Samples nearest to the quantile, whose means follow.", &LaunchParts::samples},
       {"call_ns", "In the call, before the kernel began.", &LaunchParts::call_ns, "ns"},
       {"queue_ns", "After the call, before the kernel began.", &LaunchParts::queue_ns, "ns"},
       {"kernel_ns", "The kernel.", &LaunchParts::kernel_ns, "ns"},
       {"overhead_ns",
        "Of call and queue, what overhead records cover.",
        &LaunchParts::overhead_ns,
        "ns"}});
}

Table flag_check_table() {
  return make_table<FlagCheck>(
      "flag_check.csv",
      "device",
      TableUse::details,
      [](const Tabled& from) { return flag_checks(from.session); },
      {{"device_id", meaning::kDevice, &FlagCheck::device},
       {"samples", "Launches whose flag and trace were compared.", &FlagCheck::samples},
       {"before_kernel",
        "Flags that the host saw before the trace says that the kernel began.",
        &FlagCheck::before_kernel},
       {"excess_p50_ns",
        "Median of the time from the kernel's begin until the host saw the flag.",
        &FlagCheck::excess_p50_ns,
        "ns"},
       {"limit_ns",
        "What that may be: a flag's way there and back, and 1 µs.",
        &FlagCheck::limit_ns,
        "ns"},
       {"agrees", "Whether flag and trace agree.", &FlagCheck::agrees}});
}

Table kernels_table() {
  return make_table<KernelSums>(
      "kernels.csv",
      "case, kernel, grid and block",
      TableUse::details,
      sum_kernels,
      {{"device_id", meaning::kDevice, &KernelSums::device},
       {"case", meaning::kCase, &KernelSums::case_name},
       {"kernel", "The name that the trace gives.", &KernelSums::kernel},
       {"grid", "Blocks in x, y and z.", &KernelSums::grid},
       {"block", "Threads of a block in x, y and z.", &KernelSums::block},
       {"count", "How often it ran.", &KernelSums::count},
       {"total_ns", "All of its durations together.", &KernelSums::total_ns, "ns"},
       {"shortest_ns", "The shortest.", &KernelSums::shortest_ns, "ns"},
       {"longest_ns", "The longest.", &KernelSums::longest_ns, "ns"}});
}

Table memory_table() {
  return make_table<MemorySums>(
      "memory.csv",
      "case and kind of allocation",
      TableUse::details,
      sum_memory,
      {{"device_id", meaning::kDevice, &MemorySums::device},
       {"case", meaning::kCase, &MemorySums::case_name},
       {"operation", "`allocate` or `release`.", &MemorySums::operation},
       {"kind", "CUPTI's number: 1 pageable, 2 pinned, 3 device.", &MemorySums::kind},
       {"pool", "Whether it is of a pool: `yes`, `no`.", &MemorySums::pool},
       {"bytes", "Size.", &MemorySums::bytes, "B"},
       {"count", "How often.", &MemorySums::count}});
}

Table traces_table() {
  return make_table<TraceInfo>(
      "traces.csv",
      "traced run (`case` empty) and traced case",
      TableUse::details,
      [](const Tabled& from) { return from.session.traces; },
      {{"device_id", meaning::kDevice, &TraceInfo::device},
       {"setup", meaning::kSetup, [](const TraceInfo& trace) { return trace.setup.text(); }},
       {"replicate", meaning::kReplicate, &TraceInfo::replicate},
       {"case", "The case; empty: the run, with the counts of its canary.", &TraceInfo::case_name},
       {"state", "`ok`, or why the trace is not to be believed.", &TraceInfo::state},
       {"reason", "The same in words.", &TraceInfo::reason},
       {"launches", "Outermost launch calls.", counted("launches")},
       {"kernels", "Kernels.", counted("kernels")},
       {"joined", "Kernels that have their launch.", counted("joined")},
       {"kernels_without_launch", "Kernels that have none.", counted("kernels_without_launch")},
       {"launches_without_kernel",
        "Launches without a kernel.",
        counted("launches_without_kernel")},
       {"dropped", "Records that the source says it lost.", counted("dropped")},
       {"unknown", "Records of a kind that nobody asked for.", counted("unknown")},
       {"zero", "Records without a time.", counted("zero")},
       {"inverted", "Records that end before they begin.", counted("inverted")},
       {"early", "Kernels that begin before their launch.", counted("early")},
       {"duplicates", "Correlation numbers of more than one launch.", counted("duplicates")},
       {"overlap",
        "Kernels that begin before their launch returns: legitimate.",
        counted("overlap")},
       {"nested", "Launch calls inside another: legitimate.", counted("nested")},
       {"clock_uncertainty_ns",
        "How well both clocks were read.",
        number_in<std::int64_t>("clock", "uncertainty_ns"),
        "ns"},
       {"clock_drift_ppm",
        "How fast the trace's clock moves against the host's.",
        number_in<double>("clock", "drift_ppm"),
        "ppm"},
       {"clock_step_ns",
        "A jump of one of the clocks; 0: none.",
        number_in<std::int64_t>("clock", "step_ns"),
        "ns"},
       {"impossible", "Records that cannot be or are missing.", field<std::int64_t>("impossible")},
       {"doubtful", "Whether they are more than 1 in 1,000.", field<bool>("doubtful")},
       {"faults", "Which they are, in words.", field<std::string>("faults")},
       {"conversion_error_ns",
        "By how much the conversion of the device's clock may be wrong.",
        field<std::int64_t>("conversion_error_ns"),
        "ns"},
       {"canary_tries", "How often the canary was asked.", field<std::int64_t>("canary_tries")}});
}

}  // namespace launchgap
