// What a call that allocates costs while other threads allocate too, and whether it is fair.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/allocating.h"
#include "benchmarks/launching.h"
#include "benchmarks/team.h"
#include "harness/core/text.h"

namespace launchgap {
namespace {

constexpr std::size_t kContendedBytes = std::size_t{1} << 20;
/// Of all threads together, in a round: each is a sample, and a block holds one round.
constexpr int kCalls = 256;

/// As frameworks guard an allocator that is not made for threads.
class LockedAllocator : public Allocator {
 public:
  explicit LockedAllocator(std::unique_ptr<Allocator> allocator)
      : allocator_(std::move(allocator)) {}
  void* allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return allocator_->allocate(bytes);
  }
  void release(void* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    allocator_->release(address, bytes);
  }
  void touch(void* address, std::size_t bytes) override { allocator_->touch(address, bytes); }
  void trim() override {
    const std::lock_guard lock(mutex_);
    allocator_->trim();
  }
  std::string method() const override { return allocator_->method() + ", behind one mutex"; }

 private:
  std::mutex mutex_;
  std::unique_ptr<Allocator> allocator_;
};

/// Whether the device's own way of allocating is not for threads.
bool needs_lock(const DeviceFacts& facts, std::string_view allocator) {
  return allocation::is_block_allocator(allocator) || allocator == "vmm_expand" ||
         (!is_gpu(facts) && allocator == "pool");
}

class AllocationContention : public Case {
 public:
  explicit AllocationContention(const CaseContext& context)
      : device_(context.device), threads_(static_cast<int>(context.name.number("threads"))) {
    const auto streams = static_cast<std::size_t>(context.name.number("streams"));
    need_cpus(device_, static_cast<std::size_t>(threads_), fmt::format("{} threads", threads_));
    const std::string name = context.name.at("allocator");
    for (std::size_t i = 0; i < streams; ++i) streams_.push_back(device_.create_stream());
    const auto most = static_cast<std::size_t>(threads_) * 2;
    if (needs_lock(device_.facts(), name)) {
      allocators_.push_back(std::make_unique<LockedAllocator>(
          allocator_of_case(context, *streams_.front(), kContendedBytes, most)));
    } else {
      try {
        for (const auto& stream : streams_)
          allocators_.push_back(allocator_of_case(context, *stream, kContendedBytes, most));
      } catch (...) {
        drop_allocators();
        throw;
      }
    }
    calls_.resize(static_cast<std::size_t>(threads_));
    made_.resize(calls_.size());
    team_ = std::make_unique<Team>(
        device_,
        threads_,
        [this](int member) { allocate(member); },
        [this] { still_at_it_.store(0, std::memory_order_relaxed); });
    verify();
    play_round();
  }
  ~AllocationContention() override {
    team_.reset();
    drop_allocators();
  }

  void sample(Block& block) override {
    if (next_ == round_.size()) play_round();
    const Call& call = round_[next_++];
    if (threads_ == 1) {
      block.keep(call.begin, call.allocate_ns, call.release_ns);
      return;
    }
    block.keep(
        call.begin, call.allocate_ns, call.release_ns, next_ == 1 ? fairness_ : Block::kMissing);
  }

  std::string method() const override {
    return fmt::format(
        "{}; the first {} calls of each of {} that begin together and allocate and give back 1 MiB "
        "each until the last has made as many, on {} in turn",
        allocators_.front()->method(),
        calls_each(),
        counted(static_cast<std::size_t>(threads_), "thread"),
        counted(streams_.size(), "stream"));
  }

 private:
  struct Call {
    std::int64_t begin;
    double allocate_ns, release_ns;
  };

  int calls_each() const { return kCalls / threads_; }

  /// The default pool's settings are put back in the order in which they were made, backwards.
  void drop_allocators() {
    while (!allocators_.empty()) allocators_.pop_back();
  }

  Allocator& allocator_for(int member, int call) {
    return *allocators_[static_cast<std::size_t>(member + call * threads_) % allocators_.size()];
  }

  /// Goes on until the last thread has its calls, so that all of each thread's are made while all
  /// others allocate too.
  void allocate(int member) {
    std::vector<Call>& calls = calls_[static_cast<std::size_t>(member)];
    calls.clear();
    int made = 0;
    while (still_at_it_.load(std::memory_order_relaxed) > 0) {
      Allocator& allocator = allocator_for(member, made);
      const std::int64_t called = now_ns();
      void* const address = allocator.allocate(kContendedBytes);
      const std::int64_t allocated = now_ns();
      allocator.release(address, kContendedBytes);
      const std::int64_t released = now_ns();
      if (made < calls_each())
        calls.push_back({called,
                         static_cast<double>(allocated - called),
                         static_cast<double>(released - allocated)});
      if (++made == calls_each()) still_at_it_.fetch_sub(1, std::memory_order_relaxed);
    }
    made_[static_cast<std::size_t>(member)] = made;
  }

  void play_round() {
    still_at_it_.store(threads_, std::memory_order_relaxed);
    team_->run();
    for (const auto& stream : streams_) stream->wait();
    round_.clear();
    for (const std::vector<Call>& calls : calls_)
      round_.insert(round_.end(), calls.begin(), calls.end());
    std::ranges::sort(round_, {}, &Call::begin);
    fairness_ =
        static_cast<double>(std::ranges::max(made_)) / static_cast<double>(std::ranges::min(made_));
    next_ = 0;
  }

  /// Every thread has a block, and no two of them overlap.
  void verify() {
    std::vector<MarkedBlock> blocks(static_cast<std::size_t>(threads_));
    Team together(device_, threads_, [&](int member) {
      MarkedBlock& block = blocks[static_cast<std::size_t>(member)];
      block = {allocator_for(member, 0).allocate(kContendedBytes),
               kContendedBytes,
               static_cast<unsigned char>(member)};
    });
    together.run();
    for (const auto& stream : streams_) stream->wait();
    for (const MarkedBlock& block : blocks) block.mark(*streams_.front());
    streams_.front()->wait();
    check_apart(blocks);
    for (const MarkedBlock& block : blocks) block.check(device_);
    for (int i = 0; i < threads_; ++i)
      allocator_for(i, 0).release(blocks[static_cast<std::size_t>(i)].address, kContendedBytes);
  }

  Device& device_;
  int threads_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Allocator>> allocators_;
  std::vector<std::vector<Call>> calls_;  // by thread
  std::vector<int> made_;                 // by thread, in a round
  std::atomic<int> still_at_it_ = 0;      // threads that have not made their calls
  std::vector<Call> round_;
  std::size_t next_ = 0;
  double fairness_ = Block::kMissing;
  std::unique_ptr<Team> team_;
};

const Registration allocation_contention =
    benchmark("allocation/contention")
        .asks("What does an allocation cost while other threads allocate?")
        .axis("allocator", kAllocatorMeaning, all_allocators)
        .axis("threads",
              "threads that allocate and give back at the same time, each on a CPU of its own",
              {"1", "2", "4", "16"})
        .axis(
            "streams",
            "streams that the threads allocate on, in turn; `pool_own` has a pool for each of them",
            [](Profile, const DeviceFacts& facts) {
              if (!is_gpu(facts)) return std::vector<std::string>{"1"};
              return std::vector<std::string>{"1", "4", "32"};
            })
        .only([](Profile profile, const DeviceFacts&, const CaseName& name) {
          if (profile == Profile::quick) return false;
          const std::string& allocator = name.at("allocator");
          const bool usual = allocator == "direct" || allocator == "pool" || allocator == "bfc" ||
                             allocator == "caching";
          if (profile == Profile::nightly && !usual) return false;
          // Only pools know streams.
          return name.at("streams") == "1" || allocator.starts_with("pool");
        })
        .brings({"slowest_over_fastest",
                 "ratio",
                 Direction::lower_is_better,
                 "derived",
                 "How many calls the fastest thread made in a round, by how many the slowest did: "
                 "all go on until the slowest has its own; 1 is fair. Not Jain's index, which is "
                 "0.94 when one of sixteen threads gets nothing: the unluckiest thread is what a "
                 "program waits for.",
                 ""})
        .metrics([](const CaseName& name) {
          std::vector<std::string_view> metrics = {"call_ns", "free_ns"};
          if (name.number("threads") > 1) metrics.push_back("slowest_over_fastest");
          return metrics;
        })
        .samples({4, kCalls})
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          return 0.05 + 3e-4 * static_cast<double>(name.number("threads")) * sampling.blocks *
                            sampling.samples / 4;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationContention>();

}  // namespace
}  // namespace launchgap
