// The ranges that a program names by NVTX, which calls InitializeInjectionNvtx2 where
// NVTX_INJECTION64_PATH names this library. Ranges are kept from when the driver is initialised.
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string_view>
#include <unistd.h>
#include <unordered_map>

#include <nvtx3/nvToolsExt.h>

#include "harness/injected/recorder.h"

namespace launchgap::injected {
namespace {

struct Name {
  std::uint8_t length = 0;
  char text[kLongestRangeName];

  void set(std::string_view name) {
    length = static_cast<std::uint8_t>(std::min(name.size(), kLongestRangeName));
    std::memcpy(text, name.data(), length);
  }
  /// What is no ASCII becomes a question mark.
  void set(const wchar_t* name) {
    length = 0;
    while (name[length] && length < kLongestRangeName) {
      text[length] = name[length] < 128 ? static_cast<char>(name[length]) : '?';
      ++length;
    }
  }
};

struct OpenRange {
  std::int64_t begin_ns;  // 0: nothing was recorded then
  Name name;
};

/// A registered string is what its handle points to, for good.
struct RegisteredName {
  Name name;
};

void set_name(const nvtxEventAttributes_t* attributes, Name& name) {
  if (!attributes) return;
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      if (attributes->message.ascii) name.set(std::string_view(attributes->message.ascii));
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      if (attributes->message.unicode) name.set(attributes->message.unicode);
      break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (attributes->message.registered)
        name = reinterpret_cast<const RegisteredName*>(attributes->message.registered)->name;
      break;
    default:
      break;
  }
}

void keep(Recorder& recorder, const OpenRange& range, std::int64_t end_ns) {
  if (range.begin_ns == 0 || range.name.length == 0) return;
  EndedRange ended;
  ended.begin_ns = range.begin_ns;
  ended.end_ns = end_ns;
  ended.thread = static_cast<std::uint32_t>(gettid());
  ended.length = range.name.length;
  std::memcpy(ended.name, range.name.text, ended.length);
  recorder.keep(ended);
}

// --- Ranges that nest on their thread; each domain has a stack of its own ---

struct OpenRanges {
  static constexpr int kMostDepth = 64;  // deeper ones are counted, and not kept

  const void* domain = nullptr;
  int depth = 0;
  std::array<OpenRange, kMostDepth> ranges;
};

constexpr std::size_t kMostDomains = 16;
using Stacks = std::array<OpenRanges*, kMostDomains>;
thread_local Stacks* own_stacks = nullptr;
thread_local bool thread_is_over = false;

/// By which the stacks go away with their thread; made before any function is installed.
pthread_key_t stacks_key{};

bool make_stacks_key() {
  return pthread_key_create(&stacks_key, [](void* stacks) {
           thread_is_over = true;
           own_stacks = nullptr;
           for (OpenRanges* stack : *static_cast<Stacks*>(stacks)) delete stack;
           delete static_cast<Stacks*>(stacks);
         }) == 0;
}

/// The calling thread's stack of a domain; null where there is none and none can be made.
OpenRanges* open_ranges(const void* domain) {
  if (thread_is_over) return nullptr;
  if (!own_stacks) {
    own_stacks = new (std::nothrow) Stacks{};
    if (!own_stacks) return nullptr;
    pthread_setspecific(stacks_key, own_stacks);
  }
  for (OpenRanges*& stack : *own_stacks) {
    if (!stack) {
      stack = new (std::nothrow) OpenRanges;
      if (stack) stack->domain = domain;
      return stack;
    }
    if (stack->domain == domain) return stack;
  }
  return nullptr;
}

void lose_range() {
  if (Recorder* const recorder = Recorder::get()) recorder->lose_range();
}

template <class SetName>
int push_range(const void* domain, SetName&& set) {
  OpenRanges* const stack = open_ranges(domain);
  if (!stack) {
    lose_range();
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  const int depth = stack->depth++;
  if (depth >= OpenRanges::kMostDepth) {
    lose_range();
    return depth;
  }
  OpenRange& range = stack->ranges[static_cast<std::size_t>(depth)];
  const Recorder* const recorder = Recorder::get();
  range.begin_ns = recorder ? recorder->now_ns() : 0;
  range.name.length = 0;
  if (recorder) set(range.name);
  return depth;
}

int pop_range(const void* domain) {
  OpenRanges* const stack = open_ranges(domain);
  if (!stack || stack->depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  const int depth = --stack->depth;
  if (depth >= OpenRanges::kMostDepth) return depth;
  if (Recorder* const recorder = Recorder::get())
    keep(*recorder, stack->ranges[static_cast<std::size_t>(depth)], recorder->now_ns());
  return depth;
}

// --- Ranges that begin and end anywhere: rare, so one lock will do ---

struct StartedRanges {
  std::mutex mutex;
  nvtxRangeId_t last = 0;
  std::unordered_map<nvtxRangeId_t, OpenRange> open;
};
StartedRanges& started() {
  static auto* const ranges = new StartedRanges;
  return *ranges;
}

template <class SetName>
nvtxRangeId_t start_range(SetName&& set) {
  const Recorder* const recorder = Recorder::get();
  if (!recorder) return 0;
  OpenRange range;
  range.begin_ns = recorder->now_ns();
  set(range.name);
  StartedRanges& ranges = started();
  constexpr std::size_t kMostOpen = 100'000;  // of a program that forgets to end them
  const std::lock_guard lock(ranges.mutex);
  if (ranges.open.size() >= kMostOpen) {
    lose_range();
    return 0;  // no range has it
  }
  ranges.open.try_emplace(++ranges.last, range);
  return ranges.last;
}

void end_range(nvtxRangeId_t id) {
  Recorder* const recorder = Recorder::get();
  if (!recorder) return;
  const std::int64_t end_ns = recorder->now_ns();
  StartedRanges& ranges = started();
  OpenRange range;
  {
    const std::lock_guard lock(ranges.mutex);
    const auto known = ranges.open.find(id);
    if (known == ranges.open.end()) return;
    range = known->second;
    ranges.open.erase(known);
  }
  keep(*recorder, range, end_ns);
}

// --- What NVTX calls ---

auto named(const nvtxEventAttributes_t* attributes) {
  return [attributes](Name& name) { set_name(attributes, name); };
}
auto named(const char* text) {
  return [text](Name& name) {
    if (text) name.set(std::string_view(text));
  };
}
auto named(const wchar_t* text) {
  return [text](Name& name) {
    if (text) name.set(text);
  };
}

int NVTX_API push_ex(const nvtxEventAttributes_t* attributes) {
  return push_range(nullptr, named(attributes));
}
int NVTX_API push_text(const char* text) {
  return push_range(nullptr, named(text));
}
int NVTX_API push_wide_text(const wchar_t* text) {
  return push_range(nullptr, named(text));
}
int NVTX_API pop() {
  return pop_range(nullptr);
}
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* attributes) {
  return start_range(named(attributes));
}
nvtxRangeId_t NVTX_API start_text(const char* text) {
  return start_range(named(text));
}
nvtxRangeId_t NVTX_API start_wide_text(const wchar_t* text) {
  return start_range(named(text));
}
void NVTX_API end_id(nvtxRangeId_t id) {
  end_range(id);
}

nvtxDomainHandle_t NVTX_API create_domain(const char*) {
  // Nothing but an address of its own.
  return reinterpret_cast<nvtxDomainHandle_t>(new (std::nothrow) char);
}
nvtxDomainHandle_t NVTX_API create_wide_domain(const wchar_t*) {
  return create_domain(nullptr);
}
nvtxStringHandle_t NVTX_API register_text(nvtxDomainHandle_t, const char* text) {
  auto* const registered = new (std::nothrow) RegisteredName;
  if (registered && text) registered->name.set(std::string_view(text));
  return reinterpret_cast<nvtxStringHandle_t>(registered);
}
nvtxStringHandle_t NVTX_API register_wide_text(nvtxDomainHandle_t, const wchar_t* text) {
  auto* const registered = new (std::nothrow) RegisteredName;
  if (registered && text) registered->name.set(text);
  return reinterpret_cast<nvtxStringHandle_t>(registered);
}
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return push_range(domain, named(attributes));
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  return pop_range(domain);
}
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  return start_range(named(attributes));
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  end_range(id);
}

struct Hook {
  unsigned id;
  NvtxFunctionPointer function;
};

template <class Function>
Hook hook(unsigned id, Function* function) {
  return {id, reinterpret_cast<NvtxFunctionPointer>(function)};
}

/// Puts the functions into the program's table, as far as its NVTX has a place for them.
template <std::size_t n>
void install(const NvtxExportTableCallbacks& callbacks,
             NvtxCallbackModule module,
             const std::array<Hook, n>& hooks) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks.GetModuleFunctionTable(module, &table, &size) || !table) return;
  for (const Hook& one : hooks) {
    if (one.id < size && table[one.id]) *table[one.id] = one.function;
  }
}

}  // namespace
}  // namespace launchgap::injected

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  using namespace launchgap::injected;
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (!callbacks || !make_stacks_key()) return 0;
  install(*callbacks,
          NVTX_CB_MODULE_CORE,
          std::to_array({hook(NVTX_CBID_CORE_RangePushEx, push_ex),
                         hook(NVTX_CBID_CORE_RangePushA, push_text),
                         hook(NVTX_CBID_CORE_RangePushW, push_wide_text),
                         hook(NVTX_CBID_CORE_RangePop, pop),
                         hook(NVTX_CBID_CORE_RangeStartEx, start_ex),
                         hook(NVTX_CBID_CORE_RangeStartA, start_text),
                         hook(NVTX_CBID_CORE_RangeStartW, start_wide_text),
                         hook(NVTX_CBID_CORE_RangeEnd, end_id)}));
  install(*callbacks,
          NVTX_CB_MODULE_CORE2,
          std::to_array({hook(NVTX_CBID_CORE2_DomainCreateA, create_domain),
                         hook(NVTX_CBID_CORE2_DomainCreateW, create_wide_domain),
                         hook(NVTX_CBID_CORE2_DomainRegisterStringA, register_text),
                         hook(NVTX_CBID_CORE2_DomainRegisterStringW, register_wide_text),
                         hook(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
                         hook(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
                         hook(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
                         hook(NVTX_CBID_CORE2_DomainRangeEnd, domain_end)}));
  return 1;
}
