#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/plan.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A process of a recording, on one GPU, with what its records came to.
struct RecordedRun {
  const RecordingInfo& info;
  TraceCounts counts;
  std::map<std::string, std::size_t> launches;  // by what the stream was doing
  std::size_t graph_launches = 0;
};

std::size_t samples_of(const CaseData& data, int replicate) {
  const auto calls = data.samples.find("api_record_ns");
  if (calls == data.samples.end()) return 0;
  const auto own = calls->second.find(replicate);
  return own == calls->second.end() ? 0 : own->second.size();
}

std::vector<RecordedRun> recorded_runs(const SessionData& session) {
  std::vector<RecordedRun> runs;
  for (const RecordingInfo& info : session.recordings) {
    RecordedRun run{info, {}, {}};
    for (const TraceInfo& trace : session.traces) {
      if (trace.device == info.device && trace.replicate == info.replicate && trace.record.counts)
        run.counts = *trace.record.counts;
    }
    for (const auto& [key, data] : session.cases) {
      if (key.device != info.device || key.arm != kRecorded) continue;
      const std::size_t n = samples_of(data, info.replicate);
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

template <class Value>
auto recorded(Value RecordingRecord::*field) {
  return [field](const RecordedRun& run) { return run.info.record.*field; };
}

auto counted(TraceCounts::Count TraceCounts::*count) {
  return [count](const RecordedRun& run) { return run.counts.*count; };
}

auto launches_with(const char* state) {
  return [state](const RecordedRun& run) {
    const auto found = run.launches.find(state);
    return found == run.launches.end() ? std::size_t{0} : found->second;
  };
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
      [](const Tabled& from) { return recorded_runs(from.session); },
      {{"device_id", meaning::kDevice, [](const RecordedRun& run) { return run.info.device; }},
       {"replicate",
        meaning::kReplicate,
        [](const RecordedRun& run) { return run.info.replicate; }},
       {"file", "The file that was imported.", recorded(&RecordingRecord::file)},
       {"recorder", "What recorded it, with its version.", recorded(&RecordingRecord::recorder)},
       {"form", "The form of the file.", recorded(&RecordingRecord::form)},
       {"clock", "Where its times begin.", recorded(&RecordingRecord::clock)},
       {"pid", "The process.", recorded(&RecordingRecord::pid)},
       {"rank", "Its rank in a distributed job.", recorded(&RecordingRecord::rank)},
       {"tick_ns",
        "All of its times are multiples of this.",
        recorded(&RecordingRecord::tick_ns),
        "ns"},
       {"threads", "Its threads that called CUDA.", recorded(&RecordingRecord::threads)},
       {"streams",
        "Its streams, on all of its GPUs: where one is idle, another may be busy.",
        recorded(&RecordingRecord::streams)},
       {"calls", "Calls of CUDA.", recorded(&RecordingRecord::calls)},
       {"launches", "Of these, outermost launch calls.", counted(&TraceCounts::launches)},
       {"kernels", "Kernels.", counted(&TraceCounts::kernels)},
       {"joined_share", "Share of the kernels that have their launch.", joined_share, kShare},
       {"kernels_without_launch",
        "Kernels that were launched before the recording began, or by whom it does not say.",
        counted(&TraceCounts::kernels_without_launch)},
       {"launches_without_kernel",
        "Launches whose kernel has no record.",
        counted(&TraceCounts::launches_without_kernel)},
       {"overlap",
        "Kernels that begin before their launch returns: legitimate.",
        counted(&TraceCounts::overlap)},
       {"early", "Kernels that begin before their launch.", counted(&TraceCounts::early)},
       {"zero", "Records without a time.", counted(&TraceCounts::zero)},
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
        recorded(&RecordingRecord::most_live_bytes),
        "B"},
       {"live_at_end_bytes",
        "What of it was live at the end.",
        recorded(&RecordingRecord::live_at_end_bytes),
        "B"},
       {"clock_ahead_least_ns",
        "The GPU's clock is ahead of the host's by so much at least, as far as waits tell.",
        recorded(&RecordingRecord::clock_ahead_least_ns),
        "ns"},
       {"clock_ahead_most_ns",
        "By so much at most, as far as launches tell.",
        recorded(&RecordingRecord::clock_ahead_most_ns),
        "ns"},
       {"clock_drift_ppm",
        "How fast the GPU's clock moves against the host's, where they disagree.",
        recorded(&RecordingRecord::clock_drift_ppm),
        "ppm"},
       {"clock_offset_ns",
        "Where they disagree, how far the GPU's clock is ahead at the first launch.",
        recorded(&RecordingRecord::clock_offset_ns),
        "ns"},
       {"clock_offset_error_ns",
        "By how much that, with the drift, may be wrong anywhere in the recording.",
        recorded(&RecordingRecord::clock_offset_error_ns),
        "ns"},
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

}  // namespace launchgap
