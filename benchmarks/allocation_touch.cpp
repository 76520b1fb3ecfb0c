// Whether memory costs more when it is used for the first time.
#include "benchmarks/allocating.h"
#include "harness/core/errors.h"

namespace launchgap {
namespace {

/// What is written before each timed touch, so that all begin after the same: the device has just
/// worked, and no cache of a GPU holds the block. Of the host, as much as the block: its caches may
/// be larger than anything that one would write.
std::size_t between_bytes(const DeviceFacts& facts, std::size_t bytes) {
  constexpr std::size_t kOfGpu = std::size_t{128} << 20;
  return is_gpu(facts) ? kOfGpu : bytes;
}

class AllocationTouch : public Case {
 public:
  explicit AllocationTouch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        bytes_(static_cast<std::size_t>(context.name.number("bytes"))),
        allocator_(allocator_of_case(context, *stream_, bytes_, 1)) {
    const std::size_t between = between_bytes(context.device.facts(), bytes_);
    if (between + bytes_ > allocatable_bytes(context.device) / 2)
      throw Unsupported("too little memory is free");
    between_ = context.device.allocate(between);
    writer_ = context.device.allocator(*stream_, AllocatorKind::direct);
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
    block.keep(begin, first_ns, second_ns, first_ns / second_ns);
  }

  std::string method() const override {
    return allocator_->method() +
           "; given back to the device after each sample, as far as it can be";
  }

 private:
  double touch(void* address) {
    writer_->touch(between_->address(), between_->bytes());
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
        .axis("bytes", "size of the allocation", {"1048576", "67108864"})
        .only(beyond_quick)
        .brings(
            {"second_touch_ns",
             "ns",
             Direction::lower_is_better,
             "host_clock",
             "Writing the whole allocation once more. Before the first and before the second time "
             "other memory is written, 128 MiB of a GPU, so that both find the same caches.",
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
          const auto bytes = static_cast<std::size_t>(name.number("bytes"));
          const double one = 5e-4 + 2 * static_cast<double>(bytes + between_bytes(facts, bytes)) /
                                        backend_of(facts).expected.allocated_bytes_per_s;
          return 0.02 + one * (sampling.blocks * sampling.samples + 1);
        })
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationTouch>();

}  // namespace
}  // namespace launchgap
