// The fake libcupti: activity records of what the fake driver does.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <string>
#include <string_view>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/cupti_session.h"

namespace launchgap::fake {
namespace {

using namespace cupti::abi;

using Result = cupti::abi::Result;

// Of cupti_result.h, beyond those that the harness tells apart.
constexpr Result kInvalidOperation = 7;
constexpr Result kParameterSizeNotSufficient = 10;

constexpr std::pair<Result, const char*> kResults[] = {
    {kSuccess, "CUPTI_SUCCESS"},
    {kInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER"},
    {kInvalidOperation, "CUPTI_ERROR_INVALID_OPERATION"},
    {kParameterSizeNotSufficient, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"},
    {kApiNotImplemented, "CUPTI_ERROR_API_NOT_IMPLEMENTED"},
    {kMaxLimitReached, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
    {kNotInitialized, "CUPTI_ERROR_NOT_INITIALIZED"},
    {kInvalidKind, "CUPTI_ERROR_INVALID_KIND"},
    {kNotSupported, "CUPTI_ERROR_NOT_SUPPORTED"},
    {kInsufficientPrivileges, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
    {kMultipleSubscribers, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
    {kVirtualisedInsufficientPrivileges, "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"},
    {kUnknown, "CUPTI_ERROR_UNKNOWN"},
};

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "launchgap fake CUPTI: %s\n", why);
  std::abort();
}

/// Whether the calling thread runs exit handlers or destructors: exit() is among its callers.
bool exiting() {
  void* frames[256];
  const int count = backtrace(frames, std::size(frames));
  return std::any_of(frames, frames + count, [](void* return_address) {
    Dl_info info;
    const auto* const call = static_cast<const char*>(return_address) - 1;
    return dladdr(call, &info) != 0 && info.dli_sname != nullptr &&
           std::string_view(info.dli_sname) == "exit";
  });
}

/// Ends with the process.
class ExitCheck {
 public:
  ~ExitCheck() {
    if (!session_in_use || !Session::instance().description().abort_at_exit) return;
    if (Session::instance().active()) give_up("activity is still enabled while the process exits");
    if (Session::instance().subscribed()) give_up("still subscribed while the process exits");
  }

  std::atomic<bool> session_in_use = false;
};
ExitCheck exit_check;

/// What every function does first; the code that it has to return, if it is not kSuccess.
/// `often`: whether the process exits, which takes microseconds to find out, is asked elsewhere.
Result enter(const char* call, bool often = false) {
  const Session& session = Session::instance();
  exit_check.session_in_use = true;
  if (session.description().abort_at_exit && !often && exiting()) {
    give_up((std::string(call) + " called while the process exits").c_str());
  }
  return session.has_driver() ? find_driver()->enter(Library::cupti, call) : kSuccess;
}

/// For functions that need a driver: body(session).
template <typename Body>
Result with_driver(const char* call, Body body) {
  if (const Result code = enter(call)) return code;
  // As the real library without one: CUPTI 13.0 answers 999, not 15.
  if (!Session::instance().has_driver()) return kUnknown;
  return body(Session::instance());
}

/// For functions that came with a version.
template <typename Body>
Result since(std::uint32_t version, const char* call, Body body) {
  return with_driver(call, [&](Session& session) -> Result {
    return session.description().version < version ? Result{kApiNotImplemented} : body(session);
  });
}

constexpr std::uint32_t kFirstWithCallSelection = 23;  // CUDA 12.5
constexpr std::uint32_t kFirstWithNames = 130000;

Result enable_call(const char* name, ApiDomain domain, std::uint32_t call, bool enabled) {
  return since(kFirstWithCallSelection, name, [&](Session& session) -> Result {
    if (!session.buffers().has_callbacks()) return kInvalidOperation;
    return session.enable_call(domain, call, enabled);
  });
}

/// Bytes of an attribute's value; 0 for other attributes.
std::size_t attribute_bytes(Attribute attribute) {
  static constexpr std::pair<int, std::size_t> kBytes[] = {
      {kDeviceBufferSize, sizeof(std::size_t)},
      {kDeviceBufferPoolLimit, sizeof(std::size_t)},
      {kDeviceBufferPreAllocate, sizeof(std::size_t)},
      {kZeroedOutBuffer, sizeof(std::uint8_t)}};
  return found_in(kBytes, attribute).value_or(0);
}

}  // namespace

EXPORT Result cuptiGetVersion(std::uint32_t* version) {
  if (const Result code = enter("cuptiGetVersion")) return code;
  return put(version, Session::instance().description().version, kInvalidParameter);
}

EXPORT Result cuptiGetTimestamp(std::uint64_t* now) {
  if (const Result code = enter("cuptiGetTimestamp")) return code;
  return put(now, Session::instance().now(), kInvalidParameter);
}

EXPORT Result cuptiGetResultString(Result result, const char** text) {
  if (const Result code = enter("cuptiGetResultString")) return code;
  if (text == nullptr) return kInvalidParameter;
  const auto name = found_in(kResults, result);
  *text = name.value_or("<unknown>");
  return name ? kSuccess : kInvalidParameter;
}

EXPORT Result cuptiSubscribe(Subscriber* subscriber, Callback, void*) {
  return with_driver("cuptiSubscribe", [&](Session& session) -> Result {
    if (subscriber == nullptr) return kInvalidParameter;
    std::string owner;
    if (const Result code = session.subscribe("CUPTI", &owner)) return code;
    *subscriber = session.subscriber();
    return kSuccess;
  });
}

EXPORT Result cuptiSubscribe_v2(Subscriber* subscriber,
                                Callback,
                                void*,
                                SubscriberParameters* more) {
  return since(kFirstWithNames, "cuptiSubscribe_v2", [&](Session& session) -> Result {
    if (subscriber == nullptr) return kInvalidParameter;
    if (more != nullptr && more->bytes < sizeof *more) return kInvalidParameter;
    std::string name = "CUPTI";
    if (more != nullptr && more->name != nullptr) {
      constexpr std::size_t kLongestName = 53;
      name += " for " + std::string(more->name).substr(0, kLongestName);
    }
    std::string owner;
    const Result code = session.subscribe(name, &owner);
    if (code == kSuccess) {
      *subscriber = session.subscriber();
    } else if (more != nullptr && more->old_subscriber != nullptr &&
               more->old_subscriber_bytes > 0) {
      std::snprintf(more->old_subscriber, more->old_subscriber_bytes, "%s", owner.c_str());
    }
    return code;
  });
}

EXPORT Result cuptiUnsubscribe(Subscriber subscriber) {
  return with_driver("cuptiUnsubscribe",
                     [&](Session& session) -> Result { return session.unsubscribe(subscriber); });
}

EXPORT Result cuptiSetThreadIdType(ThreadIdType type) {
  if (const Result code = enter("cuptiSetThreadIdType")) return code;
  if (type > kThreadIdSystem) return kInvalidParameter;
  Session::instance().set_thread_ids(type);
  return kSuccess;
}

EXPORT Result cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  if (const Result code = enter("cuptiActivityRegisterCallbacks")) return code;
  if (requested == nullptr || completed == nullptr) return kInvalidParameter;
  Session::instance().buffers().set_callbacks(requested, completed);
  return kSuccess;
}

EXPORT Result cuptiActivityEnable(Kind kind) {
  return with_driver("cuptiActivityEnable", [&](Session& session) -> Result {
    if (!session.buffers().has_callbacks()) return kInvalidOperation;
    return session.enable(kind, true);
  });
}

EXPORT Result cuptiActivityDisable(Kind kind) {
  return with_driver("cuptiActivityDisable",
                     [&](Session& session) -> Result { return session.enable(kind, false); });
}

EXPORT Result cuptiActivityFlushAll(std::uint32_t flag) {
  return with_driver("cuptiActivityFlushAll", [&](Session& session) -> Result {
    if (!session.buffers().has_callbacks() || Buffers::in_callback()) return kInvalidOperation;
    session.flush((flag & kFlushForced) != 0);
    return kSuccess;
  });
}

EXPORT Result cuptiActivityGetNextRecord(std::uint8_t* buffer,
                                         std::size_t valid_bytes,
                                         Activity** record) {
  const bool first = record != nullptr && *record == nullptr;
  if (const Result code = enter("cuptiActivityGetNextRecord", !first)) return code;
  if (buffer == nullptr || record == nullptr) return kInvalidParameter;
  const std::uint32_t version = Session::instance().description().version;
  const std::uint8_t* const end = buffer + valid_bytes;
  auto* next = reinterpret_cast<std::uint8_t*>(*record);
  next = next == nullptr ? buffer : next + record_bytes((*record)->kind, version);
  if (next + sizeof(Activity) > end) return kMaxLimitReached;
  const std::size_t bytes = record_bytes(reinterpret_cast<Activity*>(next)->kind, version);
  if (bytes == 0) return kInvalidKind;
  if (next + bytes > end) return kMaxLimitReached;
  *record = reinterpret_cast<Activity*>(next);
  return kSuccess;
}

EXPORT Result cuptiActivityGetNumDroppedRecords(cupti::abi::Context,
                                                std::uint32_t,
                                                std::size_t* dropped) {
  if (const Result code = enter("cuptiActivityGetNumDroppedRecords")) return code;
  if (dropped == nullptr) return kInvalidParameter;
  *dropped = Session::instance().buffers().take_dropped();
  return kSuccess;
}

EXPORT Result cuptiActivitySetAttribute(Attribute attribute, std::size_t* bytes, void* value) {
  return with_driver("cuptiActivitySetAttribute", [&](Session&) -> Result {
    if (bytes == nullptr || value == nullptr || attribute_bytes(attribute) == 0)
      return kInvalidParameter;
    return *bytes < attribute_bytes(attribute) ? Result{kParameterSizeNotSufficient} : kSuccess;
  });
}

EXPORT Result cuptiActivityEnableDriverApi(std::uint32_t call, std::uint8_t enable) {
  return enable_call("cuptiActivityEnableDriverApi", ApiDomain::driver, call, enable);
}

EXPORT Result cuptiActivityEnableRuntimeApi(std::uint32_t call, std::uint8_t enable) {
  return enable_call("cuptiActivityEnableRuntimeApi", ApiDomain::runtime, call, enable);
}

}  // namespace launchgap::fake

namespace launchgap::cupti::abi {
LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cupti::abi
