// What gives the memory of a replay: nothing (`sim`), the host, or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/allocation/replay.h"
#include "harness/allocation/smallest_limit.h"
#include "harness/device/device.h"

namespace launchgap::allocation {

/// An allocator with its memory, ready to be played to.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual Player& player() = 0;
  /// Of the memory, by whomever; 0 where it cannot be told.
  virtual std::uint64_t used_bytes() = 0;
  /// Takes memory that no allocator knows of, until the end.
  virtual void take_beside(std::uint64_t bytes) = 0;
};

class PlayOver {
 public:
  /// Simulated memory.
  PlayOver();
  /// That of a device, which stays open as long as this lives.
  explicit PlayOver(std::unique_ptr<Device> device);

  const std::string& name() const { return name_; }  // "sim", or what the device is called
  bool simulated() const { return !device_; }
  /// Over the fake CUDA libraries of the tests.
  bool on_fake_gpu() const { return device_ && device_->facts().simulated; }
  /// The allocators that there are.
  std::vector<std::string> allocators() const;
  /// Of simulated memory kLargestLimit, of a device what may be taken of it: never the last 5 %.
  std::uint64_t largest_limit() const;
  /// Of a GPU; nothing of other memory, of which this would tell nothing. Throws what the device
  /// throws.
  std::optional<std::uint64_t> free_bytes() const;

  /// Throws UsageError that lists allocators() for another name, and Unsupported where the device
  /// has none of it after all.
  std::unique_ptr<Stage> stage(std::string_view allocator, std::uint64_t limit_bytes) const;
  /// As smallest_limit(), over this memory: on a device in steps of 2 MiB. Nothing for an allocator
  /// that takes no limit.
  SmallestLimit smallest_limit(const Script& script, std::string_view allocator) const;

 private:
  std::unique_ptr<Device> device_;
  std::string name_;
};

}  // namespace launchgap::allocation
