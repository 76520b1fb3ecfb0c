// Whether launching from several threads at once pays, on a stream each or on one for all.

#include "benchmarks/launching.h"
#include "benchmarks/team.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class ThreadsLaunch : public Case {
 public:
  explicit ThreadsLaunch(const CaseContext& context)
      : device_(context.device), threads_(static_cast<int>(context.name.number("threads"))) {
    const bool shared = context.name.at("streams") == "shared";
    const auto threads = static_cast<std::size_t>(threads_);
    if (shared) need(device_.facts(), Capability::share_streams);
    if (backend_of(device_.facts()).stream_takes_cpu) {
      need_cpus(device_, 2 * threads, fmt::format("{} threads and their queues", threads));
    } else {
      need_cpus(device_, threads, fmt::format("{} launching threads", threads));
    }
    for (std::size_t i = 0; i < (shared ? 1 : threads); ++i)
      streams_.push_back(device_.create_stream());
    kernel_ = device_.load(kernels::null_kernel);
    verify();
    team_ = std::make_unique<Team>(device_, threads_, [this](int member) {
      Stream& stream = stream_of(member);
      for (int i = 0; i < launches_each(); ++i) stream.launch(*kernel_, {1, 1}, nullptr);
      stream.wait();
    });
    for (int i = 0; i < 4; ++i) team_->run();
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    team_->run();
    const std::int64_t end = now_ns();
    block.keep(begin, static_cast<double>(end - begin) / (threads_ * launches_each()));
  }

  int warm_up_samples() const override { return 3; }
  std::string method() const override {
    return fmt::format("{}, {} launches on each of {} threads, each on a CPU of its own",
                       launch_method(*kernel_, device_.facts()),
                       launches_each(),
                       threads_);
  }

 private:
  /// One stream never holds more than a burst.
  int launches_each() const { return kBurst / threads_; }

  Stream& stream_of(int member) {
    return *streams_[static_cast<std::size_t>(member) % streams_.size()];
  }

  /// Each thread counts in a word of its own, so that it needs no atomic.
  void verify() {
    constexpr int kLaunches = 20;
    const std::unique_ptr<Kernel> counting = device_.load(kernels::increment_kernel);
    const std::unique_ptr<Buffer> counters =
        device_.allocate(static_cast<std::size_t>(threads_) * sizeof(unsigned));
    streams_[0]->fill_bytes(counters->address(), 0, counters->bytes());
    streams_[0]->wait();
    Team team(device_, threads_, [&](int member) {
      void* address = static_cast<unsigned*>(counters->address()) + member;
      void* arguments[] = {&address};
      for (int i = 0; i < kLaunches; ++i) stream_of(member).launch(*counting, {1, 1}, arguments);
      stream_of(member).wait();
    });
    team.run();
    std::vector<unsigned> counts(static_cast<std::size_t>(threads_), 0);
    device_.read(*counters, 0, counts.data(), counters->bytes());
    for (const unsigned count : counts) {
      if (count != kLaunches) {
        throw WrongResult(
            "{} launches of a thread, of a kernel that counts, gave {}", kLaunches, count);
      }
    }
  }

  Device& device_;
  int threads_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Team> team_;  // last, so that its threads end first
};

void advise_on_threads(Adviser& adviser) {
  const auto own =
      adviser.rows.compare_axis({{"streams", "own"}}, "threads_per_launch_ns", "threads", "1");
  if (const Comparison* const best = fewest_as_good_as_best(own)) {
    adviser.say(Severity::act,
                fmt::format("Launching from several threads pays: from {}, each with a stream of "
                            "its own, the time per launch is {} of one.",
                            counted(axis_value(*best->row, "threads"), "thread"),
                            multiple(*best->ratio.value)),
                {*best});
  } else if (!own.empty()) {
    const Comparison& worst = deciding(own);
    adviser.judge({worst},
                  {.of = "of " + counted(axis_value(*worst.row, "threads"), "thread"),
                   .than = "of one",
                   .if_more = "Launch from one thread",
                   .if_less = "",  // said above
                   .if_same = "Launching from several threads makes no difference"});
  }
  std::vector<Comparison> shared;
  for (const std::string& count :
       adviser.rows.values({{"streams", "shared"}}, "threads_per_launch_ns", "threads")) {
    const auto row = [&](const char* streams) {
      return adviser.rows.find({{"threads", count}, {"streams", streams}}, "threads_per_launch_ns");
    };
    const auto comparison = compare(row("shared"), row("own"));
    if (count != "1" && comparison) shared.push_back(*comparison);
  }
  if (shared.empty()) return;
  const Comparison& worst = deciding(shared);
  adviser.judge({worst},
                {.of = fmt::format("of {} that share one stream",
                                   counted(axis_value(*worst.row, "threads"), "thread")),
                 .than = "of as many with a stream each",
                 .if_more = "Give each launching thread a stream of its own",
                 .if_less = "Let launching threads share a stream",
                 .if_same = "Threads that share a stream lose nothing"});
}

const Registration launch_threads =
    benchmark("launch/threads")
        .asks("Does it pay to launch from several threads?")
        .axis("threads",
              "threads that launch at the same time, each on a CPU of its own",
              by_profile({"1", "2", "4", "16"}, {"1", "2", "4", "8", "16"}))
        .axis("streams",
              "`own`: a stream for each thread; `shared`: one for all",
              {"own", "shared"})
        .brings(host_time("threads_per_launch_ns",
                          "Wall time from the first thread's first launch until the last thread's "
                          "wait returns, divided by the launches of all threads.",
                          "",
                          "the time per launch"))
        .metrics({"threads_per_launch_ns"})
        .samples({3, 5}, {10, 5})
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.02 + 4e-6 * kBurst * (sampling.blocks * (sampling.samples + 3) + 4);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_threads)
        .draws({{"Per launch, all threads together",
                 {{"a stream each", {{"streams", "own"}}, "threads_per_launch_ns"},
                  {"one stream", {{"streams", "shared"}}, "threads_per_launch_ns"}},
                 "threads"}})
        .makes<ThreadsLaunch>();

}  // namespace
}  // namespace launchgap
