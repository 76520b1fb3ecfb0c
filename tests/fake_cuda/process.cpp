#include "tests/fake_cuda/process.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "tests/fake_cuda/device_nodes.h"
#include "tests/fake_cuda/visible_devices.h"

namespace launchgap::fake {
namespace {

thread_local Context* current_context = nullptr;

std::uint64_t seed_of(int device) {
  std::uint64_t seed = 0;
  if (const char* const text = std::getenv("LAUNCHGAP_FAKE_SEED");
      text != nullptr && *text != '\0') {
    seed = std::strtoull(text, nullptr, 10);
  } else {
    std::random_device source;
    seed = (std::uint64_t{source()} << 32) | source();
  }
  return seed + 0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(device + 1);
}

void sleep_until(double deadline_ns) {
  timespec until;
  until.tv_sec = static_cast<std::time_t>(deadline_ns / 1e9);
  until.tv_nsec = static_cast<long>(deadline_ns - 1e9 * static_cast<double>(until.tv_sec));
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

/// One turn of a wait, as the context's scheduling flags ask.
void pass_time(unsigned flags, double until_ns) {
  if (flags & abi::kScheduleBlockingSync) {
    sleep_until(until_ns);
  } else if (flags & abi::kScheduleYield) {
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
      factor(std::exp(description.process_factor_sigma * std::normal_distribution<>()(random))),
      results(addresses) {}

Timeline* Context::find(abi::Stream stream) {
  constexpr std::uintptr_t kLegacyStream = 1;  // CU_STREAM_LEGACY
  if (stream == nullptr || reinterpret_cast<std::uintptr_t>(stream) == kLegacyStream) {
    return &null_stream;
  }
  const auto found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second.get();
}

const Function* Context::find(abi::Function function) const {
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

const Node* Process::node() {
  if (!load_attempted_) {
    load_attempted_ = true;
    try {
      node_ = std::make_unique<Node>(load_node());
      faults_ = std::make_unique<Faults>(node_->faults);
    } catch (const DescriptionError& error) {
      std::fprintf(stderr, "launchgap fake node: %s\n", error.what());
    }
  }
  return node_.get();
}

abi::Result Process::initialize(unsigned flags) {
  if (flags != 0) return abi::kInvalidValue;
  if (initialized_) return contexts_.empty() ? abi::kNoDevice : abi::kSuccess;
  if (node() == nullptr) return abi::kUnknown;
  initialized_ = true;
  open_driver_nodes();
  std::vector<std::string> uuids;
  for (const auto& device : node_->devices) uuids.push_back(device.uuid);
  double cost_ns = 0;
  for (const int index : visible_devices(uuids, std::getenv("CUDA_VISIBLE_DEVICES"))) {
    // Partitioned without a partition: there is nothing to list.
    if (node_->devices[static_cast<std::size_t>(index)].nvml.mig_instances == 0) continue;
    contexts_.push_back(std::make_unique<Context>(node_->devices[static_cast<std::size_t>(index)],
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
  const auto* const fault =
      faults_->next_call(library, call, context != nullptr ? context->index : Faults::kNoDevice);
  if (fault == nullptr) return abi::kSuccess;
  switch (fault->action) {
    case FaultDescription::Action::code:
      break;
    case FaultDescription::Action::hang:
      lock.unlock();  // the other threads go on
      for (;;) pause();
    case FaultDescription::Action::abort:
      std::abort();
  }
  if (library == Library::cuda && context != nullptr && is_sticky(fault->code)) {
    context->fail(fault->code);
  }
  return fault->code;
}

void Process::tear_down(Context& context) {
  for (Timeline* timeline : context.timelines()) timeline->abandon();
  context.results.clear();
  context.pool = Pool();
  context.null_stream = Timeline(true, Context::kNullStreamId);
  context.streams.clear();
  context.destroyed_streams.clear();
  context.events.clear();
  context.modules.clear();
  addresses.extract(context.index);
  context.used_bytes = 0;
}

void Process::look(Context& context) {
  const double now = now_ns();
  for (Timeline* timeline : context.timelines()) timeline->advance(now, false, nullptr);
}

abi::Result Process::wait(Lock& lock, Context& context, const std::vector<ItemPointer>& items) {
  const unsigned flags = context.flags;
  double end = 0;
  for (const auto& item : items) {
    for (;;) {
      const unsigned finished = worker.finished();
      if (!item->executed) item->timeline->advance(now_ns(), true, item.get());
      if (item->executed || context.sticky != abi::kSuccess) break;
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
    end = std::max(end, item->end_ns);
  }
  if (context.sticky != abi::kSuccess) {
    for (Timeline* timeline : context.timelines()) timeline->abandon();
    return context.sticky;
  }
  lock.unlock();
  while (now_ns() < end) pass_time(flags, end);
  lock.lock();
  release_pool(context, context.pool.threshold);
  std::erase_if(context.destroyed_streams,
                [now = now_ns()](const auto& timeline) { return timeline->idle(now); });
  return context.sticky;
}

abi::Result Process::launch(Lock& lock,
                            Context& context,
                            Timeline& timeline,
                            Call& call,
                            const KernelShape* kernel,
                            double work_ns,
                            Item item) {
  double return_ns = call.begin_ns() + context.draw(context.description.call_ns);
  item.ready_ns = call.begin_ns() + context.draw(context.description.launch_ns);
  item.duration_ns = context.draw(context.description.kernel_ns) + context.factor * work_ns;
  if (kernel != nullptr && call.listener() != nullptr) {
    auto heard = call.listener()->launch(*kernel, context.place(timeline));
    item.times = std::move(heard.times);
    item.ready_ns += heard.late_ns;
    return_ns += heard.late_ns;
  }
  const bool on_worker = item.thread_work != nullptr;
  const ItemPointer pushed = context.push(timeline, std::move(item));
  if (on_worker) worker.add(pushed);
  lock.unlock();
  return call.return_at(return_ns, abi::kSuccess);
}

abi::Result Process::launch(Lock& lock,
                            Context& context,
                            Timeline& timeline,
                            double begin_ns,
                            const std::vector<LibraryKernel>& kernels,
                            double work_ns,
                            std::function<void()> work) {
  Listener* const listener = installed_listener.load(std::memory_order_acquire);
  const bool runtime = node()->cupti.nested != CuptiDescription::Nested::none;
  const double call_ns =
      context.draw(context.description.call_ns) / static_cast<double>(kernels.size());
  // What the runtime does before and after it calls the driver.
  const double margin_ns = runtime ? call_ns / 10 : 0;
  double ready_ns = begin_ns + context.draw(context.description.launch_ns);
  const double duration_ns = context.draw(context.description.kernel_ns) + context.factor * work_ns;
  double return_ns = begin_ns;
  for (const auto& kernel : kernels) {
    const bool first = &kernel == &kernels.front();
    Item item;
    item.duration_ns = kernel.share * duration_ns;
    if (!first) item.gap_ns = context.draw(context.description.kernel_gap_ns);
    const double enter_ns = return_ns;
    return_ns += call_ns;
    if (listener != nullptr) {
      if (runtime) listener->enter(ApiDomain::runtime, kRuntimeLaunch, enter_ns);
      listener->enter(ApiDomain::driver, DriverCall("cuLaunchKernelEx").id(), enter_ns + margin_ns);
      auto heard = listener->launch(kernel.shape, context.place(timeline));
      item.times = std::move(heard.times);
      ready_ns += heard.late_ns;
      return_ns = listener->leave(return_ns + heard.late_ns - margin_ns, abi::kSuccess) + margin_ns;
      if (runtime) return_ns = listener->leave(return_ns, abi::kSuccess);
    }
    item.ready_ns = ready_ns;
    if (&kernel == &kernels.back()) item.work = std::exchange(work, nullptr);
    context.push(timeline, std::move(item));
  }
  lock.unlock();
  if (listener != nullptr) listener->write();
  spin_until(return_ns);
  return abi::kSuccess;
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

void Process::release_pool(Context& context, unsigned long long keep) {
  for (const auto& block : context.pool.release(keep, now_ns())) {
    context.used_bytes -= block->bytes();
    addresses.erase(*block);
  }
}

}  // namespace launchgap::fake
