// Where an allocator gets its memory from: a device, the host, or nowhere at all.
#pragma once

#include <cstdint>

#include "harness/device/allocator.h"

namespace launchgap::allocation {

/// 0 is no address.
using Address = std::uint64_t;

/// What a driver offers: regions of their own, and addresses to which pages can be mapped.
class Memory {
 public:
  virtual ~Memory() = default;

  /// A region of its own, at a multiple of 256; 0 if there is no room for it.
  virtual Address take(std::uint64_t bytes) = 0;
  virtual void give_back(Address region, std::uint64_t bytes) = 0;

  /// Pages come in multiples of this, a power of two.
  virtual std::uint64_t page_bytes() const = 0;
  /// Addresses without memory; 0 if there are none left.
  virtual Address reserve(std::uint64_t bytes) = 0;
  virtual void unreserve(Address range, std::uint64_t bytes) = 0;
  /// Memory for part of what was reserved, in whole pages; false if there is no room for it.
  virtual bool map(Address from, std::uint64_t bytes) = 0;
  virtual void unmap(Address from, std::uint64_t bytes) = 0;
};

/// Memory that does not exist: addresses and a limit in bytes, so that everything about
/// fragmentation can be known anywhere. Addresses rise and are never used again.
class SimulatedMemory : public Memory {
 public:
  static constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

  explicit SimulatedMemory(std::uint64_t limit_bytes) : limit_(limit_bytes) {}

  Address take(std::uint64_t bytes) override {
    if (bytes > limit_ - taken_) return 0;
    taken_ += bytes;
    return next_address(bytes);
  }
  void give_back(Address, std::uint64_t bytes) override { taken_ -= bytes; }
  std::uint64_t page_bytes() const override { return kPageBytes; }
  Address reserve(std::uint64_t bytes) override { return next_address(bytes); }
  void unreserve(Address, std::uint64_t) override {}
  bool map(Address, std::uint64_t bytes) override {
    if (bytes > limit_ - taken_) return false;
    taken_ += bytes;
    return true;
  }
  void unmap(Address, std::uint64_t bytes) override { taken_ -= bytes; }

  std::uint64_t taken_bytes() const { return taken_; }

 private:
  Address next_address(std::uint64_t bytes) {
    const Address address = next_;
    next_ += rounded_up(bytes, kPageBytes);
    return address;
  }

  std::uint64_t limit_, taken_ = 0;
  Address next_ = kPageBytes;
};

}  // namespace launchgap::allocation
