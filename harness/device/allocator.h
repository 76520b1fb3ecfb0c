// Ways to get a device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/device/device.h"

namespace launchgap {

/// Ways to get memory, in the order of allocator_kinds().
enum class AllocatorKind {
  direct,
  mapped,
  pool,
  pool_t0,
  pool_own,
  vmm,
  vmm_expand,
  host_pinned,
  host_register,
  managed,
};

struct AllocatorKindInfo {
  AllocatorKind kind;
  std::string_view name;                         // of the axis `allocator`
  std::string_view on_gpu;                       // which calls; empty: GPUs have none
  std::string_view on_host;                      // the same
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of one block, for what must stay small
  bool in_host_memory = false;  // on a GPU too: the CPU writes it, through its own caches
};

/// All of them, each where its kind says.
std::span<const AllocatorKindInfo> allocator_kinds();
const AllocatorKindInfo& info_of(AllocatorKind kind);
/// None if there is no such name.
std::optional<AllocatorKind> allocator_kind_named(std::string_view name);

/// One way to get memory. `allocate` and `release` are the timed calls and do nothing else.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  /// Nothing uses the block any more; of a pool's, work on its own stream may.
  virtual void release(void* address, std::size_t bytes) = 0;
  /// Writes the whole allocation once and waits until that is done.
  virtual void touch(void* address, std::size_t bytes) = 0;
  /// Gives back to the device what is only kept, as far as that can be.
  virtual void trim() {}
  /// What it has of the device's memory, live or kept; nothing if it keeps nothing, or does not
  /// tell. All that take from a device's default pool tell of the same memory.
  virtual std::optional<std::uint64_t> reserved_bytes() const { return std::nullopt; }
  /// What an allocation of so many bytes takes of the device's memory; nothing if that is not
  /// known.
  virtual std::optional<std::uint64_t> granted_bytes(std::size_t /*bytes*/) const {
    return std::nullopt;
  }
  virtual std::string method() const = 0;
};

/// Part of a device's memory that somebody else has allocated.
class MemoryView : public Buffer {
 public:
  MemoryView(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  void* address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  void* address_;
  std::size_t bytes_;
};

/// How much of what is free now may be taken: never the last 5 % of a device's memory, which others
/// and the driver itself need.
std::uint64_t allocatable_bytes(Device& device);

// --- Virtual memory: addresses are reserved, and memory is mapped to parts of them ---

/// All sizes are in bytes, and all sizes and addresses are multiples of `granularity()`; anything
/// else is an Error. Whatever a call fails with, it leaves everything as it was before.
class VirtualMemory {
 public:
  virtual ~VirtualMemory() = default;

  /// A power of two.
  virtual std::size_t granularity() const = 0;

  /// Addresses without memory. OutOfMemory: there are not so many left.
  virtual void* reserve(std::size_t bytes) = 0;
  /// All of a reserved range, in which nothing is mapped any more.
  virtual void unreserve(void* range, std::size_t bytes) = 0;

  /// New memory for part of a reserved range to which none is mapped, to be used as soon as this
  /// returns; its content is anything. OutOfMemory: there is not so much.
  virtual void map(void* from, std::size_t bytes) = 0;
  /// Gives back the memory of one `map`, or of several whose ranges follow each other. Nothing uses
  /// it any more: this need not wait for work that does.
  virtual void unmap(void* from, std::size_t bytes) = 0;
};

// --- Allocators that map memory to addresses themselves, the same over any device ---

/// Writes a whole block, and waits.
using Touch = std::function<void(void* address, std::size_t bytes)>;

/// AllocatorKind::vmm.
std::unique_ptr<Allocator> mapping_allocator(std::unique_ptr<VirtualMemory> memory, Touch touch);

/// AllocatorKind::vmm_expand, in a range of `range_bytes`. `may_take` says how much more memory may
/// be mapped now: it is asked when what it said before is used up.
std::unique_ptr<Allocator> expanding_allocator(std::unique_ptr<VirtualMemory> memory,
                                               Touch touch,
                                               std::uint64_t range_bytes,
                                               std::function<std::uint64_t()> may_take);

// --- Sizes and addresses in whole units ---

/// The smallest multiple of `unit` that is not below `value`.
constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace launchgap
