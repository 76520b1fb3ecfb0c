#include "harness/summary/timelines.h"

#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/import/event_file.h"
#include "harness/measure/telemetry.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;
using recording::Process;

using MedianKey = std::tuple<CaseKey, std::string>;
using Medians = std::map<MedianKey, double>;

Medians medians_of(const std::vector<SummaryRow>& rows) {
  Medians medians;
  for (const SummaryRow& row : rows) {
    if (row.p50) medians.emplace(MedianKey{row.key, row.metric}, *row.p50);
  }
  return medians;
}

/// What a metric is the sum of, as far as the trace takes it apart.
std::vector<std::string_view> parts_of(std::string_view metric) {
  if (metric == "launch_ns") return {"api_record_ns", "queue_ns"};
  if (metric == "roundtrip_ns") return {"api_record_ns", "queue_ns", "kernel_ns"};
  return {};
}

/// Which part took most longer than usual, if it says at least half of why.
void find_longer_part(SlowSample& slow, const CaseKey& key, const Medians& medians) {
  for (const std::string_view part : parts_of(slow.info->record.metric)) {
    const auto value = slow.info->record.values.find(std::string(part));
    const auto median = medians.find({key, std::string(part)});
    if (value == slow.info->record.values.end() || median == medians.end()) continue;
    const double longer = value->second - median->second;
    if (longer < (slow.value - slow.median) / 2 || longer <= slow.longer_by_ns.value_or(0))
      continue;
    slow.longer_part = part;
    slow.longer_by_ns = longer;
  }
}

const TelemetryInfo* reading_after(const SessionData& session,
                                   const SlowSampleInfo& info,
                                   int block) {
  const auto found = std::ranges::find_if(session.telemetry, [&](const TelemetryInfo& reading) {
    return reading.block == block && reading.id() == info.id() &&
           reading.case_name == info.record.case_name;
  });
  return found == session.telemetry.end() ? nullptr : &*found;
}

/// Of counters, what they counted during the block, unless that is nothing.
std::string telemetry_of(const SessionData& session, const SlowSampleInfo& info) {
  const TelemetryInfo* const after = reading_after(session, info, info.record.block);
  const TelemetryInfo* const before = reading_after(session, info, info.record.block - 1);
  if (!after) return {};
  std::vector<std::string> said;
  for (const TelemetryQuantity& quantity : telemetry_quantities()) {
    const std::string key(quantity.key);
    const auto value = after->values.find(key);
    if (value == after->values.end()) continue;
    double shown = value->second;
    if (quantity.counter) {
      if (!before || !before->values.contains(key)) continue;
      shown -= before->values.at(key);
      if (shown == 0) continue;
    }
    said.push_back(fmt::format("{} {:g}", key, shown));
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

std::vector<SlowSample> slow_samples_without_events(const SessionData& session,
                                                    const std::vector<SummaryRow>& rows) {
  const Medians medians = medians_of(rows);
  std::vector<SlowSample> all;
  for (const SlowSampleInfo& info : session.slow_samples) {
    SlowSample slow;
    slow.info = &info;
    slow.name = CaseName::parse(info.record.case_name);
    slow.value = info.record.value();
    const CaseKey key{info.device, info.arm, info.process_config, slow.name};
    const auto median = medians.find({key, info.record.metric});
    if (median == medians.end() || median->second <= 0 || !std::isfinite(slow.value)) continue;
    slow.median = median->second;
    find_longer_part(slow, key, medians);
    slow.telemetry = telemetry_of(session, info);
    all.push_back(std::move(slow));
  }
  const auto place = [](const SlowSample& slow) {
    const SlowSampleInfo& info = *slow.info;
    return std::tuple(
        info.device, info.arm, info.process_config, slow.name, info.replicate, -slow.value);
  };
  std::ranges::sort(all, {}, place);
  return all;
}

/// The oddest of each device, few of a case, and what each timeline shows: the sample and as much
/// before it as it lasts twice, but neither less nor more than one can see.
void choose_timelines(std::vector<SlowSample>& all) {
  constexpr std::int64_t kLeast = 20'000, kMost = SlowSampleRecord::kAroundNs;
  std::vector<SlowSample*> odd;
  for (SlowSample& slow : all) {
    if (slow.is_odd()) odd.push_back(&slow);
  }
  std::ranges::stable_sort(odd, std::ranges::greater(), &SlowSample::ratio);
  std::map<std::string, std::size_t> of_device;
  std::map<std::pair<std::string, CaseName>, std::size_t> of_case;
  for (SlowSample* slow : odd) {
    std::size_t& in_device = of_device[slow->info->device];
    std::size_t& in_case = of_case[{slow->info->device, slow->name}];
    if (in_device == SlowSample::kTimelinesPerDevice || in_case == SlowSample::kTimelinesPerCase)
      continue;
    ++in_device;
    ++in_case;
    const std::int64_t lasts = slow->lasts_ns();
    slow->view_begin_ns = -std::clamp(2 * std::min(lasts, kMost), kLeast, kMost);
    slow->view_end_ns = lasts + std::clamp(lasts, kLeast, kMost);
  }
}

/// The rows and names of a process's events.
class TimelineWriter {
 public:
  explicit TimelineWriter(const Process& process) : process_(process) {
    std::set<std::uint64_t> gpus;
    for (const recording::Stream& stream : process.streams) gpus.insert(stream.gpu);
    several_gpus_ = gpus.size() > 1;
  }

  /// Adds those that the sample's timeline shows.
  void add_to(SlowSample& slow) const {
    const activity::Trace& trace = process_.trace;
    for (const auto& call : trace.calls)
      add(slow, call, thread(call.thread), "call", name(call.id));
    for (const auto& kernel : trace.kernels)
      add(slow, kernel, stream(kernel.stream), "kernel", name(kernel.name));
    for (const auto& graph : trace.graphs)
      add(slow, graph, stream(graph.stream), "graph", fmt::format("graph {}", graph.graph));
    for (const auto& transfer : trace.transfers) {
      const char* const kind = transfer.fill ? "fill" : "copy";
      add(slow, transfer, stream(transfer.stream), kind, kind, transfer.bytes);
    }
    for (const auto& overhead : trace.overheads)
      add(slow, overhead, "driver and recorder", "overhead", activity::name_of(overhead.kind));
    for (const auto& wait : trace.waits) add(slow, wait, "waits", "wait", "wait");
    for (const auto& memory : trace.memory) {
      const char* const kind = memory.release ? "release" : "allocate";
      add(slow, Moment{memory.at_ns, memory.at_ns}, "memory", kind, kind, memory.bytes);
    }
    for (const auto& allocation : process_.allocations) {
      const Moment moment{allocation.at_ns, allocation.at_ns};
      if (allocation.action == recording::AllocationAction::allocate)
        add(slow, moment, "memory", "allocate", "allocate", allocation.bytes);
      if (allocation.action == recording::AllocationAction::release)
        add(slow, moment, "memory", "release", "release", allocation.bytes);
    }
    for (const auto& range : process_.ranges)
      add(slow, range, range_row(range.thread), "range", name(range.name));
  }

 private:
  struct Moment {
    std::int64_t begin_ns, end_ns;
  };

  void add(SlowSample& slow,
           const auto& event,
           std::string row,
           std::string kind,
           std::string name,
           std::uint64_t bytes = 0) const {
    if (!recording::has_times(event)) return;
    const std::int64_t zero = slow.info->record.begin_ns;
    if (event.end_ns < zero + *slow.view_begin_ns || event.begin_ns > zero + *slow.view_end_ns)
      return;
    slow.events.push_back({std::move(row),
                           std::move(kind),
                           std::move(name),
                           event.begin_ns - zero,
                           event.end_ns - zero,
                           bytes});
  }
  std::string name(std::uint32_t index) const { return process_.trace.name(index); }
  /// "thread 4242"; what has a name keeps it.
  std::string thread(std::uint32_t index) const {
    const std::string& name = process_.threads[index];
    const bool number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    return number ? fmt::format("thread {}", name) : name;
  }
  std::string range_row(std::uint32_t index) const {
    const std::string& name = process_.threads[index];
    return name == "samples" ? name : fmt::format("ranges of {}", thread(index));
  }
  std::string stream(std::uint32_t index) const {
    const recording::Stream& own = process_.streams[index];
    return several_gpus_ ? fmt::format("GPU {} stream {}", own.gpu, own.number)
                         : fmt::format("stream {}", own.number);
  }

  const Process& process_;
  bool several_gpus_ = false;
};

/// How far an event is from the sample.
std::int64_t distance(const SlowSample& slow, const TimelineEvent& event) {
  return std::max<std::int64_t>({0, -event.end_ns, event.begin_ns - slow.lasts_ns()});
}

/// The nearest, and of those in the sample the longest.
void keep_nearest(SlowSample& slow) {
  constexpr std::size_t kMost = SlowSample::kEventsPerTimeline;
  if (slow.events.size() > kMost) {
    std::ranges::stable_sort(slow.events, {}, [&](const TimelineEvent& event) {
      return std::tuple(distance(slow, event), event.begin_ns - event.end_ns);
    });
    slow.left_out += slow.events.size() - kMost;
    slow.events.resize(kMost);
  }
}

/// When something ran in a sample, of whatever was recorded.
using Busy = std::vector<std::pair<std::int64_t, std::int64_t>>;

void find_quiet(SlowSample& slow, Busy& busy) {
  if (busy.empty()) return;
  std::ranges::sort(busy);
  std::int64_t until = 0, longest = 0, at = 0;
  const auto look = [&](std::int64_t next) {
    if (next - until > longest) {
      longest = next - until;
      at = until;
    }
  };
  for (const auto& [begin, end] : busy) {
    look(begin);
    until = std::max(until, end);
  }
  look(slow.lasts_ns());
  if (longest <= 0) return;
  slow.quiet_ns = longest;
  slow.quiet_begin_ns = at;
}

/// What of the new events ran in the sample, ranges aside.
void add_busy(const SlowSample& slow, std::size_t first_new, Busy& busy) {
  constexpr std::size_t kMost = 1'000'000;
  for (const TimelineEvent& event : std::span(slow.events).subspan(first_new)) {
    if (event.kind != "range" && busy.size() < kMost && distance(slow, event) == 0)
      busy.emplace_back(event.begin_ns, event.end_ns);
  }
}

/// From one file of events to the samples that need it.
void read_timelines(const fs::path& file, const std::vector<SlowSample*>& samples) {
  const auto wants = [&](std::int64_t first_ns, std::int64_t last_ns) {
    return std::ranges::any_of(samples, [&](const SlowSample* slow) {
      const std::int64_t zero = slow->info->record.begin_ns;
      return last_ns >= zero + *slow->view_begin_ns && first_ns <= zero + *slow->view_end_ns;
    });
  };
  std::string case_name;
  std::vector<Busy> busy(samples.size());
  recording::read_events(file,
                         {[&](const recording::EventsHead& head) { case_name = head.case_name; },
                          [&](const Process& process) {
                            const TimelineWriter writer(process);
                            for (std::size_t i = 0; i < samples.size(); ++i) {
                              SlowSample& slow = *samples[i];
                              if (!case_name.empty() && case_name != slow.info->record.case_name)
                                continue;
                              const std::size_t before = slow.events.size();
                              writer.add_to(slow);
                              add_busy(slow, before, busy[i]);
                              keep_nearest(slow);
                            }
                          },
                          wants});
  for (std::size_t i = 0; i < samples.size(); ++i) find_quiet(*samples[i], busy[i]);
}

}  // namespace

std::vector<SlowSample> slow_samples_of(const SessionData& session,
                                        const std::vector<SummaryRow>& rows) {
  std::vector<SlowSample> all = slow_samples_without_events(session, rows);
  choose_timelines(all);
  std::map<fs::path, std::vector<SlowSample*>> by_file;
  for (SlowSample& slow : all) {
    if (slow.view_begin_ns) by_file[events_path(session, *slow.info)].push_back(&slow);
  }
  for (const auto& [file, samples] : by_file) {
    try {
      read_timelines(file, samples);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      for (SlowSample* slow : samples) {
        slow->problem = error.what();
        slow->events.clear();
      }
    }
    for (SlowSample* slow : samples) {
      std::ranges::stable_sort(slow->events, {}, [](const TimelineEvent& event) {
        return std::tuple(event.begin_ns, -event.end_ns);
      });
    }
  }
  return all;
}

namespace {

/// An event of a sample's timeline.
struct TimelineRow {
  const SlowSample& slow;
  const TimelineEvent& event;
};

void each_event(const TableInputs& from, const auto& put) {
  for (const SlowSample& slow : from.slow_samples.all()) {
    for (const TimelineEvent& event : slow.events) put({slow, event});
  }
}

/// Which sample it is: the same columns in both tables.
template <class Row, class Of>
std::vector<TableColumn<Row>> key_columns(Of of) {
  return {{"device_id", [of](const Row& row) { return of(row).info->device; }},
          {"arm", [of](const Row& row) { return of(row).info->arm; }},
          {"process_config", [of](const Row& row) { return of(row).info->process_config.text(); }},
          {"replicate", [of](const Row& row) { return of(row).info->replicate; }},
          {"case", [of](const Row& row) { return of(row).name.text(); }},
          {"sample", "The sample's number in the case and run, from 0.", [of](const Row& row) {
             return of(row).info->record.sample;
           }}};
}

template <class Row>
std::vector<TableColumn<Row>> joined(std::vector<TableColumn<Row>> columns,
                                     std::vector<TableColumn<Row>> more) {
  std::ranges::move(more, std::back_inserter(columns));
  return columns;
}

auto of_event(auto TimelineEvent::*field) {
  return [field](const TimelineRow& row) { return row.event.*field; };
}

}  // namespace

Table slow_samples_table() {
  const auto recorded = [](auto SlowSampleRecord::*field) {
    return [field](const SlowSample& slow) { return slow.info->record.*field; };
  };
  return make_table<SlowSample>(
      "slow_samples.csv",
      "device, case, run and one of its ten slowest samples",
      TableUse::details,
      [](const TableInputs& from) { return from.slow_samples.all(); },
      joined<SlowSample>(
          key_columns<SlowSample>([](const SlowSample& slow) -> const SlowSample& { return slow; }),
          {{"block", "The block that it is in, from 0.", recorded(&SlowSampleRecord::block)},
           {"metric", recorded(&SlowSampleRecord::metric)},
           {"unit", [](const SlowSample& slow) { return unit_of(slow.info->record.metric); }},
           {"value", "What it took.", &SlowSample::value, kUnitOfMetric},
           {"median", "The case's median.", &SlowSample::median, kUnitOfMetric},
           {"ratio", "How many times the median it took.", &SlowSample::ratio},
           {"odd",
            "Whether that is 1.5 times or more: only such samples have a timeline.",
            &SlowSample::is_odd},
           {"longer_part",
            "The part that took most longer than usual, if it is half of the difference or more: "
            "api_record_ns, queue_ns or kernel_ns.",
            &SlowSample::longer_part},
           {"longer_by_ns", "By so much.", &SlowSample::longer_by_ns},
           {"waiting",
            "Kernels and copies that were asked for before it and had not begun when it began; of "
            "recorded launches.",
            recorded(&SlowSampleRecord::waiting)},
           {"telemetry",
            "What the machine said of itself after its block; of a counter, how far it counted.",
            &SlowSample::telemetry},
           {"events",
            "The file of the session's folder events that has what happened around it.",
            [](const SlowSample& slow) { return slow.info->events; }},
           {"begin_ns",
            "When it began, on the clock of the events.",
            recorded(&SlowSampleRecord::begin_ns)},
           {"lasts_ns", "Until it ended, or until the next one began.", &SlowSample::lasts_ns},
           {"view_begin_ns",
            "Where its timeline begins, from its start; empty if it has none.",
            &SlowSample::view_begin_ns},
           {"view_end_ns", "Where its timeline ends.", &SlowSample::view_end_ns},
           {"left_out",
            "Events in that time that are not in the timeline: it has the 400 nearest, and of "
            "those in "
            "the sample the longest.",
            &SlowSample::left_out},
           {"quiet_ns",
            "The longest time in the sample in which nothing that was recorded ran: the program "
            "did "
            "something else, or nothing.",
            &SlowSample::quiet_ns},
           {"quiet_begin_ns",
            "When that began, from the sample's begin.",
            &SlowSample::quiet_begin_ns},
           {"problem", "Why its events cannot be read.", &SlowSample::problem}}));
}

Table timelines_table() {
  return make_table<TimelineRow>(
      "timelines.csv",
      "slow sample that has a timeline, and event around it",
      TableUse::details,
      [](const TableInputs& from, const auto& put) { each_event(from, put); },
      joined<TimelineRow>(
          key_columns<TimelineRow>(
              [](const TimelineRow& row) -> const SlowSample& { return row.slow; }),
          {{"row",
            "The thread or stream; or what else it happened to.",
            of_event(&TimelineEvent::row)},
           {"kind",
            "call, kernel, graph, copy, fill, overhead, wait, allocate, release or range.",
            of_event(&TimelineEvent::kind)},
           {"name", "Its name.", of_event(&TimelineEvent::name)},
           {"begin_ns", "From the sample's begin.", of_event(&TimelineEvent::begin_ns)},
           {"end_ns", "From the sample's begin.", of_event(&TimelineEvent::end_ns)},
           {"bytes",
            "Of a copy, a fill or an allocation; else 0.",
            of_event(&TimelineEvent::bytes)}}));
}

}  // namespace launchgap
