#include "harness/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/allocator.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/kernel.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/cuda/stream.h"
#include "harness/device/device.h"

namespace launchgap::cuda {
namespace {

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

/// Which NUMA node the GPU's PCI slot belongs to; the kernel says -1 where it does not know.
std::optional<int> numa_node_of(std::string pci) {
  std::ranges::transform(pci, pci.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto text =
      SystemFiles::of_this_system().read("/sys/bus/pci/devices/" + pci + "/numa_node");
  const int node = text ? std::atoi(text->c_str()) : -1;
  if (!text || text->empty() || node < 0) return std::nullopt;
  return node;
}

/// Asks for all of it; throws LibraryError where it must be known, and what was known then stays.
void ask(const Driver& driver, const ProbeOptions& options, DeviceFacts& facts) {
  options.asking("cuDeviceGet");
  abi::Device device = 0;
  CHECK_CUDA(driver, cuDeviceGet(&device, facts.index));

  std::array<char, 256> text{};
  options.asking("cuDeviceGetName");
  CHECK_CUDA(driver, cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device));
  facts.name = text.data();

  // Version 2 tells the instances of a partitioned GPU (MIG) apart, which version 1 gives their
  // parent's UUID.
  abi::Uuid uuid{};
  options.asking("cuDeviceGetUuid");
  if (driver.cuDeviceGetUuid_v2) {
    CHECK_CUDA(driver, cuDeviceGetUuid_v2(&uuid, device));
  } else {
    CHECK_CUDA(driver, cuDeviceGetUuid(&uuid, device));
  }
  const bool partition = facts.name.find(" MIG ") != std::string::npos && driver.cuDeviceGetUuid_v2;
  facts.uuid = (partition ? "MIG-" : "GPU-") +
               uuid_text(std::span<const char, kUuidBytes>(
                   reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes));

  options.asking("cuDeviceGetAttribute");
  const std::optional<int> major = attribute(driver, device, abi::kComputeCapabilityMajor);
  const std::optional<int> minor = attribute(driver, device, abi::kComputeCapabilityMinor);
  if (major && minor) facts.compute_capability = fmt::format("{}.{}", *major, *minor);
  std::size_t bytes = 0;
  options.asking("cuDeviceTotalMem_v2");
  if (driver.cuDeviceTotalMem_v2(&bytes, device) == abi::kSuccess) facts.memory_bytes = bytes;
  options.asking("cuDeviceGetAttribute");
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
  options.asking("cuDeviceGetPCIBusId");
  if (driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()) - 1, device) ==
      abi::kSuccess) {
    facts.pci_bus_id = text.data();
    facts.numa_node = numa_node_of(*facts.pci_bus_id);
  }
  options.asking("cuDeviceGetAttribute");
  if (const auto mode = attribute(driver, device, abi::kComputeMode)) {
    facts.details["compute_mode"] = *mode == 0   ? "default"
                                    : *mode == 2 ? "prohibited"
                                                 : "exclusive process";
  }
  if (const auto ecc = attribute(driver, device, abi::kEccEnabled))
    facts.details["ecc"] = *ecc ? "on" : "off";
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

unsigned schedule_of(WaitMode wait) {
  switch (wait) {
    case WaitMode::spin:
      return abi::kScheduleSpin;
    case WaitMode::yield:
      return abi::kScheduleYield;
    case WaitMode::block:
      return abi::kScheduleBlockingSync;
  }
  return abi::kScheduleSpin;
}

/// What the driver reads from the environment when it is initialised.
void set_environment(const OpenOptions& options) {
  switch (options.loading) {
    case CodeLoading::unchanged:
      return;
    case CodeLoading::lazy:
      setenv("CUDA_MODULE_LOADING", "LAZY", 1);
      return;
    case CodeLoading::eager:
      setenv("CUDA_MODULE_LOADING", "EAGER", 1);
      return;
    case CodeLoading::jit_warming:
    case CodeLoading::jit_cached:
      setenv("CUDA_CACHE_PATH", options.jit_cache.c_str(), 1);
      unsetenv("CUDA_CACHE_DISABLE");
      setenv("LAUNCHGAP_KERNELS", "portable", 1);
      return;
    case CodeLoading::jit_uncached:
      setenv("CUDA_CACHE_DISABLE", "1", 1);
      setenv("LAUNCHGAP_KERNELS", "portable", 1);
      return;
  }
}

class CudaDevice : public Device {
 public:
  CudaDevice(const Driver& driver,
             abi::Device device,
             DeviceFacts facts,
             const OpenOptions& options,
             double initialise_ns)
      : driver_(driver), device_(device), facts_(std::move(facts)), wait_(options.wait) {
    const std::int64_t begin = now_ns();
    // The default wait spins: it is the shortest, and does not depend on the number of devices and
    // CPUs as the driver's own choice does.
    CHECK_CUDA(driver_, cuDevicePrimaryCtxSetFlags_v2(device_, schedule_of(options.wait)));
    CHECK_CUDA(driver_, cuDevicePrimaryCtxRetain(&context_, device_));
    try {
      CHECK_CUDA(driver_, cuCtxSetCurrent(context_));
    } catch (...) {
      driver_.cuDevicePrimaryCtxRelease_v2(device_);
      throw;
    }
    if (options.loading == CodeLoading::jit_cached) jit_cache_ = options.jit_cache;
    opening_ = {initialise_ns, static_cast<double>(now_ns() - begin)};
    facts_.details["wait"] = name_of(options.wait);
    int mode = 0;
    if (driver_.cuModuleGetLoadingMode && driver_.cuModuleGetLoadingMode(&mode) == abi::kSuccess) {
      facts_.details["module_loading"] = mode == abi::kLazyLoading ? "lazy" : "eager";
    }
  }
  ~CudaDevice() override {
    modules_.clear();
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::vector<LoadedLibrary> libraries() const override {
    std::vector<LoadedLibrary> all = {driver_.facts};
    std::ranges::copy(loaded_libraries(), std::back_inserter(all));
    return all;
  }

  Opening opening() const override { return opening_; }
  void use_on_this_thread() override { CHECK_CUDA(driver_, cuCtxSetCurrent(context_)); }

  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    return std::make_unique<CudaStream>(driver_, options, launches_cooperatively());
  }
  std::unique_ptr<Stream> default_stream() override {
    return std::make_unique<CudaStream>(driver_, launches_cooperatively());
  }
  Priorities stream_priorities() override {
    Priorities range{};
    CHECK_CUDA(driver_, cuCtxGetStreamPriorityRange(&range.lowest, &range.highest));
    return range;
  }
  /// Waits for an event sleep where waits for a stream do, which the event must be told.
  std::unique_ptr<Event> create_event(EventUse use) override {
    const unsigned sleep = wait_ == WaitMode::block ? abi::kEventBlockingSync : abi::kEventDefault;
    const unsigned timing = use == EventUse::order ? abi::kEventDisableTiming : abi::kEventDefault;
    return std::make_unique<CudaEvent>(driver_, sleep | timing);
  }
  double elapsed_ns(const Event& begin, const Event& end) override {
    float milliseconds = 0;
    CHECK_CUDA(driver_,
               cuEventElapsedTime(&milliseconds,
                                  static_cast<const CudaEvent&>(begin).handle,
                                  static_cast<const CudaEvent&>(end).handle));
    return static_cast<double>(milliseconds) * 1e6;
  }
  std::unique_ptr<Kernel> load(const KernelDescription& kernel) override {
    std::unique_ptr<CudaModule>& module = modules_[&kernel];
    if (!module) {
      const auto load = [&] {
        return std::make_unique<CudaModule>(driver_, kernel, capability(facts_));
      };
      module = jit_cache_ ? load_from_jit_cache(load) : load();
    }
    return std::make_unique<CudaKernel>(*module);
  }
  MatrixMap map_matrix(const Buffer& matrix, int rows, int columns, int box_rows) override {
    return cuda::map_matrix(driver_, matrix.address(), rows, columns, box_rows);
  }
  int resident_blocks(const Kernel& kernel, int threads) override {
    int per_multiprocessor = 0;
    CHECK_CUDA(
        driver_,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &per_multiprocessor, static_cast<const CudaKernel&>(kernel).function(), threads, 0));
    if (!facts_.multiprocessors)
      throw Unsupported("the driver does not say how many multiprocessors the GPU has");
    return per_multiprocessor * *facts_.multiprocessors;
  }
  std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& work) override {
    return capture_graph(driver_, static_cast<CudaStream&>(stream), work);
  }
  std::unique_ptr<ExecutableGraph> instantiate(const Graph& graph) override {
    return instantiate_graph(driver_, graph);
  }
  std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api) override {
    return cuda::runtime_launcher(api);
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

  std::unique_ptr<Matmul> matmul(Stream& stream,
                                 const MatmulShape& shape,
                                 std::string_view library) override {
    // FP8 is cuBLASLt's alone.
    if (library.empty()) library = shape.type.is_fp8() ? "cublaslt" : "cublas";
    const abi::Stream handle = static_cast<CudaStream&>(stream).handle;
    if (library == "cublaslt") return cublaslt_matmul(*this, handle, shape);
    if (library == "cublas" || library == kTunedMatmul)
      return cublas_matmul(*this, handle, shape, library == kTunedMatmul);
    throw Unsupported("a GPU has no library '{}'", library);
  }
  std::unique_ptr<Convolution> convolution(Stream& stream,
                                           const ConvolutionShape& shape,
                                           std::string_view interface) override {
    return cudnn_convolution(*this, static_cast<CudaStream&>(stream).handle, shape, interface);
  }
  std::unique_ptr<Allocator> allocator(Stream& stream, AllocatorKind kind) override {
    return make_allocator(driver_, static_cast<CudaStream&>(stream), device_, kind, *this);
  }
  std::unique_ptr<VirtualMemory> virtual_memory() override {
    return make_virtual_memory(driver_, device_);
  }

 private:
  bool launches_cooperatively() const {
    return attribute(driver_, device_, abi::kCooperativeLaunchSupported).value_or(0) != 0;
  }

  /// A process before this one must have left what it compiled, and nothing must be compiled now:
  /// the driver says neither, but what it compiles makes the cache grow.
  template <class Load>
  std::unique_ptr<CudaModule> load_from_jit_cache(const Load& load) const {
    const std::uint64_t before = bytes_in(*jit_cache_);
    if (before == 0)
      throw Unsupported("the driver kept nothing of what it compiled in '{}'", *jit_cache_);
    std::unique_ptr<CudaModule> module = load();
    if (bytes_in(*jit_cache_) > before) {
      throw Unsupported("the driver compiled again what an earlier process had left in '{}'",
                        *jit_cache_);
    }
    return module;
  }

  /// Of the files in a folder and below; 0 where it cannot be read.
  static std::uint64_t bytes_in(const std::string& folder) {
    std::uint64_t bytes = 0;
    std::error_code failed;
    for (std::filesystem::recursive_directory_iterator file(folder, failed), end;
         !failed && file != end;
         file.increment(failed)) {
      std::error_code not_a_file;
      if (const auto size = file->file_size(not_a_file); !not_a_file) bytes += size;
    }
    return bytes;
  }

  const Driver& driver_;
  abi::Device device_;
  abi::Context context_ = nullptr;
  DeviceFacts facts_;
  WaitMode wait_;
  std::map<const KernelDescription*, std::unique_ptr<CudaModule>> modules_;
  std::optional<std::string> jit_cache_;  // where code must come from
  Opening opening_;
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
          "{} is the toolkit's stub, made for linking only: take its folder out of "
          "LD_LIBRARY_PATH, and install the driver if there is none",
          driver.facts.path);
    case abi::kSystemDriverMismatch:
      throw Error(
          "the CUDA driver library {} does not match the kernel module that is loaded: reboot, "
          "or unload the nvidia modules and load them again",
          driver.facts.path);
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

void need_tf32(const DeviceFacts& facts, const ProductType& type) {
  if (type.compute == Compute::tf32 && capability(facts) < 80) {
    throw Unsupported("TF32 needs compute capability 8.0; this device has {}",
                      facts.compute_capability.value_or("an unknown one"));
  }
}

std::vector<LoadedLibrary> loaded_libraries() {
  return loaded();
}
void note_loaded(const LoadedLibrary& library) {
  loaded().push_back(library);
}

const Backend& backend() {
  static const Backend backend = [] {
    Backend cuda;
    cuda.name = "cuda";
    cuda.processors = "SMs";
    cuda.launch_api = "driver";
    cuda.launcher = "CUDA driver API";
    cuda.warm_up_s = 0.1;  // clocks take a while to rise from where idleness left them
    // What of these a GPU has, its library says.
    cuda.matmul_types = {"fp64",
                         "fp32_pedantic",
                         "fp32",
                         "tf32",
                         "fp16",
                         "fp16_acc16",
                         "bf16",
                         "int8",
                         "fp8_e4m3",
                         "fp8_e5m2"};
    cuda.matmul_libraries = {"cublas", "cublaslt"};
    cuda.convolution_interfaces = {"legacy", "graph"};
    cuda.convolution_types = {"fp64", "fp32", "tf32", "fp16", "bf16"};
    cuda.expected = {.matmul_flops = 2e13,
                     .convolution_flops = 1e13,
                     .per_processor = false,
                     .allocated_bytes_per_s = 1e11};
    cuda.environment = [](std::span<const std::string> uuids) {
      return std::map<std::string, std::string>{
          {"CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(uuids, ","))}};
    };
    cuda.probe = &probe;
    cuda.open = &open;
    cuda.collective = &nccl_collective;
    return cuda;
  }();
  return backend;
}

std::vector<DeviceFacts> probe(const ProbeOptions& options) {
  const Driver& driver = initialised_driver();
  int count = 0;
  CHECK_CUDA(driver, cuDeviceGetCount(&count));
  options.found(count);
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < count; ++i) {
    if (options.index && *options.index != i) continue;
    DeviceFacts& facts = devices.emplace_back(unknown_gpu(i));
    facts.simulated = driver.facts.simulated;
    facts.driver_version = driver.facts.version;
    try {
      ask(driver, options, facts);
    } catch (const LibraryError& error) {
      facts.usable = false;
      facts.reason = error.what();
    }
  }
  return devices;
}

std::unique_ptr<Device> open(const std::string& uuid, const OpenOptions& options) {
  set_environment(options);
  const std::int64_t begin = now_ns();
  const Driver& driver = initialised_driver();
  const auto initialise_ns = static_cast<double>(now_ns() - begin);
  const std::vector<DeviceFacts> devices = probe();
  for (const DeviceFacts& facts : devices) {
    if (facts.uuid != uuid) continue;
    if (!facts.usable) throw Error(facts.reason);
    abi::Device device = 0;
    CHECK_CUDA(driver, cuDeviceGet(&device, facts.index));
    return std::make_unique<CudaDevice>(driver, device, facts, options, initialise_ns);
  }
  throw Error("no GPU with UUID {} is visible to this process", uuid);
}

}  // namespace launchgap::cuda
