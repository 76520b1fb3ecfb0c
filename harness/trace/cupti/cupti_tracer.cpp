#include "harness/trace/cupti/cupti_tracer.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "harness/trace/cupti/decode.h"
#include "harness/trace/cupti/traced_calls.h"

namespace launchgap::cupti {
namespace {

/// Buffers between CUPTI and us. CUPTI asks for one on the thread that launches, so they are made
/// and zeroed beforehand; it may bring one back on any thread. Memory once given to CUPTI is never
/// freed.
class BufferPool {
 public:
  static constexpr std::size_t kBytes = 4 << 20;  // NVIDIA advises 1 to 10 MB
  static constexpr std::size_t kReady = 4;
  static constexpr std::size_t kMost = 64;

  struct Full {
    std::uint8_t* data;
    std::size_t valid_bytes;
  };

  static BufferPool& get() {
    static auto* const pool = new BufferPool;
    return *pool;
  }

  /// Null when the most that may be in flight is.
  std::uint8_t* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      if (made_ == kMost) return nullptr;
      return make();
    }
    std::uint8_t* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

  void give_back_full(Full full) {
    const std::lock_guard lock(mutex_);
    full_.push_back(full);
  }

  std::optional<Full> next_full() {
    const std::lock_guard lock(mutex_);
    if (full_.empty()) return std::nullopt;
    const Full full = full_.front();
    full_.pop_front();
    return full;
  }

  /// Zeroes what was used, so that CUPTI need not do it while something is being timed.
  void recycle(Full full) {
    std::memset(full.data, 0, full.valid_bytes);
    const std::lock_guard lock(mutex_);
    free_.push_back(full.data);
  }

  /// For libraries that crash without a buffer: one whose records are thrown away.
  std::uint8_t* scratch() { return scratch_; }

  std::atomic<std::uint64_t> refused{0};
  bool takes_no_buffer = true;

 private:
  BufferPool() : scratch_(make()) {
    for (std::size_t i = 0; i < kReady; ++i) free_.push_back(make());
  }

  std::uint8_t* make() {
    auto* const buffer = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes));
    if (buffer) {
      std::memset(buffer, 0, kBytes);
      ++made_;
    }
    return buffer;
  }

  std::mutex mutex_;
  std::size_t made_ = 0;
  std::uint8_t* scratch_;
  std::vector<std::uint8_t*> free_;
  std::deque<Full> full_;
};

void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  BufferPool& pool = BufferPool::get();
  *records = 0;  // as many as fit
  *bytes = BufferPool::kBytes;
  *buffer = pool.take();
  if (*buffer) return;
  pool.refused.fetch_add(1, std::memory_order_relaxed);
  if (pool.takes_no_buffer) {
    *bytes = 0;
  } else {
    *buffer = pool.scratch();
  }
}

void buffer_completed(abi::Context,
                      std::uint32_t,
                      std::uint8_t* buffer,
                      std::size_t,
                      std::size_t valid_bytes) {
  BufferPool& pool = BufferPool::get();
  if (buffer && buffer != pool.scratch()) pool.give_back_full({buffer, valid_bytes});
}

/// Subscribing needs one; no callback is ever enabled.
void ignore_callback(void*, int, std::uint32_t, const void*) {}

const Cupti& load() {
  try {
    return Cupti::get();
  } catch (const Error& error) {
    throw TraceUnavailable(TraceState::cupti_not_found, error.what());
  }
}

}  // namespace

CuptiTracer::CuptiTracer(TraceLevel level) : level_(level) {
  if (const auto tool = tool_by_environment()) {
    throw TraceUnavailable(TraceState::subscriber_busy,
                           "this process runs under a tool that uses CUPTI itself, so launchgap "
                           "leaves it alone; run without the tool for traced runs",
                           *tool);
  }
  cupti_ = &load();
  if (cupti_->version < abi::kOldestVersion) {
    throw TraceUnavailable(
        TraceState::cupti_too_old,
        fmt::format("{} is CUPTI {}; its records can be read from CUDA 11.0 (API 13) on",
                    cupti_->facts.path,
                    cupti_->facts.version));
  }
  subscribe();
  enable();
}

void CuptiTracer::subscribe() {
  const abi::Result code = cupti_->cuptiSubscribe(&subscriber_, ignore_callback, nullptr);
  if (code != abi::kMultipleSubscribers) return check(code, "cuptiSubscribe");
  // The one who has it is only told to the newer call, which fails in the same way.
  std::array<char, 128> owner{};
  if (cupti_->cuptiSubscribe_v2) {
    abi::SubscriberParameters more{sizeof more, "launchgap", owner.data(), owner.size() - 1};
    if (cupti_->cuptiSubscribe_v2(&subscriber_, ignore_callback, nullptr, &more) == abi::kSuccess)
      cupti_->cuptiUnsubscribe(subscriber_);
  }
  throw TraceUnavailable(
      TraceState::subscriber_busy,
      "another tool has CUPTI in this process, and only one can; run without it for traced "
      "runs",
      owner[0] ? owner.data() : "unknown");
}

void CuptiTracer::enable() {
  BufferPool& pool = BufferPool::get();
  pool.takes_no_buffer = cupti_->version >= abi::kFirstThatTakesNoBuffer;
  if (cupti_->cuptiActivitySetAttribute) {
    std::uint8_t yes = 1;
    std::size_t bytes = sizeof yes;
    cupti_->cuptiActivitySetAttribute(abi::kZeroedOutBuffer, &bytes, &yes);  // 12.x and later
  }
  check(cupti_->cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed),
        "cuptiActivityRegisterCallbacks");
  enable_calls();
  if (level_ == TraceLevel::launches) return;
  check(cupti_->cuptiActivityEnable(abi::kConcurrentKernel), "cuptiActivityEnable");
  enable_kind(abi::kOverhead, "overhead");
  if (level_ == TraceLevel::kernels) return;
  enable_kind(abi::kSynchronization, "synchronisation");
  enable_kind(abi::kMemory2, "memory");
  // Not GRAPH_TRACE: a graph would have one record, and its kernels none (cupti_activity.h; Tracy
  // pull request 1330).
}

/// A kind that an older library lacks is a remark, not the end.
void CuptiTracer::enable_kind(abi::Kind kind, const char* what) {
  const abi::Result code = cupti_->cuptiActivityEnable(kind);
  switch (code) {
    case abi::kSuccess:
      break;
    case abi::kInvalidKind:
    case abi::kNotSupported:
    case abi::kApiNotImplemented:
    case abi::kInvalidParameter:
      notes_.push_back(
          fmt::format("this CUPTI has no {} records: {}", what, cupti_->describe(code)));
      break;
    default:
      refuse(code, "cuptiActivityEnable");
  }
}

/// Call by call where the library can (CUDA 12.5 and later), whole domains elsewhere.
void CuptiTracer::enable_calls() {
  if (!enable_each(cupti_->cuptiActivityEnableDriverApi, kDriverLaunches) ||
      !enable_each(cupti_->cuptiActivityEnableDriverApi, kDriverAllocations)) {
    check(cupti_->cuptiActivityEnable(abi::kDriverApi), "cuptiActivityEnable");
    notes_.emplace_back("all driver calls are recorded: this CUPTI cannot select them");
  }
  if (!enable_each(cupti_->cuptiActivityEnableRuntimeApi, kRuntimeLaunches)) {
    check(cupti_->cuptiActivityEnable(abi::kRuntimeApi), "cuptiActivityEnable");
    notes_.emplace_back("all runtime calls are recorded: this CUPTI cannot select them");
  }
}

void CuptiTracer::collect(activity::Trace& trace, bool forced) {
  check(cupti_->cuptiActivityFlushAll(forced ? abi::kFlushForced : abi::kFlushCompleted),
        "cuptiActivityFlushAll");
  BufferPool& pool = BufferPool::get();
  const RecordReader reader{cupti_->cuptiActivityGetNextRecord, cupti_->version};
  while (const auto full = pool.next_full()) {
    decode(reader, full->data, full->valid_bytes, trace);
    pool.recycle(*full);
  }
  // Both counters begin anew at each reading.
  std::size_t dropped = 0;
  if (cupti_->cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == abi::kSuccess)
    trace.dropped += dropped;
  trace.dropped += pool.refused.exchange(0);
}

std::int64_t CuptiTracer::clock_ns() {
  std::uint64_t now = 0;
  check(cupti_->cuptiGetTimestamp(&now), "cuptiGetTimestamp");
  return static_cast<std::int64_t>(now);
}

void CuptiTracer::check(abi::Result code, const char* call) const {
  if (code != abi::kSuccess) refuse(code, call);
}

void CuptiTracer::refuse(abi::Result code, const char* call) const {
  const std::string text = fmt::format("{} answered {}: {}", call, code, cupti_->describe(code));
  switch (code) {
    case abi::kInsufficientPrivileges:
    case abi::kVirtualisedInsufficientPrivileges:
      throw TraceUnavailable(
          TraceState::insufficient_privileges,
          text + "; https://developer.nvidia.com/ERR_NVGPUCTRPERM tells how to allow it");
    case abi::kNotInitialized:
      throw TraceUnavailable(TraceState::not_initialized,
                             text + "; the driver is older than this CUPTI, or there is none");
    default:
      throw TraceUnavailable(TraceState::unknown, text, std::to_string(code));
  }
}

}  // namespace launchgap::cupti

namespace launchgap {

std::optional<std::string> why_no_cupti() {
  try {
    cupti::Cupti::get();
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace launchgap
