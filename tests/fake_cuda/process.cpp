#include "tests/fake_cuda/process.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include "tests/fake_cuda/device_nodes.h"
#include "tests/fake_cuda/visible_devices.h"
#include "tests/random.h"

namespace launchgap::fake {
namespace {

thread_local Context* current_context = nullptr;

std::uint64_t seed_of(int device) {
  std::random_device source;
  const std::uint64_t drawn = (std::uint64_t{source()} << 32) | source();
  return wanted_seed().value_or(drawn) +
         0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(device + 1);
}

/// One turn of a wait, as the context's scheduling flags ask.
void pass_time(unsigned flags, double until_ns) {
  if (flags & abi::kScheduleBlockingSync) {
    sleep_until(until_ns);
  } else if (!skip_to(until_ns, true) && (flags & abi::kScheduleYield)) {
    sched_yield();
  }
}

/// Gives the worker, which needs the driver's lock, the time to finish more than `finished`; not
/// for long, since a gate may open.
void leave_to_worker(const Worker& worker, unsigned finished, unsigned flags) {
  constexpr double kPeriod_ns = 2'000;
  const double deadline = now_ns() + kPeriod_ns;
  while (worker.finished() == finished && now_ns() < deadline) pass_time(flags, deadline);
}

}  // namespace

Context::Context(const DeviceDescription& its_description,
                 int its_index,
                 int its_ordinal,
                 std::uint64_t seed,
                 const AddressMap& addresses)
    : description(its_description),
      index(its_index),
      ordinal(its_ordinal),
      random(seed),
      random_at_times(~seed),
      factor(std::exp(description.process_factor_sigma * normal(random))),
      results(addresses) {}

Timeline* Context::find(abi::Stream stream) {
  constexpr std::uintptr_t kLegacyStream = 1;  // CU_STREAM_LEGACY
  if (stream == nullptr || reinterpret_cast<std::uintptr_t>(stream) == kLegacyStream) {
    return &null_stream;
  }
  const auto found = streams.find(stream);
  if (found != streams.end()) return found->second.get();
  if (lost_streams.contains(stream)) {
    std::fputs("the fake driver: a stream is used whose context is gone\n", stderr);
    std::abort();
  }
  return nullptr;
}

Function* Context::find(abi::Function function) const {
  for (const auto& [key, module] : modules) {
    for (const auto& [name, candidate] : module->functions) {
      if (static_cast<const void*>(candidate.get()) == function) return candidate.get();
    }
  }
  return nullptr;
}

std::vector<Timeline*> Context::timelines() {
  std::vector<Timeline*> all{&null_stream};
  for (const auto& [handle, timeline] : streams) all.push_back(timeline.get());
  for (const auto& timeline : destroyed_streams) all.push_back(timeline.get());
  return all;
}

abi::Stream Context::add_stream(bool blocking, int priority) {
  auto timeline = std::make_unique<Timeline>(blocking, next_stream_id++, priority);
  const auto stream = reinterpret_cast<abi::Stream>(timeline.get());
  lost_streams.erase(timeline.get());
  streams[timeline.get()] = std::move(timeline);
  return stream;
}

void Context::drop_finished_streams() {
  const double now = now_ns();
  std::erase_if(destroyed_streams, [&](const auto& timeline) {
    if (!timeline->idle(now)) return false;
    if (timeline->last()) busy_until_ns = std::max(busy_until_ns, timeline->last()->end_ns);
    return true;
  });
}

CapturePoint* Context::capture_of(const Timeline& timeline) {
  const auto found = captures.find(&timeline);
  return found == captures.end() ? nullptr : &found->second;
}

bool Context::invalidate_capture_of(const Timeline& timeline) {
  CapturePoint* const point = capture_of(timeline);
  if (point != nullptr) point->capture->invalid = true;
  return point != nullptr;
}

bool Context::invalidate_forbidding_capture() {
  constexpr int kGlobal = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL: whatever thread calls
  bool forbidden = false;
  for (auto& [timeline, point] : captures) {
    Capture& capture = *point.capture;
    const bool own =
        capture.mode == abi::kCaptureThreadLocal && capture.thread == std::this_thread::get_id();
    if (!own && capture.mode != kGlobal) continue;
    capture.invalid = true;
    forbidden = true;
  }
  return forbidden;
}

bool Context::invalidate_implied_capture(const Timeline& timeline) {
  if (&timeline != &null_stream) return false;
  bool implied = false;
  for (auto& [captured, point] : captures) {
    if (!captured->blocking()) continue;
    point.capture->invalid = true;
    implied = true;
  }
  return implied;
}

std::vector<ItemPointer> Context::all_ends() {
  std::vector<ItemPointer> ends;
  for (const Timeline* timeline : timelines()) {
    if (timeline->last()) ends.push_back(timeline->last());
  }
  return ends;
}

std::vector<ItemPointer> Context::ends_of(const Timeline& timeline) {
  if (&timeline == &null_stream) return null_stream_ends();
  if (!timeline.last()) return {};
  return {timeline.last()};
}

std::optional<double> Context::idle_since(double now_ns) {
  double since = busy_until_ns;
  for (Timeline* timeline : timelines()) {
    timeline->advance(now_ns, false, nullptr);
    if (!timeline->idle(now_ns)) return std::nullopt;
    if (timeline->last()) since = std::max(since, timeline->last()->end_ns);
  }
  return since;
}

void Context::rise(double now_ns) {
  const auto& ramp = description.launch.ramp;
  if (!ramp) return;
  const auto idle_since_ns = risen_from_ns ? idle_since(now_ns) : std::nullopt;
  if (!risen_from_ns || (idle_since_ns && now_ns - *idle_since_ns >= 1e6 * ramp->idle_ms)) {
    risen_from_ns = now_ns;
  }
  const double left = ramp->ms > 0 ? 1 - (now_ns - *risen_from_ns) / (1e6 * ramp->ms) : 0;
  pace = 1 + (ramp->factor - 1) * std::max(0.0, left);
}

bool Context::would_be_far() const {
  const auto& placement = description.launch.placement;
  if (!placement) return false;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return true;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) &&
        std::ranges::find(placement->cpus, cpu) == placement->cpus.end())
      return true;
  }
  return false;
}

bool Context::contended(const Timeline& timeline, double now_ns) {
  return std::ranges::any_of(timelines(), [&](Timeline* other) {
    if (other == &timeline || other->priority() > timeline.priority()) return false;
    other->advance(now_ns, false, nullptr);
    return !other->idle(now_ns);
  });
}

std::vector<ItemPointer> Context::null_stream_ends() {
  std::vector<ItemPointer> ends;
  for (const Timeline* timeline : timelines()) {
    if (timeline->blocking() && timeline->last()) ends.push_back(timeline->last());
  }
  return ends;
}

ItemPointer Context::push(Timeline& timeline, Item item) {
  if (&timeline == &null_stream) {
    for (auto& end : null_stream_ends()) {
      if (end->timeline != &null_stream) item.after.push_back(std::move(end));
    }
  } else if (timeline.blocking() && null_stream.last()) {
    item.after.push_back(null_stream.last());
  }
  return timeline.push(std::move(item));
}

void Context::fail(abi::Result code) {
  sticky = code;
  results.clear();
}

Process& Process::instance() {
  // Never destroyed: other libraries' destructors may still call the driver.
  static auto* const process = new Process;
  return *process;
}

abi::Result Process::initialize(unsigned flags) {
  if (flags != 0) return abi::kInvalidValue;
  if (initialized_) return contexts_.empty() ? abi::kNoDevice : abi::kSuccess;
  if (node() == nullptr) return abi::kUnknown;
  initialized_ = true;
  open_driver_nodes();
  std::vector<std::string> uuids;
  for (const auto& device : node()->devices) uuids.push_back(device.uuid);
  double cost_ns = 0;
  for (const int index : visible_devices(uuids, std::getenv("CUDA_VISIBLE_DEVICES"))) {
    // Partitioned without a partition: there is nothing to list.
    if (node()->devices[static_cast<std::size_t>(index)].nvml.mig_instances == 0) continue;
    contexts_.push_back(std::make_unique<Context>(node()->devices[static_cast<std::size_t>(index)],
                                                  index,
                                                  device_count(),
                                                  seed_of(index),
                                                  addresses));
    open_device_node(index);
    cost_ns += contexts_.back()->description.init_ns(contexts_.back()->random);
  }
  spin_until(now_ns() + cost_ns);
  return contexts_.empty() ? abi::kNoDevice : abi::kSuccess;
}

Context* Process::device(abi::Device ordinal) {
  if (ordinal < 0 || ordinal >= device_count()) return nullptr;
  return contexts_[static_cast<std::size_t>(ordinal)].get();
}

Context* Process::context_of(abi::Context handle) {
  for (const auto& context : contexts_) {
    if (static_cast<const void*>(context.get()) == handle) return context.get();
  }
  return nullptr;
}

Context* Process::current() const {
  return current_context;
}
void Process::set_current(Context* context) {
  current_context = context;
}

abi::Result Process::fault(Lock& lock, Library library, const char* call, Context* context) {
  if (node() == nullptr) return abi::kUnknown;
  const auto* const fault = node_.faults().next_call(
      library, call, context != nullptr ? context->index : Faults::kNoDevice);
  if (fault == nullptr) return abi::kSuccess;
  if (fault->hang) lock.unlock();  // the other threads go on
  fault->act();
  if (fault->wrong_byte) {
    wrong_byte_ = fault->wrong_byte;
    return abi::kSuccess;
  }
  if (library == Library::cuda && context != nullptr && is_sticky(*fault->code)) {
    context->fail(*fault->code);
  }
  return *fault->code;
}

void Process::spoil(Operation& operation) {
  if (!wrong_byte_ || operation.writes.empty()) return;
  const Range& result = operation.writes.front();
  const long long size = static_cast<long long>(result.bytes);
  const long long byte = *wrong_byte_ < 0 ? size + *wrong_byte_ : *wrong_byte_;
  wrong_byte_.reset();
  if (byte < 0 || byte >= size) return;
  // Another sign and exponent.
  operation.signature += " wrong " + std::to_string(byte);
  operation.compute = [=, compute = std::move(operation.compute)](std::size_t begin,
                                                                  std::size_t end) {
    const auto wrong = static_cast<std::size_t>(byte);
    compute(begin, end);
    if (begin <= wrong && wrong < end)
      *reinterpret_cast<unsigned char*>(result.begin + wrong) ^= 0xC0;
  };
}

void Process::tear_down(Context& context) {
  for (Timeline* timeline : context.timelines()) timeline->abandon();
  context.results.clear();
  context.pool = Pool();
  context.pools.clear();
  context.physical.clear();
  context.null_stream = Timeline(true, Context::kNullStreamId);
  for (const auto& [handle, timeline] : context.streams) context.lost_streams.insert(handle);
  context.streams.clear();
  context.destroyed_streams.clear();
  context.events.clear();
  context.modules.clear();
  context.captures.clear();
  context.graphs.clear();
  context.executables.clear();
  for (const auto& block : addresses.extract(context.index)) {
    if (block->physical) ReservedRanges::empty(block->range());
  }
  context.used_bytes = 0;
  context.memsets_loaded = false;
  context.copied_to.clear();
  context.names_of_unloaded.clear();
}

void Process::look(Context& context) {
  const double now = now_ns();
  for (Timeline* timeline : context.timelines()) timeline->advance(now, false, nullptr);
}

void Process::execute_until(Lock& lock, Context& context, const ItemPointer& item, unsigned flags) {
  for (;;) {
    const unsigned finished = worker.finished();
    if (!item->executed) item->timeline->advance(now_ns(), true, item.get());
    if (item->executed || context.sticky != abi::kSuccess) return;
    // Behind a shut gate or a kernel of the worker's.
    constexpr double kGatePeriod_ns = 20'000;
    lock.unlock();
    if (worker.busy()) {
      leave_to_worker(worker, finished, flags);
    } else {
      pass_time(flags, now_ns() + kGatePeriod_ns);
    }
    lock.lock();
  }
}

abi::Result Process::wait(Lock& lock,
                          Context& context,
                          const std::vector<ItemPointer>& items,
                          unsigned flags,
                          double* spin_until_ns) {
  const double begin = now_ns();
  double end = 0;
  for (const auto& item : items) {
    execute_until(lock, context, item, flags);
    end = std::max(end, item->end_ns);
  }
  if (context.sticky != abi::kSuccess) {
    for (Timeline* timeline : context.timelines()) timeline->abandon();
    return context.sticky;
  }
  if (end > begin) {
    const WakeDescription& wake = context.description.launch.wake_ns;
    const Distribution& wakes = flags & abi::kScheduleBlockingSync ? wake.block
                                : flags & abi::kScheduleYield      ? wake.yield
                                                                   : wake.spin;
    end += wakes(context.random_at_times);
  }
  const bool spins = (flags & (abi::kScheduleYield | abi::kScheduleBlockingSync)) == 0;
  if (spin_until_ns != nullptr && spins) {
    *spin_until_ns = end;
  } else {
    lock.unlock();
    while (now_ns() < end) pass_time(flags, end);
    lock.lock();
  }
  release_pools(context, std::max(now_ns(), end));
  context.drop_finished_streams();
  return context.sticky;
}

void Process::execute(Context& context, Operation operation) {
  if (context.sticky != abi::kSuccess) return;
  for (const auto* ranges : {&operation.reads, &operation.writes}) {
    for (const auto& range : *ranges) {
      if (!addresses.accessible(range, context.index)) return context.fail(abi::kIllegalAddress);
    }
  }
  context.results.apply(std::move(operation));
}

void Process::release_pool(Context& context, Pool& pool, unsigned long long keep, double now_ns) {
  for (const auto& block : pool.release(keep, now_ns)) {
    context.used_bytes -= block->bytes();
    addresses.erase(*block);
  }
}

void Process::release_pools(Context& context, double now_ns) {
  release_pool(context, context.pool, context.pool.threshold, now_ns);
  std::erase_if(context.pools, [&](const auto& entry) {
    Pool& pool = *entry.second;
    release_pool(context, pool, pool.destroyed ? 0 : pool.threshold, now_ns);
    return pool.destroyed && pool.reserved() == 0;
  });
}

}  // namespace launchgap::fake
