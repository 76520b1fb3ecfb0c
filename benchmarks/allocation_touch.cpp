// Whether memory costs more when it is used for the first time.
#include "benchmarks/allocating.h"

namespace launchgap {
namespace {

class AllocationTouch : public Case {
 public:
  explicit AllocationTouch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))),
        allocator_(allocator_of_case(context, *stream_, bytes_, 1)) {
    // What writes must be loaded: that is not the memory's cost.
    void* const address = allocator_->allocate(bytes_);
    allocator_->touch(address, bytes_);
    allocator_->release(address, bytes_);
  }

  void sample(Block& block) override {
    void* const address = allocator_->allocate(bytes_);
    const std::int64_t begin = now_ns();
    allocator_->touch(address, bytes_);
    const std::int64_t once = now_ns();
    allocator_->touch(address, bytes_);
    const std::int64_t twice = now_ns();
    allocator_->release(address, bytes_);
    block.keep(begin,
               once - begin,
               twice - once,
               static_cast<double>(once - begin) / static_cast<double>(twice - once));
  }

  std::string method() const override { return allocator_->method(); }

 private:
  std::unique_ptr<Stream> stream_;
  std::size_t bytes_;
  std::unique_ptr<Allocator> allocator_;
};

const Registration allocation_touch =
    benchmark("allocation/touch")
        .asks("Does memory cost more when it is used for the first time?")
        .axis("allocator", kAllocatorMeaning, all_allocators)
        .axis("bytes", "size of the allocation", {"1048576", "67108864"})
        .only(beyond_quick)
        .brings({"second_touch_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "Writing the whole allocation once more, right after the first time.",
                 "the allocation call"})
        .brings({"first_over_second_touch",
                 "ratio",
                 Direction::lower_is_better,
                 "derived",
                 "first_touch_ns by second_touch_ns, sample by sample: what the first use of the "
                 "memory costs beside a later one.",
                 ""})
        .metrics({"first_touch_ns", "second_touch_ns", "first_over_second_touch"})
        .samples([](Profile, const CaseName&) {
          return Sampling{3, 10};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double one = 5e-4 + 2 * static_cast<double>(name.number("bytes")) /
                                        backend_of(facts).expected.allocated_bytes_per_s;
          return 0.02 + one * (sampling.blocks * sampling.samples + 1);
        })
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationTouch>();

}  // namespace
}  // namespace launchgap
