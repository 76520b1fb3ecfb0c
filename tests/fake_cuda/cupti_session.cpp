#include "tests/fake_cuda/cupti_session.h"

#include <cstdlib>
#include <ctime>
#include <iterator>

#include "tests/random.h"

namespace launchgap::fake {

using namespace cupti::abi;

namespace {

constexpr std::uint32_t kKindCount = 56;  // CUPTI_ACTIVITY_KIND_COUNT of CUDA 13.0
constexpr std::uint32_t kUnknownKind = 9999;
constexpr std::uint32_t kThreadObject = 2;  // CUPTI_ACTIVITY_OBJECT_THREAD
constexpr std::uint32_t kPinnedMemory = 2;  // CUPTI_ACTIVITY_MEMORY_KIND_PINNED
constexpr std::uint32_t kDeviceMemory = 3;  // CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
constexpr std::uint32_t kLocalPool = 1;     // CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL

std::int64_t realtime_offset_ns() {
  const auto ns = [](clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC);
}

std::uint64_t seed() {
  return wanted_seed().value_or(std::random_device()());
}

// Records

Record unknown_record() {
  Record record;
  record.size = sizeof(ApiActivity);
  record.set(0, kUnknownKind);
  return record;
}

Record kernel_record(std::uint32_t version,
                     const KernelShape& kernel,
                     const Place& place,
                     const OpenCall& call,
                     long long number) {
  KernelActivity activity{};
  activity.kind = kConcurrentKernel;
  activity.registers_per_thread = 16;
  activity.device = place.device;
  activity.context = place.context;
  activity.stream = place.stream;
  activity.grid_x = static_cast<std::int32_t>(kernel.grid[0]);
  activity.grid_y = static_cast<std::int32_t>(kernel.grid[1]);
  activity.grid_z = static_cast<std::int32_t>(kernel.grid[2]);
  activity.block_x = static_cast<std::int32_t>(kernel.block[0]);
  activity.block_y = static_cast<std::int32_t>(kernel.block[1]);
  activity.block_z = static_cast<std::int32_t>(kernel.block[2]);
  activity.dynamic_shared_memory = static_cast<std::int32_t>(kernel.shared_bytes);
  activity.correlation = call.correlation;
  activity.grid_id = number + 1;
  activity.name = kernel.name;
  return Record::of(activity, version);
}

Record graph_record(std::uint32_t version, const Place& place, const OpenCall& call) {
  GraphActivity activity{};
  activity.kind = kGraphTrace;
  activity.correlation = call.correlation;
  activity.device = place.device;
  activity.graph = 1;
  activity.context = place.context;
  activity.stream = place.stream;
  return Record::of(activity, version);
}

Record transfer_record(std::uint32_t version,
                       const TransferEvent& event,
                       const Place& place,
                       const OpenCall& call) {
  TransferActivity activity{};
  activity.kind = event.fill ? kMemset : kMemcpy;
  activity.bytes = event.bytes;
  activity.device = place.device;
  activity.context = place.context;
  activity.stream = place.stream;
  activity.correlation = call.correlation;
  return Record::of(activity, version);
}

Record memory_record(std::uint32_t version,
                     const MemoryEvent& event,
                     const OpenCall& call,
                     const CallingThread& thread,
                     double end_ns) {
  MemoryActivity activity{};
  activity.kind = kMemory2;
  activity.operation = event.allocation ? kAllocation : kRelease;
  activity.memory_kind = event.host ? kPinnedMemory : kDeviceMemory;
  activity.correlation = call.correlation;
  activity.address = event.address;
  activity.bytes = event.bytes;
  activity.timestamp = timestamp((call.begin_ns + end_ns) / 2, call.clock_ns);
  activity.process = thread.process;
  activity.device = event.place.device;
  activity.context = event.place.context;
  activity.stream = event.place.stream;
  activity.is_async = event.async ? 1 : 0;
  if (event.pool != 0) {
    activity.pool_type = kLocalPool;
    activity.pool = event.pool;
  }
  Record record = Record::of(activity, version);
  // What follows in the pool's configuration; the last of them since version 17.
  constexpr std::size_t kThreshold = 96, kSize = 104, kUtilized = 112;
  record.set(kThreshold, event.pool_threshold);
  record.set(kSize, event.pool_bytes);
  record.set(kUtilized, event.pool_used_bytes);
  return record;
}

Record synchronization_record(std::uint32_t version,
                              const SynchronizationEvent& event,
                              const OpenCall& call,
                              double end_ns,
                              int result) {
  SynchronizationActivity activity{};
  activity.kind = kSynchronization;
  activity.type = static_cast<SynchronizationType>(event.type);
  activity.start = timestamp(call.begin_ns, call.clock_ns);
  activity.end = timestamp(end_ns, call.clock_ns);
  activity.correlation = call.correlation;
  activity.context = event.place.context;
  activity.stream = event.place.stream;
  activity.event = event.event;
  Record record = Record::of(activity, version);
  // cudaEventSyncId and returnValue of CUpti_ActivitySynchronization2.
  constexpr std::size_t kEventRecord = 40, kReturnValue = 48;
  record.set(kEventRecord, std::uint64_t{event.event});
  record.set(kReturnValue, static_cast<std::uint32_t>(result));
  return record;
}

Record overhead_record(std::uint32_t version,
                       const TracingOverhead& overhead,
                       const OpenCall& call,
                       const CallingThread& thread,
                       double begin_ns,
                       double end_ns) {
  OverheadActivity3 activity{};
  activity.common.kind = kOverhead;
  activity.common.overhead = overhead.kind;
  activity.common.object_kind = kThreadObject;
  activity.common.object[0] = thread.process;
  activity.common.object[1] = thread.id;
  activity.common.start = timestamp(begin_ns, call.clock_ns);
  activity.common.end = timestamp(end_ns, call.clock_ns);
  activity.correlation = call.correlation;
  if (overhead.kind == kCommandBufferFull && version >= kFirstWithOverheadData) {
    // CUpti_ActivityOverheadCommandBufferFullData: length left, channel, type of the channel.
    constexpr std::size_t kFields = 3;
    activity.data = std::calloc(kFields, sizeof(std::uint32_t));
  }
  Record record = Record::of(activity, version);
  record.owned = activity.data;
  return record;
}

bool is_in(const std::optional<KernelRange>& range, long long number) {
  return range && range->contains(number);
}

Driver* usable_driver() {
  Driver* const driver = find_driver();
  return driver != nullptr && driver->node() != nullptr ? driver : nullptr;
}

}  // namespace

Session& Session::instance() {
  static auto* const session = new Session;
  return *session;
}

Session::Session()
    : driver_(usable_driver()),
      description_(driver_ != nullptr ? driver_->node()->cupti : CuptiDescription()),
      clock_ns_(realtime_offset_ns()),
      buffers_({description_.callback_thread, description_.shuffle}, seed()),
      next_correlation_(description_.first_correlation),
      random_(seed()) {
  for (const auto& overhead : description_.overheads) overheads_.push_back({overhead});
}

CallingThread& Session::this_thread() {
  return of_this_thread(mutex_, threads_);
}

// Subscriber

cupti::abi::Result Session::subscribe(const std::string& name, std::string* owner) {
  const std::lock_guard lock(mutex_);
  if (description_.subscriber || subscribed_) {
    *owner = subscribed_ ? subscriber_ : *description_.subscriber;
    return kMultipleSubscribers;
  }
  subscribed_ = true;
  subscriber_ = name;
  return kSuccess;
}

cupti::abi::Subscriber Session::subscriber() {
  return reinterpret_cast<Subscriber>(&subscribed_);
}

cupti::abi::Result Session::unsubscribe(Subscriber handle) {
  const std::lock_guard lock(mutex_);
  if (!subscribed_ || handle != subscriber()) return kInvalidParameter;
  subscribed_ = false;
  return kSuccess;
}

bool Session::subscribed() {
  const std::lock_guard lock(mutex_);
  return subscribed_;
}

// What is enabled

bool Session::active() const {
  return kinds_ != 0 || enabled_calls_ > 0;
}

void Session::listen() {
  driver_->listen(active() && !description_.silent ? this : nullptr);
}

std::uint32_t Session::last_call(ApiDomain domain) const {
  // CUPTI_DRIVER_TRACE_CBID_SIZE and CUPTI_RUNTIME_TRACE_CBID_SIZE of CUDA 13.0; the runtime's from
  // __cudaPushCallConfiguration (502) on came with it.
  constexpr std::uint32_t kLastDriver = 806, kLastRuntime = 522, kLastRuntimeBefore13 = 501;
  if (domain == ApiDomain::driver) return kLastDriver;
  return description_.version >= 130000 ? kLastRuntime : kLastRuntimeBefore13;
}

void Session::set_call(ApiDomain domain, std::uint32_t call, bool enabled) {
  if (calls_[static_cast<std::size_t>(domain)][call].exchange(enabled) != enabled) {
    enabled_calls_ += enabled ? 1 : -1;
  }
}

cupti::abi::Result Session::enable_call(ApiDomain domain, std::uint32_t call, bool enabled) {
  if (call == 0 || call > last_call(domain)) return kInvalidParameter;
  set_call(domain, call, enabled);
  listen();
  return kSuccess;
}

cupti::abi::Result Session::enable(std::uint32_t kind, bool enabled) {
  if (record_bytes(kind, description_.version) == 0) {
    return kind > 0 && kind < kKindCount ? kNotSupported : kInvalidKind;
  }
  if (kind == kDriverApi || kind == kRuntimeApi) {
    const auto domain = kind == kDriverApi ? ApiDomain::driver : ApiDomain::runtime;
    for (std::uint32_t call = 1; call <= last_call(domain); ++call) {
      set_call(domain, call, enabled);
    }
  } else if (enabled) {
    {
      const std::lock_guard lock(mutex_);
      if (enabled_ns_ == 0) enabled_ns_ = flushed_ns_ = now_ns();
    }
    kinds_ |= std::uint64_t{1} << kind;
  } else {
    kinds_ &= ~(std::uint64_t{1} << kind);
  }
  listen();
  return kSuccess;
}

void Session::flush(bool forced) {
  // A device has done by now what nobody waited for.
  driver_->look();
  buffers_.flush(forced);
  const std::lock_guard lock(mutex_);
  flushed_ns_ = now_ns();
}

// What the driver tells

std::uint32_t Session::next_correlation() {
  std::uint32_t id = 0;
  while (id == 0) id = next_correlation_++;  // 0 is none
  return id;
}

double Session::draw(const Distribution& distribution) {
  const std::lock_guard lock(mutex_);
  return distribution(random_);
}

void Session::enter(ApiDomain domain, std::uint32_t call, double begin_ns) {
  auto& open = this_thread().open;
  OpenCall entered;
  entered.domain = domain;
  entered.id = call;
  entered.begin_ns = begin_ns;
  entered.recorded = calls(domain)[call];
  if (!open.empty() && description_.nested == CuptiDescription::Nested::same) {
    entered.correlation = open.back().correlation;
  } else if (enabled_calls_ > 0) {
    entered.correlation = next_correlation();
  }
  entered.clock_ns = open.empty() ? clock_ns_.load() : open.back().clock_ns;
  open.push_back(entered);
}

double Session::wait_for_overheads(const OpenCall& call, CallingThread& thread) {
  double late_ns = 0;
  const std::lock_guard lock(mutex_);
  for (auto& [overhead, launches] : overheads_) {
    if (++launches % overhead.every != 0) continue;
    const double begin_ns = call.begin_ns + late_ns;
    late_ns += overhead.ns(random_);
    if (!enabled(kOverhead)) continue;
    thread.records.push_back(overhead_record(
        description_.version, overhead, call, thread, begin_ns, call.begin_ns + late_ns));
  }
  return late_ns;
}

Listener::Launch Session::launch(const KernelShape& kernel, const Place& place) {
  CallingThread& thread = this_thread();
  OpenCall& call = thread.open.back();
  ++call.kernels;
  Launch launch{wait_for_overheads(call, thread), nullptr};
  if (!enabled(kConcurrentKernel)) return launch;
  const long long number = kernels_++;
  const auto& step = description_.clock_step;
  if (step && number + 1 == step->after) thread.open.front().clock_steps = true;
  if (is_in(description_.unknown_kind, number)) {
    thread.records.push_back(unknown_record());
  }
  const Spoilt spoilt = draw_fault(number, call.begin_ns);
  if (spoilt == Spoilt::lost) return launch;
  if (is_in(description_.dropped, number)) {
    buffers_.drop(1);
    return launch;
  }
  auto pending = std::make_shared<PendingKernel>();
  launch.times = std::make_shared<KernelTimes>();
  pending->times = launch.times;
  pending->clock_ns = call.clock_ns;
  pending->api_begin = timestamp(thread.open.front().begin_ns, call.clock_ns);
  pending->spoilt = spoilt;
  if (description_.gpu_clock) {
    pending->error_ns = draw_clock_error(call.begin_ns);
    pending->quantum_ns = description_.gpu_clock->quantum_ns;
  }
  auto record = kernel_record(description_.version, kernel, place, call, number);
  record.kernel = std::move(pending);
  thread.records.push_back(std::move(record));
  return launch;
}

Spoilt Session::draw_fault(long long number, double begin_ns) {
  constexpr Spoilt kInTurn[] = {Spoilt::zero_timestamps, Spoilt::inverted, Spoilt::early};
  if (is_in(description_.lost, number)) return Spoilt::lost;
  if (is_in(description_.zero_timestamps, number)) return Spoilt::zero_timestamps;
  if (is_in(description_.inverted, number)) return Spoilt::inverted;
  if (is_in(description_.early, number)) return Spoilt::early;
  const bool burst = in_start_burst(begin_ns);
  const double share = burst ? description_.start_burst->share : description_.impossible_share;
  if (share <= 0) return Spoilt::no;
  const std::lock_guard lock(mutex_);
  if (uniform(random_) >= share) return Spoilt::no;
  const auto which = static_cast<std::size_t>(random_() % (burst ? 4 : 3));
  return which == std::size(kInTurn) ? Spoilt::lost : kInTurn[which];
}

bool Session::in_start_burst(double begin_ns) {
  if (!description_.start_burst) return false;
  const std::lock_guard lock(mutex_);
  if (first_kernel_ns_ == 0) first_kernel_ns_ = begin_ns;
  const double idle_s = (first_kernel_ns_ - enabled_ns_) * 1e-9;
  const double most_ms =
      std::min(description_.start_burst->most_ms, description_.start_burst->ms_per_idle_s * idle_s);
  return begin_ns - first_kernel_ns_ < most_ms * 1e6;
}

double Session::draw_clock_error(double begin_ns) {
  const std::lock_guard lock(mutex_);
  const double since_flush_ns = std::max(0.0, begin_ns - flushed_ns_);
  return description_.gpu_clock->sd_ns * normal(random_) +
         description_.gpu_clock->drift_ppm * 1e-6 * since_flush_ns;
}

std::shared_ptr<KernelTimes> Session::graph(const Place& place) {
  if (!description_.whole_graphs || !enabled(kGraphTrace)) return nullptr;
  const OpenCall& call = this_thread().open.back();
  return add_timed(graph_record(description_.version, place, call),
                   offsetof(GraphActivity, start),
                   offsetof(GraphActivity, end));
}

std::shared_ptr<KernelTimes> Session::transfer(const TransferEvent& event, const Place& place) {
  if (!enabled(event.fill ? kMemset : kMemcpy)) return nullptr;
  const OpenCall& call = this_thread().open.back();
  return add_timed(transfer_record(description_.version, event, place, call),
                   offsetof(TransferActivity, start),
                   offsetof(TransferActivity, end));
}

std::shared_ptr<KernelTimes> Session::add_timed(Record record,
                                                std::size_t begin_at,
                                                std::size_t end_at) {
  CallingThread& thread = this_thread();
  auto pending = std::make_shared<PendingKernel>();
  auto times = std::make_shared<KernelTimes>();
  pending->times = times;
  pending->clock_ns = thread.open.back().clock_ns;
  pending->begin_at = begin_at;
  pending->end_at = end_at;
  record.kernel = std::move(pending);
  thread.records.push_back(std::move(record));
  return times;
}

void Session::memory(const MemoryEvent& event) {
  this_thread().open.back().memory = event;
}

void Session::synchronized(const SynchronizationEvent& event) {
  this_thread().open.back().synchronization = event;
}

double Session::leave(double end_ns, int result) {
  CallingThread& thread = this_thread();
  const OpenCall call = thread.open.back();
  thread.open.pop_back();
  double returned_ns = end_ns;
  if (call.recorded) returned_ns += draw(description_.api_overhead_ns);
  if (enabled(kConcurrentKernel)) {
    for (int i = 0; i < call.kernels; ++i) returned_ns += draw(description_.kernel_overhead_ns);
  }
  if ((call.kernels > 0 || call.synchronization) &&
      (enabled(kSynchronization) || enabled(kMemory2) || enabled(kOverhead))) {
    returned_ns += draw(description_.other_overhead_ns);
  }
  if (call.memory && enabled(kMemory2)) {
    thread.records.push_back(
        memory_record(description_.version, *call.memory, call, thread, end_ns));
  }
  if (call.synchronization && enabled(kSynchronization)) {
    thread.records.push_back(
        synchronization_record(description_.version, *call.synchronization, call, end_ns, result));
  }
  if (call.recorded) {
    const ApiActivity api{call.domain == ApiDomain::driver ? kDriverApi : kRuntimeApi,
                          call.id,
                          timestamp(call.begin_ns, call.clock_ns),
                          timestamp(returned_ns, call.clock_ns),
                          thread.process,
                          thread_ids_ == kThreadIdSystem ? thread.system_id : thread.id,
                          call.correlation,
                          static_cast<std::uint32_t>(result)};
    thread.records.push_back(Record::of(api, description_.version));
  }
  if (call.clock_steps) clock_ns_ += description_.clock_step->ns;
  return returned_ns;
}

void Session::write() {
  CallingThread& thread = this_thread();
  if (thread.records.empty()) return;
  // A client that calls the driver from its callback comes by here again.
  const auto records = std::exchange(thread.records, {});
  buffers_.write(records);
}

}  // namespace launchgap::fake
