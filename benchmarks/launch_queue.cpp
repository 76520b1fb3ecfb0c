// How many launches a stream takes before one has to wait for room. That is found, not assumed: one
// long kernel holds the stream, and behind it launches are made until one takes as long as the long
// kernel still runs.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr unsigned long long kQueuedKernelNs = 20'000;

class QueueDepth : public Case {
 public:
  explicit QueueDepth(const CaseContext& context)
      : device_(context.device),
        stream_(device_.create_stream()),
        holding_(device_.load(kernels::spin_kernel)),
        kernel_(device_.load(kernels::null_kernel)),
        ended_(device_.allocate_shared(sizeof(unsigned))) {
    verify_launches(device_, *stream_);
    for (int i = 0; i < 100; ++i) stream_->launch(*kernel_, {1, 1}, nullptr);
    stream_->wait();
  }

  /// The system may interrupt a call until the long kernel has ended, which looks like waiting for
  /// room. It does not do so twice after as many launches.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double depth = fill_queue(), again = fill_queue();
    const bool confirmed = std::abs(depth - again) <= depth / 16;
    found_ = found_ || confirmed;
    block.keep(begin,
               confirmed ? depth : Block::kMissing,
               confirmed ? launch_when_full_ns(static_cast<int>(depth)) : Block::kMissing);
  }

  void verify_timed_work() override {
    if (!found_) {
      throw Unsupported(
          "no launch had to wait, or not twice after as many: the stream took {} and more behind a "
          "kernel of {} ms",
          most_,
          kHoldNs / 1'000'000);
    }
  }

  std::string method() const override {
    return fmt::format("{}, behind a kernel of {} ms",
                       launch_method(*kernel_, device_.facts()),
                       kHoldNs / 1'000'000);
  }

 private:
  static constexpr unsigned long long kHoldNs = 40'000'000;
  static constexpr std::int64_t kLeastLeftNs = 20'000'000;
  static constexpr int kMostLaunches = 100'000;

  /// The long kernel says itself, in memory that it shares with the host, when it has ended: a call
  /// that waited for room is the one during which that happened.
  double fill_queue() {
    std::atomic_ref<unsigned> ended(*static_cast<unsigned*>(ended_->address()));
    ended.store(0, std::memory_order_release);
    hold();
    const std::int64_t begin = now_ns();
    double depth = Block::kMissing;
    for (int launched = 0; launched < kMostLaunches; ++launched) {
      const std::int64_t called = now_ns();
      stream_->launch(*kernel_, {1, 1}, nullptr);
      const std::int64_t returned = now_ns();
      if (ended.load(std::memory_order_acquire) == 0) continue;
      // The kernel may have ended by itself during a call like all others. One that waited for room
      // began well before that, and returned no sooner.
      const std::int64_t left = begin + static_cast<std::int64_t>(kHoldNs) - called;
      if (left > kLeastLeftNs && returned - called > left / 2) depth = launched;
      most_ = std::max(most_, launched);
      break;
    }
    stream_->wait();
    return depth;
  }

  /// What a launch takes past the limit, where each has to wait for a kernel to end: mean of so
  /// many, behind enough to fill the queue and a few more, the first of which waits for the long
  /// kernel.
  double launch_when_full_ns(int depth) {
    constexpr int kSettling = 16;
    constexpr int kLaunches = 64;
    hold();
    for (int i = 0; i < depth + kSettling; ++i) spin(kQueuedKernelNs, nullptr);
    const std::int64_t begin = now_ns();
    for (int i = 0; i < kLaunches; ++i) spin(kQueuedKernelNs, nullptr);
    const std::int64_t end = now_ns();
    stream_->wait();
    // A thread that was interrupted for so long that the queue ran low has measured something else:
    // too little was queued at the end, or calls took less than the kernel that each waits for.
    const double left = static_cast<double>(now_ns() - end);
    const double each = static_cast<double>(end - begin) / kLaunches;
    const bool was_full = left > static_cast<double>(kQueuedKernelNs) * depth / 2 &&
                          each > 0.9 * static_cast<double>(kQueuedKernelNs);
    return was_full ? each : Block::kMissing;
  }

  void hold() { spin(kHoldNs, device_.device_address(*ended_)); }

  void spin(unsigned long long nanoseconds, void* counter) {
    void* arguments[] = {&nanoseconds, &counter};
    stream_->launch(*holding_, {1, 1}, arguments);
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> holding_, kernel_;
  std::unique_ptr<Buffer> ended_;
  bool found_ = false;
  int most_ = 0;
};

void advise_on_queue(Adviser& adviser) {
  const SummaryRow* const depth = adviser.rows.find({}, "queue_depth");
  const SummaryRow* const full = adviser.rows.find({}, "full_launch_ns");
  if (!depth) return;
  adviser.say(
      Severity::note,
      fmt::format(
          "Keep fewer than {} launches in flight where a call must not wait: the next one waits "
          "for room{}.",
          value_text(*depth),
          full ? fmt::format(
                     ", {} behind kernels of {}", value_text(*full), duration_text(kQueuedKernelNs))
               : ""),
      {},
      {depth, full});
}

const Registration launch_queue =
    benchmark("launch/queue")
        .asks("How many launches are taken ahead of the device?")
        .brings({"queue_depth",
                 "1",
                 Direction::higher_is_better,
                 "host_clock",
                 "Launches that were taken behind a kernel that keeps the device busy, before a "
                 "call had to wait.",
                 ""})
        .brings(host_time("full_launch_ns",
                          fmt::format("A launch call where the queue is full, behind kernels of "
                                      "{}: it waits for one of them to end.",
                                      duration_text(kQueuedKernelNs)),
                          "the wait"))
        .metrics({"queue_depth", "full_launch_ns"})
        .samples({1, 2}, {1, 5})
        .takes(0.02, 0.17)
        .one_device_at_a_time()
        .untraced()
        .advises(advise_on_queue)
        .draws({{"Launches", {{"before one waits", {}, "queue_depth"}}}})
        .makes<QueueDepth>();

}  // namespace
}  // namespace launchgap
