// The fake libcuda.so.1: the driver functions of harness/device/cuda/abi/driver.h on the state of
// process.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/device_nodes.h"
#include "tests/fake_cuda/error_names.h"
#include "tests/fake_cuda/image.h"
#include "tests/fake_cuda/kernel_operation.h"
#include "tests/fake_cuda/process.h"

#define EXPORT LAUNCHGAP_FAKE_EXPORT

/// Marks whatever runs on this library as simulated.
EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

using Result = abi::Result;

/// Any call: body(process, lock).
template <typename Body>
Result with_process(Call& call, Body body) {
  Process& process = Process::instance();
  const auto locked = [&]() -> Result {
    Lock lock(process.mutex);
    return body(process, lock);
  };
  return call.returns(locked());
}

/// A call that needs the driver and concerns no device: body(process).
template <typename Body>
Result with_driver(Call& call, Body body) {
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), nullptr)) return code;
    return body(process);
  });
}

/// A call that needs a current context: body(process, lock, context).
template <typename Body>
Result with_context(Call& call, Body body) {
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.current();
    if (context == nullptr) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    if (context->references == 0) return kContextIsDestroyed;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), context)) return code;
    return body(process, lock, *context);
  });
}

/// A call that concerns a device, not a context: body(process, lock, context of the device).
template <typename Body>
Result with_device(Call& call, Device ordinal, Body body) {
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.device(ordinal);
    if (context == nullptr) return kInvalidDevice;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), context)) return code;
    return body(process, lock, *context);
  });
}

template <typename Body>
Result with_stream(Call& call, Stream stream, Body body) {
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    Timeline* const timeline = context.find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    return body(process, lock, context, *timeline);
  });
}

template <typename Body>
Result with_pool(Call& call, MemoryPool pool, Body body) {
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    for (int ordinal = 0; ordinal < process.device_count(); ++ordinal) {
      Context& context = *process.device(ordinal);
      if (static_cast<const void*>(&context.pool) != pool) continue;
      if (context.sticky != kSuccess) return context.sticky;
      if (const Result code = process.fault(lock, Library::cuda, call.name(), &context))
        return code;
      return body(process, context);
    }
    return kInvalidValue;
  });
}

Result copy_text(char* to, int bytes, const std::string& text) {
  if (to == nullptr || bytes <= 0) return kInvalidValue;
  std::snprintf(to, static_cast<std::size_t>(bytes), "%s", text.c_str());
  return kSuccess;
}

Result get_uuid(Call& call, Uuid* uuid, Device device) {
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (uuid == nullptr) return kInvalidValue;
    std::copy(
        context.description.uuid_bytes.begin(), context.description.uuid_bytes.end(), uuid->bytes);
    return kSuccess;
  });
}

std::vector<ItemPointer> all_ends(Context& context) {
  std::vector<ItemPointer> ends;
  for (const Timeline* timeline : context.timelines()) {
    if (timeline->last()) ends.push_back(timeline->last());
  }
  return ends;
}

std::vector<ItemPointer> ends_of(Context& context, const Timeline& timeline) {
  if (&timeline == &context.null_stream) return context.null_stream_ends();
  if (!timeline.last()) return {};
  return {timeline.last()};
}

Result synchronize(Call& call,
                   Process& process,
                   Lock& lock,
                   Context& context,
                   const std::vector<ItemPointer>& ends,
                   const SynchronizationEvent& event) {
  const Result code = process.wait(lock, context, ends);
  if (call.listener() != nullptr) call.listener()->synchronized(event);
  return code;
}

void* pointer_to(DevicePointer address) {
  return reinterpret_cast<void*>(address);
}
DevicePointer address_of(const Block& block) {
  return static_cast<DevicePointer>(block.range().begin);
}

/// Tells who listens that the call allocated or freed `block`.
void report(Call& call, const Context& context, const Block& block, MemoryEvent event) {
  if (call.listener() == nullptr) return;
  event.host = block.pinned_host();
  event.address = address_of(block);
  event.bytes = block.requested_bytes;
  if (block.pooled) {
    event.pool = reinterpret_cast<std::uintptr_t>(&context.pool);
    event.pool_threshold = context.pool.threshold;
    event.pool_bytes = context.pool.reserved();
    event.pool_used_bytes = context.pool.in_use();
  }
  call.listener()->memory(event);
}

/// What the worker does for a kernel that writes where a host polls.
std::shared_ptr<ThreadWork> thread_work(Process& process,
                                        Context& context,
                                        const kernels::KernelDescription& kernel,
                                        const Parameters& parameters,
                                        const PolledKernel& polled) {
  auto work = std::make_shared<ThreadWork>();
  work->until_returned = polled.until_returned;
  // Memory that is being used is not given back.
  const auto used = std::make_shared<std::vector<BlockPointer>>();
  work->admit = [&process, &context, polled, used] {
    if (context.sticky != kSuccess) return false;
    for (const auto* ranges : {&polled.reads, &polled.writes}) {
      for (const auto& range : *ranges) {
        if (!process.addresses.accessible(range, context.index)) {
          context.fail(kIllegalAddress);
          return false;
        }
        used->push_back(process.addresses.holding(range));
      }
    }
    for (const auto& range : polled.reads) context.results.before_read(range);
    for (const auto& range : polled.writes) context.results.before_write(range, true);
    return true;
  };
  work->run = [&kernel, parameters = parameters, used]() mutable { parameters.run(kernel, {}); };
  return work;
}

Result launch_kernel(Call& call,
                     abi::Function function,
                     KernelShape shape,
                     Stream stream,
                     void** parameters,
                     void** extra) {
  call.begin_ns();
  return with_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        const fake::Function* const found = context.find(function);
        if (found == nullptr) return kInvalidHandle;
        const kernels::KernelDescription& kernel = *found->kernel;
        shape.name = kernel.name;
        const auto blocks = 1ull * shape.grid[0] * shape.grid[1] * shape.grid[2];
        const auto threads = 1ull * shape.block[0] * shape.block[1] * shape.block[2];
        constexpr unsigned long long kMostThreads = 1024;
        if (blocks == 0 || threads == 0 || threads > kMostThreads || extra != nullptr)
          return kInvalidValue;
        if (parameters == nullptr && !kernel.parameter_bytes.empty()) return kInvalidValue;
        const Parameters copied(kernel, parameters);
        Item item;
        double work_ns = 0;
        if (is_gate(kernel)) {
          item.shut =
              [&process, &context, ranges = gate_ranges(copied), shut = gate(kernel, copied)](
                  double begin_ns, double at_ns) {
                for (const auto& range : ranges) {
                  if (!process.addresses.accessible(range, context.index))
                    context.fail(kIllegalAddress);
                }
                return context.sticky == kSuccess && shut(begin_ns, at_ns);
              };
        } else if (const auto polled = polled_kernel(kernel, copied)) {
          item.thread_work = thread_work(process, context, kernel, copied, *polled);
        } else {
          const kernels::LaunchShape launch_shape{static_cast<unsigned>(blocks),
                                                  static_cast<unsigned>(threads)};
          auto operation = kernel_operation(kernel, copied, launch_shape);
          work_ns = moved_bytes(operation) / context.description.bandwidth_gbs;
          if (operation.has_effect()) {
            item.work = [&process, &context, operation = std::move(operation)]() mutable {
              process.execute(context, std::move(operation));
            };
          }
        }
        return process.launch(lock, context, timeline, call, &shape, work_ns, std::move(item));
      });
}

/// Fresh device memory, accounted; null when the device or the host has no more.
BlockPointer allocate(Process& process, Context& context, std::size_t bytes) {
  if (bytes > context.description.memory_bytes) return nullptr;
  const std::size_t rounded =
      (bytes + Block::kAlignment - 1) / Block::kAlignment * Block::kAlignment;
  const auto fits = [&] {
    return rounded <= context.description.memory_bytes - context.used_bytes;
  };
  if (!fits()) process.release_pool(context, 0);
  if (!fits()) return nullptr;
  auto block = Block::create(bytes, context.index);
  if (!block) return nullptr;
  context.used_bytes += block->bytes();
  process.addresses.insert(block);
  return block;
}

int attribute_value(const DeviceDescription& device, int attribute, Result& status) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kWarpSize:
      return 32;
    case kClockRateKhz:
      return 1000 * device.clock_mhz;
    case kMultiprocessorCount:
      return device.multiprocessors;
    case kIntegrated:
      return 0;
    case kCanMapHostMemory:
      return 1;
    case kComputeMode:
      return 0;
    case kEccEnabled:
      return 1;
    case kMemoryClockRateKhz:
      return 1000 * device.memory_clock_mhz;
    case kGlobalMemoryBusWidth:
      return device.memory_bus_bits;
    case kL2CacheBytes:
      return device.l2_bytes;
    case kComputeCapabilityMajor:
      return device.major;
    case kComputeCapabilityMinor:
      return device.minor;
    case kMemoryPoolsSupported:
      return device.memory_pools ? 1 : 0;
    default:
      status = kInvalidValue;
      return 0;
  }
}

/// The driver as the other fakes see it.
class ProcessDriver : public Driver {
 public:
  const Node* node() override {
    const Lock lock(Process::instance().mutex);
    return Process::instance().node();
  }

  Result current_device(const DeviceDescription** device) override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    if (!process.initialized()) return kNotInitialized;
    const Context* const context = process.current();
    if (context == nullptr) return kInvalidContext;
    *device = &context->description;
    return context->references == 0 ? Result{kContextIsDestroyed} : context->sticky;
  }

  int enter(Library library, const char* call) override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    return process.fault(lock, library, call, process.current());
  }

  Result launch(Stream stream,
                double begin_ns,
                const std::vector<LibraryKernel>& kernels,
                double work_ns,
                Operation operation) override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.current();
    if (context == nullptr || context->references == 0) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    Timeline* const timeline = context->find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    auto work = [&process, context, operation = std::move(operation)]() mutable {
      process.execute(*context, std::move(operation));
    };
    return process.launch(lock, *context, *timeline, begin_ns, kernels, work_ns, std::move(work));
  }

  void listen(Listener* listener) override {
    installed_listener.store(listener, std::memory_order_release);
  }

  void look() override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    for (int ordinal = 0; ordinal < process.device_count(); ++ordinal) {
      Context& context = *process.device(ordinal);
      if (context.sticky == kSuccess) process.look(context);
    }
  }
};

}  // namespace

EXPORT Driver* launchgap_fake_driver() {
  static auto* const driver = new ProcessDriver;
  return driver;
}

EXPORT Result cuInit(unsigned flags) {
  Call call("cuInit");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (process.node() == nullptr) return kUnknown;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), nullptr)) return code;
    return process.initialize(flags);
  });
}

EXPORT Result cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (process.node() == nullptr) return kUnknown;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), nullptr)) return code;
    if (version == nullptr) return kInvalidValue;
    *version = process.node()->driver_version;
    return kSuccess;
  });
}

EXPORT Result cuGetErrorName(Result code, const char** name) {
  Call call("cuGetErrorName");
  if (name == nullptr) return call.returns(kInvalidValue);
  const ErrorName* const error = find_error(code);
  *name = error != nullptr ? error->name : nullptr;
  return call.returns(error != nullptr ? kSuccess : kInvalidValue);
}

EXPORT Result cuGetErrorString(Result code, const char** text) {
  Call call("cuGetErrorString");
  if (text == nullptr) return call.returns(kInvalidValue);
  const ErrorName* const error = find_error(code);
  *text = error != nullptr ? error->text : nullptr;
  return call.returns(error != nullptr ? kSuccess : kInvalidValue);
}

EXPORT Result cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount");
  return with_driver(call, [&](Process& process) -> Result {
    if (count == nullptr) return kInvalidValue;
    *count = process.device_count();
    return kSuccess;
  });
}

EXPORT Result cuDeviceGet(Device* device, int ordinal) {
  Call call("cuDeviceGet");
  return with_device(call, ordinal, [&](Process&, Lock&, Context&) -> Result {
    if (device == nullptr) return kInvalidValue;
    *device = ordinal;
    return kSuccess;
  });
}

EXPORT Result cuDeviceGetName(char* name, int bytes, Device device) {
  Call call("cuDeviceGetName");
  return with_device(call, device, [&](Process&, Lock&, Context& context) {
    return copy_text(name, bytes, context.description.name);
  });
}

EXPORT Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  Call call("cuDeviceGetUuid");
  return get_uuid(call, uuid, device);
}

EXPORT Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  Call call("cuDeviceGetUuid_v2");
  return get_uuid(call, uuid, device);
}

EXPORT Result cuDeviceTotalMem_v2(std::size_t* bytes, Device device) {
  Call call("cuDeviceTotalMem_v2");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (bytes == nullptr) return kInvalidValue;
    *bytes = context.description.memory_bytes;
    return kSuccess;
  });
}

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  Call call("cuDeviceGetAttribute");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (value == nullptr) return kInvalidValue;
    Result status = kSuccess;
    *value = attribute_value(context.description, attribute, status);
    return status;
  });
}

EXPORT Result cuDeviceGetPCIBusId(char* text, int bytes, Device device) {
  Call call("cuDeviceGetPCIBusId");
  return with_device(call, device, [&](Process&, Lock&, Context& context) {
    return copy_text(text, bytes, context.description.pci);
  });
}

EXPORT Result cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  Call call("cuDevicePrimaryCtxSetFlags_v2");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    constexpr unsigned kKnown = 0x1F;
    if ((flags & ~kKnown) != 0) return kInvalidValue;
    context.flags = flags;
    return kSuccess;
  });
}

EXPORT Result cuDevicePrimaryCtxRetain(abi::Context* handle, Device device) {
  Call call("cuDevicePrimaryCtxRetain");
  return with_device(call, device, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (handle == nullptr) return kInvalidValue;
    if (context.sticky != kSuccess) return context.sticky;
    *handle = reinterpret_cast<abi::Context>(&context);
    if (context.references++ > 0) return kSuccess;
    context.id = process.next_context_id();
    map_device_nodes(context.index);
    const double end = now_ns() + context.description.context_ns(context.random);
    lock.unlock();
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(Device device) {
  Call call("cuDevicePrimaryCtxRelease_v2");
  return with_device(call, device, [&](Process& process, Lock&, Context& context) -> Result {
    if (context.references == 0) return kInvalidContext;
    if (--context.references == 0) process.tear_down(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxSetCurrent(abi::Context handle) {
  Call call("cuCtxSetCurrent");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.context_of(handle);
    if (const Result code = process.fault(lock, Library::cuda, call.name(), context)) return code;
    if (handle != nullptr && context == nullptr) return kInvalidContext;
    process.set_current(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxSynchronize() {
  Call call("cuCtxSynchronize");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) {
    return synchronize(call,
                       process,
                       lock,
                       context,
                       all_ends(context),
                       {cupti::abi::kContextSynchronize, context.place()});
  });
}

EXPORT Result cuStreamCreate(Stream* stream, unsigned flags) {
  Call call("cuStreamCreate");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (stream == nullptr || (flags & ~unsigned{kStreamNonBlocking}) != 0) return kInvalidValue;
    auto timeline =
        std::make_unique<Timeline>((flags & kStreamNonBlocking) == 0, context.next_stream_id++);
    *stream = reinterpret_cast<Stream>(timeline.get());
    context.streams[timeline.get()] = std::move(timeline);
    return kSuccess;
  });
}

EXPORT Result cuStreamDestroy_v2(Stream stream) {
  Call call("cuStreamDestroy_v2");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    const auto found = context.streams.find(stream);
    if (found == context.streams.end()) return kInvalidHandle;
    // Its work still runs.
    if (!found->second->idle(now_ns()))
      context.destroyed_streams.push_back(std::move(found->second));
    context.streams.erase(found);
    return kSuccess;
  });
}

EXPORT Result cuStreamSynchronize(Stream stream) {
  Call call("cuStreamSynchronize");
  return with_stream(
      call, stream, [&](Process& process, Lock& lock, Context& context, Timeline& timeline) {
        return synchronize(call,
                           process,
                           lock,
                           context,
                           ends_of(context, timeline),
                           {cupti::abi::kStreamSynchronize, context.place(timeline)});
      });
}

EXPORT Result cuStreamQuery(Stream stream) {
  Call call("cuStreamQuery");
  return with_stream(
      call, stream, [](Process& process, Lock&, Context& context, Timeline& timeline) -> Result {
        process.look(context);
        if (context.sticky != kSuccess) return context.sticky;
        const double now = now_ns();
        const auto ends = ends_of(context, timeline);
        const bool idle = std::all_of(
            ends.begin(), ends.end(), [&](const auto& end) { return end->complete(now); });
        return idle ? kSuccess : kNotReady;
      });
}

EXPORT Result cuEventCreate(abi::Event* event, unsigned flags) {
  Call call("cuEventCreate");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (event == nullptr) return kInvalidValue;
    auto created = std::make_unique<fake::Event>();
    created->flags = flags;
    created->id = context.next_event_id++;
    *event = reinterpret_cast<abi::Event>(created.get());
    context.events[created.get()] = std::move(created);
    return kSuccess;
  });
}

EXPORT Result cuEventDestroy_v2(abi::Event event) {
  Call call("cuEventDestroy_v2");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    return context.events.erase(event) == 1 ? kSuccess : kInvalidHandle;
  });
}

EXPORT Result cuEventRecord(abi::Event event, Stream stream) {
  Call call("cuEventRecord");
  const double begin = call.begin_ns();
  return with_stream(
      call, stream, [&](Process&, Lock&, Context& context, Timeline& timeline) -> Result {
        const auto found = context.events.find(event);
        if (found == context.events.end()) return kInvalidHandle;
        Item item;
        // It travels to an idle device as a launch does.
        item.ready_ns = begin + context.draw(context.description.launch_ns);
        found->second->recorded = context.push(timeline, std::move(item));
        return kSuccess;
      });
}

EXPORT Result cuEventSynchronize(abi::Event event) {
  Call call("cuEventSynchronize");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    const auto found = context.events.find(event);
    if (found == context.events.end()) return kInvalidHandle;
    const std::uint32_t id = found->second->id;
    std::vector<ItemPointer> ends;
    if (found->second->recorded) ends.push_back(found->second->recorded);
    return synchronize(
        call, process, lock, context, ends, {cupti::abi::kEventSynchronize, context.place(), id});
  });
}

EXPORT Result cuEventElapsedTime(float* milliseconds, abi::Event begin, abi::Event end) {
  Call call("cuEventElapsedTime");
  return with_context(call, [&](Process& process, Lock&, Context& context) -> Result {
    if (milliseconds == nullptr) return kInvalidValue;
    const auto first = context.events.find(begin);
    const auto last = context.events.find(end);
    for (const auto& found : {first, last}) {
      if (found == context.events.end() || !found->second->recorded) return kInvalidHandle;
      if (found->second->flags & kEventDisableTiming) return kInvalidHandle;
    }
    process.look(context);
    if (context.sticky != kSuccess) return context.sticky;
    const double now = now_ns();
    for (const auto& found : {first, last}) {
      if (!found->second->recorded->complete(now)) return kNotReady;
    }
    const double elapsed_ns = last->second->recorded->end_ns - first->second->recorded->end_ns;
    *milliseconds = static_cast<float>(elapsed_ns * 1e-6);
    return kSuccess;
  });
}

EXPORT Result cuModuleLoadDataEx(abi::Module* module,
                                 const void* image,
                                 unsigned count,
                                 int* options,
                                 void** values) {
  Call call("cuModuleLoadDataEx");
  return with_context(call, [&](Process& process, Lock&, Context& context) -> Result {
    if (module == nullptr) return kInvalidValue;
    const Image examined =
        examine_image(image, context.description.capability(), process.node()->driver_version);
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
    *module = reinterpret_cast<abi::Module>(loaded.get());
    context.modules[loaded.get()] = std::move(loaded);
    return kSuccess;
  });
}

EXPORT Result cuModuleUnload(abi::Module module) {
  Call call("cuModuleUnload");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    return context.modules.erase(module) == 1 ? kSuccess : kInvalidHandle;
  });
}

EXPORT Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char* name) {
  Call call("cuModuleGetFunction");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (function == nullptr || name == nullptr) return kInvalidValue;
    const auto found = context.modules.find(module);
    if (found == context.modules.end()) return kInvalidHandle;
    for (const auto* const kernel : kernels::all_kernels()) {
      if (std::string_view(kernel->name) != name) continue;
      auto& entry = found->second->functions[name];
      if (!entry)
        entry =
            std::make_unique<fake::Function>(fake::Function{kernel, found->second->ptx_version});
      *function = reinterpret_cast<abi::Function>(entry.get());
      return kSuccess;
    }
    return kNotFound;
  });
}

EXPORT Result cuModuleGetLoadingMode(int* mode) {
  Call call("cuModuleGetLoadingMode");
  return with_driver(call, [&](Process&) -> Result {
    if (mode == nullptr) return kInvalidValue;
    const char* const wanted = std::getenv("CUDA_MODULE_LOADING");
    *mode = wanted != nullptr && std::string_view(wanted) == "EAGER" ? kEagerLoading : kLazyLoading;
    return kSuccess;
  });
}

EXPORT Result cuFuncGetAttribute(int* value, int attribute, abi::Function function) {
  Call call("cuFuncGetAttribute");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    const fake::Function* const found = context.find(function);
    if (found == nullptr) return kInvalidHandle;
    if (value == nullptr || (attribute != kPtxVersion && attribute != kBinaryVersion))
      return kInvalidValue;
    *value = attribute == kPtxVersion ? found->ptx_version : context.description.capability();
    return kSuccess;
  });
}

EXPORT Result cuLaunchKernel(abi::Function function,
                             unsigned grid_x,
                             unsigned grid_y,
                             unsigned grid_z,
                             unsigned block_x,
                             unsigned block_y,
                             unsigned block_z,
                             unsigned shared_bytes,
                             Stream stream,
                             void** parameters,
                             void** extra) {
  Call call("cuLaunchKernel");
  const KernelShape shape{"", {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return launch_kernel(call, function, shape, stream, parameters, extra);
}

EXPORT Result cuLaunchKernelEx(const LaunchConfig* config,
                               abi::Function function,
                               void** parameters,
                               void** extra) {
  Call call("cuLaunchKernelEx");
  if (config == nullptr) return call.returns(kInvalidValue);
  const KernelShape shape{"",
                          {config->grid_x, config->grid_y, config->grid_z},
                          {config->block_x, config->block_y, config->block_z},
                          config->shared_bytes};
  return launch_kernel(call, function, shape, config->stream, parameters, extra);
}

EXPORT Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Call call("cuMemGetInfo_v2");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *total = context.description.memory_bytes;
    *free = *total - context.used_bytes;
    return kSuccess;
  });
}

EXPORT Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  Call call("cuMemAlloc_v2");
  const double begin = call.begin_ns();
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (pointer == nullptr || bytes == 0) return kInvalidValue;
    const double end = begin + context.description.alloc_ns(context.random);
    const auto block = allocate(process, context, bytes);
    if (block) {
      *pointer = address_of(*block);
      report(call, context, *block, {.allocation = true, .place = context.place()});
    }
    lock.unlock();
    return call.return_at(end, block ? kSuccess : kOutOfMemory);
  });
}

EXPORT Result cuMemFree_v2(DevicePointer pointer) {
  Call call("cuMemFree_v2");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    const auto valid = [&] {
      const auto block = process.addresses.at(pointer);
      return block && !block->freed && block->device() == context.index ? block : nullptr;
    };
    if (!valid()) return kInvalidValue;
    if (const Result code = process.wait(lock, context, all_ends(context))) return code;
    const auto block = valid();  // another thread may have been faster
    if (!block) return kInvalidValue;
    const double end = now_ns() + context.description.free_ns(context.random);
    report(call, context, *block, {.place = context.place()});
    context.results.freed(block->range());
    block->live = false;
    if (block->pooled) {
      block->freed = true;
      block->freed_by = std::make_shared<Item>();
      block->freed_by->executed = true;
      context.pool.put(block);
    } else {
      context.used_bytes -= block->bytes();
      process.addresses.erase(*block);
    }
    lock.unlock();
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  Call call("cuMemHostAlloc");
  return with_context(call, [&](Process& process, Lock&, Context& context) -> Result {
    constexpr unsigned kKnown = 7;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return kInvalidValue;
    const auto block = Block::create(bytes, Block::kHost);
    if (!block) return kOutOfMemory;
    block->mapped = (flags & kHostAllocDeviceMap) != 0;
    process.addresses.insert(block);
    *pointer = pointer_to(address_of(*block));
    report(call, context, *block, {.allocation = true, .place = context.place()});
    return kSuccess;
  });
}

EXPORT Result cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* host, unsigned flags) {
  Call call("cuMemHostGetDevicePointer_v2");
  return with_context(call, [&](Process& process, Lock&, Context&) -> Result {
    if (pointer == nullptr || flags != 0) return kInvalidValue;
    const auto block = process.addresses.holding(range_of(host, 1));
    if (!block || !block->mapped) return kInvalidValue;
    *pointer = static_cast<DevicePointer>(range_of(host, 1).begin);
    return kSuccess;
  });
}

EXPORT Result cuMemFreeHost(void* pointer) {
  Call call("cuMemFreeHost");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    const auto block = process.addresses.at(range_of(pointer, 1).begin);
    if (!block || !block->pinned_host()) return kInvalidValue;
    if (const Result code = process.wait(lock, context, all_ends(context))) return code;
    report(call, context, *block, {.place = context.place()});
    process.addresses.erase(*block);
    return kSuccess;
  });
}

EXPORT Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  Call call("cuMemcpyHtoD_v2");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (const Result code = process.wait(lock, context, context.null_stream_ends())) return code;
    const Range range = range_of(pointer_to(to), bytes);
    if (!process.addresses.accessible(range, context.index)) return kInvalidValue;
    context.results.before_write(range, true);
    std::memcpy(pointer_to(to), from, bytes);
    return kSuccess;
  });
}

EXPORT Result cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  Call call("cuMemcpyDtoH_v2");
  return with_context(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (const Result code = process.wait(lock, context, context.null_stream_ends())) return code;
    const Range range = range_of(pointer_to(from), bytes);
    if (!process.addresses.accessible(range, context.index)) return kInvalidValue;
    context.results.before_read(range);
    std::memcpy(to, pointer_to(from), bytes);
    return kSuccess;
  });
}

EXPORT Result cuMemsetD8Async(DevicePointer to,
                              unsigned char value,
                              std::size_t bytes,
                              Stream stream) {
  Call call("cuMemsetD8Async");
  call.begin_ns();
  return with_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        Operation operation;
        auto* const memory = static_cast<unsigned char*>(pointer_to(to));
        operation.writes = {range_of(memory, bytes)};
        operation.signature = "memset " + std::to_string(to) + " " + std::to_string(bytes) + " " +
                              std::to_string(value);
        operation.compute = [=](std::size_t first, std::size_t end) {
          std::memset(memory + first, value, end - first);
        };
        const double work_ns = moved_bytes(operation) / context.description.bandwidth_gbs;
        Item item;
        item.work = [&process, &context, operation = std::move(operation)]() mutable {
          process.execute(context, std::move(operation));
        };
        return process.launch(lock, context, timeline, call, nullptr, work_ns, std::move(item));
      });
}

EXPORT Result cuMemAllocAsync(DevicePointer* pointer, std::size_t bytes, Stream stream) {
  Call call("cuMemAllocAsync");
  const double begin = call.begin_ns();
  return with_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        if (!context.description.memory_pools) return kNotSupported;
        if (pointer == nullptr || bytes == 0) return kInvalidValue;
        constexpr double kPoolSpeedup = 20;
        double cost_ns = context.description.alloc_ns(context.random);
        process.look(context);
        auto block = context.pool.take(bytes, &timeline, now_ns());
        if (block) {
          cost_ns /= kPoolSpeedup;
        } else {
          block = allocate(process, context, bytes);
          if (block) context.pool.add_reserved(block->bytes());
        }
        if (block) {
          block->requested_bytes = bytes;
          block->pooled = true;
          block->freed = false;
          block->freed_by = nullptr;
          block->live = false;
          Item item;
          item.ready_ns = begin;
          item.work = [block] { block->live = true; };
          context.push(timeline, std::move(item));
          *pointer = address_of(*block);
          report(call,
                 context,
                 *block,
                 {.allocation = true, .async = true, .place = context.place(timeline)});
        }
        lock.unlock();
        return call.return_at(begin + cost_ns, block ? kSuccess : kOutOfMemory);
      });
}

EXPORT Result cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  Call call("cuMemFreeAsync");
  const double begin = call.begin_ns();
  return with_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        if (!context.description.memory_pools) return kNotSupported;
        const auto block = process.addresses.at(pointer);
        if (!block || !block->pooled || block->freed || block->device() != context.index)
          return kInvalidValue;
        constexpr double kPoolSpeedup = 20;
        const double cost_ns = context.description.free_ns(context.random) / kPoolSpeedup;
        Item item;
        item.ready_ns = begin;
        item.work = [&context, block] {
          block->live = false;
          context.results.freed(block->range());
        };
        report(call, context, *block, {.async = true, .place = context.place(timeline)});
        block->freed = true;
        block->freed_by = context.push(timeline, std::move(item));
        context.pool.put(block);
        lock.unlock();
        return call.return_at(begin + cost_ns, kSuccess);
      });
}

EXPORT Result cuDeviceGetDefaultMemPool(MemoryPool* pool, Device device) {
  Call call("cuDeviceGetDefaultMemPool");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (pool == nullptr) return kInvalidValue;
    if (!context.description.memory_pools) return kNotSupported;
    *pool = reinterpret_cast<MemoryPool>(&context.pool);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolSetAttribute(MemoryPool pool, int attribute, void* value) {
  Call call("cuMemPoolSetAttribute");
  return with_pool(call, pool, [&](Process&, Context& context) -> Result {
    if (attribute != kReleaseThreshold || value == nullptr) return kInvalidValue;
    std::memcpy(&context.pool.threshold, value, sizeof context.pool.threshold);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolTrimTo(MemoryPool pool, std::size_t bytes_to_keep) {
  Call call("cuMemPoolTrimTo");
  return with_pool(call, pool, [&](Process& process, Context& context) -> Result {
    process.look(context);
    process.release_pool(context, bytes_to_keep);
    return context.sticky;
  });
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
