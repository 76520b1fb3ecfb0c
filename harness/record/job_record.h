// What the events of an imported process say of its job as a whole, as a record with its fields:
// figures that no sample has. docs/record-schema.md says what they mean.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/fields.h"
#include "harness/record/launch_tail.h"

namespace launchgap {

/// A stretch of time of one GPU is divided into these: each moment of it counts for one.
enum class StretchPart : std::uint8_t {
  kernels,
  copies,
  input,
  program,
  launches,
  waits,
  allocations,
  calls,
  queued,
  unknown,
};

struct StretchPartInfo {
  const char* key;  // in records
  std::string_view name, meaning;
};
inline constexpr std::array<StretchPartInfo, 10> kStretchParts = {{
    {"kernels_ns", "kernels", "Kernels run that are no collectives."},
    {"copies_ns", "copies", "No kernel runs, and a copy or fill does that is no input."},
    {"input_ns",
     "input",
     "Of the GPU's work only copies from the host run; or it idles while the program loads data, "
     "by the name of a range."},
    {"program_ns", "program", "The GPU idles while the program is in no call of CUDA."},
    {"launches_ns", "launches", "The GPU idles between a launch call and the start of its work."},
    {"waits_ns", "waits", "The GPU idles while the program waits for it."},
    {"allocations_ns", "allocations", "The GPU idles while the program allocates or gives back."},
    {"calls_ns", "calls", "The GPU idles while the program is in another call of CUDA."},
    {"queued_ns", "queued", "The GPU idles with work queued, which waits for something else."},
    {"unknown_ns", "unknown", "Nothing tells what the GPU did or waited for."},
}};
constexpr std::string_view name_of(StretchPart part) {
  return kStretchParts[static_cast<std::size_t>(part)].name;
}

/// Of a row of stretches, the time of each part in each.
struct StretchParts {
  std::array<std::vector<std::int64_t>, kStretchParts.size()> ns;

  std::size_t size() const { return ns.front().size(); }
  static void fields(auto& self, auto&& field) {
    for (std::size_t part = 0; part < kStretchParts.size(); ++part)
      field.optional(kStretchParts[part].key, self.ns[part]);
  }
  /// As a record: of another length none of them can be told apart.
  void complete() {
    const bool alike =
        std::ranges::all_of(ns, [this](const auto& part) { return part.size() == size(); });
    if (!alike) *this = StretchParts();
  }
};

/// Each kernel's first launch beside its later ones, by the time of the calls.
struct FirstLaunches {
  std::uint64_t kernels = 0;      // by name, that have later launches enough to compare with
  double chance = 1;              // that such firsts come about where firsts are like the others
  double first_p50_ns = 0;        // median of the firsts
  double later_p50_ns = 0;        // median of the kernels' own medians of what came later
  double next_p50_ns = 0;         // the same of the few launches right after the first
  std::int64_t extra_ns = 0;      // what the firsts took beyond these, all together
  std::uint64_t slow = 0;         // launches whose call took longer than the 99th percentile
  std::uint64_t slow_firsts = 0;  // of these, first launches of a kernel

  static void fields(auto& self, auto&& field) {
    field.optional("kernels", self.kernels);
    field.optional("chance", self.chance);
    field.optional("first_p50_ns", self.first_p50_ns);
    field.optional("later_p50_ns", self.later_p50_ns);
    field.optional("next_p50_ns", self.next_p50_ns);
    field.optional("extra_ns", self.extra_ns);
    field.optional("slow", self.slow);
    field.optional("slow_firsts", self.slow_firsts);
  }
};

/// Calls of one name in which the thread was that brings the GPU's next work, while the GPU was
/// idle.
struct StallRecord {
  std::string kind;  // "wait" or "allocate"
  std::string call;  // "cudaStreamSynchronize"
  std::uint64_t gaps = 0;
  std::int64_t idle_ns = 0, lost_ns = 0, longest_ns = 0;

  static void fields(auto& self, auto&& field) {
    field.optional("kind", self.kind);
    field.optional("call", self.call);
    field.optional("gaps", self.gaps);
    field.optional("idle_ns", self.idle_ns);
    field.optional("lost_ns", self.lost_ns);
    field.optional("longest_ns", self.longest_ns);
  }
};

/// Times in which the GPU waited for one thing for 1 ms or longer.
struct PausesRecord {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, longest_ns = 0;
  std::string call;  // the longest, where it is one of calls

  static void fields(auto& self, auto&& field) {
    field.optional("count", self.count);
    field.optional("total_ns", self.total_ns);
    field.optional("longest_ns", self.longest_ns);
    field.optional("call", self.call);
  }
};

/// The kernels of one name in which GPUs talk to each other, one after the other.
struct CollectiveRecord {
  std::string name;
  std::vector<std::int64_t> ns;
  /// From the end of the collective before it, of whatever name, to its start; nothing for the
  /// first of all. Older records have none.
  StretchParts before = {};

  static void fields(auto& self, auto&& field) {
    field.optional("name", self.name);
    field.optional("ns", self.ns);
    field.optional("before", self.before);
  }
};

/// A coefficient of variation with its 95 % interval.
struct RecordedCv {
  double value = 0, low = 0, high = 0;

  static void fields(auto& self, auto&& field) {
    field.optional("value", self.value);
    field.optional("low", self.low);
    field.optional("high", self.high);
  }
};

/// How a metric of launches varies within the steps of a run and between them.
struct StepVariation {
  std::string case_name, metric;
  std::uint64_t steps = 0;  // that have such launches
  RecordedCv within, between;

  static void fields(auto& self, auto&& field) {
    field.optional("case", self.case_name);
    field.optional("metric", self.metric);
    field.optional("steps", self.steps);
    field.optional("within", self.within);
    field.optional("between", self.between);
  }
};

struct JobRecord {
  static constexpr std::string_view kName = "job";
  /// Of each sample of `recorded/step`, which step it is: the number behind the name's "#", or
  /// where there is none the place among the steps, from 0.
  std::vector<std::uint64_t> steps;
  std::optional<FirstLaunches> first_launches;
  std::vector<StallRecord> stalls;
  PausesRecord pauses;
  std::vector<StepVariation> variation;
  std::uint64_t repeats = 0;  // of the same kernels in the same order, as far as there are any
  // Older records have none of what follows.
  std::optional<LaunchTail> tail;
  /// From the first call or work of the GPU to the end of the last; where the clocks disagree, the
  /// longer of both alone.
  std::optional<std::int64_t> extent_ns;
  /// Launches whose kernel is lost or impossible, of all of the process; and for how long the GPU,
  /// which no record says was busy, may have worked for them.
  std::optional<std::uint64_t> unknown_launches, all_launches;
  std::optional<std::int64_t> unknown_ns;
  /// What the GPU waited for besides `pauses`, 1 ms or more at a time: one other call of CUDA, one
  /// other launch call, the start of work that was launched.
  PausesRecord long_calls, long_launches, late_starts;
  std::uint64_t python_calls = 0;  // that the recorder traced too
  /// For how long the GPU was idle before work of a graph that was queued.
  std::int64_t queued_graph_ns = 0;
  std::vector<CollectiveRecord> collectives;
  /// Of each step, without the time in which only collectives ran; none where the clocks disagree.
  StretchParts step_parts;

  static void fields(auto& self, auto&& field) {
    field.optional("steps", self.steps);
    field("first_launches", self.first_launches);
    field.optional("stalls", self.stalls);
    field.optional("pauses", self.pauses);
    field.optional("variation", self.variation);
    field.optional("repeats", self.repeats);
    field("tail", self.tail);
    field("extent_ns", self.extent_ns);
    field("unknown_launches", self.unknown_launches);
    field("all_launches", self.all_launches);
    field("unknown_ns", self.unknown_ns);
    field.optional("long_calls", self.long_calls);
    field.optional("long_launches", self.long_launches);
    field.optional("late_starts", self.late_starts);
    field.optional("python_calls", self.python_calls);
    field.optional("queued_graph_ns", self.queued_graph_ns);
    field.optional("collectives", self.collectives);
    field.optional("step_parts", self.step_parts);
  }
};

}  // namespace launchgap
