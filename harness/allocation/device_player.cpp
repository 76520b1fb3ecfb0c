#include "harness/allocation/device_player.h"

#include <algorithm>

#include "harness/core/errors.h"
#include "harness/device/backend.h"

namespace launchgap::allocation {

std::optional<std::uint64_t> free_on(Device& device) {
  if (!is_gpu(device.facts())) return std::nullopt;
  return device.free_memory_bytes();
}

Address LimitedMemory::take(std::uint64_t bytes) {
  if (bytes > left_) return 0;
  const Address address = memory_.take(bytes);
  if (address != 0) left_ -= bytes;
  return address;
}

void LimitedMemory::give_back(Address region, std::uint64_t bytes) {
  memory_.give_back(region, bytes);
  left_ += bytes;
}

bool LimitedMemory::map(Address from, std::uint64_t bytes) {
  if (bytes > left_ || !memory_.map(from, bytes)) return false;
  left_ -= bytes;
  return true;
}

void LimitedMemory::unmap(Address from, std::uint64_t bytes) {
  memory_.unmap(from, bytes);
  left_ += bytes;
}

DevicePlayer::DevicePlayer(Device& device, AllocatorKind kind, std::uint64_t limit_bytes)
    : device_(device), kind_(kind), limit_(limit_bytes) {
  lane(0);  // says at once if there is no such allocator
}

DevicePlayer::~DevicePlayer() {
  try {
    release_all();
  } catch (const Error&) {
    // A context that is lost has given back everything.
  }
}

DevicePlayer::Lane& DevicePlayer::lane(std::uint32_t stream) {
  const std::uint32_t number = stream % kMostStreams;
  if (const auto known = lanes_.find(number); known != lanes_.end()) return known->second;
  Lane made;
  made.stream = device_.create_stream();
  made.allocator = device_.allocator(*made.stream, kind_);
  return lanes_.emplace(number, std::move(made)).first->second;
}

void DevicePlayer::prepare(std::uint32_t places, std::uint32_t stream) {
  if (places > placed_.size()) placed_.resize(std::max<std::size_t>(places, 2 * placed_.size()));
  lane(stream);
}

std::uint64_t DevicePlayer::reserved_bytes() const {
  const bool of_one_pool = kind_ == AllocatorKind::pool || kind_ == AllocatorKind::pool_t0;
  std::uint64_t all = 0;
  for (const auto& [number, own] : lanes_) {
    const std::optional<std::uint64_t> told = own.allocator->reserved_bytes();
    if (!told) return live_;
    all = of_one_pool && is_gpu(device_.facts()) ? *told : all + *told;
  }
  return all;
}

std::optional<std::uint64_t> DevicePlayer::granted_bytes(std::uint64_t bytes) const {
  return lanes_.begin()->second.allocator->granted_bytes(bytes);
}

bool DevicePlayer::allocate(std::uint32_t place,
                            std::uint64_t bytes,
                            std::uint32_t stream,
                            std::uint64_t) {
  if (bytes > limit_ - live_) return false;
  Lane& own = lane(stream);
  try {
    placed_[place] = {own.allocator->allocate(bytes), bytes, &own};
  } catch (const OutOfMemory&) {
    return false;
  }
  live_ += bytes;
  return true;
}

void DevicePlayer::release(std::uint32_t place, std::uint64_t bytes) {
  Placed& placed = placed_[place];
  placed.lane->allocator->release(placed.address, bytes);
  placed.address = nullptr;
  live_ -= bytes;
}

void DevicePlayer::touch(std::uint32_t place, std::uint64_t bytes) {
  placed_[place].lane->allocator->touch(placed_[place].address, bytes);
}

void DevicePlayer::wait_for_stream(std::uint32_t stream) {
  lane(stream).stream->wait();
}

void DevicePlayer::wait_for_device() {
  device_.check();
}

void DevicePlayer::trim() {
  for (auto& [number, own] : lanes_) own.allocator->trim();
}

void DevicePlayer::release_all() {
  for (std::uint32_t place = 0; place < placed_.size(); ++place) {
    if (placed_[place].address) release(place, placed_[place].bytes);
  }
}

void DevicePlayer::begin_anew() {
  release_all();
  device_.check();
  lanes_.clear();
  lane(0);
}

/// One of launchgap's own, over memory that can be written.
class DeviceBlockPlayer : public BlockPlayer {
 public:
  DeviceBlockPlayer(Device& device,
                    Stream& stream,
                    Memory& memory,
                    const BlockAllocatorInfo& info,
                    std::uint64_t limit_bytes)
      : BlockPlayer(memory, info, limit_bytes),
        toucher_(device.allocator(stream, AllocatorKind::direct)) {}
  void touch(std::uint32_t place, std::uint64_t bytes) override {
    toucher_->touch(reinterpret_cast<void*>(address(place)), bytes);
  }

 private:
  std::unique_ptr<Allocator> toucher_;
};

DeviceReplayer::DeviceReplayer(Device& device, std::string_view name, std::uint64_t limit_bytes) {
  if (const std::optional<AllocatorKind> kind = allocator_kind_named(name)) {
    player_ = std::make_unique<DevicePlayer>(device, *kind, limit_bytes);
    return;
  }
  const BlockAllocatorInfo& info = block_allocator_named(name);
  stream_ = device.create_stream();
  memory_ = std::make_unique<DeviceMemory>(device, *stream_);
  limited_ = std::make_unique<LimitedMemory>(*memory_, limit_bytes);
  player_ = std::make_unique<DeviceBlockPlayer>(device, *stream_, *limited_, info, limit_bytes);
}

}  // namespace launchgap::allocation
