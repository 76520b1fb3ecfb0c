// How a launch is made: by which call, with which arguments, grid, stream, thread and attributes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/advice_evidence.h"

namespace launchgap {
namespace {

struct Mode {
  const char* name;
  const char* metric;
  const char* phrase;
};
constexpr Mode kModes[] = {{"idle", "api_ns", "the time in the call"},
                           {"burst", "per_launch_ns", "the time per launch"}};

/// "1 thread", "8 threads".
std::string counted(const std::string& number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == "1" ? "" : "s");
}

void api(Adviser& adviser) {
  for (const char* other : {"runtime", "chevron"}) {
    std::vector<Comparison> comparisons;
    for (const Mode& mode : kModes) {
      const auto row = [&](const char* path) {
        return adviser.rows.find("launch/api", {{"api", path}, {"mode", mode.name}}, mode.metric);
      };
      if (const auto comparison = compare(row(other), row("driver")))
        comparisons.push_back(*comparison);
    }
    const std::string name =
        std::string_view(other) == "chevron" ? "<<<>>>" : "cudaLaunchKernelExC";
    adviser.judge("launch/api",
                  comparisons,
                  {.of = "with " + name,
                   .than = "with the driver API",
                   .if_more = "Launch through the driver API where launches count",
                   .if_less = "Launch with " + name + " where launches count",
                   .if_same = "Launching with " + name + " costs nothing"});
  }
}

void arguments(Adviser& adviser) {
  const Comparison* from = nullptr;
  const char* dear_phrase = "";
  std::vector<Comparison> largest;
  std::vector<std::vector<Comparison>> all;
  for (const auto& [mode, metric, phrase] : kModes)
    all.push_back(
        compare_axis(adviser.rows, "launch/args", {{"mode", mode}}, metric, "bytes", "0"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    largest.push_back(all[i].back());
    const Comparison* const first = from_which_on(all[i], RatioVerdict::more);
    if (first &&
        (!from || first->row->key.name.number("bytes") < from->row->key.name.number("bytes"))) {
      from = first;
      dear_phrase = kModes[i].phrase;
    }
  }
  if (!from) {
    return adviser.judge("launch/args",
                         largest,
                         {.of = "with the most arguments",
                          .than = "with none",
                          .if_more = "Keep arguments small",
                          .if_less = "Arguments make launches no slower",
                          .if_same = "The size of arguments costs nothing",
                          .less = AdviceSeverity::know});
  }
  const auto last = std::ranges::find_if(
      largest, [&](const Comparison& one) { return one.row->metric == from->row->metric; });
  const auto bytes = [](const SummaryRow& row) {
    return static_cast<double>(row.key.name.number("bytes"));
  };
  const double per_kib = (*last->row->p50 - *from->reference->p50) / (bytes(*last->row) / 1024);
  std::vector<Comparison> evidence = {*from};
  if (last->row != from->row) evidence.push_back(*last);
  adviser.say(
      "launch/args",
      AdviceSeverity::act,
      fmt::format(
          "Keep arguments small where launches count: from {} bytes on, of the sizes measured, {} "
          "is {} times that with none{}.",
          of(*from->row, "bytes"),
          dear_phrase,
          times(*from->ratio.value),
          per_kib > 0 ? fmt::format(", and each KiB costs about {}", quantity(per_kib, "ns")) : ""),
      evidence);
}

void grid(Adviser& adviser) {
  const auto comparisons =
      compare_axis(adviser.rows, "launch/grid", {}, "roundtrip_ns", "blocks", "1");
  const Comparison* const from = from_which_on(comparisons, RatioVerdict::more);
  if (!from) {
    return adviser.judge("launch/grid",
                         comparisons.empty() ? comparisons : std::vector{comparisons.back()},
                         {.of = "with the largest grid",
                          .than = "with one block",
                          .if_more = "A large grid makes the round trip longer",
                          .if_less = "A large grid makes the round trip no longer",
                          .if_same = "The size of the grid costs nothing",
                          .more = AdviceSeverity::know,
                          .less = AdviceSeverity::know});
  }
  const std::string blocks = of(*from->row, "blocks");
  adviser.say(
      "launch/grid",
      AdviceSeverity::know,
      fmt::format("From {} blocks on, of the grids measured, an empty kernel's grid adds to its "
                  "round trip, which is {} times that of one block; with fewer the launch "
                  "decides.",
                  blocks,
                  times(*from->ratio.value)),
      {*from},
      {adviser.rows.find("launch/grid", {{"blocks", blocks}}, "kernel_ns", Arm::traced)});
}

/// The fewest of those that are within kLeastDifference of the best; null if none is better than
/// the reference.
const Comparison* fewest_as_good_as_best(const std::vector<Comparison>& comparisons) {
  const Comparison* const best = strongest(comparisons, RatioVerdict::less);
  if (!best) return nullptr;
  return &*std::ranges::find_if(comparisons, [&](const Comparison& one) {
    return one.ratio.verdict == RatioVerdict::less &&
           *one.ratio.value <= *best->ratio.value * kLeastDifference;
  });
}

void streams(Adviser& adviser) {
  const auto over = [&](const char* kernel) {
    return compare_axis(adviser.rows,
                        "launch/streams",
                        {{"kernel", kernel}, {"with", "nothing"}},
                        "per_launch_ns",
                        "streams",
                        "1");
  };
  const auto busy = over("10us"), empty = over("null");
  if (const Comparison* const best = fewest_as_good_as_best(busy)) {
    const std::string streams = of(*best->row, "streams");
    adviser.say("launch/streams",
                AdviceSeverity::act,
                fmt::format("Spread independent kernels that leave most of the device free over {} "
                            "streams: the time per launch of kernels of 10 µs and one block is {} "
                            "times that with one{}.",
                            streams,
                            times(*best->ratio.value),
                            best == &busy.back() ? "" : "; more streams help no further"),
                {*best});
  } else if (!busy.empty()) {
    adviser.judge("launch/streams",
                  {busy.back()},
                  {.of = "of kernels of 10 µs and one block over the most streams",
                   .than = "over one",
                   .if_more = "Keep kernels of 10 µs in one stream",
                   .if_less = "Spread kernels of 10 µs over streams",
                   .if_same = "Several streams gain nothing for kernels of 10 µs"});
  }
  if (!empty.empty()) {
    adviser.judge(
        "launch/streams",
        {deciding(empty)},
        {.of = "of empty kernels over " + of(*deciding(empty).row, "streams") + " streams",
         .than = "over one",
         .if_more = "Keep kernels that do next to nothing in one stream",
         .if_less = "Several streams get even empty kernels out faster",
         .if_same = "Changing between streams costs nothing",
         .less = AdviceSeverity::know});
  }
  std::vector<Comparison> with_default;
  for (const char* kernel : {"10us", "null"}) {
    for (const std::string& count :
         adviser.rows.values("launch/streams", {{"with", "default"}}, "per_launch_ns", "streams")) {
      const auto row = [&](const char* with) {
        return adviser.rows.find("launch/streams",
                                 {{"streams", count}, {"kernel", kernel}, {"with", with}},
                                 "per_launch_ns");
      };
      if (const auto comparison = compare(row("default"), row("nothing")))
        with_default.push_back(*comparison);
    }
  }
  if (with_default.empty()) return;
  const Comparison& worst = deciding(with_default);
  adviser.judge(
      "launch/streams",
      {worst},
      {.of = fmt::format("of {} over {} with every 16th launch in the legacy default stream",
                         of(*worst.row, "kernel") == "null" ? "empty kernels" : "kernels of 10 µs",
                         counted(of(*worst.row, "streams"), "stream")),
       .than = "without",
       .if_more = "Keep out of the legacy default stream, or make the others non-blocking",
       .if_less = "The legacy default stream does no harm here",
       .if_same = "A launch into the legacy default stream now and then costs nothing",
       .less = AdviceSeverity::know});
}

void threads(Adviser& adviser) {
  const char* const axis = "launch/threads";
  const auto own = compare_axis(
      adviser.rows, axis, {{"streams", "own"}}, "threads_per_launch_ns", "threads", "1");
  if (const Comparison* const best = fewest_as_good_as_best(own)) {
    adviser.say(axis,
                AdviceSeverity::act,
                fmt::format("Launching from several threads pays: from {}, each with a stream of "
                            "its own, the time per launch is {} times that of one.",
                            counted(of(*best->row, "threads"), "thread"),
                            times(*best->ratio.value)),
                {*best});
  } else if (!own.empty()) {
    const Comparison& worst = deciding(own);
    adviser.judge(axis,
                  {worst},
                  {.of = "of " + counted(of(*worst.row, "threads"), "thread"),
                   .than = "of one",
                   .if_more = "Launch from one thread",
                   .if_less = "Launch from several threads",
                   .if_same = "Launching from several threads gains nothing, and costs nothing"});
  }
  std::vector<Comparison> shared;
  for (const std::string& count :
       adviser.rows.values(axis, {{"streams", "shared"}}, "threads_per_launch_ns", "threads")) {
    const auto row = [&](const char* streams) {
      return adviser.rows.find(
          axis, {{"threads", count}, {"streams", streams}}, "threads_per_launch_ns");
    };
    const auto comparison = compare(row("shared"), row("own"));
    if (count != "1" && comparison) shared.push_back(*comparison);
  }
  if (shared.empty()) return;
  const Comparison& worst = deciding(shared);
  adviser.judge(axis,
                {worst},
                {.of = fmt::format("of {} that share one stream",
                                   counted(of(*worst.row, "threads"), "thread")),
                 .than = "of as many with a stream each",
                 .if_more = "Give each launching thread a stream of its own",
                 .if_less = "Let launching threads share a stream",
                 .if_same = "Threads that share a stream lose nothing"});
}

/// A benchmark whose one axis has two values.
struct Pair {
  const char* benchmark;
  const char* axis;
  const char* value;
  const char* reference;
  std::vector<const char*> metrics;
  Words words;
};

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = {
      {"launch/cooperative",
       "launch",
       "cooperative",
       "plain",
       {"api_ns", "roundtrip_ns"},
       {.of = "of a cooperative launch",
        .than = "of a plain one",
        .if_more = "Launch cooperatively only where blocks must wait for each other",
        .if_less = "A cooperative launch is no dearer than a plain one",
        .if_same = "A cooperative launch costs nothing",
        .less = AdviceSeverity::know}},
      {"launch/dependent",
       "launch",
       "dependent",
       "plain",
       {"per_kernel_ns"},
       {.of = "of kernels of 5 µs that may be launched before the one ahead ends",
        .than = "of such that may not",
        .if_more = "Leave programmatic dependent launches alone",
        .if_less = "Launch kernels that follow one another as programmatic dependents",
        .if_same = "Programmatic dependent launches gain nothing"}},
      {"launch/priority",
       "priority",
       "higher",
       "same",
       {"roundtrip_ns"},
       {.of = "of a kernel with a higher priority, while other work fills the device,",
        .than = "of one with the same priority",
        .if_more = "A higher priority makes it no faster",
        .if_less = "Put urgent work into a stream of higher priority",
        .if_same = "A higher priority gains nothing",
        .more = AdviceSeverity::know}},
  };
  return all;
}

}  // namespace

void advise_on_launches(Adviser& adviser) {
  api(adviser);
  arguments(adviser);
  grid(adviser);
  streams(adviser);
  threads(adviser);
  for (const Pair& pair : pairs()) {
    std::vector<Comparison> comparisons;
    for (const char* metric : pair.metrics) {
      for (const Comparison& comparison :
           compare_axis(adviser.rows, pair.benchmark, {}, metric, pair.axis, pair.reference))
        comparisons.push_back(comparison);
    }
    adviser.judge(pair.benchmark, comparisons, pair.words);
  }
}

}  // namespace launchgap
