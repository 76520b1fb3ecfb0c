#include "harness/summary/table_makers.h"
#include "harness/summary/timelines.h"

namespace launchgap {
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
