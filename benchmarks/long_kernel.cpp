#include "benchmarks/long_kernel.h"

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

std::unique_ptr<Device> open_beside(const Device& first) {
  const DeviceFacts& own = first.facts();
  for (const DeviceFacts& facts : probe_devices(own.backend)) {
    if (facts.uuid != own.uuid && facts.usable) return open_device(own.backend, facts.uuid);
  }
  throw Unsupported("there is no second GPU that can be used");
}

}  // namespace

LongKernel::LongKernel(Device& device)
    : device_(device),
      kernel_(device.load(kernels::spin_kernel)),
      counter_(device.allocate(sizeof(unsigned))),
      stream_(device.create_stream()) {
  stream_->fill_bytes(counter_->address(), 0, sizeof(unsigned));
  stream_->wait();
}

void LongKernel::launch_on(Stream& stream) {
  unsigned long long length = kLongKernelNs;
  void* counter = counter_->address();
  void* arguments[] = {&length, &counter};
  stream.launch(*kernel_, {1, 1}, arguments);
  ++launched_;
}

void LongKernel::verify() {
  device_.check();
  unsigned counted = 0;
  device_.read(*counter_, 0, &counted, sizeof counted);
  if (counted != launched_) throw WrongResult("{} of {} kernels have run", counted, launched_);
}

SecondGpu::SecondGpu(Device& first) : first_(first), device_(open_beside(first)) {
  try {
    kernel_ = std::make_unique<LongKernel>(*device_);
  } catch (...) {
    close();
    throw;
  }
  first_.use_on_this_thread();
}

SecondGpu::~SecondGpu() {
  close();
}

void SecondGpu::close() noexcept {
  try {
    device_->use_on_this_thread();
    kernel_.reset();
    device_.reset();
    first_.use_on_this_thread();
  } catch (const std::exception&) {  // a context is lost, and what was in it too
  }
}

template <class Work>
void SecondGpu::use(Work&& work) {
  device_->use_on_this_thread();
  try {
    work();
  } catch (...) {
    first_.use_on_this_thread();
    throw;
  }
  first_.use_on_this_thread();
}

void SecondGpu::launch() {
  use([&] { kernel_->launch_on(kernel_->stream()); });
}

void SecondGpu::wait() {
  use([&] { kernel_->stream().wait(); });
}

void SecondGpu::verify() {
  use([&] { kernel_->verify(); });
}

}  // namespace launchgap
