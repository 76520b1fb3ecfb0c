// What every exported function of the fake driver begins with: driver? context? fault? dead?
// captured?
#pragma once

#include <type_traits>

#include "tests/fake_cuda/process.h"

namespace launchgap::cuda::abi {
// A definition with other parameters does not compile.
#define LAUNCHGAP_DECLARE_EXPORT(name, required, ...) EXPORT std::type_identity_t<__VA_ARGS__> name;
LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_DECLARE_EXPORT)
#undef LAUNCHGAP_DECLARE_EXPORT
}  // namespace launchgap::cuda::abi

namespace launchgap::fake {

using namespace cuda::abi;

using Result = abi::Result;

/// Any call: body(), with the driver's lock.
template <typename Body>
Result with_process(Call& call, Body body) {
  call.lock = Lock(call.process.mutex);
  const Result result = body();
  if (call.lock.owns_lock()) call.lock.unlock();
  return call.returns(result);
}

/// A call that needs the driver and concerns no device: body().
template <typename Body>
Result with_driver(Call& call, Body body) {
  return with_process(call, [&]() -> Result {
    if (!call.process.initialized()) return kNotInitialized;
    if (const Result code = call.fault(nullptr)) return code;
    return body();
  });
}

/// A call that needs a current context: body(context).
template <typename Body>
Result with_context(Call& call, Body body) {
  return with_process(call, [&]() -> Result {
    if (!call.process.initialized()) return kNotInitialized;
    Context* const context = call.process.current();
    if (context == nullptr) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    if (context->references == 0) return kContextIsDestroyed;
    if (const Result code = call.fault(context)) return code;
    return body(*context);
  });
}

/// A call that concerns a device, not a context: body(context of the device).
template <typename Body>
Result with_device(Call& call, Device ordinal, Body body) {
  return with_process(call, [&]() -> Result {
    if (!call.process.initialized()) return kNotInitialized;
    Context* const context = call.process.device(ordinal);
    if (context == nullptr) return kInvalidDevice;
    if (const Result code = call.fault(context)) return code;
    return body(*context);
  });
}

/// body(context, timeline)
template <typename Body>
Result with_stream(Call& call, Stream stream, Body body) {
  return with_context(call, [&](Context& context) -> Result {
    Timeline* const timeline = context.find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    return body(context, *timeline);
  });
}

/// A call that CUDA forbids while the calling thread captures.
template <typename Body>
Result with_context_at_rest(Call& call, Body body) {
  return with_context(call, [&](Context& context) -> Result {
    if (context.invalidate_forbidding_capture()) return kCaptureUnsupported;
    return body(context);
  });
}

/// A call that a stream does not take while it is captured.
template <typename Body>
Result with_running_stream(Call& call, Stream stream, Body body) {
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (context.invalidate_capture_of(timeline)) return kCaptureUnsupported;
    return body(context, timeline);
  });
}

template <typename To, typename Value>
Result put(To* to, const Value& value) {
  return put(to, value, kInvalidValue);
}

/// Null when the map has no such handle.
template <typename T>
T* find_in(const std::map<const void*, std::unique_ptr<T>>& all, const void* handle) {
  const auto found = all.find(handle);
  return found == all.end() ? nullptr : found->second.get();
}
/// Keeps what was made, and gives the caller its handle.
template <typename T, typename Handle>
void keep(std::map<const void*, std::unique_ptr<T>>& all, std::unique_ptr<T> made, Handle* handle) {
  *handle = reinterpret_cast<Handle>(made.get());
  all[made.get()] = std::move(made);
}

inline void* pointer_to(DevicePointer address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace launchgap::fake
