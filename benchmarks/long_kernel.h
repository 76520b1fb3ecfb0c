// A kernel that keeps a GPU busy for a known time, on the benchmark's own device or on another.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace launchgap {

/// It ends by itself, so that a call may wait for it.
inline constexpr unsigned long long kLongKernelNs = 20'000'000;

/// Counts how often it has run. Its calls are made while its device is in use on this thread.
class LongKernel {
 public:
  explicit LongKernel(Device& device);

  /// One for it, beside the streams of others.
  Stream& stream() { return *stream_; }
  void launch_on(Stream& stream);
  /// Throws WrongResult unless each launch has run once.
  void verify();

 private:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> counter_;
  std::unique_ptr<Stream> stream_;
  unsigned launched_ = 0;
};

/// Another GPU that this process sees, with such a kernel.
class SecondGpu {
 public:
  /// Opens it. Throws Unsupported if there is none that can be used.
  explicit SecondGpu(Device& first);
  ~SecondGpu();
  SecondGpu(const SecondGpu&) = delete;
  SecondGpu& operator=(const SecondGpu&) = delete;

  const DeviceFacts& facts() const { return device_->facts(); }
  void launch();
  void wait();
  void verify();

 private:
  /// Does something on it; afterwards this thread uses the first one again.
  template <class Work>
  void use(Work&& work);
  void close() noexcept;

  Device& first_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LongKernel> kernel_;
};

}  // namespace launchgap
