// What a process's first allocation costs, and its second. A process is one sample.
#include "benchmarks/allocating.h"

namespace launchgap {
namespace {

constexpr std::size_t kFirstBytes = std::size_t{1} << 20;

class FirstAllocation : public Case {
 public:
  explicit FirstAllocation(const CaseContext& context)
      : stream_(context.device.create_stream()),
        allocator_(allocator_of_case(context, *stream_, kFirstBytes, 2)) {}

  void sample(Block& block) override {
    const std::int64_t called = now_ns();
    void* const first = allocator_->allocate(kFirstBytes);
    const std::int64_t again = now_ns();
    void* const second = allocator_->allocate(kFirstBytes);
    const std::int64_t allocated = now_ns();
    block.keep(called, again - called, allocated - again);
    check_apart({{first, kFirstBytes}, {second, kFirstBytes}});
    allocator_->touch(first, kFirstBytes);
    allocator_->touch(second, kFirstBytes);
    allocator_->release(second, kFirstBytes);
    allocator_->release(first, kFirstBytes);
  }

  std::string method() const override { return "a fresh process; " + allocator_->method(); }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Allocator> allocator_;
};

const Registration allocation_first =
    benchmark("allocation/first")
        .asks("What does a process's first allocation cost?")
        .process_axis("allocator",
                      "what the process allocates from; a process has one",
                      all_allocators,
                      "")
        .brings(host_time("first_allocation_ns",
                          "Time inside the first call of a process that allocates, of 1 MiB.",
                          "opening the device; making the allocator"))
        .brings(host_time("second_allocation_ns",
                          "Time inside the second one, while the first block is live."))
        .metrics({"first_allocation_ns", "second_allocation_ns"})
        .only([](Profile profile, const DeviceFacts&, const CaseName& name) {
          const std::string& allocator = name.at("allocator");
          const bool usual = allocator == "direct" || allocator == "pool" || allocator == "bfc";
          return profile == Profile::full || (profile == Profile::nightly && usual);
        })
        .in_fresh_processes([](Profile profile) { return profile == Profile::full ? 10 : 3; })
        .takes([](const DeviceFacts&, const CaseName&, Sampling) { return 0.3; })
        .one_device_at_a_time()
        .makes<FirstAllocation>();

}  // namespace
}  // namespace launchgap
