// Ways to get a device's memory.
#pragma once

#include <cstddef>
#include <string>

namespace launchgap {

/// Ways to get memory.
enum class AllocatorKind {
  direct,  // one call to the system or driver each: malloc, cuMemAlloc
  mapped,  // pages mapped for each allocation: mmap
  pool,    // from memory kept by the process: std::pmr pool, cuMemAllocAsync
};

/// One way to get memory. `allocate` and `release` are the timed calls and do nothing else.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* address, std::size_t bytes) = 0;
  /// Writes the whole allocation once and waits until that is done.
  virtual void touch(void* address, std::size_t bytes) = 0;
  virtual std::string method() const = 0;
};

}  // namespace launchgap
