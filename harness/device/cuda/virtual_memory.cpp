#include "harness/device/cuda/virtual_memory.h"

#include "harness/core/errors.h"
#include "harness/device/cuda/pointers.h"

namespace launchgap::cuda {
namespace {

class CudaVirtualMemory : public VirtualMemory {
 public:
  CudaVirtualMemory(const Driver& driver, abi::Device device) : driver_(driver), device_(device) {
    require();
    // Of a partitioned GPU too, the ordinal is that of the one device which the process sees.
    properties_.type = abi::kPinned;
    properties_.location = {abi::kOnDevice, device};
    CHECK_CUDA(driver_,
               cuMemGetAllocationGranularity(&granularity_, &properties_, abi::kLeastGranularity));
  }

  std::size_t granularity() const override { return granularity_; }

  void* reserve(std::size_t bytes) override {
    abi::DevicePointer range = 0;
    CHECK_CUDA(driver_, cuMemAddressReserve(&range, bytes, 0, 0, 0));
    return as_pointer(range);
  }
  void unreserve(void* range, std::size_t bytes) override {
    CHECK_CUDA(driver_, cuMemAddressFree(as_device(range), bytes));
  }

  void map(void* from, std::size_t bytes) override {
    abi::PhysicalMemory memory = 0;
    CHECK_CUDA(driver_, cuMemCreate(&memory, bytes, &properties_, 0));
    const abi::Result mapped = driver_.cuMemMap(as_device(from), bytes, 0, memory, 0);
    // The memory lives as long as it is mapped; it needs no other owner, and if it was not mapped
    // it is given back here.
    driver_.cuMemRelease(memory);
    driver_.check(mapped, "cuMemMap", __FILE__, __LINE__);
    const abi::AccessDescription access = {properties_.location, abi::kReadAndWrite};
    const abi::Result accessible = driver_.cuMemSetAccess(as_device(from), bytes, &access, 1);
    if (accessible != abi::kSuccess) driver_.cuMemUnmap(as_device(from), bytes);
    driver_.check(accessible, "cuMemSetAccess", __FILE__, __LINE__);
  }
  void unmap(void* from, std::size_t bytes) override {
    CHECK_CUDA(driver_, cuMemUnmap(as_device(from), bytes));
  }

 private:
  void require() const {
    if (!driver_.cuMemGetAllocationGranularity || !driver_.cuMemAddressReserve ||
        !driver_.cuMemAddressFree || !driver_.cuMemCreate || !driver_.cuMemRelease ||
        !driver_.cuMemMap || !driver_.cuMemUnmap || !driver_.cuMemSetAccess) {
      throw Unsupported(
          "the driver has no calls for virtual memory management (they came with CUDA 10.2)");
    }
    if (!driver_.has(abi::kVirtualMemorySupported, device_))
      throw Unsupported("the driver says that this GPU has no virtual memory management");
  }

  const Driver& driver_;
  abi::Device device_;
  abi::PhysicalMemoryProperties properties_{};
  std::size_t granularity_ = 0;
};

}  // namespace

std::unique_ptr<VirtualMemory> make_virtual_memory(const Driver& driver, abi::Device device) {
  return std::make_unique<CudaVirtualMemory>(driver, device);
}

}  // namespace launchgap::cuda
