// What the tests of the contract share: the GPU that they test, and the smallest things that they
// all need of it. Everything goes through the faces that benchmarks use, so that the same program
// is the proof on a real GPU (scripts/validate-gpu) and on a fake one (ctest).
//
// A test holds on every generation from Kepler on and on a busy machine, needs less than 1 GiB of
// the device, and leaves nothing behind. What a device cannot do is skipped with its reason.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/device/device.h"
#include "harness/trace/tracer.h"
#include "kernels/kernels.h"

namespace launchgap {

class Gpu : public testing::Test {
 public:
  /// What main() decides: which GPU, and who traces the process.
  static inline std::string uuid;
  static inline Tracer* tracer = nullptr;

  /// One device for all tests, since opening one takes up to seconds.
  static Device& opened();
  /// The next test opens it anew.
  static void close();

 protected:
  void SetUp() override;
  /// No test leaves an error to the next.
  void TearDown() override;

  Device* device = nullptr;
  std::unique_ptr<Stream> stream;
};

/// What another process takes or gives back meanwhile is no fault of the device's.
inline constexpr std::uint64_t kTolerance = 4 << 20;

/// An unsigned in the device's memory, 0 at first.
class DeviceCounter {
 public:
  explicit DeviceCounter(Device& device);
  void* address() const { return buffer_->address(); }
  /// The caller has waited.
  unsigned value() const;

 private:
  Device& device_;
  std::unique_ptr<Buffer> buffer_;
};

/// Words that host and device see, 0 at first.
class SharedWords {
 public:
  SharedWords(Device& device, int count);
  std::atomic_ref<unsigned> operator[](int i) { return std::atomic_ref(words_[i]); }
  void* on_device(int i) const { return on_device_ + i; }
  /// Whether a word gets this value within 5 s, by looking alone.
  bool becomes(int i, unsigned value);

 private:
  std::unique_ptr<Buffer> buffer_;
  unsigned* words_;
  unsigned* on_device_;
};

template <class... Arguments>
void launch(Stream& on, const Kernel& kernel, LaunchShape shape, Arguments... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
  on.launch(kernel, shape, pointers);
}

void busy_for(double milliseconds);

/// The shortest of five times that `measure` returns, and of up to a hundred until one is at most
/// `limit`: others may have had the device or the CPU.
double shortest(double limit, const std::function<double()>& measure);

/// Whether a call fails with this code, and the process can go on.
testing::AssertionResult fails_with(int code, const std::function<void()>& call);

}  // namespace launchgap

/// Skips the test where the device cannot do what the statement asks for.
#define SKIP_UNLESS_SUPPORTED(statement)        \
  try {                                         \
    statement;                                  \
  } catch (const launchgap::Unsupported& why) { \
    GTEST_SKIP() << why.what();                 \
  }
