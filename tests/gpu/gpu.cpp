#include "tests/gpu/gpu.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/device/backend.h"

namespace launchgap {
namespace {

std::unique_ptr<Device>& the_device() {
  static std::unique_ptr<Device> device;
  return device;
}

}  // namespace

Device& Gpu::opened() {
  if (!the_device()) the_device() = open_device("cuda", uuid);
  return *the_device();
}

void Gpu::close() {
  the_device().reset();
}

void Gpu::SetUp() {
  device = &opened();
  stream = device->create_stream();
}

void Gpu::TearDown() {
  stream.reset();
  if (device) device->check();
}

DeviceCounter::DeviceCounter(Device& device)
    : device_(device), buffer_(device.allocate(sizeof(unsigned))) {
  const auto stream = device.create_stream();
  stream->fill_bytes(buffer_->address(), 0, buffer_->bytes());
  stream->wait();
}

unsigned DeviceCounter::value() const {
  unsigned value = 0xDEAD;
  device_.read(*buffer_, 0, &value, sizeof value);
  return value;
}

SharedWords::SharedWords(Device& device, int count)
    : buffer_(device.allocate_shared(static_cast<std::size_t>(count) * sizeof(unsigned))),
      words_(static_cast<unsigned*>(buffer_->address())),
      on_device_(static_cast<unsigned*>(device.device_address(*buffer_))) {
  std::fill_n(words_, count, 0u);
}

bool SharedWords::becomes(int i, unsigned value) {
  constexpr std::int64_t kMostNs = 5'000'000'000;
  for (const std::int64_t begin = now_ns(); now_ns() - begin < kMostNs;) {
    if ((*this)[i] == value) return true;
  }
  return false;
}

void busy_for(double milliseconds) {
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(milliseconds * 1e6);
  while (now_ns() < until) {
  }
}

double shortest(double limit, const std::function<double()>& measure) {
  double least = measure();
  for (int i = 1; i < 5 || (least > limit && i < 100); ++i) least = std::min(least, measure());
  return least;
}

testing::AssertionResult fails_with(int code, const std::function<void()>& call) {
  try {
    call();
  } catch (const LibraryError& error) {
    if (error.code() == code && !error.sticky()) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << error.what() << (error.sticky() ? ", which is sticky" : "") << "; not " << code;
  }
  return testing::AssertionFailure() << "it succeeds; not " << code;
}

}  // namespace launchgap
