// Whether memory costs more when it is used for the first time.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/allocating.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/measure/sweep.h"

namespace launchgap {
namespace {

/// What a GPU writes before each timed touch of its memory, so that both begin after the same: it
/// has just worked, and its caches hold no part of the block.
constexpr std::size_t kBetweenBytes = std::size_t{128} << 20;
/// Of a block that a GPU writes: what is smaller is mostly the launch of the memset and its wait.
constexpr std::size_t kLeastForRatio = std::size_t{16} << 20;

/// How much other memory fills the CPU's caches: twice what they hold. More than 512 MiB would take
/// longer than what is measured, and less than 1.5 times leaves too much: 0 then, and where the C
/// library does not know the caches.
std::size_t sweep_bytes() {
  constexpr std::uint64_t kMost = std::uint64_t{512} << 20;
  const std::uint64_t cache = last_level_cache_bytes().value_or(0);
  const std::uint64_t bytes = std::min(2 * cache, kMost);
  return bytes >= cache + cache / 2 ? bytes : 0;
}

/// Whether the CPU writes what the case allocates. Its allocator is one of the device's own.
bool is_written_by_cpu(const DeviceFacts& facts, const CaseName& name) {
  return !is_gpu(facts) || info_of(*allocator_kind_named(name.at("allocator"))).in_host_memory;
}

/// Puts other memory into the CPU's caches.
class CacheSweep {
 public:
  CacheSweep() : memory_(sweep_bytes()) {}
  bool covers() const { return !memory_.empty(); }
  std::size_t bytes() const { return memory_.size(); }

  /// By reading and writing: stores alone may go past the caches.
  void run() {
    constexpr std::size_t kLine = 64;
    for (std::size_t i = 0; i < memory_.size(); i += kLine) ++memory_[i];
    asm volatile("" : : "r"(memory_.data()) : "memory");
  }

 private:
  std::vector<unsigned char> memory_;
};

class AllocationTouch : public Case {
 public:
  explicit AllocationTouch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))),
        allocator_(allocator_of_case(context, *stream_, bytes_, 1)) {
    if (is_written_by_cpu(context.device.facts(), context.name)) {
      sweep_.emplace();
      compares_ = sweep_->covers();
    } else {
      if (kBetweenBytes + bytes_ > allocatable_bytes(context.device) / 2)
        throw Unsupported("too little memory is free");
      between_ = context.device.allocate(kBetweenBytes);
      writer_ = context.device.allocator(*stream_, AllocatorKind::direct);
      compares_ = bytes_ >= kLeastForRatio;
    }
    // What writes must be loaded: that is not the memory's cost.
    void* const address = allocator_->allocate(bytes_);
    allocator_->touch(address, bytes_);
    give_back(address);
  }

  void sample(Block& block) override {
    void* const address = allocator_->allocate(bytes_);
    const std::int64_t begin = now_ns();
    const double first_ns = touch(address);
    const double second_ns = touch(address);
    give_back(address);
    block.keep(begin, first_ns, second_ns, compares_ ? first_ns / second_ns : Block::kMissing);
  }

  std::string method() const override {
    return fmt::format("{}; {}; given back to the device after each sample, as far as it can be",
                       allocator_->method(),
                       !sweep_ ? "written by the GPU, and other memory before"
                       : sweep_->covers()
                           ? fmt::format("written by the CPU, whose caches were filled "
                                         "with {} MiB before",
                                         sweep_->bytes() >> 20)
                           : "written by the CPU, whose caches are not known or too "
                             "large to be filled before");
  }

 private:
  double touch(void* address) {
    if (sweep_) {
      sweep_->run();
    } else {
      writer_->touch(between_->address(), between_->bytes());
    }
    const std::int64_t begin = now_ns();
    allocator_->touch(address, bytes_);
    return static_cast<double>(now_ns() - begin);
  }

  /// To the device, so that the next sample's memory was not just written.
  void give_back(void* address) {
    allocator_->release(address, bytes_);
    stream_->wait();
    allocator_->trim();
  }

  std::unique_ptr<Stream> stream_;
  std::size_t bytes_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Allocator> writer_;
  std::unique_ptr<Buffer> between_;
  std::optional<CacheSweep> sweep_;  // where the CPU writes
  bool compares_ = false;            // whether the two times differ by the first use alone
};

/// launchgap's own would hand out what they hold.
std::vector<std::string> allocators_of_device(Profile profile, const DeviceFacts& facts) {
  std::vector<std::string> names = all_allocators(profile, facts);
  std::erase_if(names,
                [](const std::string& name) { return allocation::is_block_allocator(name); });
  return names;
}

const Registration allocation_touch =
    benchmark("allocation/touch")
        .asks("Does memory cost more when it is used for the first time?")
        .axis("allocator", kAllocatorMeaning, allocators_of_device)
        .size_axis(
            "bytes",
            "size of the allocation",
            [](Profile, const DeviceFacts&) -> std::vector<std::string> {
              return {"1048576", "67108864"};
            },
            kLargestSize)
        .only(beyond_quick)
        .brings(
            host_time("second_touch_ns",
                      "Writing the whole allocation once more. Before the first and before the "
                      "second time other memory is written, so that both find the same caches: 128 "
                      "MiB of a GPU, or twice the CPU's last level of cache where the CPU writes.",
                      "the allocation call"))
        .brings(
            {"first_over_second_touch",
             "ratio",
             Direction::lower_is_better,
             "derived",
             "first_touch_ns by second_touch_ns, sample by sample: what the first use of the "
             "memory costs beside a later one. Blocks below 16 MiB that a GPU writes have no such "
             "ratio, since their time is that of the launch, nor has what the CPU writes where its "
             "caches are not known.",
             ""})
        .metrics({"first_touch_ns", "second_touch_ns", "first_over_second_touch"})
        .samples({3, 10})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double bytes = static_cast<double>(name.number("bytes"));
          const double between =
              static_cast<double>(is_written_by_cpu(facts, name) ? sweep_bytes() : kBetweenBytes);
          const double one =
              5e-4 + 2 * (bytes + between) / backend_of(facts).expected.allocated_bytes_per_s;
          return 0.02 + one * (sampling.blocks * sampling.samples + 1);
        })
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationTouch>();

}  // namespace
}  // namespace launchgap
