// Where the time of launch calls goes, as a part of a record: each slow launch has one cause.
// docs/definitions.md, "Where the launch time goes", says by which rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// Why a launch call took long, in the order in which it is looked for.
enum class TailCause : std::uint8_t {
  first_launch,
  queue_full,
  overlapping_call,
  recorder,
  after_pause,
  migration,
  host_pause,
  page_fault,
  blocked,
  slow_kernel,
  clocks,
  heat,
  neighbour,
  sibling,
  deep_idle,
  unexplained,
  usual,  // it did not take long
};

struct TailCauseInfo {
  std::string_view name, meaning;
  std::string_view in_words;  // where time is divided among causes
};
inline constexpr std::array<TailCauseInfo, 17> kTailCauses = {{
    {"first-launch",
     "The first launch of its kernel or of the process, or one during which code was loaded.",
     "first launches"},
    {"queue-full",
     "The GPU's queue was full: the call returned when the GPU had made room.",
     "queue full"},
    {"overlapping-call",
     "Another thread was in a call of CUDA for half of the time or longer.",
     "calls of other threads"},
    {"recorder", "The recorder itself took half of the time or more.", "recorder"},
    {"after-pause",
     "The thread had not launched for a while: CPU and caches were cold.",
     "after a pause"},
    {"migration", "The system moved the thread to another CPU.", "thread moved"},
    {"host-pause", "The host's scheduler had taken the thread off its CPU.", "thread off its CPU"},
    {"page-fault", "The thread touched memory that had no page yet.", "page faults"},
    {"blocked",
     "The thread slept meanwhile: it waited for a lock, a file or the device.",
     "thread asleep"},
    {"slow-kernel", "Launches of this kernel always take long.", "slow kernels"},
    {"clocks",
     "Of a whole block: the clocks of the GPU or of the launching CPU were lower, or the GPU's "
     "were "
     "held down by power.",
     "clocks"},
    {"heat", "Of a whole block: heat held the GPU's clocks down.", "heat"},
    {"neighbour",
     "Of a whole block: another process was on the GPU, or another machine on the CPU.",
     "neighbours"},
    {"sibling",
     "Of a whole block: the core's other hardware threads had other work.",
     "the core's other threads"},
    {"deep-idle", "Of a whole block: the launching CPU had slept deeply.", "deep sleep"},
    {"unexplained", "Nothing that was kept says why.", "unexplained"},
    {"usual", "All launches that did not take long.", "usual calls"},
}};
constexpr std::string_view name_of(TailCause cause) {
  return kTailCauses[static_cast<std::size_t>(cause)].name;
}

/// The launches of one cause.
struct TailPart {
  std::string cause;  // name_of(TailCause)
  std::uint64_t launches = 0;
  std::int64_t time_ns = 0;     // in their calls
  std::int64_t longest_ns = 0;  // of one of them
  std::uint64_t last = 0;       // the place of the last of them among all launches, from 1
  std::string what;  // the kernel, or the call of another thread, that most of the time is of
  std::int64_t covered_ns = 0;  // in which one of them or more went on; older records have none
  std::int64_t what_ns = 0;     // of the time, that of `what`; older records have none

  static void fields(auto& self, auto&& field) {
    field.optional("cause", self.cause);
    field.optional("launches", self.launches);
    field.optional("time_ns", self.time_ns);
    field.optional("longest_ns", self.longest_ns);
    field.optional("last", self.last);
    field.optional("what", self.what);
    field.optional("covered_ns", self.covered_ns);
    field.optional("what_ns", self.what_ns);
  }
};

struct LaunchTail {
  std::uint64_t launches = 0;
  std::int64_t time_ns = 0;     // in all launch calls
  std::int64_t covered_ns = 0;  // in which one of them or more went on; older records have none
  double p50_ns = 0;            // of a call
  double p99_ns = 0;            // 0 of fewer than 100
  std::vector<TailPart> parts;  // of each cause that has any, in the order of TailCause

  const TailPart* part(TailCause cause) const {
    for (const TailPart& part : parts) {
      if (part.cause == name_of(cause)) return &part;
    }
    return nullptr;
  }
  /// Another stretch of the same process; quantiles are of one stretch, so they are gone.
  void add(const LaunchTail& more) {
    launches += more.launches;
    time_ns += more.time_ns;
    covered_ns += more.covered_ns;
    p50_ns = p99_ns = 0;
    for (const TailCauseInfo& info : kTailCauses) {
      for (const TailPart& part : more.parts) {
        if (part.cause == info.name) add(part);
      }
    }
  }
  /// Of the time; where no call took any by the recorder's clock, of the launches.
  double share(const TailPart& part) const {
    const auto of = [](auto some, auto all) {
      return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
    };
    return time_ns > 0 ? of(part.time_ns, time_ns) : of(part.launches, launches);
  }

  static void fields(auto& self, auto&& field) {
    field.optional("launches", self.launches);
    field.optional("time_ns", self.time_ns);
    field.optional("covered_ns", self.covered_ns);
    field.optional("p50_ns", self.p50_ns);
    field.optional("p99_ns", self.p99_ns);
    field.optional("parts", self.parts);
  }

 private:
  void add(const TailPart& more) {
    for (TailPart& part : parts) {
      if (part.cause != more.cause) continue;
      part.launches += more.launches;
      part.time_ns += more.time_ns;
      part.covered_ns += more.covered_ns;
      if (more.longest_ns > part.longest_ns) {
        part.longest_ns = more.longest_ns;
        part.what = more.what;
        part.what_ns = more.what_ns;
      }
      return;
    }
    parts.push_back(more);
    parts.back().last = 0;
  }
};

}  // namespace launchgap
