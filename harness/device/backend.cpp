#include "harness/device/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/device/collective.h"
#include "harness/device/cuda/cuda_device.h"
#include "harness/device/device.h"
#include "harness/device/host/host_device.h"

namespace launchgap {

std::span<const Backend* const> all_backends() {
  static const std::array<const Backend*, 2> all = {&host::backend(), &cuda::backend()};
  return all;
}

const Backend& backend_named(std::string_view name) {
  for (const Backend* backend : all_backends()) {
    if (backend->name == name) return *backend;
  }
  std::vector<std::string_view> names;
  for (const Backend* backend : all_backends()) names.push_back(backend->name);
  throw UsageError("there is no backend '{}': choose {}", name, fmt::join(names, " or "));
}

const Backend& backend_of(const DeviceFacts& facts) {
  static const Backend unknown;
  for (const Backend* backend : all_backends()) {
    if (backend->name == facts.backend) return *backend;
  }
  return unknown;
}

const Backend& backend_of_uuid(std::string_view uuid) {
  return uuid.starts_with(host::backend().name) ? host::backend() : cuda::backend();
}

namespace {
double of_device(const DeviceFacts& facts, double flops) {
  return backend_of(facts).expected.per_processor ? flops * facts.multiprocessors.value_or(1)
                                                  : flops;
}
}  // namespace

double expected_matmul_flops(const DeviceFacts& facts) {
  return of_device(facts, backend_of(facts).expected.matmul_flops);
}

double expected_convolution_flops(const DeviceFacts& facts) {
  return of_device(facts, backend_of(facts).expected.convolution_flops);
}

void need(const DeviceFacts& facts, Capability what) {
  const std::string_view why_not = backend_of(facts).why_not[static_cast<std::size_t>(what)];
  if (!why_not.empty()) throw Unsupported(std::string(why_not));
}

DeviceFacts unknown_gpu(int index) {
  DeviceFacts facts;
  facts.backend = cuda::backend().name;
  facts.index = index;
  facts.name = "GPU";
  facts.uuid = "GPU-unknown-" + std::to_string(index);
  return facts;
}

std::vector<DeviceFacts> probe_devices(std::string_view backend, const ProbeOptions& options) {
  return backend_named(backend).probe(options);
}

std::unique_ptr<Device> open_device(std::string_view backend,
                                    const std::string& uuid,
                                    const OpenOptions& options) {
  return backend_named(backend).open(uuid, options);
}

std::unique_ptr<Collective> open_collective(std::span<Device* const> devices) {
  const Backend& backend = backend_of(devices.front()->facts());
  if (!backend.collective) throw Unsupported("devices of this kind compute no sum together");
  return backend.collective(devices);
}

}  // namespace launchgap
