// Addresses of a device apart from its memory: a range of addresses is reserved, and memory is
// mapped to parts of it and taken away again.
#pragma once

#include <cstddef>

namespace launchgap {

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

}  // namespace launchgap
