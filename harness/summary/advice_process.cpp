// What surrounds a launch: waiting for it, the process's first one, idle times, the queue,
// libraries.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/advice_evidence.h"

namespace launchgap {
namespace {

void waiting(Adviser& adviser) {
  const char* const axis = "launch/wait";
  for (const char* by : {"stream", "event"}) {
    for (const char* wait : {"yield", "block"}) {
      const auto against_spin = [&](const char* metric) {
        const auto row = [&](const char* how) {
          return adviser.rows.find(axis, {{"wait", how}, {"by", by}}, metric);
        };
        return compare(row(wait), row("spin"));
      };
      const auto trip = against_spin("roundtrip_ns"), cpu = against_spin("cpu_ns");
      if (!trip) continue;
      const bool yields = std::string_view(wait) == "yield";
      const std::string waits =
          fmt::format("{} while it waits for the {}", yields ? "yields" : "blocks", by);
      if (cpu && cpu->ratio.verdict == RatioVerdict::less &&
          trip->ratio.verdict == RatioVerdict::more) {
        adviser.say(axis,
                    AdviceSeverity::know,
                    fmt::format("A thread that {} needs {} times the CPU time of one that spins, "
                                "and its round trip is {} times as long: {} longer, {} of CPU time "
                                "free.",
                                waits,
                                times(*cpu->ratio.value),
                                times(*trip->ratio.value),
                                quantity(*trip->row->p50 - *trip->reference->p50, "ns"),
                                quantity(*cpu->reference->p50 - *cpu->row->p50, "ns")),
                    {*trip, *cpu});
        continue;
      }
      const bool no_longer =
          trip->ratio.verdict == RatioVerdict::same || trip->ratio.verdict == RatioVerdict::less;
      if (cpu && cpu->ratio.verdict == RatioVerdict::less && no_longer) {
        adviser.say(
            axis,
            AdviceSeverity::act,
            fmt::format("Let the thread that waits for the {} {}: it needs {} times the CPU "
                        "time of one that spins, and its round trip is no longer.",
                        by,
                        yields ? "yield" : "block",
                        times(*cpu->ratio.value)),
            {*trip, *cpu});
        continue;
      }
      const Words words = {
          .of = "of a thread that " + waits,
          .than = "of one that spins",
          .if_more = "Spin where waits are as short as this and a CPU can be spared",
          .if_less = fmt::format("Let the thread {}", yields ? "yield" : "block"),
          .if_same = fmt::format("{} instead of spinning gains and costs nothing",
                                 yields ? "Yielding" : "Blocking")};
      std::vector<Comparison> comparisons = {*trip};
      if (cpu) comparisons.push_back(*cpu);
      if (no_longer)
        adviser.judge(axis, comparisons, words);
      else  // Whatever the CPU time: the round trip is what the answer hangs on.
        adviser.judge(axis, trip->ratio, "the round trip", words, comparisons);
    }
  }
}

/// Per process, the time until its first kernel is done: all steps that were measured, one after
/// another. Empty if a step lacks a process that another has, or a GPU's module was not timed: the
/// sum would be without it, and that of another way of loading with it.
std::vector<double> until_first_result(const DeviceRows& rows, const Params& params) {
  std::vector<double> sums;
  if (rows.find("launch/first", params, "initialise_ns") &&
      !rows.find("launch/first", params, "module_ns"))
    return {};
  for (const char* metric : {"initialise_ns", "context_ns", "module_ns", "first_roundtrip_ns"}) {
    const SummaryRow* const row = rows.find("launch/first", params, metric);
    if (!row) continue;
    if (sums.empty()) sums.assign(row->run_medians.size(), 0);
    if (sums.size() != row->run_medians.size()) return {};
    std::ranges::transform(sums, row->run_medians, sums.begin(), std::plus<>());
  }
  return sums;
}

void loading(Adviser& adviser, const char* value, const char* reference, const Words& words) {
  const char* const axis = "launch/first";
  std::vector<Comparison> comparisons;
  for (const char* metric : {"module_ns", "first_roundtrip_ns"}) {
    const auto row = [&](const char* loading) {
      return adviser.rows.find(axis, {{"loading", loading}}, metric);
    };
    if (const auto comparison = compare(row(value), row(reference)))
      comparisons.push_back(*comparison);
  }
  const auto ours = until_first_result(adviser.rows, {{"loading", value}}),
             theirs = until_first_result(adviser.rows, {{"loading", reference}});
  if (comparisons.empty() || ours.empty() || theirs.empty()) return;
  const Ratio total = ratio_of(ours, theirs);
  if (!total.claims())
    return adviser.judge(
        axis, total, "the time until the first kernel is done", words, comparisons);
  const double change = *stats::mean(ours) - *stats::mean(theirs);
  adviser.say(
      axis,
      change > 0 ? words.more : words.less,
      fmt::format("{}: the time until the first kernel is done {} is {} times that {} (95 % "
                  "{}), {} {}.",
                  change > 0 ? words.if_more : words.if_less,
                  words.of,
                  times(*total.value),
                  words.than,
                  interval_text(*total.interval),
                  quantity(std::abs(change), "ns"),
                  change > 0 ? "more" : "less"),
      comparisons);
}

void first(Adviser& adviser) {
  const char* const axis = "launch/first";
  for (const char* load : {"lazy", "none"}) {
    const Params params = {{"loading", load}};
    const SummaryRow* const trip = adviser.rows.find(axis, params, "first_roundtrip_ns");
    const SummaryRow* const second = adviser.rows.find(axis, params, "second_roundtrip_ns");
    const auto comparison = compare(trip, second);
    const auto total = until_first_result(adviser.rows, params);
    if (!comparison) continue;
    adviser.say(axis,
                AdviceSeverity::know,
                fmt::format("{}first round trip takes {}, the second {}.",
                            total.empty()
                                ? "A fresh process's "
                                : fmt::format("A fresh process takes {} until its first kernel is "
                                              "done; its ",
                                              quantity(stats::mean(total), "ns")),
                            value_text(*trip),
                            value_text(*second)),
                {*comparison},
                {adviser.rows.find(axis, params, "initialise_ns"),
                 adviser.rows.find(axis, params, "context_ns"),
                 adviser.rows.find(axis, params, "module_ns")});
  }
  loading(adviser,
          "eager",
          "lazy",
          {.of = "of a process that loads eagerly",
           .than = "of one that loads lazily",
           .if_more = "Load lazily where start-up counts",
           .if_less = "Load eagerly",
           .if_same = "Loading eagerly costs nothing"});
  loading(
      adviser,
      "jit_uncached",
      "jit_cached",
      {.of = "of a process whose kernels the driver compiles anew",
       .than = "of one that finds them in its cache",
       .if_more = "Ship native code, or keep the driver's cache of compiled code (CUDA_CACHE_PATH) "
                  "from process to process",
       .if_less = "The driver's cache does not help",
       .if_same = "An empty cache costs nothing",
       .less = AdviceSeverity::know});
  loading(adviser,
          "jit_cached",
          "lazy",
          {.of = "of a process whose kernels the driver has compiled before",
           .than = "of one that loads what this build has for the device",
           .if_more = "Ship native code",
           .if_less = "This build may lack native code for the device",
           .if_same = "Kernels from the driver's cache cost nothing",
           .less = AdviceSeverity::know});
}

void after_idle(Adviser& adviser) {
  const char* const axis = "launch/after_idle";
  const auto comparisons = compare_axis(adviser.rows, axis, {}, "roundtrip_ns", "idle_ms", "0");
  const Comparison* const from = from_which_on(comparisons, RatioVerdict::more);
  if (!from) {
    return adviser.judge(axis,
                         comparisons.empty() ? comparisons : std::vector{comparisons.back()},
                         {.of = "after the longest idle time",
                          .than = "after none",
                          .if_more = "Launches are slower after an idle time",
                          .if_less = "Launches are faster after an idle time",
                          .if_same = "An idle time costs the launch after it nothing",
                          .less = AdviceSeverity::know});
  }
  const Comparison& longest = comparisons.back();
  // Only of a pause that was measured it is known to do no harm.
  const std::string harmless =
      from == &comparisons.front() ? "" : of(*std::prev(from)->row, "idle_ms");
  adviser.say(
      axis,
      AdviceSeverity::act,
      fmt::format(
          "A launch after {} ms or more of idleness is slower: its round trip is {} times that "
          "without{}. Where that counts, keep the device busy{}.",
          of(*from->row, "idle_ms"),
          times(*from->ratio.value),
          &longest == from ? ""
                           : fmt::format(", {} times after {} ms",
                                         times(*longest.ratio.value),
                                         of(*longest.row, "idle_ms")),
          harmless.empty() ? ""
                           : fmt::format(", with something empty at least every {} ms", harmless)),
      &longest == from ? std::vector{*from} : std::vector{*from, longest});
}

void queue(Adviser& adviser) {
  const SummaryRow* const depth = adviser.rows.find("launch/queue", {}, "queue_depth");
  const SummaryRow* const full = adviser.rows.find("launch/queue", {}, "full_launch_ns");
  if (!depth) return;
  adviser.say(
      "launch/queue",
      AdviceSeverity::know,
      fmt::format("Keep fewer than {} launches in flight where a call must not wait: that many "
                  "are taken ahead of the device, and the next waits until there is room{}.",
                  value_text(*depth),
                  full ? fmt::format(": {} behind kernels of 20 µs", value_text(*full)) : ""),
      {},
      {depth, full});
}

void library(Adviser& adviser) {
  for (const char* call : {"matmul", "convolution"}) {
    std::vector<Comparison> comparisons;
    for (const char* metric : {"api_ns", "roundtrip_ns"}) {
      const auto row = [&](const char* which) {
        return adviser.rows.find("launch/library", {{"call", which}}, metric);
      };
      if (const auto comparison = compare(row(call), row("kernel")))
        comparisons.push_back(*comparison);
    }
    const std::string name = std::string_view(call) == "matmul" ? "matrix product" : call;
    const Words words = {.of = "of a small " + name + " by the library",
                         .than = "of a launch of one's own",
                         .if_more = "Reckon with what the library does around its launch",
                         .if_less = "The library's call is no dearer than a launch",
                         .if_same = "The library's call costs nothing beyond a launch",
                         .more = AdviceSeverity::know,
                         .less = AdviceSeverity::know};
    adviser.judge("launch/library", comparisons, words);
  }
}

void each_or_end(Adviser& adviser) {
  const auto comparisons =
      compare_axis(adviser.rows, "launch/cscs", {}, "wall_per_launch_ns", "wait", "end");
  adviser.judge("launch/cscs",
                comparisons,
                {.of = "with a wait after each",
                 .than = "with one wait at the end",
                 .if_more = "Do not wait after each launch",
                 .if_less = "Waiting after each launch does no harm",
                 .if_same = "Waiting after each launch costs nothing",
                 .less = AdviceSeverity::know});
}

}  // namespace

void advise_on_processes(Adviser& adviser) {
  waiting(adviser);
  first(adviser);
  after_idle(adviser);
  queue(adviser);
  library(adviser);
  each_or_end(adviser);
}

}  // namespace launchgap
