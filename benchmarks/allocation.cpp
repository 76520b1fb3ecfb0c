// What getting memory costs, call by call, and what its first use costs.
#include <memory>
#include <set>
#include <vector>

#include "benchmarks/allocating.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/measure/sweep.h"

namespace launchgap {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

class AllocationLatency : public Case {
 public:
  explicit AllocationLatency(const CaseContext& context)
      : stream_(context.device.create_stream()),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))),
        allocator_(allocator_of_case(context, *stream_, bytes_, 1)) {
    verify_two_blocks();
    for (int i = 0; i < 10; ++i) {
      void* const address = allocator_->allocate(bytes_);
      allocator_->touch(address, bytes_);
      allocator_->release(address, bytes_);
    }
  }

  void sample(Block& block) override {
    const std::int64_t called = now_ns();
    void* const address = allocator_->allocate(bytes_);
    const std::int64_t allocated = now_ns();
    allocator_->touch(address, bytes_);
    const std::int64_t touched = now_ns();
    allocator_->release(address, bytes_);
    const std::int64_t released = now_ns();
    stream_->wait();  // which is when a pool gives back what it is not told to keep
    block.keep(called, allocated - called, touched - allocated, released - touched);
  }

  int warm_up_samples() const override { return 3; }

  std::string method() const override { return allocator_->method(); }

 private:
  /// Two live blocks must not overlap and must be usable to the last byte.
  void verify_two_blocks() {
    auto* const first = static_cast<char*>(allocator_->allocate(bytes_));
    auto* const second = static_cast<char*>(allocator_->allocate(bytes_));
    allocator_->touch(first, bytes_);
    allocator_->touch(second, bytes_);
    const bool overlap = first < second + bytes_ && second < first + bytes_;
    allocator_->release(second, bytes_);
    allocator_->release(first, bytes_);
    if (!first || !second || overlap) {
      throw WrongResult("two live allocations of {} bytes overlap", bytes_);
    }
  }

  std::unique_ptr<Stream> stream_;
  std::size_t bytes_;
  std::unique_ptr<Allocator> allocator_;
};

/// Those whose calls a trace can tell, which are all that the quick profile has.
bool is_of_first_three(const std::string& allocator) {
  return allocator == "direct" || allocator == "mapped" || allocator == "pool";
}

std::vector<std::string> allocators(Profile profile, const DeviceFacts& facts) {
  std::vector<std::string> names = all_allocators(profile, facts);
  if (profile == Profile::quick)
    std::erase_if(names, [](const std::string& name) { return !is_of_first_three(name); });
  return names;
}

/// Around the steps of drivers and frameworks: 2^n and 2^n + 1; 512 B, 1, 2, 10 and 20 MiB, a byte
/// less and a byte more.
std::vector<std::string> sizes_around_steps() {
  std::set<std::uint64_t> sizes;
  for (int n = 8; n <= 28; n += 2) {
    sizes.insert(std::uint64_t{1} << n);
    sizes.insert((std::uint64_t{1} << n) + 1);
  }
  for (const std::uint64_t step : {std::uint64_t{512}, kMib, 2 * kMib, 10 * kMib, 20 * kMib}) {
    for (const std::uint64_t size : {step - 1, step, step + 1}) sizes.insert(size);
  }
  for (int n : {21, 22, 23, 25, 27, 30}) sizes.insert(std::uint64_t{1} << n);
  std::vector<std::string> texts;
  for (const std::uint64_t size : sizes) texts.push_back(std::to_string(size));
  return texts;
}

/// 256 B, the smallest block of most pools, to 1 GiB.
std::vector<std::string> block_sizes(Profile profile, const DeviceFacts&) {
  switch (profile) {
    case Profile::quick:
      return {"256", "65536", "1048576", "16777216"};
    case Profile::nightly:
      return {"256",
              "4096",
              "65536",
              "1048576",
              "2097152",
              "16777216",
              "67108864",
              "268435456",
              "1073741824"};
    case Profile::full:
      return sizes_around_steps();
  }
  return {};
}

const Registration allocation_latency =
    benchmark("allocation/latency")
        .asks("What does one allocation cost, its first use, and giving it back?")
        .axis("allocator", kAllocatorMeaning, allocators)
        .size_axis("bytes", "size of the allocation", block_sizes, kLargestSize)
        .metrics({"call_ns", "first_touch_ns", "free_ns"})
        .headline({"allocate 1 MiB", "allocator:direct/bytes:1048576", "call_ns"})
        .samples([](Profile profile, const CaseName& name) {
          const long long bytes = name.number("bytes");
          const int samples = bytes <= 1 << 20   ? 200
                              : bytes <= 1 << 24 ? 20
                              : bytes <= 1 << 28 ? 10
                                                 : 3;
          return Sampling{profile == Profile::quick ? 3 : 5, samples};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double one = 1e-5 + static_cast<double>(name.number("bytes")) /
                                        backend_of(facts).expected.allocated_bytes_per_s;
          return 0.02 + one * (sampling.blocks * sampling.samples + 12);
        })
        .only([](Profile profile, const DeviceFacts&, const CaseName& name) {
          const long long bytes = name.number("bytes");
          const bool usual_size = bytes == 65536 || bytes == 16777216;
          if (profile == Profile::nightly && !usual_size &&
              !is_of_first_three(name.at("allocator")))
            return false;
          return static_cast<std::uint64_t>(name.number("bytes")) <=
                 allocation::most_bytes_of(name.at("allocator"));
        })
        .one_device_at_a_time()
        .traced_where([](const CaseName& name) { return is_of_first_three(name.at("allocator")); })
        .traced_as(TracedAs::allocation)
        .makes<AllocationLatency>();

}  // namespace
}  // namespace launchgap
