// What an allocation costs while many blocks are live, by the order in which blocks are given back.
#include <random>

#include <fmt/format.h>

#include "benchmarks/allocating.h"
#include "harness/device/allocator.h"
#include "harness/measure/sweep.h"

namespace launchgap {
namespace {

constexpr std::size_t kLive = 64;
/// So many are given back before as many are asked for: an allocator may choose among the holes.
constexpr std::size_t kAtOnce = 32;

class AllocationOrder : public Case {
 public:
  explicit AllocationOrder(const CaseContext& context)
      : device_(context.device),
        stream_(device_.create_stream()),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))),
        order_(context.name.at("order")),
        allocator_(allocator_of_case(context, *stream_, bytes_, kLive + 1)),
        random_(context.seed) {
    try {
      while (live_.size() < kLive) add(allocator_->allocate(bytes_));
      stream_->wait();
      for (const MarkedBlock& block : live_) block.check(device_);
      check_apart(live_);
      if (order_ == "hold") release_all();
    } catch (...) {
      release_quietly();
      throw;
    }
  }
  ~AllocationOrder() override { release_quietly(); }

  void sample(Block& block) override {
    if (order_ == "hold") {
      if (live_.size() == kLive) release_all();
      const std::int64_t called = now_ns();
      void* const address = allocator_->allocate(bytes_);
      const std::int64_t allocated = now_ns();
      add(address);
      block.keep(called, allocated - called);
      return;
    }
    if (released_.empty()) release_some();
    const double release_ns = released_.back();
    released_.pop_back();
    const std::int64_t called = now_ns();
    void* const address = allocator_->allocate(bytes_);
    const std::int64_t allocated = now_ns();
    add(address);
    block.keep(called, allocated - called, release_ns);
  }

  int warm_up_samples() const override { return 3; }

  void verify_timed_work() override {
    stream_->wait();
    check_apart(live_);
    for (const MarkedBlock& block : live_) block.check(device_);
  }

  std::string method() const override {
    return fmt::format("{}; {} live blocks", allocator_->method(), kLive);
  }

 private:
  void release_some() {
    stream_->wait();
    while (released_.size() < kAtOnce) {
      const std::size_t which = next_to_release();
      const MarkedBlock old = live_[which];
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
      const std::int64_t called = now_ns();
      allocator_->release(old.address, bytes_);
      released_.push_back(static_cast<double>(now_ns() - called));
    }
    stream_->wait();  // which is when a pool gives back what it is not told to keep
  }

  std::size_t next_to_release() {
    if (order_ == "lifo") return live_.size() - 1;
    if (order_ == "fifo") return 0;
    return std::uniform_int_distribution<std::size_t>(0, live_.size() - 1)(random_);
  }

  void add(void* address) {
    live_.push_back({address, bytes_, static_cast<unsigned char>(++marks_)});
    live_.back().mark(*stream_);
  }

  void release_all() {
    stream_->wait();
    check_apart(live_);
    for (const MarkedBlock& block : live_) block.check(device_);
    while (!live_.empty()) {
      const MarkedBlock block = live_.back();
      live_.pop_back();
      allocator_->release(block.address, bytes_);
    }
    stream_->wait();  // which is when a pool gives back what it is not told to keep
  }

  /// On every path what was taken is given back.
  void release_quietly() noexcept {
    try {
      stream_->wait();
    } catch (const std::exception&) {  // it was told of when it failed
    }
    while (!live_.empty()) {
      const MarkedBlock block = live_.back();
      live_.pop_back();
      try {
        allocator_->release(block.address, bytes_);
      } catch (const std::exception&) {  // the same
      }
    }
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::size_t bytes_;
  std::string order_;
  std::unique_ptr<Allocator> allocator_;
  std::mt19937_64 random_;
  std::vector<MarkedBlock> live_;
  std::vector<double> released_;  // how long it took, for the samples to come
  unsigned marks_ = 0;
};

const Registration allocation_order =
    benchmark("allocation/order")
        .asks("What does an allocation cost while many blocks are live?")
        .axis("allocator", kAllocatorMeaning, all_allocators)
        .axis("order",
              "of 64 live blocks, `hold`: none is given back until all are, and that is waited "
              "for; 32 are given back, that is waited for, and 32 are allocated: "
              "`lifo`: the newest first, `fifo`: the oldest first, `random`: any of them",
              {"hold", "lifo", "fifo", "random"})
        .size_axis("bytes",
                   "size of the allocation",
                   by_profile({"65536", "16777216"},
                              {"65536", "16777216"},
                              {"512", "65536", "1048576", "16777216"}),
                   kLargestSize)
        .only(beyond_quick)
        .metrics([](const CaseName& name) -> std::vector<std::string_view> {
          if (name.at("order") == "hold") return {"call_ns"};
          return {"call_ns", "free_ns"};
        })
        .samples({2, 128})
        .takes(0.05, 3e-4)
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationOrder>();

}  // namespace
}  // namespace launchgap
