#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::cuda {
namespace {

void write_on(CudaStream& stream, void* address, std::size_t bytes) {
  stream.fill_bytes(address, 0x5A, bytes);
  stream.wait();
}

/// Common to all: the device writes the whole block on the stream, and it is waited for.
class StreamAllocator : public Allocator {
 public:
  StreamAllocator(const Driver& driver, CudaStream& stream) : driver_(driver), stream_(stream) {}
  void touch(void* address, std::size_t bytes) override { write_on(stream_, address, bytes); }

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

constexpr std::uint64_t kKeepNothing = 0, kKeepEverything = ~std::uint64_t{0};

/// A pool with a release threshold, which is how many bytes it keeps when somebody waits.
class PoolAllocator : public StreamAllocator {
 public:
  PoolAllocator(const Driver& driver, CudaStream& stream, abi::Device device)
      : StreamAllocator(driver, stream) {
    if (!driver_.cuMemAllocAsync || !driver_.cuMemFreeAsync || !driver_.cuDeviceGetDefaultMemPool ||
        !driver_.cuMemPoolSetAttribute || !driver_.cuMemPoolGetAttribute ||
        !driver_.cuMemPoolTrimTo || !driver_.has(abi::kMemoryPoolsSupported, device)) {
      throw Unsupported("the driver has no memory pools for this GPU (they came with CUDA 11.2)");
    }
  }
  void trim() override { empty(); }
  std::optional<std::uint64_t> reserved_bytes() const override {
    std::uint64_t bytes = 0;
    const abi::Result code = driver_.cuMemPoolGetAttribute(pool_, abi::kReservedMemory, &bytes);
    return code == abi::kSuccess ? std::optional(bytes) : std::nullopt;
  }
  void release(void* address, std::size_t) override {
    CHECK_CUDA(driver_, cuMemFreeAsync(as_device(address), stream_.handle));
  }

 protected:
  void set_threshold(std::uint64_t bytes) {
    CHECK_CUDA(driver_, cuMemPoolSetAttribute(pool_, abi::kReleaseThreshold, &bytes));
  }
  /// What is being freed cannot be given back before it is.
  void empty() {
    driver_.cuStreamSynchronize(stream_.handle);
    driver_.cuMemPoolTrimTo(pool_, 0);
  }

  abi::MemoryPool pool_ = nullptr;
};

/// The default pool is everybody's: its threshold is put back as it was.
class DefaultPoolAllocator : public PoolAllocator {
 public:
  DefaultPoolAllocator(const Driver& driver,
                       CudaStream& stream,
                       abi::Device device,
                       std::uint64_t threshold)
      : PoolAllocator(driver, stream, device), keeps_(threshold != kKeepNothing) {
    CHECK_CUDA(driver_, cuDeviceGetDefaultMemPool(&pool_, device));
    CHECK_CUDA(driver_, cuMemPoolGetAttribute(pool_, abi::kReleaseThreshold, &threshold_before_));
    set_threshold(threshold);
  }
  ~DefaultPoolAllocator() override {
    empty();
    driver_.cuMemPoolSetAttribute(pool_, abi::kReleaseThreshold, &threshold_before_);
  }
  void* allocate(std::size_t bytes) override {
    insert_delay();
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemAllocAsync(&pointer, bytes, stream_.handle));
    return as_pointer(pointer);
  }
  std::string method() const override {
    return fmt::format("cuMemAllocAsync, cuMemFreeAsync on the default pool, which keeps {}",
                       keeps_ ? "what is freed" : "nothing");
  }

 private:
  bool keeps_;
  std::uint64_t threshold_before_ = 0;
};

class OwnPoolAllocator : public PoolAllocator {
 public:
  OwnPoolAllocator(const Driver& driver, CudaStream& stream, abi::Device device)
      : PoolAllocator(driver, stream, device) {
    if (!driver_.cuMemPoolCreate || !driver_.cuMemPoolDestroy || !driver_.cuMemAllocFromPoolAsync)
      throw Unsupported("the driver makes no memory pools (it does since CUDA 11.2)");
    abi::MemoryPoolProperties properties{};
    properties.type = abi::kPinned;
    properties.location = {abi::kOnDevice, device};
    CHECK_CUDA(driver_, cuMemPoolCreate(&pool_, &properties));
    try {
      set_threshold(kKeepEverything);
    } catch (...) {
      driver_.cuMemPoolDestroy(pool_);
      throw;
    }
  }
  ~OwnPoolAllocator() override {
    empty();
    driver_.cuMemPoolDestroy(pool_);
  }
  void* allocate(std::size_t bytes) override {
    insert_delay();
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemAllocFromPoolAsync(&pointer, bytes, pool_, stream_.handle));
    return as_pointer(pointer);
  }
  std::string method() const override {
    return "cuMemAllocFromPoolAsync, cuMemFreeAsync on a pool of its own, which keeps what is "
           "freed";
  }
};

/// Memory of the host, which the host writes.
class HostMemoryAllocator : public StreamAllocator {
 public:
  using StreamAllocator::StreamAllocator;
  void touch(void* address, std::size_t bytes) override {
    std::memset(address, 0x5A, bytes);
    asm volatile("" : : "r"(address) : "memory");
  }
};

class PinnedAllocator : public HostMemoryAllocator {
 public:
  using HostMemoryAllocator::HostMemoryAllocator;
  void* allocate(std::size_t bytes) override {
    insert_delay();
    void* pointer = nullptr;
    CHECK_CUDA(driver_,
               cuMemHostAlloc(&pointer, bytes, abi::kHostAllocPortable | abi::kHostAllocDeviceMap));
    return pointer;
  }
  void release(void* address, std::size_t) override { CHECK_CUDA(driver_, cuMemFreeHost(address)); }
  std::string method() const override { return "cuMemHostAlloc, cuMemFreeHost"; }
};

class RegisteringAllocator : public HostMemoryAllocator {
 public:
  RegisteringAllocator(const Driver& driver, CudaStream& stream)
      : HostMemoryAllocator(driver, stream) {
    if (!driver_.cuMemHostRegister_v2 || !driver_.cuMemHostUnregister)
      throw Unsupported("the driver registers no memory of the host's");
  }
  /// In whole pages, since no page may be registered twice.
  void* allocate(std::size_t bytes) override {
    insert_delay();
    constexpr std::size_t kPage = 4096;
    void* const pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (!pointer) throw OutOfMemory("host", "aligned_alloc", ENOMEM, "out of memory", false);
    const abi::Result code =
        driver_.cuMemHostRegister_v2(pointer, bytes, abi::kHostRegisterPortable);
    if (code != abi::kSuccess) std::free(pointer);
    driver_.check(code, "cuMemHostRegister_v2", __FILE__, __LINE__);
    return pointer;
  }
  void release(void* address, std::size_t) override {
    CHECK_CUDA(driver_, cuMemHostUnregister(address));
    std::free(address);
  }
  std::string method() const override {
    return "aligned_alloc and cuMemHostRegister, cuMemHostUnregister and free";
  }
};

class ManagedAllocator : public StreamAllocator {
 public:
  ManagedAllocator(const Driver& driver, CudaStream& stream, abi::Device device)
      : StreamAllocator(driver, stream) {
    if (!driver_.cuMemAllocManaged || !driver_.has(abi::kManagedMemorySupported, device))
      throw Unsupported("the driver has no managed memory for this GPU");
    if (!driver_.has(abi::kConcurrentManagedAccess, device)) {
      throw Unsupported(
          "the host may not use managed memory while this GPU works: it is older than Pascal, or "
          "this is Windows or WSL");
    }
  }
  void* allocate(std::size_t bytes) override {
    insert_delay();
    // The driver would give more than the GPU has, and move pages to and fro.
    if (bytes > info_of(AllocatorKind::managed).most_bytes)
      throw OutOfMemory("launchgap", "managed", 0, "no block may be so large", false);
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemAllocManaged(&pointer, bytes, abi::kAttachGlobal));
    return as_pointer(pointer);
  }
  void release(void* address, std::size_t) override {
    CHECK_CUDA(driver_, cuMemFree_v2(as_device(address)));
  }
  std::string method() const override { return "cuMemAllocManaged, cuMemFree"; }
};

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

std::unique_ptr<Allocator> make_allocator(const Driver& driver,
                                          CudaStream& stream,
                                          abi::Device device,
                                          AllocatorKind kind,
                                          launchgap::Device& of) {
  const Touch touch = [&stream](void* address, std::size_t bytes) {
    write_on(stream, address, bytes);
  };
  switch (kind) {
    case AllocatorKind::direct:
      return std::make_unique<DirectAllocator>(driver, stream);
    case AllocatorKind::mapped:
      break;
    case AllocatorKind::pool:
      return std::make_unique<DefaultPoolAllocator>(driver, stream, device, kKeepEverything);
    case AllocatorKind::pool_t0:
      return std::make_unique<DefaultPoolAllocator>(driver, stream, device, kKeepNothing);
    case AllocatorKind::pool_own:
      return std::make_unique<OwnPoolAllocator>(driver, stream, device);
    case AllocatorKind::vmm:
      return mapping_allocator(make_virtual_memory(driver, device), touch);
    case AllocatorKind::vmm_expand:
      return expanding_allocator(make_virtual_memory(driver, device),
                                 touch,
                                 of.facts().memory_bytes.value_or(allocatable_bytes(of)),
                                 [&of] { return allocatable_bytes(of); });
    case AllocatorKind::host_pinned:
      return std::make_unique<PinnedAllocator>(driver, stream);
    case AllocatorKind::host_register:
      return std::make_unique<RegisteringAllocator>(driver, stream);
    case AllocatorKind::managed:
      return std::make_unique<ManagedAllocator>(driver, stream, device);
  }
  throw Unsupported("memory mapped page by page is the host's; GPUs have `vmm` instead");
}

std::unique_ptr<VirtualMemory> make_virtual_memory(const Driver& driver, abi::Device device) {
  return std::make_unique<CudaVirtualMemory>(driver, device);
}

}  // namespace launchgap::cuda
