#include "harness/allocation/play_over.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/device_player.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"

namespace launchgap::allocation {
namespace {

class SimulatedStage : public Stage {
 public:
  SimulatedStage(const BlockAllocatorInfo& info, std::uint64_t limit_bytes)
      : limit_(limit_bytes), memory_(limit_bytes), player_(memory_, info, limit_bytes) {}
  Player& player() override { return player_; }
  std::uint64_t used_bytes() override { return memory_.taken_bytes(); }
  void take_beside(std::uint64_t bytes) override {
    if (memory_.take(bytes) == 0)
      throw Error("of {} bytes none are left to take beside the allocator", limit_);
  }

 private:
  std::uint64_t limit_;
  SimulatedMemory memory_;
  BlockPlayer player_;
};

class DeviceStage : public Stage {
 public:
  DeviceStage(Device& device, std::string_view allocator, std::uint64_t limit_bytes)
      : device_(device), player_(device, allocator, limit_bytes) {}
  Player& player() override { return player_.player(); }
  std::uint64_t used_bytes() override {
    const std::optional<std::uint64_t> free = free_on(device_);
    const std::uint64_t all = device_.facts().memory_bytes.value_or(0);
    return free && all > *free ? all - *free : 0;
  }
  void take_beside(std::uint64_t bytes) override { beside_.push_back(device_.allocate(bytes)); }

 private:
  Device& device_;
  DeviceReplayer player_;
  std::vector<std::unique_ptr<Buffer>> beside_;
};

}  // namespace

PlayOver::PlayOver() : name_("sim") {}

PlayOver::PlayOver(std::unique_ptr<Device> device)
    : device_(std::move(device)), name_(device_->facts().name) {}

std::vector<std::string> PlayOver::allocators() const {
  if (device_) return allocators_of(device_->facts());
  std::vector<std::string> names;
  for (const BlockAllocatorInfo& info : block_allocators()) names.emplace_back(info.name);
  return names;
}

std::uint64_t PlayOver::largest_limit() const {
  return device_ ? allocatable_bytes(*device_) : kLargestLimit;
}

std::optional<std::uint64_t> PlayOver::free_bytes() const {
  return device_ ? free_on(*device_) : std::nullopt;
}

std::unique_ptr<Stage> PlayOver::stage(std::string_view allocator,
                                       std::uint64_t limit_bytes) const {
  const std::vector<std::string> names = allocators();
  if (std::ranges::find(names, allocator) == names.end()) {
    const std::string near = did_you_mean(allocator, names);
    throw UsageError("there is no allocator '{}' over {}{}",
                     printable(allocator, 60),
                     name_,
                     near.empty() ? fmt::format(": there are {}", fmt::join(names, ", ")) : near);
  }
  if (device_) return std::make_unique<DeviceStage>(*device_, allocator, limit_bytes);
  return std::make_unique<SimulatedStage>(block_allocator_named(allocator), limit_bytes);
}

SmallestLimit PlayOver::smallest_limit(const Script& script, std::string_view allocator) const {
  if (!device_) return allocation::smallest_limit(script, block_allocator_named(allocator));
  if (!is_block_allocator(allocator)) return {};
  constexpr std::uint64_t kStep = std::uint64_t{2} << 20;
  const std::uint64_t most = largest_limit();
  return allocation::smallest_limit(
      [&](std::uint64_t limit) {
        return limit >= script.peak_live_bytes && plays(script, stage(allocator, limit)->player());
      },
      least_limit(script, kStep),
      most / kStep * kStep,
      kStep,
      most);
}

}  // namespace launchgap::allocation
