// How fast memory is copied: within the device, which no kernel that reads and writes its memory
// can exceed by much, and between the device and the host.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/operands.h"
#include "benchmarks/products.h"
#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/fill.h"
#include "harness/measure/sweep.h"

namespace launchgap {
namespace {

constexpr std::array<std::pair<const char*, CopyDirection>, 3> kDirections{
    {{"device_to_device", CopyDirection::device_to_device},
     {"host_to_device", CopyDirection::host_to_device},
     {"device_to_host", CopyDirection::device_to_host}}};

CopyDirection direction_of(const CaseName& name) {
  for (const auto& [text, direction] : kDirections) {
    if (name.at("direction") == text) return direction;
  }
  throw Error("there is no direction '{}'", name.at("direction"));
}

/// What a copy moves by the count of published bandwidths: the device's memory is read and written,
/// while a link carries each byte once.
double moved_bytes(CopyDirection direction, std::size_t bytes) {
  return (direction == CopyDirection::device_to_device ? 2.0 : 1.0) * static_cast<double>(bytes);
}

/// Ordinary memory of the host, which a GPU's driver copies through pinned memory of its own.
class PageableBuffer : public Buffer {
 public:
  explicit PageableBuffer(std::size_t bytes)
      : bytes_(bytes), memory_(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)) {
    if (!memory_) throw std::bad_alloc();
  }
  void* address() const override { return memory_.get(); }
  std::size_t bytes() const override { return bytes_; }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<void, Free> memory_;
};

/// One end of a copy.
class CopyEnd {
 public:
  CopyEnd(Device& device, const std::string& memory, std::size_t bytes)
      : device_(device), on_host_(memory != "device") {
    if (memory == "device") {
      buffer_ = device.allocate(bytes);
    } else if (memory == "pinned") {
      buffer_ = device.allocate_shared(bytes);
    } else if (memory == "pageable") {
      buffer_ = std::make_unique<PageableBuffer>(bytes);
    } else {
      throw Error("there is no memory '{}'", memory);
    }
  }

  void* address() const { return buffer_->address(); }

  /// No two places hold the same, and with another seed each holds something else; but for what is
  /// behind the last whole word, which is never what poison() leaves.
  void fill_with(Stream& stream, std::uint64_t seed) {
    const auto rest = static_cast<unsigned char>(seed % 0xFF);
    if (on_host_) {
      std::memset(address(), rest, buffer_->bytes());
      auto* const words = static_cast<std::uint64_t*>(address());
      for (std::size_t i = 0; i < buffer_->bytes() / sizeof *words; ++i)
        words[i] = (seed + i) * 0x9E3779B97F4A7C15u;
    } else {
      stream.fill_bytes(address(), rest, buffer_->bytes());
      fill(device_,
           stream,
           *buffer_,
           seed,
           kernels::ElementType::fp64,
           kernels::Distribution::uniform);
    }
  }

  /// With what no source holds.
  void poison(Stream& stream) {
    if (on_host_) {
      std::memset(address(), 0xFF, buffer_->bytes());
    } else {
      stream.fill_bytes(address(), 0xFF, buffer_->bytes());
      stream.wait();
    }
  }

  /// Some bytes of it, by the device's other way to the host; `to` has room for them. No work is
  /// under way.
  const std::byte* read(std::size_t offset, std::vector<std::byte>& to, std::size_t bytes) const {
    if (on_host_) return static_cast<const std::byte*>(address()) + offset;
    device_.read(*buffer_, offset, to.data(), bytes);
    return to.data();
  }

 private:
  Device& device_;
  bool on_host_;
  std::unique_ptr<Buffer> buffer_;
};

std::string memory_of_end(const CaseName& name, CopyDirection on_device) {
  const CopyDirection direction = direction_of(name);
  const bool device = direction == CopyDirection::device_to_device || direction == on_device;
  return device ? "device" : name.at("memory");
}

/// Throws TooLarge.
std::size_t bytes_that_fit(Device& device, const CaseName& name) {
  const auto bytes = static_cast<std::size_t>(name.number("bytes"));
  const std::size_t needed =
      direction_of(name) == CopyDirection::device_to_device ? 2 * bytes : bytes;
  operand_sets(device, "warm", needed);
  return bytes;
}

class MemoryCopy : public Case {
 public:
  explicit MemoryCopy(const CaseContext& context)
      : device_(context.device),
        direction_(direction_of(context.name)),
        bytes_(bytes_that_fit(device_, context.name)),
        stream_(device_.create_stream()),
        begin_(device_.create_event()),
        end_(device_.create_event()),
        from_(device_, memory_of_end(context.name, CopyDirection::device_to_host), bytes_),
        to_(device_, memory_of_end(context.name, CopyDirection::host_to_device), bytes_) {
    from_.fill_with(*stream_, derive_seed(context.seed, "first"));
    to_.poison(*stream_);
    enqueue();
    verify();
    // What is timed copies something else: what the first copy left must not pass for its result.
    from_.fill_with(*stream_, derive_seed(context.seed, "timed"));
    if (context.name.at("memory") == "pageable") {
      const std::int64_t until =
          now_ns() + static_cast<std::int64_t>(warm_up_seconds(device_) * 1e9);
      do {
        time_one();
      } while (now_ns() < until);
    } else {
      timer_.emplace(device_, *stream_);
      operations_ =
          timer_->operations_for_one_ms(warm_up_seconds(device_), [this](int) { enqueue(); });
    }
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns =
        timer_ ? timer_->time(operations_, [this](int) { enqueue(); }) : time_one();
    block.keep(begin, device_ns, moved_bytes(direction_, bytes_) / device_ns);
  }

  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override { verify(); }

  std::string method() const override {
    return fmt::format("one copy of {}; {}",
                       bytes_text(static_cast<double>(bytes_)),
                       timer_ ? fmt::format("{} per sample{}", operations_, remark_on_gate(device_))
                              : "not from behind a gate, since the call itself waits");
  }

 private:
  void enqueue() { stream_->copy(to_.address(), from_.address(), bytes_, direction_); }

  /// Nanoseconds of a copy that no gate may hold.
  double time_one() {
    stream_->record(*begin_);
    enqueue();
    stream_->record(*end_);
    stream_->wait();
    return device_.elapsed_ns(*begin_, *end_);
  }

  /// All of it, once the stream has nothing more to do.
  void verify() {
    stream_->wait();
    device_.check();
    constexpr std::size_t kPart = 4 << 20;
    std::vector<std::byte> source(kPart), copy(kPart);
    for (std::size_t at = 0; at < bytes_; at += kPart) {
      const std::size_t size = std::min(kPart, bytes_ - at);
      const std::byte* const right = from_.read(at, source, size);
      const std::byte* const is = to_.read(at, copy, size);
      if (std::memcmp(right, is, size) == 0) continue;
      const auto [a, b] = std::mismatch(right, right + size, is);
      throw WrongResult("byte {} of {} that were copied is {:#04x}, and {:#04x} is right",
                        at + static_cast<std::size_t>(a - right),
                        bytes_,
                        std::to_integer<int>(*b),
                        std::to_integer<int>(*a));
    }
  }

  Device& device_;
  CopyDirection direction_;
  std::size_t bytes_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  CopyEnd from_, to_;
  std::optional<DeviceTimer> timer_;  // none for pageable memory
  int operations_ = 1;
};

/// A copy's time on a device, for estimates.
double expected_copy_seconds(const DeviceFacts& facts, const CaseName& name) {
  const auto bytes = static_cast<double>(name.number("bytes"));
  const double rate = !is_gpu(facts)                  ? 4e9
                      : name.at("memory") == "device" ? 2e11
                      : name.at("memory") == "pinned" ? 1e10
                                                      : 4e9;
  return moved_bytes(direction_of(name), static_cast<std::size_t>(bytes)) / rate;
}

const Registration ceiling_copy =
    benchmark("ceiling/copy")
        .asks("How fast is memory copied, within the device and between it and the host?")
        .axis("direction",
              "`device_to_device`: within the device's memory; `host_to_device`, `device_to_host`: "
              "over the link between the two",
              {"device_to_device", "host_to_device", "device_to_host"})
        .axis("memory",
              "of the host's end: `pinned`, which stays where it is, so that the device copies by "
              "itself; `pageable`, as malloc gives it; `device`: no end is the host's",
              {"device", "pinned", "pageable"})
        .size_axis(
            "bytes",
            "that are copied",
            [](Profile, const DeviceFacts&) -> std::vector<std::string> {
              return {"67108864", "268435456"};
            },
            kLargestSize)
        // A process of its own is too much for a quick look; on the host all memory is one.
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          const bool within = direction_of(name) == CopyDirection::device_to_device;
          return profile != Profile::quick && within == (name.at("memory") == "device") &&
                 (within || is_gpu(facts));
        })
        .brings(
            {"copy_gbs",
             "GB/s",
             Direction::higher_is_better,
             "derived",
             "10^9 bytes per second of device_ns. Of a copy within the device's memory both what "
             "is read and what is written counts, twice its size, as published bandwidths of "
             "memory count; of a copy from or to the host its size counts once, as the link "
             "carries it. Of pageable memory device_ns has what the driver does meanwhile: no "
             "gate holds such a copy.",
             "",
             "the rate",
             "device_ns"})
        .metrics({"device_ns", "copy_gbs"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{5, profile == Profile::full ? 5 : 3};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          // Patterns and what is compared pass the host twice each.
          const double prepared = static_cast<double>(name.number("bytes")) / 5e8;
          const double one = std::max(1.2e-3, expected_copy_seconds(facts, name));
          return 0.3 + prepared + one * (sampling.blocks * sampling.samples + 5);
        })
        .untraced()
        .makes<MemoryCopy>();

}  // namespace
}  // namespace launchgap
