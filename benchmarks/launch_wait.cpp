// What the way of waiting costs and frees: spinning, yielding or sleeping, for a stream or an
// event.
#include <ctime>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

std::int64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

class WaitLaunch : public Case {
 public:
  explicit WaitLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        method_(fmt::format("{}, waiting for the {}: {}",
                            launch_method(*kernel_, context.device.facts()),
                            context.name.at("by"),
                            context.name.at("wait"))) {
    need(context.device.facts(), Capability::choose_wait);
    if (context.name.at("by") == "event") event_ = context.device.create_event(EventUse::order);
    verify_launches(context.device, *stream_);
  }

  void sample(Block& block) override {
    const std::int64_t cpu_begin = thread_cpu_ns();
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, nullptr);
    if (event_) {
      stream_->record(*event_);
      event_->wait();
    } else {
      stream_->wait();
    }
    const std::int64_t waited = now_ns();
    const std::int64_t cpu_end = thread_cpu_ns();
    block.keep(called, waited - called, cpu_end - cpu_begin);
  }

  int warm_up_samples() const override { return 50; }
  std::string method() const override { return method_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Event> event_;
  std::string method_;
};

std::vector<std::string> ways_to_wait(Profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::choose_wait)) return {"own"};
  return {"spin", "yield", "block"};
}

void advise_on_wait(Adviser& adviser) {
  for (const char* by : {"stream", "event"}) {
    for (const char* wait : {"yield", "block"}) {
      const auto against_spin = [&](const char* metric) {
        const auto row = [&](const char* how) {
          return adviser.rows.find({{"wait", how}, {"by", by}}, metric);
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
        adviser.say(Severity::note,
                    fmt::format("A thread that {} needs {} times the CPU time of one that spins; "
                                "its round trip is {} times as long ({} more).",
                                waits,
                                times_text(*cpu->ratio.value),
                                times_text(*trip->ratio.value),
                                quantity(*trip->row->p50 - *trip->reference->p50, "ns")),
                    {*trip, *cpu});
        continue;
      }
      const bool no_longer =
          trip->ratio.verdict == RatioVerdict::same || trip->ratio.verdict == RatioVerdict::less;
      if (cpu && cpu->ratio.verdict == RatioVerdict::less && no_longer) {
        adviser.say(
            Severity::act,
            fmt::format("Let the thread that waits for the {} {}: it needs {} times the CPU "
                        "time of one that spins, and its round trip is no longer.",
                        by,
                        yields ? "yield" : "block",
                        times_text(*cpu->ratio.value)),
            {*trip, *cpu});
        continue;
      }
      const Words words = {.of = "of a thread that " + waits,
                           .than = "of one that spins",
                           .if_more = "Spin where waits are this short and a CPU is free",
                           .if_less = fmt::format("Let the thread {}", yields ? "yield" : "block"),
                           .if_same = fmt::format("{} instead of spinning makes no difference",
                                                  yields ? "Yielding" : "Blocking")};
      std::vector<Comparison> comparisons = {*trip};
      if (cpu) comparisons.push_back(*cpu);
      if (no_longer)
        adviser.judge(comparisons, words);
      else  // Whatever the CPU time: the round trip is what the answer hangs on.
        adviser.judge(trip->ratio, "the round trip", words, comparisons);
    }
  }
}

std::vector<FigureLine> by_way(const std::string& metric) {
  std::vector<FigureLine> lines;
  for (const std::string by : {"stream", "event"}) {
    for (const std::string wait : {"spin", "yield", "block"})
      lines.push_back({wait + ", " + by, {{"wait", wait}, {"by", by}}, metric});
  }
  return lines;
}

const Registration launch_wait =
    benchmark("launch/wait")
        .asks("How should a thread wait?")
        .process_axis("wait",
                      "what a thread of the process does while it waits",
                      ways_to_wait,
                      "own")
        .axis("by", "what is waited for", {"stream", "event"})
        .brings(host_time("cpu_ns",
                          "CPU time of the launching thread from the start of the launch call "
                          "until the wait for that kernel returns.",
                          "other threads",
                          "the CPU time"))
        .metrics({"roundtrip_ns", "cpu_ns"})
        .samples({3, 300}, {10, 300})
        .takes(0.01, 3e-5)
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_wait)
        .draws(
            {{"Round trip", by_way("roundtrip_ns")}, {"CPU time of the thread", by_way("cpu_ns")}})
        .makes<WaitLaunch>();

}  // namespace
}  // namespace launchgap
