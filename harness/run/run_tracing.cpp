#include "harness/run/run_tracing.h"

#include <fstream>

#include <fmt/format.h>

namespace launchgap {
namespace {

Json to_json(const JoinCounts& counts) {
  return {{"launches", counts.launches},
          {"kernels", counts.kernels},
          {"joined", counts.joined},
          {"kernels_without_launch", counts.kernels_without_launch},
          {"launches_without_kernel", counts.launches_without_kernel},
          {"dropped", counts.dropped},
          {"unknown", counts.unknown},
          {"zero", counts.zero},
          {"inverted", counts.inverted},
          {"early", counts.early},
          {"duplicates", counts.duplicates},
          {"overlap", counts.overlap},
          {"nested", counts.nested}};
}

const char* name_of(activity::Domain domain) {
  switch (domain) {
    case activity::Domain::host:
      return "host";
    case activity::Domain::driver:
      return "driver";
    case activity::Domain::runtime:
      return "runtime";
  }
  return "";
}

}  // namespace

RunTracing::RunTracing(const std::string& backend, Arm arm, TraceLevel level)
    : wanted_(arm == Arm::traced), level_(level) {
  if (!wanted_) return;
  try {
    tracer_ = &start_tracer(backend, level);
  } catch (const TraceUnavailable& problem) {
    problem_ = problem;
  }
}

void RunTracing::prove(Device& device) {
  if (!tracer_) return;
  try {
    check_with_canary(*tracer_, device, canary_);
  } catch (const TraceUnavailable& problem) {
    problem_ = problem;
  } catch (const Unsupported& error) {
    problem_ = TraceUnavailable(TraceState::no_kernel, error.what());
  }
}

std::string RunTracing::state() const {
  if (!wanted_) return text_of(TraceState::off);
  return problem_ ? problem_->state() : text_of(TraceState::ok);
}

std::optional<LoadedLibrary> RunTracing::loaded_library() const {
  if (!tracer_) return std::nullopt;
  return tracer_->loaded_library();
}

Json RunTracing::record() const {
  Json record = new_record("trace");
  record["state"] = state();
  record["reason"] = problem_ ? problem_->what() : "";
  record["level"] = name_of(level_);
  record["notes"] = tracer_ ? Json(tracer_->notes()) : Json::array();
  record["canary"] = to_json(canary_.counts);
  record["canary_tries"] = canary_.tries;
  record["canary_burst"] = canary_.burst;
  return record;
}

void RunTracing::discard() {
  if (!tracer_ || problem_) return;
  activity::Trace trace;
  tracer_->collect(trace, true);
}

std::unique_ptr<CaseTrace> RunTracing::of_case(TracedAs as, int operations) {
  if (!tracer_ || problem_) return nullptr;
  return std::make_unique<CaseTrace>(*tracer_, as, operations, canary_.scatter_ns);
}

Json RunTracing::record(const std::string& case_name, const CaseTrace& trace) {
  const auto problem = trace.invalid();
  Json record = new_record("trace");
  record["case"] = case_name;
  record["state"] = problem ? problem->state() : "ok";
  record["reason"] = problem ? problem->what() : "";
  record["counts"] = to_json(trace.counts());
  const TraceFaults faults = trace.faults();
  record["impossible"] = faults.impossible;
  record["doubtful"] = faults.doubtful();
  record["faults"] = trace.describe_faults();
  record["conversion_error_ns"] = trace.conversion_error_ns();
  record["samples_without_records"] = trace.samples_without_records();
  record["flags_before_kernel"] = trace.flags_before_kernel();
  record["allocations_joined"] = trace.allocations_joined();
  record["late_blocks"] = trace.late_blocks();
  record["clock"] = {{"offset_ns", trace.clock().offset_ns()},
                     {"uncertainty_ns", trace.clock().uncertainty_ns()},
                     {"step_ns", trace.clock().step_ns()}};
  if (const auto drift = trace.clock().drift_ppm()) record["clock"]["drift_ppm"] = *drift;
  record["calls"] = Json::array();
  for (const auto& [call, count] : trace.calls()) {
    record["calls"].push_back(
        {{"domain", name_of(call.first)}, {"id", call.second}, {"count", count}});
  }
  record["kernels"] = Json::array();
  for (const auto& [key, use] : trace.kernels()) {
    const auto& [name, grid, block] = key;
    record["kernels"].push_back({{"name", name},
                                 {"grid", grid},
                                 {"block", block},
                                 {"count", use.count},
                                 {"total_ns", use.total_ns},
                                 {"shortest_ns", use.shortest_ns},
                                 {"longest_ns", use.longest_ns}});
  }
  record["memory"] = Json::array();
  for (const auto& [key, count] : trace.memory()) {
    record["memory"].push_back({{"operation", key.release ? "release" : "allocate"},
                                {"kind", key.kind},
                                {"pool", key.pool},
                                {"bytes", key.bytes},
                                {"count", count}});
  }
  record["overheads"] = Json::array();
  for (const auto& [kind, use] : trace.overheads()) {
    record["overheads"].push_back(
        {{"kind", activity::name_of(kind)}, {"count", use.count}, {"total_ns", use.total_ns}});
  }
  return record;
}

std::optional<std::string> watching_tool(Arm arm) {
  if (auto tool = tool_by_environment()) return tool;
  if (arm == Arm::traced) return std::nullopt;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t name = line.rfind('/');
    if (name != std::string::npos && line.compare(name + 1, 8, "libcupti") == 0)
      return fmt::format("whoever loaded {}", line.substr(line.find('/')));
  }
  return std::nullopt;
}

}  // namespace launchgap
