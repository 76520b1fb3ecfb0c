#include "harness/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/libraries.h"
#include "kernels/images.h"

namespace launchgap::cuda {
namespace {

void* as_pointer(abi::DevicePointer pointer) {
  return reinterpret_cast<void*>(pointer);
}
abi::DevicePointer as_device(const void* pointer) {
  return reinterpret_cast<abi::DevicePointer>(pointer);
}

std::optional<int> attribute(const Driver& driver, abi::Device device, abi::DeviceAttribute which) {
  int value = 0;
  if (driver.cuDeviceGetAttribute(&value, which, device) != abi::kSuccess) return std::nullopt;
  return value;
}

std::optional<int> positive_attribute(const Driver& driver,
                                      abi::Device device,
                                      abi::DeviceAttribute which) {
  const std::optional<int> value = attribute(driver, device, which);
  return value && *value > 0 ? value : std::nullopt;
}

std::string uuid_text(const abi::Uuid& uuid, const std::string& prefix) {
  std::string text = prefix;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

/// Which NUMA node the GPU's PCI slot belongs to; the kernel says -1 where it does not know.
std::optional<int> numa_node_of(std::string pci) {
  std::ranges::transform(pci, pci.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file("/sys/bus/pci/devices/" + pci + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

DeviceFacts facts_of(const Driver& driver, abi::Device device, int index) {
  DeviceFacts facts;
  facts.backend = "cuda";
  facts.index = index;
  facts.simulated = driver.facts.simulated;
  facts.driver_version = driver.facts.version;

  std::array<char, 256> text{};
  CHECK_CUDA(driver, cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device));
  facts.name = text.data();

  // Version 2 tells the instances of a partitioned GPU (MIG) apart, which version 1 gives their
  // parent's UUID.
  abi::Uuid uuid{};
  if (driver.cuDeviceGetUuid_v2) {
    CHECK_CUDA(driver, cuDeviceGetUuid_v2(&uuid, device));
  } else {
    CHECK_CUDA(driver, cuDeviceGetUuid(&uuid, device));
  }
  const bool partition = facts.name.find(" MIG ") != std::string::npos && driver.cuDeviceGetUuid_v2;
  facts.uuid = uuid_text(uuid, partition ? "MIG-" : "GPU-");

  const std::optional<int> major = attribute(driver, device, abi::kComputeCapabilityMajor);
  const std::optional<int> minor = attribute(driver, device, abi::kComputeCapabilityMinor);
  if (major && minor) facts.compute_capability = fmt::format("{}.{}", *major, *minor);
  std::size_t bytes = 0;
  if (driver.cuDeviceTotalMem_v2(&bytes, device) == abi::kSuccess) facts.memory_bytes = bytes;
  facts.multiprocessors = positive_attribute(driver, device, abi::kMultiprocessorCount);
  if (const auto khz = positive_attribute(driver, device, abi::kClockRateKhz))
    facts.clock_mhz = *khz / 1000;
  if (const auto khz = positive_attribute(driver, device, abi::kMemoryClockRateKhz)) {
    facts.memory_clock_mhz = *khz / 1000;
  }
  facts.memory_bus_bits = positive_attribute(driver, device, abi::kGlobalMemoryBusWidth);
  if (const auto cache = positive_attribute(driver, device, abi::kL2CacheBytes)) {
    facts.last_level_cache_bytes = static_cast<std::uint64_t>(*cache);
  }
  if (driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()) - 1, device) ==
      abi::kSuccess) {
    facts.pci_bus_id = text.data();
    facts.numa_node = numa_node_of(*facts.pci_bus_id);
  }
  if (const auto mode = attribute(driver, device, abi::kComputeMode)) {
    facts.details["compute_mode"] = *mode == 0   ? "default"
                                    : *mode == 2 ? "prohibited"
                                                 : "exclusive process";
  }
  if (const auto ecc = attribute(driver, device, abi::kEccEnabled))
    facts.details["ecc"] = *ecc ? "on" : "off";
  return facts;
}

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(const Driver& driver, std::size_t bytes) : driver_(driver), bytes_(bytes) {
    CHECK_CUDA(driver_, cuMemAlloc_v2(&pointer_, std::max<std::size_t>(bytes, 1)));
  }
  ~CudaBuffer() override { driver_.cuMemFree_v2(pointer_); }
  void* address() const override { return as_pointer(pointer_); }
  std::size_t bytes() const override { return bytes_; }

 private:
  const Driver& driver_;
  std::size_t bytes_;
  abi::DevicePointer pointer_ = 0;
};

class SharedBuffer : public Buffer {
 public:
  SharedBuffer(const Driver& driver, std::size_t bytes) : driver_(driver), bytes_(bytes) {
    CHECK_CUDA(driver_,
               cuMemHostAlloc(&host_, bytes, abi::kHostAllocPortable | abi::kHostAllocDeviceMap));
  }
  ~SharedBuffer() override { driver_.cuMemFreeHost(host_); }
  void* address() const override { return host_; }
  std::size_t bytes() const override { return bytes_; }
  void* device_address() const {
    abi::DevicePointer pointer = 0;
    CHECK_CUDA(driver_, cuMemHostGetDevicePointer_v2(&pointer, host_, 0));
    return as_pointer(pointer);
  }

 private:
  const Driver& driver_;
  std::size_t bytes_;
  void* host_ = nullptr;
};

class CudaKernel : public Kernel {
 public:
  CudaKernel(const Driver& driver, const KernelDescription& description, int compute_capability)
      : driver_(driver) {
    const kernels::KernelImages images = kernels::images_of(description);
    const std::string wanted = wanted_form();
    if (!images.native.empty() && wanted != "portable" && load(images.native)) {
      form_ = "native";
      compiled_by_driver_ = !has_machine_code(compute_capability);
    } else if (!images.portable.empty() && wanted != "native") {
      load_portable(images.portable);
      form_ = "portable";
      compiled_by_driver_ = true;
    } else if (images.native.empty() && images.portable.empty()) {
      throw Unsupported(
          "this build carries no device code: it was built without clang and without nvcc. Install "
          "clang (scripts/setup does) and build again");
    } else {
      throw Unsupported(
          fmt::format("this build has no {} form of kernel {} for compute capability {}.{}",
                      wanted == "auto" ? "native" : wanted,
                      description.name,
                      compute_capability / 10,
                      compute_capability % 10));
    }
    try {
      CHECK_CUDA(driver_, cuModuleGetFunction(&function_, module_, description.name));
    } catch (...) {
      driver_.cuModuleUnload(module_);
      throw;
    }
  }
  ~CudaKernel() override { driver_.cuModuleUnload(module_); }

  std::string form() const override { return form_; }
  bool compiled_by_driver() const override { return compiled_by_driver_; }
  abi::Function function() const { return function_; }

 private:
  /// LAUNCHGAP_KERNELS: native, portable, or auto, which prefers native.
  static std::string wanted_form() {
    const char* text = std::getenv("LAUNCHGAP_KERNELS");
    std::string form = text && *text ? text : "auto";
    if (form != "auto" && form != "native" && form != "portable") {
      throw UsageError(
          fmt::format("LAUNCHGAP_KERNELS is '{}': it can be auto, native or portable", form));
    }
    return form;
  }

  /// Machine code runs on its own compute capability and on later ones of the same major.
  static bool has_machine_code(int compute_capability) {
    return std::ranges::any_of(kernels::native_architectures(), [&](int built_for) {
      return built_for / 10 == compute_capability / 10 && built_for <= compute_capability;
    });
  }

  /// False if the image has nothing for this GPU or is of a toolkit that the driver is too old for,
  /// which is no error: the portable form is there for that. Old drivers say of newer images that
  /// they are invalid.
  bool load(std::string_view image) {
    const abi::Result code =
        driver_.cuModuleLoadDataEx(&module_, image.data(), 0, nullptr, nullptr);
    switch (code) {
      case abi::kNoBinaryForGpu:
      case abi::kUnsupportedPtxVersion:
      case abi::kInvalidImage:
      case abi::kInvalidPtx:
      case abi::kInvalidSource:
        return false;
      default:
        driver_.check(code, "cuModuleLoadDataEx", __FILE__, __LINE__);
        return true;
    }
  }

  void load_portable(std::string_view ptx) {
    std::array<char, 4096> log{};
    int options[] = {abi::kJitErrorLogBuffer, abi::kJitErrorLogBufferSizeBytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
    const abi::Result code = driver_.cuModuleLoadDataEx(&module_, ptx.data(), 2, options, values);
    if (code != abi::kSuccess && log[0] != '\0') {
      throw LibraryError("CUDA driver",
                         "cuModuleLoadDataEx",
                         code,
                         driver_.describe(code) + ": " + log.data(),
                         is_sticky(code));
    }
    driver_.check(code, "cuModuleLoadDataEx", __FILE__, __LINE__);
  }

  const Driver& driver_;
  abi::Module module_ = nullptr;
  abi::Function function_ = nullptr;
  std::string form_;
  bool compiled_by_driver_ = false;
};

class CudaEvent : public Event {
 public:
  explicit CudaEvent(const Driver& driver) : driver_(driver) {
    CHECK_CUDA(driver_, cuEventCreate(&handle, abi::kEventDefault));
  }
  ~CudaEvent() override { driver_.cuEventDestroy_v2(handle); }
  abi::Event handle = nullptr;

 private:
  const Driver& driver_;
};

class CudaStream : public Stream {
 public:
  explicit CudaStream(const Driver& driver) : driver_(driver) {
    CHECK_CUDA(driver_, cuStreamCreate(&handle, abi::kStreamNonBlocking));
  }
  ~CudaStream() override { driver_.cuStreamDestroy_v2(handle); }

  void launch(const Kernel& kernel, LaunchShape shape, void** arguments) override {
    const abi::Function function = static_cast<const CudaKernel&>(kernel).function();
    if (driver_.cuLaunchKernelEx) {
      const abi::LaunchConfig config{
          shape.blocks, 1, 1, shape.threads, 1, 1, 0, handle, nullptr, 0};
      CHECK_CUDA(driver_, cuLaunchKernelEx(&config, function, arguments, nullptr));
    } else {
      CHECK_CUDA(
          driver_,
          cuLaunchKernel(
              function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, handle, arguments, nullptr));
    }
  }
  void wait() override { CHECK_CUDA(driver_, cuStreamSynchronize(handle)); }
  void record(Event& event) override {
    CHECK_CUDA(driver_, cuEventRecord(static_cast<CudaEvent&>(event).handle, handle));
  }
  void fill_bytes(void* address, unsigned char value, std::size_t bytes) override {
    CHECK_CUDA(driver_, cuMemsetD8Async(as_device(address), value, bytes, handle));
  }

  abi::Stream handle = nullptr;

 private:
  const Driver& driver_;
};

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
        !driver_.cuMemPoolSetAttribute ||
        attribute(driver_, device, abi::kMemoryPoolsSupported).value_or(0) == 0) {
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

class CudaDevice : public Device {
 public:
  CudaDevice(const Driver& driver, abi::Device device, DeviceFacts facts)
      : driver_(driver), device_(device), facts_(std::move(facts)) {
    // The default wait spins: it is the shortest, and does not depend on the number of devices and
    // CPUs as the driver's own choice does.
    CHECK_CUDA(driver_, cuDevicePrimaryCtxSetFlags_v2(device_, abi::kScheduleSpin));
    abi::Context context = nullptr;
    CHECK_CUDA(driver_, cuDevicePrimaryCtxRetain(&context, device_));
    try {
      CHECK_CUDA(driver_, cuCtxSetCurrent(context));
    } catch (...) {
      driver_.cuDevicePrimaryCtxRelease_v2(device_);
      throw;
    }
    facts_.details["wait"] = "spin";
    int mode = 0;
    if (driver_.cuModuleGetLoadingMode && driver_.cuModuleGetLoadingMode(&mode) == abi::kSuccess) {
      facts_.details["module_loading"] = mode == abi::kLazyLoading ? "lazy" : "eager";
    }
  }
  ~CudaDevice() override { driver_.cuDevicePrimaryCtxRelease_v2(device_); }

  const DeviceFacts& facts() const override { return facts_; }
  std::vector<LoadedLibrary> libraries() const override {
    std::vector<LoadedLibrary> all = {driver_.facts};
    std::ranges::copy(loaded_libraries(), std::back_inserter(all));
    return all;
  }

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CudaStream>(driver_); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(driver_); }
  double elapsed_ns(const Event& begin, const Event& end) override {
    float milliseconds = 0;
    CHECK_CUDA(driver_,
               cuEventElapsedTime(&milliseconds,
                                  static_cast<const CudaEvent&>(begin).handle,
                                  static_cast<const CudaEvent&>(end).handle));
    return static_cast<double>(milliseconds) * 1e6;
  }
  std::unique_ptr<Kernel> load(const KernelDescription& kernel) override {
    return std::make_unique<CudaKernel>(driver_, kernel, capability(facts_));
  }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<CudaBuffer>(driver_, bytes);
  }
  std::unique_ptr<Buffer> allocate_shared(std::size_t bytes) override {
    return std::make_unique<SharedBuffer>(driver_, bytes);
  }
  void* device_address(const Buffer& shared) override {
    return static_cast<const SharedBuffer&>(shared).device_address();
  }
  void read(const Buffer& from, std::size_t offset, void* to, std::size_t bytes) override {
    CHECK_CUDA(driver_, cuMemcpyDtoH_v2(to, as_device(from.address()) + offset, bytes));
  }
  void check() override { CHECK_CUDA(driver_, cuCtxSynchronize()); }
  std::uint64_t free_memory_bytes() override {
    std::size_t free = 0, total = 0;
    CHECK_CUDA(driver_, cuMemGetInfo_v2(&free, &total));
    return free;
  }

  std::unique_ptr<Matmul> matmul(Stream& stream, const MatmulShape& shape) override {
    return cublas_matmul(*this, static_cast<CudaStream&>(stream).handle, shape);
  }
  std::unique_ptr<Convolution> convolution(Stream& stream, const ConvolutionShape& shape) override {
    return cudnn_convolution(*this, static_cast<CudaStream&>(stream).handle, shape);
  }
  std::unique_ptr<Allocator> allocator(Stream& stream, AllocatorKind kind) override {
    auto& cuda_stream = static_cast<CudaStream&>(stream);
    switch (kind) {
      case AllocatorKind::direct:
        return std::make_unique<DirectAllocator>(driver_, cuda_stream);
      case AllocatorKind::pool:
        return std::make_unique<PoolAllocator>(driver_, cuda_stream, device_);
      case AllocatorKind::mapped:
        break;
    }
    throw Unsupported(
        "memory mapped page by page is the host's; GPUs have the direct and the pool allocator");
  }

 private:
  const Driver& driver_;
  abi::Device device_;
  DeviceFacts facts_;
};

std::vector<LoadedLibrary>& loaded() {
  static std::vector<LoadedLibrary> libraries;
  return libraries;
}

/// cuInit, once per process, with a message that says what to do about the commonest failures.
const Driver& initialised_driver() {
  const Driver& driver = Driver::get();
  const abi::Result code = driver.cuInit(0);
  switch (code) {
    case abi::kSuccess:
      return driver;
    case abi::kStubLibrary:
      throw Error(
          fmt::format("{} is the toolkit's stub, made for linking only: take its folder out of "
                      "LD_LIBRARY_PATH, and install the driver if there is none",
                      driver.facts.path));
    case abi::kSystemDriverMismatch:
      throw Error(fmt::format(
          "the CUDA driver library {} does not match the kernel module that is loaded: reboot, "
          "or unload the nvidia modules and load them again",
          driver.facts.path));
    default:
      driver.check(code, "cuInit", __FILE__, __LINE__);
      return driver;
  }
}

}  // namespace

int capability(const DeviceFacts& facts) {
  if (!facts.compute_capability) return 0;
  const std::string& text = *facts.compute_capability;
  const std::size_t dot = text.find('.');
  return std::atoi(text.c_str()) * 10 + std::atoi(text.c_str() + dot + 1);
}

std::vector<LoadedLibrary> loaded_libraries() {
  return loaded();
}
void note_loaded(const LoadedLibrary& library) {
  loaded().push_back(library);
}

std::vector<DeviceFacts> probe() {
  const Driver& driver = initialised_driver();
  int count = 0;
  CHECK_CUDA(driver, cuDeviceGetCount(&count));
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < count; ++i) {
    abi::Device device = 0;
    CHECK_CUDA(driver, cuDeviceGet(&device, i));
    devices.push_back(facts_of(driver, device, i));
  }
  return devices;
}

std::unique_ptr<Device> open(const std::string& uuid) {
  const Driver& driver = initialised_driver();
  const std::vector<DeviceFacts> devices = probe();
  for (const DeviceFacts& facts : devices) {
    if (facts.uuid != uuid) continue;
    abi::Device device = 0;
    CHECK_CUDA(driver, cuDeviceGet(&device, facts.index));
    return std::make_unique<CudaDevice>(driver, device, facts);
  }
  throw Error(fmt::format("no GPU with UUID {} is visible to this process", uuid));
}

}  // namespace launchgap::cuda
