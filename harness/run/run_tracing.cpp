#include "harness/run/run_tracing.h"

#include <fmt/format.h>

#include "harness/core/system_files.h"
#include "harness/device/backend.h"
#include "harness/import/trace_counts.h"

namespace launchgap {
namespace {

std::uint64_t nanoseconds(std::int64_t duration) {
  return static_cast<std::uint64_t>(duration);
}

const char* name_of(activity::Domain domain) {
  constexpr const char* kNames[] = {"host", "driver", "runtime"};
  return kNames[static_cast<std::size_t>(domain)];
}

}  // namespace

RunTracing::RunTracing(const std::string& backend, Arm arm, TraceLevel level)
    : traced_(arm == Arm::traced), level_(level) {
  if (!traced_) return;
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
  if (!traced_) return text_of(TraceState::off);
  return problem_ ? problem_->state() : text_of(TraceState::ok);
}

std::optional<LoadedLibrary> RunTracing::loaded_library() const {
  if (!tracer_) return std::nullopt;
  return tracer_->loaded_library();
}

TraceRecord RunTracing::record() const {
  TraceRecord record;
  record.state = state();
  record.reason = problem_ ? problem_->what() : "";
  record.level = name_of(level_);
  record.notes = tracer_ ? tracer_->notes() : std::vector<std::string>();
  record.canary = counts_of(canary_.counts);
  record.canary_tries = canary_.tries;
  record.canary_burst = canary_.burst;
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

TraceRecord RunTracing::record(const std::string& case_name, const CaseTrace& trace) {
  const auto problem = trace.invalid();
  const TraceFaults faults = trace.faults();
  TraceRecord record;
  record.case_name = case_name;
  record.state = problem ? problem->state() : text_of(TraceState::ok);
  record.reason = problem ? problem->what() : "";
  record.counts = counts_of(trace.counts());
  record.impossible = static_cast<std::int64_t>(faults.impossible);
  record.doubtful = faults.doubtful();
  record.faults = trace.describe_faults();
  record.conversion_error_ns = trace.conversion_error_ns();
  record.samples_without_records = trace.samples_without_records();
  record.flags_before_kernel = trace.flags_before_kernel();
  record.allocations_joined = trace.allocations_joined();
  record.late_blocks = trace.late_blocks();
  const auto& clock = trace.clock();
  record.clock = {clock.offset_ns(), clock.uncertainty_ns(), clock.step_ns(), clock.drift_ppm()};
  record.calls.emplace();
  for (const auto& [call, count] : trace.calls())
    record.calls->push_back({name_of(call.first), call.second, std::nullopt, count});
  record.kernels.emplace();
  for (const auto& [key, use] : trace.kernels()) {
    const auto& [name, grid, block] = key;
    record.kernels->push_back({name,
                               {grid.begin(), grid.end()},
                               {block.begin(), block.end()},
                               use.count,
                               nanoseconds(use.total_ns),
                               nanoseconds(use.shortest_ns),
                               nanoseconds(use.longest_ns)});
  }
  record.memory.emplace();
  for (const auto& [key, count] : trace.memory())
    record.memory->push_back(
        {key.release ? "release" : "allocate", key.kind, key.pool, key.bytes, count});
  record.overheads.emplace();
  for (const auto& [kind, use] : trace.overheads())
    record.overheads->push_back(
        {std::string(activity::name_of(kind)), use.count, nanoseconds(use.total_ns)});
  return record;
}

void keep_kernels_from_waiting(Device& device, const std::optional<std::string>& named) {
  if (is_gpu(device.facts()) && (named || tool_by_environment())) device.forbid_waiting_kernels();
}

std::optional<std::string> watching_tool(Arm arm, const std::optional<std::string>& named) {
  if (named) return named;
  if (auto tool = tool_by_environment()) return tool;
  if (arm == Arm::traced) return std::nullopt;
  const std::set<std::string> loaded = mapped_files("libcupti");
  if (!loaded.empty()) return fmt::format("whoever loaded {}", *loaded.begin());
  return std::nullopt;
}

}  // namespace launchgap
