// A trace played to a device's memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "harness/allocation/device_memory.h"
#include "harness/allocation/replay.h"

namespace launchgap::allocation {

/// What is free of a GPU's memory; nothing of the host's, which changes with every other program.
std::optional<std::uint64_t> free_on(Device& device);

/// A memory of which only so much may be taken.
class LimitedMemory : public Memory {
 public:
  LimitedMemory(Memory& memory, std::uint64_t limit_bytes) : memory_(memory), left_(limit_bytes) {}

  Address take(std::uint64_t bytes) override;
  void give_back(Address region, std::uint64_t bytes) override;
  std::uint64_t page_bytes() const override { return memory_.page_bytes(); }
  Address reserve(std::uint64_t bytes) override { return memory_.reserve(bytes); }
  void unreserve(Address range, std::uint64_t bytes) override { memory_.unreserve(range, bytes); }
  bool map(Address from, std::uint64_t bytes) override;
  void unmap(Address from, std::uint64_t bytes) override;

 private:
  Memory& memory_;
  std::uint64_t left_;
};

/// Plays to one of a device's own ways to get memory. Each stream of the trace is a stream of the
/// device, as far as there are kMostStreams; further ones share these. Of at most `limit_bytes`, as
/// far as is asked for: what a pool keeps beyond is its own.
class DevicePlayer : public Player {
 public:
  static constexpr std::uint32_t kMostStreams = 32;

  /// Throws Unsupported where the device has no such allocator.
  DevicePlayer(Device& device, AllocatorKind kind, std::uint64_t limit_bytes);
  ~DevicePlayer() override;
  DevicePlayer(const DevicePlayer&) = delete;
  DevicePlayer& operator=(const DevicePlayer&) = delete;

  void prepare(std::uint32_t places, std::uint32_t stream) override;
  bool allocate(std::uint32_t place,
                std::uint64_t bytes,
                std::uint32_t stream,
                std::uint64_t align) override;
  void release(std::uint32_t place, std::uint64_t bytes) override;
  void touch(std::uint32_t place, std::uint64_t bytes) override;
  void wait_for_stream(std::uint32_t stream) override;
  void wait_for_device() override;
  void trim() override;
  void begin_anew() override;
  std::optional<std::uint64_t> granted_bytes(std::uint64_t bytes) const override;
  std::optional<std::uint64_t> free_bytes() override { return free_on(device_); }
  std::uint64_t limit_bytes() const override { return limit_; }
  std::uint64_t reserved_bytes() const override;

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Allocator> allocator;
  };
  struct Placed {
    void* address = nullptr;
    std::uint64_t bytes = 0;
    Lane* lane = nullptr;
  };

  Lane& lane(std::uint32_t stream);
  void release_all();

  Device& device_;
  AllocatorKind kind_;
  std::uint64_t limit_, live_ = 0;
  std::map<std::uint32_t, Lane> lanes_;
  std::vector<Placed> placed_;
};

/// The same for an allocator by its name: launchgap's own over the device's memory, or one of the
/// device's. `stream` is where the former's memory comes from.
class DeviceReplayer {
 public:
  DeviceReplayer(Device& device, std::string_view name, std::uint64_t limit_bytes);
  Player& player() { return *player_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<LimitedMemory> limited_;
  std::unique_ptr<Player> player_;
};

}  // namespace launchgap::allocation
