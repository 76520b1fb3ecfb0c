#include "harness/import/imported_session.h"

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/build_info.h"
#include "harness/core/clock.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/core/trace_state.h"
#include "harness/import/clock_fit.h"
#include "harness/import/event_file.h"
#include "harness/import/event_kinds.h"
#include "harness/import/import_folder.h"
#include "harness/import/job_figures.h"
#include "harness/import/launch_values.h"
#include "harness/import/launches.h"
#include "harness/import/recording.h"
#include "harness/import/repairs.h"
#include "harness/import/steps.h"
#include "harness/import/trace_counts.h"
#include "harness/record/records.h"
#include "harness/record/trace_record.h"
#include "harness/record/writer.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

const std::string kRecordedText(kRecorded);

struct Extent {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();

  void add(const auto& records) {
    for (const auto& record : records) {
      const auto [began_ns, ended_ns] = times_of(record);
      if (began_ns <= 0) continue;
      begin_ns = std::min(begin_ns, began_ns);
      end_ns = std::max(end_ns, ended_ns);
    }
  }
  bool empty() const { return end_ns < begin_ns; }
};

bool has_launches(const Process& process) {
  const activity::Trace& trace = process.trace;
  return !trace.calls.empty() || !trace.kernels.empty() ||
         (process.may_be_partial && !trace.transfers.empty());
}
bool has_allocations(const Process& process) {
  return !process.allocations.empty() || !process.trace.memory.empty();
}

/// "2026-11-20T09:30:00Z", for times that are Unix time; else empty.
std::string utc_of(std::int64_t unix_ns) {
  constexpr std::int64_t kFirst = 1'000'000'000LL * 1'000'000'000;  // 2001: before, it is none
  if (unix_ns < kFirst) return {};
  return utc_text(unix_ns / 1'000'000'000);
}

std::vector<CountedCalls> calls_of(const Process& process) {
  std::map<std::pair<activity::Domain, std::uint32_t>, std::uint64_t> counts;
  for (const activity::Call& call : process.trace.calls) ++counts[{call.domain, call.id}];
  std::vector<CountedCalls> calls;
  for (const auto& [call, count] : counts) {
    CountedCalls& own = calls.emplace_back();
    own.domain = call.first == activity::Domain::driver ? "driver" : "runtime";
    own.id = call.second;
    own.name = process.trace.name(call.second);
    own.count = count;
  }
  return calls;
}

std::string signed_time(std::int64_t nanoseconds) {
  return quantity(static_cast<double>(nanoseconds), "ns");
}

/// Writes the samples of a case, in blocks.
void write_case(RecordWriter& writer, const RecordedCase& recorded, const std::string& method) {
  const std::vector<std::int64_t>& begins = recorded.begin_ns;
  const std::size_t n = begins.size();
  for (std::size_t first = 0, block = 0; first < n; first += kSamplesPerBlock, ++block) {
    const std::size_t count = std::min(kSamplesPerBlock, n - first);
    Block samples({}, count);
    samples.restart(begins[first]);
    for (std::size_t i = 0; i < count; ++i) samples.keep(begins[first + i]);
    samples.close(first + count < n ? begins[first + count] : recorded.end_ns);
    std::vector<Column> columns;
    for (const Column& column : recorded.columns) {
      const auto from = column.values.begin() + static_cast<std::ptrdiff_t>(first);
      columns.push_back({column.metric, {from, from + static_cast<std::ptrdiff_t>(count)}});
    }
    writer.write_samples(recorded.name, static_cast<int>(block), first, samples, columns);
  }
  SummaryRecord summary;
  summary.case_name = recorded.name;
  summary.status = Status::ok;
  summary.n = n;
  summary.method = method;
  writer.write(record_to_json(summary));
}

/// One process on one GPU.
struct ImportedRun {
  std::uint64_t gpu;
  DeviceFacts facts;
  int replicate;
  fs::path records;
};

class Import {
 public:
  explicit Import(const ImportRequest& request) : request_(request) {}

  std::vector<std::string> run() {
    make_import_folder(request_.output);
    try {
      session_ = session_of_import(request_, "recorded", kRecordedText);
      session_.tracing = {kRecordedText, ""};
      if (request_.host) session_.host = *request_.host;
      if (!request_.costs.empty()) session_.recording_costs = request_.costs;
      for (const fs::path& file : request_.files) take(read_recording(file));
      if (runs_ == 0) throw NothingRecorded(fmt::format("{}", fmt::join(lines_, "; ")));
      session_.runs = static_cast<int>(runs_);
      note_steps();
      for (const std::string& line : lines_) session_.notes.push_back({"info", line});
      session_.end_utc = utc_now();
      session_.state = "complete";
      write_session(request_.output, session_);
    } catch (...) {
      remove_import(request_.output);
      throw;
    }
    return std::move(lines_);
  }

 private:
  void take(const Recording& recording) {
    bool any = false;
    for (const Process& process : recording.processes) {
      if (!has_launches(process) && !has_allocations(process)) continue;
      any = true;
      take(recording, process);
    }
    for (const auto& [gpu, n] : shared_gpus(recording)) {
      lines_.push_back(fmt::format(
          "{}: {} processes use GPU {}: while it is idle for one, it may work for another",
          recording.name(),
          n,
          gpu));
    }
    if (any) return;
    if (request_.skips_empty) {
      lines_.push_back(fmt::format("{}: it has no calls of CUDA and no kernels", recording.name()));
      for (const std::string& remark : recording.remarks)
        lines_.push_back(fmt::format("{}: {}", recording.name(), remark));
      return;
    }
    throw Error(
        "{}: it has neither calls of CUDA, kernels nor allocations. Record them: `nsys profile "
        "--trace=cuda,nvtx …`, or PyTorch's profiler with "
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
        recording.file.string());
  }

  void take(const Recording& recording, const Process& process) {
    if (has_launches(process)) {
      const auto [seen, added] = seen_.try_emplace(digest_of(process), recording.file.string());
      if (!added) {
        lines_.push_back(fmt::format("{}: it is the same recording as {}, and counted once",
                                     name_of(recording, process),
                                     seen->second));
        return;
      }
    }
    const std::set<std::uint64_t> gpus = gpus_of(recording, process);
    std::vector<ImportedRun> runs;
    for (const std::uint64_t gpu : gpus) {
      DeviceFacts facts = facts_of(recording, process, gpu);
      const int replicate = replicates_[facts.uuid]++;
      if (replicate == 0) session_.devices.push_back(facts);
      fs::path records = records_of(facts, replicate);
      runs.push_back({gpu, std::move(facts), replicate, std::move(records)});
    }
    runs_ += runs.size();
    // The process's, whichever GPU they were for. That takes as long as all the rest.
    std::future<void> kept = std::async(std::launch::async, [&] {
      EventWriter(events_of(runs.front().records))
          .write({recording.recorder, recording.clock, process.pid, process.rank, recording.gpus},
                 process);
    });
    if (has_launches(process)) {
      write_runs(recording, process, runs);
    } else {
      write_allocations(recording, process, runs);
    }
    kept.get();
  }

  /// There is nothing to tell of launches.
  void write_allocations(const Recording& recording,
                         const Process& process,
                         const std::vector<ImportedRun>& runs) {
    const std::string of = name_of(recording, process);
    note_remarks(recording, of);
    for (const LeftOut& left_out : recording.left_out)
      lines_.push_back(fmt::format("{}: {} {} were left out", of, left_out.count, left_out.what));
    const Extent extent = extent_of(process);
    for (const ImportedRun& run : runs) {
      RecordWriter writer = RecordWriter::create(run.records);
      write_run(writer, recording, process, run, extent);
      writer.write(record_to_json(recording_record(recording, process, run)));
      write_end(writer, extent);
    }
  }

  static void write_end(RecordWriter& writer, const Extent& extent) {
    EndRecord end;
    end.status = "ok";
    if (!extent.empty())
      end.duration_s = static_cast<double>(extent.end_ns - extent.begin_ns) * 1e-9;
    writer.write(record_to_json(end));
  }

  void write_runs(const Recording& recording,
                  const Process& recorded,
                  const std::vector<ImportedRun>& runs) {
    const std::int64_t tick = tick_ns(recorded);
    AlignedProcess aligned(recorded, tick);
    const Process& process = aligned.process();
    const ClockCheck& clocks = aligned.clocks;
    const Extent extent = extent_of(process);
    note(recording, process, aligned);
    const std::string events = events_of(runs.front().records).filename().string();
    for (const ImportedRun& run : runs) {
      RecordWriter writer = RecordWriter::create(run.records);
      write_run(writer, recording, process, run, extent);
      RecordingRecord record = recording_record(recording, process, run);
      add_clocks(record, tick, aligned);
      writer.write(record_to_json(record));
      const bool has_unknown = &run == &runs.front();
      std::vector<SlowSampleRecord> slow;
      for (const RecordedCase& own :
           launch_cases(process, aligned.launches, run.gpu, has_unknown, clocks.trusted())) {
        write_case(writer, own, recording.recorder);
        std::ranges::move(slow_launches(own), std::back_inserter(slow));
      }
      count_waiting(slow, process, aligned.launches, run.gpu);
      for (SlowSampleRecord& own : slow) {
        own.events = events;
        writer.write(record_to_json(own));
      }
      JobFigures job = job_figures(
          process, aligned.launches, run.gpu, has_unknown, tick, request_.step, clocks.trusted());
      write_trace(writer, process, aligned.launches, job);
      const std::vector<UnknownTime> unknown = unknown_times(process, aligned.launches);
      // They are large, and so are the gaps: never both at once.
      if (&run == &runs.back()) aligned.launches = {};
      const GpuGaps gaps(process, run.gpu, clocks.trusted(), unknown);
      add_gaps(job.record, process, gaps);
      job.record.collectives = collectives_of(process, run.gpu, gaps);
      // Without one clock for both, nothing tells what the GPU did in a step of the host.
      if (clocks.trusted())
        job.record.step_parts = step_parts(process, run.gpu, gaps, request_.step);
      writer.write(record_to_json(job.record));
      for (const RecordedCase& own : step_cases(process, run.gpu, gaps, request_.step))
        write_case(writer, own, recording.recorder);
      write_end(writer, extent);
    }
  }

  fs::path records_of(const DeviceFacts& facts, int replicate) const {
    return request_.output / "records" /
           file_name_part(fmt::format(
               "{}.{}.r{}.{}.{}.jsonl", kRecorded, facts.uuid, replicate, kRecorded, kRecorded));
  }

  static Extent extent_of(const Process& process) {
    Extent extent;
    extent.add(process.trace.calls);
    if (extent.empty()) extent.add(process.trace.kernels);
    if (extent.empty()) extent.add(process.allocations);
    if (extent.empty()) extent.add(process.trace.memory);
    return extent;
  }

  void write_run(RecordWriter& writer,
                 const Recording& recording,
                 const Process& process,
                 const ImportedRun& run,
                 const Extent& extent) {
    RunRecord record;
    record.session_id = *session_.session_id;
    record.node = session_.host.node;
    record.replicate = run.replicate;
    record.arm = kRecordedText;
    record.process_config = kRecordedText;
    if (!extent.empty()) {
      record.begin_utc = utc_of(extent.begin_ns);
      record.begin_ns = extent.begin_ns;
    }
    record.pid = static_cast<long>(process.pid);
    record.device = run.facts;
    record.simulated = recording.simulated;
    record.trace_state = text_of(TraceState::recorded);
    record.fingerprint = Json{{"recorder", recording.recorder},
                              {"device", run.facts.name},
                              {"driver_version", recording.driver_version}};
    for (const auto& [key, value] : recording.conditions) (*record.fingerprint)[key] = value;
    writer.write(record_to_json(record));
  }

  static RecordingRecord recording_record(const Recording& recording,
                                          const Process& process,
                                          const ImportedRun& run) {
    RecordingRecord record;
    record.file = recording.name();
    record.recorder = recording.recorder;
    record.form = recording.form;
    record.clock = recording.clock;
    record.pid = process.pid;
    record.rank = process.rank;
    record.ranks = process.ranks;
    record.calls = process.trace.calls.size();
    record.threads = process.threads.size();
    record.streams = process.streams.size();
    for (const LeftOut& left_out : recording.left_out)
      record.left_out.push_back({left_out.what, left_out.count});
    record.remarks = recording.remarks;
    if (process.allocations.empty()) return record;
    const AllocationCounts counts = count_allocations(process, run.gpu);
    record.allocations = counts.allocations;
    record.releases = counts.releases;
    record.failed_allocations = counts.failures;
    record.unseen_releases = counts.unseen;
    record.missing_releases = counts.missing;
    record.most_live_bytes = counts.most_live_bytes;
    record.live_at_end_bytes = counts.live_at_end_bytes;
    return record;
  }

  static void add_clocks(RecordingRecord& record,
                         std::int64_t tick,
                         const AlignedProcess& aligned) {
    const ClockCheck& clocks = aligned.clocks;
    record.tick_ns = tick;
    record.clock_ahead_least_ns = clocks.ahead_least_ns;
    record.clock_ahead_most_ns = clocks.ahead_most_ns;
    record.clock_drift_ppm = clocks.drift_ppm;
    record.clock_problem = clocks.problem;
    record.clock_corrected = aligned.corrected();
    if (aligned.line) {
      record.clock_offset_ns = aligned.line->ahead_ns;
      record.clock_offset_error_ns = aligned.line->error_ns;
      record.clock_drift_ppm = aligned.line->drift_ppm;
    }
  }

  static void write_trace(RecordWriter& writer,
                          const Process& process,
                          const RecordedLaunches& launches,
                          const JobFigures& job) {
    TraceRecord record;
    record.case_name = "recorded/launch";
    record.state = text_of(TraceState::recorded);
    record.counts = counts_of(process, launches.counts);
    record.impossible = static_cast<std::int64_t>(launches.counts.impossible());
    record.faults = launches.counts.describe_impossible();
    record.calls = calls_of(process);
    record.kernels = job.kernels;
    writer.write(record_to_json(record));
  }

  static std::string name_of(const Recording& recording, const Process& process) {
    if (recording.processes.size() == 1) return recording.name();
    return fmt::format("{}, process {}", recording.name(), process.pid);
  }

  void look_for_steps(const Process& process) {
    if (!steps_of(process, request_.step).empty()) has_steps_ = true;
    for (const Range& range : process.ranges) {
      if (ranges_.size() < kMostRanges) ranges_.insert(process.trace.name(range.name));
    }
  }
  /// Where steps were asked for and there are none.
  void note_steps() {
    if (has_steps_ || request_.step == ImportRequest().step) return;
    std::vector<std::string> names;
    for (const std::string& name : ranges_) names.push_back(printable(name, 40));
    lines_.push_back(fmt::format("no range is named {}, so there are no steps; {}",
                                 printable(request_.step, 60),
                                 names.empty()
                                     ? "it has no ranges at all"
                                     : fmt::format("some of its ranges are {}", list_text(names))));
  }

  /// What a reader should know at once.
  void note(const Recording& recording, const Process& process, const AlignedProcess& aligned) {
    const std::string of = name_of(recording, process);
    const JoinCounts& counts = aligned.launches.counts;
    look_for_steps(process);
    if (counts.kernels == 0 && counts.launches > 0) {
      const bool torch = recording.recorder.starts_with("PyTorch");
      const bool tensorflow = process.may_be_partial;
      lines_.push_back(fmt::format(
          "{}: it has calls and no kernels, so it says what calls cost and nothing of what they "
          "started. {}",
          of,
          recording.recorder == "launchgap" ? "`launchgap record --level kernels` has them"
          : torch ? "PyTorch's profiler records kernels with activities=[ProfilerActivity.CPU, "
                    "ProfilerActivity.CUDA], unless another profiler has the GPU or the driver "
                    "refuses"
          : tensorflow
              ? "The profiler of TensorFlow and JAX records kernels where it finds CUPTI "
                "and the driver lets it"
              : "nsys records kernels with `--trace=cuda`, unless it runs under WSL or the "
                "driver refuses"));
    } else if (counts.kernels > 0 && counts.launches == 0) {
      lines_.push_back(fmt::format(
          "{}: it has kernels and no calls, so nothing tells when they were launched", of));
    }
    if (counts.launches_without_kernel > 0 && counts.kernels > 0)
      lines_.push_back(fmt::format("{}: the kernels of {} of {} launches are lost",
                                   of,
                                   counts.launches_without_kernel,
                                   counts.launches));
    if (const std::size_t several = launches_on_several_gpus(process); several > 0)
      lines_.push_back(fmt::format(
          "{}: {} started kernels on several GPUs; each counts for the GPU of its first "
          "kernel",
          of,
          counted(several, "launch call")));
    if (!aligned.clocks.trusted())
      lines_.push_back(fmt::format(
          "{}: {}, so there are no times from a call to its kernel", of, aligned.clocks.problem));
    if (aligned.corrected())
      lines_.push_back(
          fmt::format("{}: the GPU's clock was {} ahead of the host's and drifted by "
                      "{:.3g} ppm; its times were corrected, to ± {}",
                      of,
                      signed_time(aligned.line->ahead_ns),
                      aligned.line->drift_ppm,
                      quantity(aligned.line->error_ns, "ns")));
    note_remarks(recording, of);
  }

  void note_remarks(const Recording& recording, const std::string& of) {
    for (const std::string& remark : recording.remarks)
      lines_.push_back(fmt::format("{}: {}", of, remark));
  }

  const ImportRequest& request_;
  SessionRecord session_;
  std::map<std::string, int> replicates_;  // runs so far, by device
  std::size_t runs_ = 0;
  std::map<std::uint64_t, std::string> seen_;  // by digest, the file that has it
  std::vector<std::string> lines_;
  static constexpr std::size_t kMostRanges = 5;
  std::set<std::string> ranges_;  // some of their names
  bool has_steps_ = false;
};

}  // namespace

SessionRecord session_of_import(const ImportRequest& request,
                                std::string_view kind,
                                std::string_view from) {
  SessionRecord session;
  session.session_id = fmt::format("{}-{}", kind, digest_of_files(request.files));
  session.begin_utc = utc_now();
  session.command_line = request.command_line;
  session.profile = Profile::full;
  session.tracing = {text_of(TraceState::off), ""};
  session.launchgap_version = kVersion;
  session.build = {kBuildType, kCompiler, kGitRevision};
  session.host.node = from;
  session.runs = 1;
  return session;
}

std::vector<std::string> import_recordings(const ImportRequest& request) {
  return Import(request).run();
}

}  // namespace launchgap::recording
