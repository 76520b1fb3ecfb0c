#include "harness/investigate/joined_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/csv_writer.h"
#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/import/clock_fit.h"
#include "harness/import/database.h"
#include "harness/import/launches.h"
#include "harness/import/recording.h"
#include "harness/stats/stats.h"

namespace launchgap::investigate {
namespace {

using activity::Call;
using activity::Purpose;
using recording::Process;
using recording::Range;
using recording::RecordedLaunch;
using recording::StreamState;

constexpr const char* kHowToRecord =
    "`launchgap investigate SESSION CASE --tool none` prints the command lines that make a report "
    "with them";

/// The blocks of a session that have keys.
std::vector<JoinedBlock> keyed_blocks(const SessionData& session) {
  std::vector<JoinedBlock> blocks;
  for (const RunInfo& run : session.runs) {
    read_records(records_path(session, run),
                 {[&](SampleBlock&& block) {
                    if (!block.key) return;
                    use_current_keys(block);
                    blocks.push_back({&run, std::move(block), {}});
                  },
                  [](const Json&) {}});
  }
  return blocks;
}

std::size_t samples_of(const SampleBlock& block) {
  return block.values.empty() ? 0 : block.values.front().size();
}

/// Where a key leads.
struct Place {
  std::size_t block, index;
};

/// A sample's range in the report, with what went on in it.
struct Window {
  const Range* range;
  Place place;
  JoinedSample sample;
  std::vector<Activity> activities;
};

/// The samples of one process of the report.
class ProcessJoin {
 public:
  /// `seen` has the keys of the processes before: one that is there again does not count.
  ProcessJoin(const Process& process,
              const std::unordered_map<std::uint64_t, Place>& places,
              std::unordered_set<std::uint64_t>& seen)
      : process_(process), by_thread_(process.threads.size()) {
    for (const Range& range : process.ranges) {
      if (!range.payload || !recording::has_times(range)) continue;
      const auto place = places.find(*range.payload);
      if (place == places.end() || !seen.insert(*range.payload).second) continue;
      empty_ = false;
      by_thread_.at(range.thread).push_back({&range, place->second, {}, {}});
      Window& window = by_thread_[range.thread].back();
      window.sample.key = *range.payload;
      window.sample.index = place->second.index;
      window.sample.range_ns = range.end_ns - range.begin_ns;
    }
    for (std::vector<Window>& windows : by_thread_)
      std::ranges::sort(windows, {}, [](const Window& window) { return window.range->begin_ns; });
  }

  bool empty() const { return empty_; }

  /// Hands each sample over with its parts. Returns why the device's times are not told of; empty
  /// if they are.
  template <class Put>
  std::string join(std::uint64_t& calls, const Put& put) {
    const recording::RecordedLaunches launches =
        recording::launches_of(process_, recording::tick_ns(process_));
    const recording::ClockCheck clocks = recording::check_clocks(process_, launches);
    for (const Call& call : process_.trace.calls) {
      Window* const window = recording::has_times(call) ? window_of(call) : nullptr;
      if (!window) continue;
      ++calls;
      window->activities.push_back(
          {call.begin_ns, call.end_ns, call.purpose == Purpose::wait ? Part::wait : Part::call});
    }
    for (const RecordedLaunch& launch : launches.launches) add(launch, clocks.trusted());
    for (const activity::Overhead& overhead : process_.trace.overheads) add(overhead);
    for (std::vector<Window>& windows : by_thread_) {
      for (Window& window : windows) {
        window.sample.parts_ns =
            divide(window.range->begin_ns, window.range->end_ns, window.activities);
        put(window.place, window.sample);
      }
    }
    return clocks.problem;
  }

 private:
  /// The sample in which a thread makes a call.
  Window* window_of(const Call& call) {
    if (call.thread >= by_thread_.size()) return nullptr;
    std::vector<Window>& windows = by_thread_[call.thread];
    const auto next = std::ranges::upper_bound(
        windows, call.begin_ns, {}, [](const Window& window) { return window.range->begin_ns; });
    if (next == windows.begin()) return nullptr;
    Window& window = *std::prev(next);
    return call.begin_ns <= window.range->end_ns ? &window : nullptr;
  }

  void add(const RecordedLaunch& launch, bool clocks_agree) {
    const Call& call = process_.trace.calls[launch.call];
    Window* const window = window_of(call);
    if (!window) return;
    JoinedSample& sample = window->sample;
    const bool first = sample.launches++ == 0;
    sample.kernels += launch.kernels == 0 && launch.stream ? 1 : launch.kernels;
    if (!launch.stream || launch.state == StreamState::unknown || !clocks_agree) return;
    if (first) sample.launch_ns = launch.begin_ns - call.begin_ns;
    window->activities.push_back({call.end_ns, launch.begin_ns, Part::queue});
    window->activities.push_back({launch.begin_ns, launch.end_ns, Part::kernel});
  }

  /// An overhead is the process's: it may hold up any of its threads.
  void add(const activity::Overhead& overhead) {
    for (std::vector<Window>& windows : by_thread_) {
      auto window = std::ranges::lower_bound(
          windows, overhead.begin_ns, {}, [](const Window& one) { return one.range->end_ns; });
      for (; window != windows.end() && window->range->begin_ns < overhead.end_ns; ++window)
        window->activities.push_back({overhead.begin_ns, overhead.end_ns, Part::overhead});
    }
  }

  const Process& process_;
  std::vector<std::vector<Window>> by_thread_;  // each by begin
  bool empty_ = true;
};

/// The runs of other sessions that a report names by its marks.
std::set<std::string> other_runs(const std::filesystem::path& report, const SessionData& session) {
  constexpr std::string_view kTable = "NVTX_EVENTS", kMark = "run=";
  std::set<std::string> runs;
  const recording::Database database(report);
  if (!database.has(kTable, "text") && !database.has(kTable, "textId")) return runs;
  SqliteStatement rows = database.rows(
      fmt::format("SELECT coalesce({}, s.value) FROM {} n LEFT JOIN StringIds s ON s.id = {}",
                  database.has(kTable, "text") ? "n.text" : "NULL",
                  kTable,
                  database.has(kTable, "textId") ? "n.textId" : "NULL"));
  while (rows.next()) {
    const std::string_view text = rows.text(0);
    if (text.starts_with(kMark) && text.find('/') != std::string_view::npos &&
        !text.substr(kMark.size()).starts_with(session.id + "/"))
      runs.emplace(text.substr(kMark.size()));
  }
  return runs;
}

/// Why a report has none of the session's samples, and what would make it have them.
std::string why_nothing(const recording::Recording& recording, const SessionData& session) {
  std::size_t ranges = 0, with_payload = 0;
  for (const Process& process : recording.processes) {
    ranges += process.ranges.size();
    with_payload += static_cast<std::size_t>(std::ranges::count_if(
        process.ranges, [](const Range& range) { return range.payload.has_value(); }));
  }
  if (ranges == 0) {
    return fmt::format(
        "it has no NVTX ranges, by which samples are found: it was recorded without "
        "`--trace=cuda,nvtx`, or its capture range never came; {}",
        kHowToRecord);
  }
  const std::set<std::string> runs = other_runs(recording.file, session);
  if (!runs.empty()) {
    return fmt::format(
        "it is of another run than those of {}: it names {}; join it with that session",
        session.folder.string(),
        printable(fmt::format("{}", fmt::join(runs, ", "))));
  }
  if (with_payload == 0) {
    return fmt::format(
        "its {} NVTX ranges have no numbers, so they are not launchgap's samples; {}",
        ranges,
        kHowToRecord);
  }
  return fmt::format(
      "of its {} NVTX ranges {} have a number, and none is that of a sample of {}: it is the "
      "report "
      "of another run, or of another program; {}",
      ranges,
      with_payload,
      session.folder.string(),
      kHowToRecord);
}

}  // namespace

JoinedReport join_report(const std::filesystem::path& report, const SessionData& session) {
  JoinedReport result;
  result.blocks = keyed_blocks(session);
  std::unordered_map<std::uint64_t, Place> places;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const SampleBlock& block = result.blocks[i].block;
    for (std::size_t index = 0; index < samples_of(block); ++index)
      places.try_emplace(*block.key + index, Place{i, index});
  }
  result.keys = places.size();
  if (places.empty() && !session.recordings.empty()) {
    throw Error(
        "{} was imported: what it has of its launches is in it already, and a report is joined "
        "with a session that `launchgap run` measured",
        session.folder.string());
  }
  if (places.empty()) {
    throw Error(
        "{} has no samples with keys, by which a report is joined: it has no samples, or was "
        "measured by a launchgap that wrote none (before this version, or built without NVTX's "
        "headers; scripts/setup brings them)",
        session.folder.string());
  }
  const recording::Recording recording = recording::read_recording(report);
  if (!recording.recorder.starts_with("Nsight Systems")) {
    throw Error(
        "{}: it is no export of Nsight Systems: `nsys export --type=sqlite "
        "REPORT.nsys-rep` makes one",
        report.string());
  }
  result.recorder = recording.recorder;
  std::set<std::string> problems;
  std::unordered_set<std::uint64_t> seen;
  std::uint64_t kernels = 0;
  for (const Process& process : recording.processes) {
    ProcessJoin join(process, places, seen);
    if (join.empty()) continue;
    const std::string problem =
        join.join(result.calls, [&](Place place, const JoinedSample& sample) {
          result.blocks[place.block].samples.push_back(sample);
          ++result.joined;
          kernels += sample.kernels;
        });
    if (!problem.empty()) problems.insert(problem);
  }
  if (result.joined == 0) throw Error("{}: {}", report.string(), why_nothing(recording, session));
  for (JoinedBlock& block : result.blocks)
    std::ranges::sort(block.samples, {}, &JoinedSample::index);
  for (const std::string& problem : problems) {
    result.remarks.push_back(
        fmt::format("{}: no time reaches from a call to its kernel: {}", report.string(), problem));
  }
  if (result.calls == 0) {
    result.remarks.push_back(fmt::format(
        "{}: its samples have no calls of CUDA: record with --trace=cuda,nvtx", report.string()));
  } else if (kernels == 0) {
    result.remarks.push_back(
        fmt::format("{}: its samples have no kernels, so queue and kernel are part of the wait: "
                    "nsys lost their "
                    "records, or may not trace this GPU",
                    report.string()));
  }
  return result;
}

namespace {

/// The column of a metric in a block; null if it has none.
const std::vector<double>* column_of(const SampleBlock& block, const std::string& metric) {
  const auto found = std::ranges::find(block.metrics, metric);
  if (found == block.metrics.end()) return nullptr;
  return &block.values[static_cast<std::size_t>(found - block.metrics.begin())];
}

bool is_time(const std::string& key) {
  const Metric* const metric = find_metric(key);
  return metric && metric->unit == "ns" && metric->source != "trace";
}

double median_of(const SampleBlock& block, const std::string& metric) {
  std::vector<double> values = *column_of(block, metric);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return stats::median(std::move(values)).value_or(0);
}

/// Of a case, by one of its blocks.
std::string longest_metric(const SampleBlock& block) {
  std::string longest;
  for (const std::string& metric : block.metrics) {
    if (!is_time(metric)) continue;
    if (longest.empty() || median_of(block, metric) > median_of(block, longest)) longest = metric;
  }
  return longest.empty() && !block.metrics.empty() ? block.metrics.front() : longest;
}

}  // namespace

std::vector<JoinedCase> joined_cases(const JoinedReport& report, const std::string& metric) {
  std::vector<JoinedCase> cases;
  std::set<std::string> known;
  for (const JoinedBlock& joined : report.blocks) {
    const SampleBlock& block = joined.block;
    known.insert(block.metrics.begin(), block.metrics.end());
    if (!metric.empty() && !column_of(block, metric)) continue;
    auto own = std::ranges::find_if(cases, [&](const JoinedCase& one) {
      return one.device == joined.run->device && one.name == block.case_name;
    });
    if (own == cases.end()) {
      cases.push_back({joined.run->device,
                       block.case_name,
                       metric.empty() ? longest_metric(block) : metric,
                       0,
                       {}});
      own = std::prev(cases.end());
    }
    const std::vector<double>* const values = column_of(block, own->metric);
    if (!values) continue;
    own->keys += values->size();
    for (const JoinedSample& sample : joined.samples) {
      const double value = (*values)[sample.index];
      if (std::isfinite(value))
        own->observations.push_back({value, sample.range_ns, sample.parts_ns});
    }
  }
  if (!metric.empty() && cases.empty()) {
    throw UsageError("no case of the session has the metric '{}': choose one of {}",
                     printable(metric),
                     printable(fmt::format("{}", fmt::join(known, ", "))));
  }
  return cases;
}

void write_joined(const JoinedReport& report,
                  const std::vector<JoinedCase>& cases,
                  const std::string& session_id,
                  const std::filesystem::path& file) {
  std::map<std::pair<std::string, std::string>, std::string> metrics;
  for (const JoinedCase& one : cases) metrics[{one.device, one.name}] = one.metric;
  std::vector<std::string> header = {"session_id",
                                     "device_id",
                                     "replicate",
                                     "attempt",
                                     "process_config",
                                     "case",
                                     "block",
                                     "sample",
                                     "key",
                                     "metric",
                                     "value",
                                     "range_ns",
                                     "launches",
                                     "kernels",
                                     "launch_ns"};
  for (std::size_t i = 0; i < kParts; ++i) header.emplace_back(info_of(static_cast<Part>(i)).key);
  CsvWriter csv(file, header);
  for (const JoinedBlock& joined : report.blocks) {
    const auto metric = metrics.find({joined.run->device, joined.block.case_name});
    if (metric == metrics.end()) continue;
    const std::vector<double>* const values = column_of(joined.block, metric->second);
    if (!values) continue;
    for (const JoinedSample& sample : joined.samples) {
      const double value = (*values)[sample.index];
      std::vector<std::string> cells = {
          session_id,
          joined.run->device,
          std::to_string(joined.run->replicate),
          std::to_string(joined.run->attempt),
          joined.run->process_config.text(),
          joined.block.case_name,
          std::to_string(joined.block.block),
          std::to_string(joined.block.first + sample.index),
          std::to_string(sample.key),
          metric->second,
          cell(std::isfinite(value) ? std::optional(value) : std::nullopt),
          std::to_string(sample.range_ns),
          std::to_string(sample.launches),
          std::to_string(sample.kernels),
          sample.launch_ns ? std::to_string(*sample.launch_ns) : ""};
      for (const std::int64_t part : sample.parts_ns) cells.push_back(std::to_string(part));
      csv.row(cells);
    }
  }
  csv.commit();
}

}  // namespace launchgap::investigate
