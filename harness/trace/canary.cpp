#include "harness/trace/canary.h"

#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "harness/trace/trace_clock.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr int kCanaryLaunches = 100;

/// One try: 100 launches, each waited for.
class CanaryTry {
 public:
  CanaryTry(Tracer& tracer, Stream& stream, const Kernel& kernel)
      : tracer_(tracer),
        stream_(stream),
        kernel_(kernel),
        clock_([&tracer] { return tracer.clock_ns(); }) {}

  /// What is wrong, if anything.
  std::optional<TraceUnavailable> run(Canary& canary) {
    tracer_.collect(trace_, true);
    trace_.clear();
    clock_.bracket();
    for (int i = 0; i < kCanaryLaunches; ++i) {
      stream_.launch(kernel_, {1, 1}, nullptr);
      stream_.wait();
    }
    for (int attempt = 0; attempt < 4; ++attempt) {
      tracer_.collect(trace_, attempt > 0);
      join_records(canary);
      if (complete(canary.counts)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    clock_.bracket();
    return verdict(canary.counts);
  }

 private:
  bool with_kernels() const { return tracer_.level() >= TraceLevel::kernels; }

  void join_records(Canary& canary) {
    const Joined joined = join(trace_);
    canary.scatter_ns = scatter_of_launches(launch_times(trace_, joined));
    canary.counts = join(trace_, clock_.uncertainty_ns() + canary.scatter_ns).counts;
  }

  bool complete(const JoinCounts& counts) const {
    return counts.launches >= kCanaryLaunches &&
           (!with_kernels() || counts.joined >= kCanaryLaunches);
  }

  std::optional<TraceUnavailable> verdict(const JoinCounts& counts) const {
    const auto problem = [&](TraceState state, const std::string& why) {
      return TraceUnavailable(state, fmt::format("of {} empty launches: {}", kCanaryLaunches, why));
    };
    if (counts.impossible() > 0) {
      return problem(counts.dropped > 0 ? TraceState::dropped : TraceState::bad_timestamps,
                     counts.describe_impossible());
    }
    if (clock_.step_ns() != 0) return problem(TraceState::clock_step, "the trace's clock jumped");
    if (counts.launches + counts.kernels == 0)
      return problem(TraceState::no_records, "none was recorded");
    if (counts.launches == kCanaryLaunches &&
        (!with_kernels() ||
         (counts.kernels == kCanaryLaunches && counts.joined == kCanaryLaunches))) {
      return std::nullopt;
    }
    return problem(TraceState::unjoined,
                   fmt::format("{} calls and {} kernels were recorded, {} joined",
                               counts.launches,
                               counts.kernels,
                               counts.joined));
  }

  Tracer& tracer_;
  Stream& stream_;
  const Kernel& kernel_;
  TraceClock clock_;
  activity::Trace trace_;
};

}  // namespace

void check_with_canary(Tracer& tracer, Device& device, Canary& canary) {
  constexpr int kMostTries = 3;
  constexpr auto kBusy = std::chrono::milliseconds(50);
  const std::unique_ptr<Stream> stream = device.create_stream();
  const std::unique_ptr<Kernel> kernel = device.load(kernels::null_kernel);
  for (;;) {
    const auto problem = CanaryTry(tracer, *stream, *kernel).run(canary);
    ++canary.tries;
    if (!problem) return;
    if (canary.tries == 1) canary.burst = problem->what();
    if (canary.tries == kMostTries) throw TraceUnavailable(*problem);
    for (const auto until = std::chrono::steady_clock::now() + kBusy;
         std::chrono::steady_clock::now() < until;) {
      stream->launch(*kernel, {1, 1}, nullptr);
      stream->wait();
    }
  }
}

}  // namespace launchgap
