#include "harness/summary/recorded_process.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/core/printable.h"

namespace launchgap {

RecordedProcess::RecordedProcess(const SessionData& session_, const RecordingInfo& info_)
    : session(session_), info(info_), recording(info_.record) {
  for (const auto& [key, data] : session.cases) {
    if (key.device == info.device && key.arm == kRecorded) cases_.emplace_back(&key, &data);
  }
  for (const JobInfo& own : session.jobs) {
    if (own.device != info.device || own.replicate != info.replicate) continue;
    job = own.record;
    has_job = true;
  }
  for (const TraceInfo& trace : session.traces) {
    if (trace.device != info.device || trace.replicate != info.replicate) continue;
    if (trace.record.kernels) kernels = &*trace.record.kernels;
    if (trace.record.counts) counts = *trace.record.counts;
  }
  length_ns = of_job("step_ns");
  idle_share = of_job("gpu_idle_share");
}

std::optional<double> RecordedProcess::of_job(const std::string& metric) const {
  const std::vector<double> found = samples("recorded/job", metric);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::vector<double> RecordedProcess::of_launches(const std::string& metric,
                                                 std::string_view state) const {
  return samples("recorded/launch", metric, state);
}

std::vector<double> RecordedProcess::of_graphs(const std::string& metric) const {
  return samples("recorded/graph", metric);
}

double RecordedProcess::share(double nanoseconds) const {
  return length_ns && *length_ns > 0 ? nanoseconds / *length_ns : 0;
}

double RecordedProcess::share_of_extent(double nanoseconds) const {
  if (!job.extent_ns || *job.extent_ns <= 0) return share(nanoseconds);
  return nanoseconds / static_cast<double>(*job.extent_ns);
}

double RecordedProcess::total_kernel_ns() const {
  if (!kernels) return 0;
  double total = 0;
  for (const CountedKernels& kernel : *kernels) total += static_cast<double>(kernel.total_ns);
  return total;
}

double RecordedProcess::unknown_launches() const {
  const auto part = [](double of, double all) { return all > 0 ? of / all : 0; };
  if (!job.all_launches)
    return part(static_cast<double>(counts.launches_without_kernel.value_or(0)),
                static_cast<double>(counts.launches.value_or(0)));
  return part(static_cast<double>(job.unknown_launches.value_or(0)),
              static_cast<double>(*job.all_launches));
}

double RecordedProcess::unknown_share() const {
  return std::max(unknown_launches(), share(static_cast<double>(job.unknown_ns.value_or(0))));
}

std::optional<double> RecordedProcess::launch_share() const {
  if (!job.tail) return std::nullopt;
  return share_of_calls(*job.tail);
}

double RecordedProcess::share_of_calls(const LaunchTail& calls) const {
  return share_of_calls(calls.time_ns, calls.covered_ns);
}

double RecordedProcess::share_of_calls(const TailPart& calls) const {
  return share_of_calls(calls.time_ns, calls.covered_ns);
}

double RecordedProcess::share_of_calls(std::int64_t time_ns, std::int64_t covered_ns) const {
  return std::min(1.0, share_of_extent(static_cast<double>(covered_ns > 0 ? covered_ns : time_ns)));
}

std::string RecordedProcess::where() const {
  const std::vector<RecordingInfo>& all = session.recordings;
  const auto alike = [&](auto&& key) {
    return std::ranges::count_if(
        all, [&](const RecordingInfo& other) { return key(other.record) == key(recording); });
  };
  const auto of_file = [](const RecordingRecord& record) { return record.file; };
  const auto of_process = [](const RecordingRecord& record) {
    return std::pair(record.file, record.pid);
  };
  const auto of_rank = [](const RecordingRecord& record) { return record.rank; };
  std::string name = recording.file;
  auto same = alike(of_file);
  if (recording.rank && alike(of_rank) <= alike(of_process)) {
    name = fmt::format("rank {}", *recording.rank);
    same = alike(of_rank);
  } else if (recording.pid && alike(of_process) < same) {
    name = same == std::ssize(all) ? fmt::format("process {}", *recording.pid)
                                   : fmt::format("{}, process {}", name, *recording.pid);
    same = alike(of_process);
  }
  // A process on several GPUs.
  const DeviceFacts* const device = session.device(info.device);
  if (same > 1 && device) name += fmt::format(", GPU {}", device->index);
  return printable(name, 80);
}

Finding RecordedProcess::finding(std::string_view code,
                                 Severity severity,
                                 std::optional<double> lost_ns) const {
  Finding finding = new_finding(FindingSource::cause, code, severity, where(), info.device);
  finding.replicate = info.replicate;
  if (lost_ns) finding.share = share(*lost_ns);
  return finding;
}

std::vector<double> RecordedProcess::samples(std::string_view benchmark,
                                             const std::string& metric,
                                             std::string_view state) const {
  std::vector<double> all;
  for (const auto& [key, data] : cases_) {
    if (key->name.benchmark != benchmark) continue;
    if (!state.empty() && key->name.at("stream") != state) continue;
    const auto own = data->of_run(metric, info.replicate);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<RecordedProcess> recorded_processes(const SessionData& session) {
  std::vector<RecordedProcess> processes;
  processes.reserve(session.recordings.size());
  for (const RecordingInfo& info : session.recordings) processes.emplace_back(session, info);
  return processes;
}

std::optional<double> idle_launch_share(const SessionData& session, const std::string& device) {
  std::set<int> doubtful;
  for (const RecordingInfo& info : session.recordings) {
    if (info.device == device && !info.record.clock_problem.empty())
      doubtful.insert(info.replicate);
  }
  std::size_t idle = 0, known = 0;
  for (const auto& [key, data] : session.cases) {
    const bool launches =
        key.name.benchmark == "recorded/launch" || key.name.benchmark == "recorded/graph";
    const bool is_idle = key.name.has("stream:idle");
    const auto calls = data.samples.find("api_record_ns");
    if (key.device != device || key.arm != kRecorded || !launches || calls == data.samples.end() ||
        (!is_idle && !key.name.has("stream:busy")))
      continue;
    for (const auto& [replicate, samples] : calls->second) {
      if (doubtful.contains(replicate)) continue;
      known += samples.size();
      if (is_idle) idle += samples.size();
    }
  }
  if (known == 0) return std::nullopt;
  return static_cast<double>(idle) / static_cast<double>(known);
}

}  // namespace launchgap
