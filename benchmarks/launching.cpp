#include "benchmarks/launching.h"

#include "harness/core/errors.h"
#include "kernels/kernels.h"

namespace launchgap {

std::string launch_method(const Kernel& kernel, const DeviceFacts& facts) {
  return fmt::format("{} kernel through the {}", kernel.form(), backend_of(facts).launcher);
}

void verify_launches(Device& device,
                     Stream& stream,
                     int launches,
                     const std::function<void(const Kernel& counting, void** arguments)>& launch) {
  const std::unique_ptr<Kernel> counting = device.load(kernels::increment_kernel);
  const std::unique_ptr<Buffer> counter = device.allocate(sizeof(unsigned));
  void* address = counter->address();
  void* arguments[] = {&address};
  stream.fill_bytes(address, 0, sizeof(unsigned));
  stream.wait();
  for (int i = 0; i < launches; ++i) launch(*counting, arguments);
  stream.wait();
  device.check();
  unsigned count = 0;
  device.read(*counter, 0, &count, sizeof count);
  if (count != static_cast<unsigned>(launches)) {
    throw WrongResult("{} launches of a kernel that counts gave {}", launches, count);
  }
}

void verify_launches(Device& device, Stream& stream) {
  constexpr int kLaunches = 100;
  verify_launches(device, stream, kLaunches, [&](const Kernel& counting, void** arguments) {
    stream.launch(counting, {1, 1}, arguments);
  });
}

std::string mode_meaning() {
  return fmt::format("`idle`: launch and wait, each time; `burst`: {} launches and one wait",
                     kBurst);
}

std::vector<std::string_view> metrics_by_mode(const CaseName& name) {
  if (is_burst(name)) return {"per_launch_ns"};
  return {"api_ns", "roundtrip_ns"};
}

TracedAs traced_by_mode(const CaseName& name) {
  return is_burst(name) ? TracedAs::burst : TracedAs::launch;
}

double seconds_by_mode(const DeviceFacts&, const CaseName& name, Sampling sampling) {
  constexpr double kLaunchSeconds = 4e-6;
  const double launches = is_burst(name) ? kBurst : 3;
  return 0.01 + kLaunchSeconds * launches * sampling.blocks * sampling.samples;
}

NullLaunch::NullLaunch(Device& device, bool burst, LaunchShape shape)
    : device_(device),
      kernel_(device.load(kernels::null_kernel)),
      stream_(device.create_stream()),
      burst_(burst),
      shape_(shape),
      method_(launch_method(*kernel_, device.facts())) {
  constexpr int kWarmUpLaunches = 1000;
  verify_launches(device, *stream_);
  for (int i = 0; i < kWarmUpLaunches; ++i) {
    stream_->launch(*kernel_, shape_, nullptr);
    stream_->wait();
  }
}

void NullLaunch::sample(Block& block) {
  sample_by_mode(block, burst_, *stream_, [this] { stream_->launch(*kernel_, shape_, nullptr); });
}

void need_cpus(const Device& device, std::size_t cpus, std::string_view what) {
  if (device.cpus().size() < cpus) {
    throw Unsupported(
        "{} need {} CPUs, and this process may use {}", what, cpus, device.cpus().size());
  }
}

}  // namespace launchgap
