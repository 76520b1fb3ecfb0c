// What it costs to map memory to addresses, by how much is mapped at once.
#include <algorithm>

#include <fmt/format.h>

#include "benchmarks/allocating.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"

namespace launchgap {
namespace {

/// Of one range: a reservation that grows chunk by chunk, as expandable segments do.
class AllocationGrowth : public Case {
 public:
  explicit AllocationGrowth(const CaseContext& context)
      : device_(context.device),
        stream_(device_.create_stream()),
        memory_(device_.virtual_memory()),
        chunk_(static_cast<std::size_t>(context.name.number("chunk_mib")) << 20),
        chunks_(std::max<std::size_t>(1, kGrown / chunk_)) {
    if (chunk_ % memory_->granularity() != 0) {
      throw Unsupported("the device maps {} bytes at once, which {} are no multiple of",
                        memory_->granularity(),
                        chunk_);
    }
    if (bytes() > std::min(device_.free_memory_bytes() / 4, allocatable_bytes(device_)))
      throw Unsupported("{} MiB are more than a quarter of what is free", bytes() >> 20);
    range_ = static_cast<char*>(memory_->reserve(bytes()));
    try {
      verify();
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~AllocationGrowth() override { give_back(); }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    for (std::size_t i = 0; i < chunks_; ++i) {
      memory_->map(range_ + mapped_, chunk_);
      mapped_ += chunk_;
    }
    const std::int64_t grown = now_ns();
    while (mapped_ > 0) {
      mapped_ -= chunk_;
      memory_->unmap(range_ + mapped_, chunk_);
    }
    const std::int64_t shrunk = now_ns();
    const auto map_ns = static_cast<double>(grown - begin) / static_cast<double>(chunks_);
    const auto unmap_ns = static_cast<double>(shrunk - grown) / static_cast<double>(chunks_);
    block.keep(begin, map_ns, map_ns / static_cast<double>(chunk_ >> 20), unmap_ns);
  }

  int operations_per_sample() const override { return static_cast<int>(chunks_); }
  int warm_up_samples() const override { return 1; }

  std::string method() const override {
    return fmt::format(
        "{} chunks of {} MiB mapped side by side, and unmapped from the end, in "
        "pages of {} bytes",
        chunks_,
        chunk_ >> 20,
        memory_->granularity());
  }

 private:
  static constexpr std::size_t kGrown = std::size_t{256} << 20;

  std::size_t bytes() const { return chunks_ * chunk_; }

  /// All of it is one block that can be used from end to end.
  void verify() {
    for (; mapped_ < bytes(); mapped_ += chunk_) memory_->map(range_ + mapped_, chunk_);
    stream_->fill_bytes(range_, 0x5A, bytes());
    stream_->wait();
    for (std::size_t i = 0; i < chunks_; ++i)
      MarkedBlock{range_ + i * chunk_, chunk_, 0x5A}.check(device_);
    memory_->unmap(range_, mapped_);
    mapped_ = 0;
  }

  void give_back() noexcept {
    try {
      if (mapped_ > 0) memory_->unmap(range_, mapped_);
      memory_->unreserve(range_, bytes());
    } catch (const std::exception&) {  // it was told of when it failed first
    }
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<VirtualMemory> memory_;
  std::size_t chunk_, chunks_;
  char* range_ = nullptr;
  std::size_t mapped_ = 0;
};

const Registration allocation_growth =
    benchmark("allocation/growth")
        .asks("What does it cost to map memory to addresses, by how much is mapped at once?")
        .axis("chunk_mib",
              "MiB that are mapped by one call, until 256 MiB are: 2 and 20 are PyTorch's pages",
              {"2", "20", "128"})
        .only(beyond_quick)
        .brings(host_time("map_ns",
                          "Taking one chunk of memory, mapping it to reserved addresses and making "
                          "it accessible; the mean of the chunks of a sample.",
                          "reserving the addresses; the first use of the memory",
                          "the time of a mapping"))
        .brings({"map_ns_per_mib",
                 "ns",
                 Direction::lower_is_better,
                 "derived",
                 "map_ns by the MiB of a chunk.",
                 ""})
        .brings(host_time("unmap_ns",
                          "Unmapping one chunk, which gives its memory back; the mean of the "
                          "chunks of a sample. The device is idle.",
                          "a wait for work that uses the memory"))
        .metrics({"map_ns", "map_ns_per_mib", "unmap_ns"})
        .samples({3, 10})
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          return 0.1 + 0.1 / static_cast<double>(name.number("chunk_mib")) * sampling.blocks *
                           sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<AllocationGrowth>();

}  // namespace
}  // namespace launchgap
