// Sums over several devices, by the library that programs take for them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace launchgap {

class Buffer;
class Device;
class Stream;

/// Devices that compute a sum together: none is ready before all have begun. Every call may throw
/// LibraryError.
class Collective {
 public:
  virtual ~Collective() = default;

  /// What one device gives, and where it gets the sum of all: FP32, on a stream of its own.
  struct Part {
    Stream* stream = nullptr;
    const Buffer* from = nullptr;
    Buffer* to = nullptr;
  };
  /// Enqueues the sum of `count` elements on all devices, from one thread.
  virtual void all_reduce(std::span<const Part> parts, std::size_t count) = 0;
  /// Enqueues the part of one device. Each has to be, by a thread of its own: until then the others
  /// wait on their devices, and maybe in this call.
  virtual void all_reduce(std::size_t member, const Part& part, std::size_t count) = 0;
  /// Ends what waits for a part that does not come; the only call after it is the destructor. From
  /// any thread.
  virtual void abort() noexcept = 0;
};

/// Of devices of one backend, each with another number. Throws Unsupported where the backend has no
/// such sums, or the library is missing.
std::unique_ptr<Collective> open_collective(std::span<Device* const> devices);

}  // namespace launchgap
