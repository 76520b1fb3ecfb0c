#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/plan.h"
#include "harness/summary/job_answer.h"
#include "harness/summary/recorded_process.h"
#include "harness/summary/summary.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A process of a recording, on one GPU, with what its records came to.
struct RecordedRun {
  const RecordingInfo& info;
  TraceCounts counts;
  JobAnswer answer;
  std::map<std::string, std::size_t> launches;  // by what the stream was doing
  std::size_t graph_launches = 0;
};

std::vector<RecordedRun> recorded_runs(const SessionData& session) {
  std::vector<RecordedRun> runs;
  for (const RecordedProcess& process : recorded_processes(session)) {
    const RecordingInfo& info = process.info;
    RecordedRun run{info, process.counts, answer_of(process), {}};
    for (const auto& [key, data] : session.cases) {
      if (key.device != info.device || key.arm != kRecorded) continue;
      const std::size_t n = data.of_run("api_record_ns", info.replicate).size();
      if (key.name.benchmark == "recorded/graph") {
        run.graph_launches += n;
      } else if (key.name.benchmark == "recorded/launch") {
        run.launches[key.name.at("stream")] += n;
      }
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

auto recorded(auto RecordingRecord::*field) {
  return [field](const RecordedRun& run) { return run.info.record.*field; };
}

auto recorded_count(TraceCounts::Count TraceCounts::*count) {
  return [count](const RecordedRun& run) { return run.counts.*count; };
}

auto launches_with(const char* state) {
  return [state](const RecordedRun& run) -> std::optional<std::size_t> {
    if (!run.counts.launches) return std::nullopt;
    const auto found = run.launches.find(state);
    return found == run.launches.end() ? std::size_t{0} : found->second;
  };
}

auto answered(auto JobAnswer::*field) {
  return [field](const RecordedRun& run) { return run.answer.*field; };
}

std::string left_out_text(const RecordedRun& run) {
  std::vector<std::string> texts;
  for (const LeftOutRecords& left_out : run.info.record.left_out)
    texts.push_back(fmt::format("{} {}", left_out.count, left_out.what));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Of the process, not of the GPU alone.
std::optional<double> joined_share(const RecordedRun& run) {
  if (!run.counts.kernels || *run.counts.kernels == 0 || !run.counts.joined) return std::nullopt;
  return static_cast<double>(*run.counts.joined) / static_cast<double>(*run.counts.kernels);
}

}  // namespace

Table recordings_table() {
  return make_table<RecordedRun>(
      "recordings.csv",
      "imported process and GPU",
      TableUse::details,
      [](const TableInputs& from) { return recorded_runs(from.session); },
      {{"device_id", [](const RecordedRun& run) { return run.info.device; }},
       {"replicate", [](const RecordedRun& run) { return run.info.replicate; }},
       {"file", "The file that was imported.", recorded(&RecordingRecord::file)},
       {"recorder", "What recorded it, with its version.", recorded(&RecordingRecord::recorder)},
       {"form", "The form of the file.", recorded(&RecordingRecord::form)},
       {"clock", "Where its times begin.", recorded(&RecordingRecord::clock)},
       {"pid", "The process.", recorded(&RecordingRecord::pid)},
       {"rank", "Its rank in a distributed job.", recorded(&RecordingRecord::rank)},
       {"verdict",
        "What it waits for, as `docs/definitions.md` lists it.",
        [](const RecordedRun& run) { return name_of(run.answer.verdict); }},
       {"answer", "The verdict in a sentence.", answered(&JobAnswer::sentence)},
       {"launch_answer",
        "How many launches it has, how long their calls take, and where that time goes.",
        answered(&JobAnswer::launches)},
       {"gpu_idle_share",
        "How long nothing of the process ran on the GPU; empty where that is not known.",
        answered(&JobAnswer::idle_share)},
       {"unknown_share",
        "What is not known of the GPU's work, as kernels are lost or impossible: the larger of the "
        "shares of launches and of time. From 1 % on nothing rests on idle time.",
        answered(&JobAnswer::unknown_share)},
       {"launch_share",
        "The time in launch calls, of that from the first call or work to the last.",
        answered(&JobAnswer::launch_share)},
       {"tick_ns", "All of its times are multiples of this.", recorded(&RecordingRecord::tick_ns)},
       {"threads", "Its threads that called CUDA.", recorded(&RecordingRecord::threads)},
       {"streams",
        "Its streams, on all of its GPUs: where one is idle, another may be busy.",
        recorded(&RecordingRecord::streams)},
       {"calls", "Calls of CUDA.", recorded(&RecordingRecord::calls)},
       {"launches",
        "Of these, outermost launch calls; empty where the recorder has no calls.",
        recorded_count(&TraceCounts::launches)},
       {"kernels", "Kernels.", recorded_count(&TraceCounts::kernels)},
       {"joined_share", "Share of the kernels that have their launch.", joined_share},
       {"kernels_without_launch",
        "Kernels that were launched before the recording began, or by whom it does not say.",
        recorded_count(&TraceCounts::kernels_without_launch)},
       {"launches_without_kernel",
        "Launches whose kernel has no record.",
        recorded_count(&TraceCounts::launches_without_kernel)},
       {"overlap",
        "Kernels that begin before their launch returns: legitimate.",
        recorded_count(&TraceCounts::overlap)},
       {"early", "Kernels that begin before their launch.", recorded_count(&TraceCounts::early)},
       {"zero", "Records without a time.", recorded_count(&TraceCounts::zero)},
       {"idle_launches", "Launches on an idle stream.", launches_with("idle")},
       {"busy_launches", "Launches on a busy stream.", launches_with("busy")},
       {"unknown_launches", "Launches of which the stream is not known.", launches_with("unknown")},
       {"graph_launches", "Launches of graphs.", &RecordedRun::graph_launches},
       {"allocations",
        "Allocations by the program's own allocator on this GPU; empty where it was not recorded.",
        recorded(&RecordingRecord::allocations)},
       {"releases", "Their releases.", recorded(&RecordingRecord::releases)},
       {"failed_allocations",
        "Allocations for which there was no memory.",
        recorded(&RecordingRecord::failed_allocations)},
       {"unseen_releases",
        "Releases of what was allocated before the recording began.",
        recorded(&RecordingRecord::unseen_releases)},
       {"missing_releases",
        "Releases that were not recorded: the address was allocated again.",
        recorded(&RecordingRecord::missing_releases)},
       {"most_live_bytes",
        "The most that was live at one time, of what was allocated in the recording.",
        recorded(&RecordingRecord::most_live_bytes)},
       {"live_at_end_bytes",
        "What of it was live at the end.",
        recorded(&RecordingRecord::live_at_end_bytes)},
       {"clock_ahead_least_ns",
        "The GPU's clock is ahead of the host's by so much at least, as far as waits tell.",
        recorded(&RecordingRecord::clock_ahead_least_ns)},
       {"clock_ahead_most_ns",
        "By so much at most, as far as launches tell.",
        recorded(&RecordingRecord::clock_ahead_most_ns)},
       {"clock_drift_ppm",
        "How fast the GPU's clock moves against the host's, where they disagree.",
        recorded(&RecordingRecord::clock_drift_ppm),
        "ppm"},
       {"clock_offset_ns",
        "Where they disagree, how far the GPU's clock is ahead at the first launch.",
        recorded(&RecordingRecord::clock_offset_ns)},
       {"clock_offset_error_ns",
        "By how much that, with the drift, may be wrong anywhere in the recording.",
        recorded(&RecordingRecord::clock_offset_error_ns)},
       {"clock_corrected",
        "Whether offset and drift were taken back, so that times reach from a call to its kernel.",
        recorded(&RecordingRecord::clock_corrected)},
       {"clock_problem",
        "Why no time reaches from a call to its kernel; empty where it does.",
        recorded(&RecordingRecord::clock_problem)},
       {"left_out", "Records of the file that were not taken.", left_out_text},
       {"remarks", "What else should be known of it.", [](const RecordedRun& run) {
          return fmt::format("{}", fmt::join(run.info.record.remarks, "; "));
        }}});
}

Table record_costs_table() {
  return make_table<RecordingCost>(
      "recording_costs.csv",
      "level of recording whose cost was measured",
      TableUse::session,
      [](const TableInputs& from) { return from.session.recording_costs; },
      {{"level", "What is recorded, as `launchgap record --level` has it.", &RecordingCost::level},
       {"rounds",
        "So often the program was started in each way, in turns.",
        &RecordingCost::rounds},
       {"plain_wall_s",
        "How long a start without recording takes: the median.",
        &RecordingCost::plain_wall_s,
        "s"},
       {"wall_s",
        "What recording adds to a start as a whole, its own start and end too: the median of the "
        "differences.",
        &RecordingCost::wall_s,
        "s"},
       {"wall_low_s", "The lower end of its 95 % interval.", &RecordingCost::wall_low_s, "s"},
       {"wall_high_s", "The upper end.", &RecordingCost::wall_high_s, "s"},
       {"calls", "Calls that a start has recorded, launches and others.", &RecordingCost::calls},
       {"call_ns",
        "What recording adds to a recorded call: the time between the driver's initialisation and "
        "the program's end, with recording less without, for each of the calls. 0 where the "
        "program waits for the GPU anyway; empty where several threads call at once.",
        &RecordingCost::call_ns},
       {"call_low_ns", "The lower end of its 95 % interval.", &RecordingCost::call_low_ns},
       {"call_high_ns", "The upper end.", &RecordingCost::call_high_ns}});
}

namespace {

struct TailRow {
  std::string device;
  int replicate;
  TailPart part;
  double share;
};

std::vector<TailRow> tail_rows(const SessionData& session) {
  // Of a traced run, all of its traced cases together.
  std::map<std::pair<std::string, int>, LaunchTail> tails;
  for (const JobInfo& job : session.jobs) {
    if (job.record.tail) tails[{job.device, job.replicate}].add(*job.record.tail);
  }
  for (const TraceInfo& trace : session.traces) {
    if (trace.record.tail) tails[{trace.device, trace.replicate}].add(*trace.record.tail);
  }
  std::vector<TailRow> rows;
  for (const auto& [process, tail] : tails) {
    for (const TailPart& part : tail.parts)
      rows.push_back({process.first, process.second, part, tail.share(part)});
  }
  return rows;
}

}  // namespace

Table tail_table() {
  using Row = const TailRow&;
  return make_table<TailRow>(
      "tail.csv",
      "recorded or traced process and GPU, and cause of long launch calls",
      TableUse::details,
      [](const TableInputs& from) { return tail_rows(from.session); },
      {{"device_id", &TailRow::device},
       {"replicate", &TailRow::replicate},
       {"cause",
        "Why these launch calls took long, as `docs/definitions.md` lists it; usual: they did not.",
        [](Row row) { return row.part.cause; }},
       {"launches", "Launch calls of this cause.", [](Row row) { return row.part.launches; }},
       {"time_ns", "What they took.", [](Row row) { return row.part.time_ns; }},
       {"share",
        "The same, of the time in all launch calls: the shares of a process add up to 1.",
        &TailRow::share,
        kShare},
       {"longest_ns", "The longest of them.", [](Row row) { return row.part.longest_ns; }},
       {"what",
        "The kernel that most of the time was spent on launching; of overlapping calls, the call "
        "of "
        "the other thread.",
        [](Row row) { return row.part.what; }}});
}

namespace {

struct ShareRow {
  std::string device, of;
  std::string_view what;
  double share;
};

/// What the GPU waits for, of the median length of this benchmark.
void add_idle_shares(const std::vector<const SummaryRow*>& rows,
                     std::string_view benchmark,
                     std::vector<ShareRow>& shares) {
  const auto median = [&](std::string_view metric) {
    const auto found = std::ranges::find_if(rows, [&](const SummaryRow* row) {
      return row->key.arm == kRecorded && row->key.name.benchmark == benchmark &&
             row->metric == metric;
    });
    return found == rows.end() ? std::nullopt : (*found)->p50;
  };
  const std::optional<double> length = median("step_ns");
  if (!length || *length <= 0) return;
  for (const std::string_view metric : idle_metrics()) {
    if (const auto idle = median(metric))
      shares.push_back({rows.front()->key.device, std::string(benchmark), metric, *idle / *length});
  }
}

std::vector<ShareRow> share_rows(const TableInputs& from) {
  std::vector<ShareRow> shares;
  if (from.session.recordings.empty()) return shares;
  const RowsByDevice by_device(from.rows);
  for (const DeviceFacts& device : from.session.devices) {
    if (const auto idle = idle_launch_share(from.session, device.uuid))
      shares.push_back({device.uuid, "launches", "idle_stream", *idle});
    for (const std::string_view benchmark : {"recorded/job", "recorded/step"})
      add_idle_shares(by_device.of(device.uuid), benchmark, shares);
  }
  return shares;
}

}  // namespace

Table recorded_shares_table() {
  return make_table<ShareRow>(
      "recorded_shares.csv",
      "recorded GPU, what is divided, and part of it",
      TableUse::details,
      share_rows,
      {{"device_id", &ShareRow::device},
       {"of",
        "launches: those whose stream is known, of processes whose clocks agree; recorded/job, "
        "recorded/step: the median length of the whole recording, or of a step.",
        &ShareRow::of},
       {"part",
        "idle_stream: launches that found their stream idle; else the metric of what the GPU waits "
        "for.",
        &ShareRow::what},
       {"share", "The part's share.", &ShareRow::share, kShare}});
}

}  // namespace launchgap
