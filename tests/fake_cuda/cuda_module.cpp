// The fake driver's modules and functions.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/kernels.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/image.h"
#include "tests/fake_cuda/jit_cache.h"

namespace launchgap::fake {
namespace {

bool loads_eagerly() {
  const char* const wanted = std::getenv("CUDA_MODULE_LOADING");
  return wanted != nullptr && std::string_view(wanted) == "EAGER";
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
    *module = reinterpret_cast<abi::Module>(loaded.get());
    context.modules[loaded.get()] = std::move(loaded);
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
  return with_driver(call, [&]() -> Result {
    if (mode == nullptr) return kInvalidValue;
    *mode = loads_eagerly() ? kEagerLoading : kLazyLoading;
    return kSuccess;
  });
}

EXPORT Result cuFuncGetAttribute(int* value, int attribute, abi::Function function) {
  Call call("cuFuncGetAttribute");
  return with_context(call, [&](Context& context) -> Result {
    const fake::Function* const found = context.find(function);
    if (found == nullptr) return kInvalidHandle;
    if (value == nullptr || (attribute != kPtxVersion && attribute != kBinaryVersion))
      return kInvalidValue;
    *value = attribute == kPtxVersion ? found->ptx_version : context.description.capability();
    return kSuccess;
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
    if (blocks == nullptr || threads <= 0 || threads > kMostThreads) return kInvalidValue;
    *blocks = context.description.resident_blocks(static_cast<unsigned>(threads));
    return kSuccess;
  });
}

}  // namespace launchgap::fake
