// What getting memory costs, call by call, and what its first use costs.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/measure/benchmark.h"

namespace launchgap {
namespace {

class AllocationLatency : public Case {
 public:
  explicit AllocationLatency(const CaseContext& context)
      : stream_(context.device.create_stream()),
        allocator_(context.device.allocator(*stream_,
                                            *allocator_kind_named(context.name.at("allocator")))),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))) {
    const std::uint64_t free = context.device.free_memory_bytes();
    if (bytes_ > free / 4) {
      throw Unsupported(fmt::format(
          "{} MiB are more than a quarter of the {} MiB that are free", bytes_ >> 20, free >> 20));
    }
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
      throw WrongResult(fmt::format("two live allocations of {} bytes overlap", bytes_));
    }
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Allocator> allocator_;
  std::size_t bytes_;
};

std::vector<std::string> allocators(Profile, const DeviceFacts& facts) {
  if (is_gpu(facts)) return {"direct", "pool"};
  return {"direct", "mapped", "pool"};
}

/// 256 B, the smallest block of most pools, to 1 GiB.
std::vector<std::string> sizes(Profile profile, const DeviceFacts&) {
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
      return {"256",
              "1024",
              "4096",
              "16384",
              "65536",
              "262144",
              "1048576",
              "2097152",
              "4194304",
              "8388608",
              "16777216",
              "33554432",
              "67108864",
              "134217728",
              "268435456",
              "1073741824"};
  }
  return {};
}

const Registration allocation_latency =
    benchmark("allocation/latency")
        .asks("What does one allocation cost, its first use, and giving it back?")
        .axis("allocator", "the call that allocates, or what it allocates from", allocators)
        .axis("bytes", "size of the allocation", sizes)
        .brings({"call_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "Time inside one allocation call.",
                 "the first use of the memory"})
        .brings({"first_touch_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "Writing the whole new allocation once and waiting for it: where memory is only "
                 "promised by the call, this is where it is paid for. A GPU's is there already, "
                 "so on a GPU it is the launch of a memset, its work and its wait.",
                 "the allocation call"})
        .brings({"free_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "Time inside the call that gives the allocation back.",
                 "work that an asynchronous release leaves for later"})
        .metrics({"call_ns", "first_touch_ns", "free_ns"})
        .headline({7, "allocate 1 MiB", "allocator:direct/bytes:1048576", "call_ns"})
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
        .one_device_at_a_time()
        .traced_as(TracedAs::allocation)
        .makes<AllocationLatency>();

}  // namespace
}  // namespace launchgap
