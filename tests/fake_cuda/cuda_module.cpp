// The fake driver's modules and functions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "kernels/kernels.h"
#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

/// Device images as cuModuleLoadDataEx tells them apart.
struct Image {
  Result status = kInvalidImage;
  int ptx_version =
      0;  // virtual architecture as 10 * major + minor; for native code the device's own
  std::string explanation;  // for the error log
  bool native = false;
};

/// What becomes of `image` on a device of `capability` (90 for 9.0) under a driver of
/// `driver_version` (13000 for 13.0).
Image examine_image(const void* image, int capability, int driver_version) {
  constexpr const char *kFatbin = "\x50\xED\x55\xBA", *kElf = "\177ELF";
  constexpr int kOldestOfNvcc13 = 75;
  if (image == nullptr) return {kInvalidImage, 0, "no image"};
  const auto* const text = static_cast<const char*>(image);
  // A text may be shorter than these.
  if (std::strncmp(text, kFatbin, 4) == 0 || std::strncmp(text, kElf, 4) == 0) {
    if (capability < kOldestOfNvcc13) return {kNoBinaryForGpu, 0, "no native code for this device"};
    return {kSuccess, capability, "", true};
  }
  const char* const target = std::strstr(text, ".target");
  if (target == nullptr) return {kInvalidImage, 0, "neither native code nor PTX"};
  int architecture = 0;
  if (std::sscanf(target, ".target sm_%d", &architecture) != 1) {
    return {kInvalidPtx, 0, "PTX whose .target is no sm_NN"};
  }
  int major = 0;
  int minor = 0;
  const char* const version = std::strstr(text, ".version");
  if (version == nullptr || std::sscanf(version, ".version %d.%d", &major, &minor) != 2) {
    return {kInvalidPtx, 0, "PTX without .version"};
  }
  // PTX 7.0 came with CUDA 11.0, 8.0 with 12.0, 9.0 with 13.0 (PTX ISA, "Release Notes"); minor
  // versions run nearly alike.
  const int newest = 10 * (driver_version / 1000 - 4) + driver_version % 1000 / 10;
  if (10 * major + minor > newest) return {kUnsupportedPtxVersion, 0, "PTX newer than the driver"};
  if (architecture > capability) return {kNoBinaryForGpu, 0, "PTX for a newer device"};
  return {kSuccess, architecture, ""};
}

// The cache in which the driver keeps what it compiled from PTX.

/// Empty: there is none.
std::filesystem::path cache_folder() {
  if (environment_is("CUDA_CACHE_DISABLE", "1")) return {};
  const char* const folder = std::getenv("CUDA_CACHE_PATH");
  return folder != nullptr ? folder : "";
}

/// Whether the cache has the PTX compiled for this device and driver; if not, now it does, as far
/// as there is one: the folder CUDA_CACHE_PATH unless CUDA_CACHE_DISABLE is 1. One that cannot be
/// written is not used and nobody is told.
bool cached_by_jit(const char* ptx, const DeviceDescription& device, int driver_version) {
  const auto folder = cache_folder();
  if (folder.empty()) return false;
  const std::string key =
      std::to_string(driver_version) + " " + std::to_string(device.capability()) + " " + ptx;
  const auto file = folder / ("fake-" + std::to_string(std::hash<std::string>()(key)));
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return true;
  std::filesystem::create_directories(folder, ignored);
  // Other processes see all of it or nothing.
  const auto unfinished = file.string() + "." + std::to_string(getpid());
  if (std::ofstream(unfinished) << key) std::filesystem::rename(unfinished, file, ignored);
  return false;
}

bool loads_eagerly() {
  return environment_is("CUDA_MODULE_LOADING", "EAGER");
}

}  // namespace

EXPORT Result cuModuleLoadDataEx(abi::Module* module,
                                 const void* image,
                                 unsigned count,
                                 int* options,
                                 void** values) {
  Call call("cuModuleLoadDataEx");
  return with_context(call, [&](Context& context) -> Result {
    if (module == nullptr) return kInvalidValue;
    const Image examined =
        examine_image(image, context.description.capability(), call.process.node()->driver_version);
    char* log = nullptr;
    std::size_t log_bytes = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == kJitErrorLogBuffer) log = static_cast<char*>(values[i]);
      if (options[i] == kJitErrorLogBufferSizeBytes)
        log_bytes = reinterpret_cast<std::size_t>(values[i]);
    }
    if (log != nullptr && log_bytes > 0)
      std::snprintf(log, log_bytes, "%s", examined.explanation.c_str());
    if (examined.status != kSuccess) return examined.status;
    auto loaded = std::make_unique<fake::Module>();
    loaded->ptx_version = examined.ptx_version;
    loaded->native = examined.native;
    keep(context.modules, std::move(loaded), module);
    const LaunchDescription& costs = context.description.launch;
    double end = call.begin_ns + costs.module_ns(context.random);
    if (loads_eagerly()) end += context.draw(costs.lazy_ns);
    if (!examined.native && !cached_by_jit(static_cast<const char*>(image),
                                           context.description,
                                           call.process.node()->driver_version)) {
      end += costs.jit_ns(context.random);
    }
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuModuleUnload(abi::Module module) {
  Call call("cuModuleUnload");
  return with_context(call, [&](Context& context) -> Result {
    const auto found = context.modules.find(module);
    if (found == context.modules.end()) return kInvalidHandle;
    for (const auto& [name, function] : found->second->functions)
      context.names_of_unloaded.push_back(function->kernel->name);
    context.modules.erase(found);
    return kSuccess;
  });
}

EXPORT Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char* name) {
  Call call("cuModuleGetFunction");
  return with_context(call, [&](Context& context) -> Result {
    if (function == nullptr || name == nullptr) return kInvalidValue;
    const auto found = context.modules.find(module);
    if (found == context.modules.end()) return kInvalidHandle;
    for (const auto* const kernel : kernels::all_kernels()) {
      if (std::string_view(kernel->name) != name) continue;
      if (kernel->native_from > 0 && !found->second->native) return kNotFound;
      auto& entry = found->second->functions[name];
      double end = call.begin_ns;
      if (!entry) {
        entry = std::make_unique<fake::Function>(
            fake::Function{kernel, kernel->name, found->second->ptx_version, loads_eagerly()});
        auto& unloaded = context.names_of_unloaded;
        if (call.process.node()->cupti.stale_names && !unloaded.empty()) {
          entry->recorded_name = unloaded.front();
          unloaded.erase(unloaded.begin());
        }
        const LaunchDescription& costs = context.description.launch;
        if (costs.lazy_loading == LazyLoading::at_get_function && !entry->loaded) {
          entry->loaded = true;
          end += context.draw(costs.lazy_ns);
        }
      }
      *function = reinterpret_cast<abi::Function>(entry.get());
      return call.return_at(end, kSuccess);
    }
    return kNotFound;
  });
}

EXPORT Result cuModuleGetLoadingMode(int* mode) {
  Call call("cuModuleGetLoadingMode");
  return with_driver(call,
                     [&] { return put(mode, loads_eagerly() ? kEagerLoading : kLazyLoading); });
}

EXPORT Result cuFuncGetAttribute(int* value, int attribute, abi::Function function) {
  Call call("cuFuncGetAttribute");
  return with_context(call, [&](Context& context) -> Result {
    const fake::Function* const found = context.find(function);
    if (found == nullptr) return kInvalidHandle;
    if (attribute != kPtxVersion && attribute != kBinaryVersion) return kInvalidValue;
    return put(value,
               attribute == kPtxVersion ? found->ptx_version : context.description.capability());
  });
}

EXPORT Result cuFuncSetAttribute(abi::Function function, int attribute, int value) {
  Call call("cuFuncSetAttribute");
  return with_context(call, [&](Context& context) -> Result {
    fake::Function* const found = context.find(function);
    if (found == nullptr) return kInvalidHandle;
    if (attribute != kMaxDynamicSharedBytes || value < 0) return kInvalidValue;
    if (static_cast<unsigned>(value) > most_shared_bytes(context.description)) return kInvalidValue;
    found->dynamic_shared_bytes = static_cast<unsigned>(value);
    return kSuccess;
  });
}

/// Refuses what the real one refuses of a matrix. The map has its address, sizes and box.
EXPORT Result cuTensorMapEncodeTiled(abi::TensorMap* map,
                                     int type,
                                     unsigned rank,
                                     void* address,
                                     const std::uint64_t* sizes,
                                     const std::uint64_t* strides,
                                     const unsigned* box,
                                     const unsigned* element_strides,
                                     int interleave,
                                     int swizzle,
                                     int promotion,
                                     int fill) {
  Call call("cuTensorMapEncodeTiled");
  return with_context(call, [&](Context& context) -> Result {
    constexpr int kFirstWithMaps = 90;
    if (context.description.capability() < kFirstWithMaps) return kNotSupported;
    constexpr unsigned kLargestBox = 256, kElementBytes = 2, kSwizzledBytes = 128, kLargestStep = 8;
    const auto aligned = [](const void* pointer, std::size_t to) {
      return reinterpret_cast<std::uintptr_t>(pointer) % to == 0;
    };
    if (map == nullptr || sizes == nullptr || strides == nullptr || box == nullptr ||
        element_strides == nullptr)
      return kInvalidValue;
    // launchgap asks for no more than matrices of bfloat16.
    if (type != kTensorBfloat16 || rank != 2 || interleave != kTensorNoInterleave ||
        swizzle != kTensorSwizzle128 || promotion != kTensorPromote128 || fill != kTensorFillZero)
      return kInvalidValue;
    if (!aligned(map, 64) || !aligned(address, 16)) return kInvalidValue;
    for (unsigned i = 0; i < rank; ++i) {
      if (sizes[i] == 0 || sizes[i] > std::uint64_t{1} << 32) return kInvalidValue;
      if (box[i] == 0 || box[i] > kLargestBox) return kInvalidValue;
      if (element_strides[i] == 0 || element_strides[i] > kLargestStep) return kInvalidValue;
    }
    if (strides[0] % 16 != 0 || strides[0] >= std::uint64_t{1} << 40) return kInvalidValue;
    if (strides[0] < sizes[0] * kElementBytes) return kInvalidValue;
    if (box[0] * kElementBytes > kSwizzledBytes) return kInvalidValue;
    *map = {};
    map->opaque[0] = reinterpret_cast<std::uintptr_t>(address);
    map->opaque[1] = sizes[1];
    map->opaque[2] = sizes[0];
    map->opaque[3] = box[1];
    return kSuccess;
  });
}

EXPORT Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          abi::Function function,
                                                          int threads,
                                                          std::size_t) {
  Call call("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return with_context(call, [&](Context& context) -> Result {
    if (context.find(function) == nullptr) return kInvalidHandle;
    constexpr int kMostThreads = 1024;
    if (threads <= 0 || threads > kMostThreads) return kInvalidValue;
    return put(blocks, context.description.resident_blocks(static_cast<unsigned>(threads)));
  });
}

}  // namespace launchgap::fake
