// A second process that works on the same GPU, for as long as it is told to.
#pragma once

#include <string_view>
#include <sys/types.h>

#include "harness/device/device.h"

namespace launchgap {

/// Started idle: it has the device open and launches nothing. It ends with this object, and with
/// this process whatever becomes of it.
class Neighbour {
 public:
  /// Starts it on one CPU and waits until it has opened the device. Throws Error, with what it said
  /// last, if it does not get that far within a minute.
  Neighbour(const DeviceFacts& device, int cpu);
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  /// From now on it launches kernels of 10 us, one behind the other; returns when the first have
  /// run. Throws Error if it has ended.
  void work();
  /// Returns when all that it launched has run. Throws likewise.
  void rest();

 private:
  enum class Ask : char { work = 'w', rest = 'r' };
  void ask(Ask what);
  void expect(char answer, int seconds);
  [[noreturn]] void ended();
  void end() noexcept;

  pid_t pid_ = -1;
  int socket_ = -1;
  int output_ = -1;  // what it and its libraries print: a file in memory
};

/// Of the second process itself: opens the device and serves until its parent is gone. 0, or 3
/// where the device cannot be used, which it says on standard error.
int serve_as_neighbour(std::string_view uuid, int cpu);

/// The socket by which it is asked.
inline constexpr int kNeighbourSocket = 3;

}  // namespace launchgap
