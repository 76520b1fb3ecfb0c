#include "harness/device/cuda/allocators.h"

#include "harness/core/errors.h"
#include "harness/device/cuda/pointers.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::cuda {
namespace {

bool has_pools(const Driver& driver, abi::Device device) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, abi::kMemoryPoolsSupported, device) == abi::kSuccess &&
         value != 0;
}

/// Common to both allocators: a write of the whole allocation on the stream, and a wait.
class StreamAllocator : public Allocator {
 public:
  StreamAllocator(const Driver& driver, CudaStream& stream) : driver_(driver), stream_(stream) {}
  void touch(void* address, std::size_t bytes) override {
    stream_.fill_bytes(address, 0x5A, bytes);
    stream_.wait();
  }

 protected:
  const Driver& driver_;
  CudaStream& stream_;
};

class DirectAllocator : public StreamAllocator {
 public:
  using StreamAllocator::StreamAllocator;
  void* allocate(std::size_t bytes) override {
    insert_delay();
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemAlloc_v2(&pointer, bytes));
    return as_pointer(pointer);
  }
  void release(void* address, std::size_t) override {
    CHECK_CUDA(driver_, cuMemFree_v2(as_device(address)));
  }
  std::string method() const override { return "cuMemAlloc, cuMemFree"; }
};

class PoolAllocator : public StreamAllocator {
 public:
  PoolAllocator(const Driver& driver, CudaStream& stream, abi::Device device)
      : StreamAllocator(driver, stream) {
    if (!driver_.cuMemAllocAsync || !driver_.cuMemFreeAsync || !driver_.cuDeviceGetDefaultMemPool ||
        !driver_.cuMemPoolSetAttribute || !has_pools(driver_, device)) {
      throw Unsupported("the driver has no memory pools for this GPU (they came with CUDA 11.2)");
    }
    abi::MemoryPool pool = nullptr;
    CHECK_CUDA(driver_, cuDeviceGetDefaultMemPool(&pool, device));
    // As frameworks set it: by default the pool returns everything to the system at each
    // synchronisation.
    std::uint64_t keep_everything = ~std::uint64_t{0};
    CHECK_CUDA(driver_, cuMemPoolSetAttribute(pool, abi::kReleaseThreshold, &keep_everything));
    pool_ = pool;
  }
  ~PoolAllocator() override {
    driver_.cuStreamSynchronize(stream_.handle);  // what is being freed cannot be trimmed yet
    if (driver_.cuMemPoolTrimTo) driver_.cuMemPoolTrimTo(pool_, 0);
  }
  void* allocate(std::size_t bytes) override {
    insert_delay();
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemAllocAsync(&pointer, bytes, stream_.handle));
    return as_pointer(pointer);
  }
  void release(void* address, std::size_t) override {
    CHECK_CUDA(driver_, cuMemFreeAsync(as_device(address), stream_.handle));
  }
  std::string method() const override {
    return "cuMemAllocAsync, cuMemFreeAsync on the default pool, which keeps what is freed";
  }

 private:
  abi::MemoryPool pool_ = nullptr;
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(const Driver& driver,
                                          CudaStream& stream,
                                          abi::Device device,
                                          AllocatorKind kind) {
  switch (kind) {
    case AllocatorKind::direct:
      return std::make_unique<DirectAllocator>(driver, stream);
    case AllocatorKind::pool:
      return std::make_unique<PoolAllocator>(driver, stream, device);
    case AllocatorKind::mapped:
      break;
  }
  throw Unsupported(
      "memory mapped page by page is the host's; GPUs have the direct and the pool allocator");
}

}  // namespace launchgap::cuda
