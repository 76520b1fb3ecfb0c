// How launching calls take their turns, and what becomes of them.
#include <algorithm>
#include <ctime>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "tests/fake_cuda/process.h"

namespace launchgap::fake {
namespace {

/// By the system's own call, since the fake clock may stand in for the library's.
void sleep_for_real() {
  const timespec shortest = {0, 1000};
  syscall(SYS_nanosleep, &shortest, nullptr);
}

void touch_new_pages() {
  constexpr std::size_t kPage = 4096, kBytes = 3 * kPage;
  void* const fresh =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return;
  for (std::size_t at = 0; at < kBytes; at += kPage) static_cast<volatile char*>(fresh)[at] = 1;
  munmap(fresh, kBytes);
}

void move_to_another_cpu() {
  const int cpu = sched_getcpu();
  const auto all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t other;
  CPU_ZERO(&other);
  CPU_SET((cpu + 1) % all, &other);
  sched_setaffinity(0, sizeof other, &other);
}

void show(HiccupSign sign) {
  switch (sign) {
    case HiccupSign::none:
      return;
    case HiccupSign::sleep:
      return sleep_for_real();
    case HiccupSign::fault:
      return touch_new_pages();
    case HiccupSign::move:
      return move_to_another_cpu();
  }
}

/// Draws which of them strike one call: shows their signs, and returns how much longer it takes.
double strike(const std::vector<Hiccup>& hiccups, std::mt19937_64& random) {
  double late_ns = 0;
  for (const Hiccup& hiccup : hiccups) {
    if (!std::bernoulli_distribution(1 / hiccup.every)(random)) continue;
    late_ns += hiccup.ns(random);
    show(hiccup.sign);
  }
  return late_ns;
}

// CUPTI's ids of the runtime's functions. Source: cupti_runtime_cbid.h.
constexpr std::uint32_t kChevron = 211;         // cudaLaunchKernel
constexpr std::uint32_t kChevronSince13 = 505;  // __cudaLaunchKernel
constexpr std::uint32_t kLaunchEx = 430;        // cudaLaunchKernelExC

/// How a caller calls the driver: by which function of the runtime, and what it does before.
struct CallerCosts {
  std::uint32_t runtime_call;
  double before_ns;
};

CallerCosts describe(LibraryCaller caller, Context& context, std::uint32_t cupti_version) {
  const LaunchDescription& costs = context.description.launch;
  if (caller == LibraryCaller::chevron)
    return {cupti_version >= 130000 ? kChevronSince13 : kChevron,
            context.draw(costs.runtime->chevron_ns)};
  const bool of_library = caller == LibraryCaller::library;
  return {kLaunchEx, context.draw(of_library ? costs.in_library_ns : costs.runtime->ex_ns)};
}

}  // namespace

abi::Result Process::wait_for_room(Lock& lock,
                                   Context& context,
                                   Timeline& timeline,
                                   double& begin_ns) {
  auto depth = context.description.launch.queue_depth;
  const auto& traced_depth = node()->cupti.queue_depth;
  const Listener* const listener = installed_listener.load(std::memory_order_acquire);
  if (traced_depth && listener != nullptr && listener->records_kernels()) depth = traced_depth;
  if (!depth) return abi::kSuccess;
  for (;;) {
    const ItemPointer ahead =
        timeline.in_the_way(static_cast<std::size_t>(*depth), std::max(begin_ns, now_ns()));
    if (!ahead) return abi::kSuccess;
    execute_until(lock, context, ahead, abi::kScheduleSpin);
    if (context.sticky != abi::kSuccess) return context.sticky;
    begin_ns = std::max(begin_ns, ahead->end_ns);
    lock.unlock();
    spin_until(begin_ns);
    lock.lock();
  }
}

double* Process::launches_free_ns(Context& context, Timeline& timeline) {
  const LaunchLock launch_lock = context.description.launch.lock;
  return launch_lock == LaunchLock::none     ? nullptr
         : launch_lock == LaunchLock::stream ? &timeline.free_ns
                                             : &process_free_ns_;
}

Turn Process::take_turn(Lock& lock, Context& context, Timeline& timeline, double begin_ns) {
  const LaunchDescription& costs = context.description.launch;
  while (costs.free_holds_launches && context.frees_in_progress > 0) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    begin_ns = std::max(begin_ns, now_ns());
  }
  context.rise(begin_ns);
  Turn turn;
  turn.begin_ns = begin_ns;
  turn.status = wait_for_room(lock, context, timeline, turn.begin_ns);
  if (const double* const free_ns = launches_free_ns(context, timeline)) {
    turn.begin_ns = std::max(turn.begin_ns, *free_ns);
  }
  const std::pair<const Context*, std::uint32_t> stream{&context, timeline.id()};
  const auto before = std::exchange(last_launched_, stream);
  if (before.first != nullptr && before != stream) {
    turn.late_ns += context.draw_at_times(costs.stream_switch_ns);
  }
  const bool after_null_stream =
      before.first == &context && before.second == context.null_stream.id();
  if (&timeline == &context.null_stream || (timeline.blocking() && after_null_stream)) {
    turn.kernel_late_ns += context.draw_at_times(costs.legacy_ns);
  }
  if (costs.contended_ns.zero() && costs.idle.empty()) return turn;
  const double now = std::max(turn.begin_ns, now_ns());
  if (!costs.contended_ns.zero() && context.contended(timeline, now)) {
    turn.kernel_late_ns += context.draw_at_times(costs.contended_ns);
  }
  if (costs.idle.empty()) return turn;
  if (const auto since = context.idle_since(now)) {
    const auto delay = std::find_if(costs.idle.rbegin(), costs.idle.rend(), [&](const auto& step) {
      return turn.begin_ns - *since >= 1e6 * step.after_ms;
    });
    if (delay != costs.idle.rend()) turn.kernel_late_ns += context.draw_at_times(delay->ns);
  }
  return turn;
}

void Process::enqueue(Context& context,
                      Timeline& timeline,
                      const Turn& turn,
                      Item item,
                      double return_ns) {
  item.ready_ns += turn.late_ns + turn.kernel_late_ns;
  item.gap_ns += turn.kernel_late_ns;
  const bool on_worker = item.thread_work != nullptr;
  const ItemPointer pushed = context.push(timeline, std::move(item));
  if (on_worker) worker.add(pushed);
  if (context.description.launch.queue_depth || node()->cupti.queue_depth) timeline.hold(pushed);
  if (double* const free_ns = launches_free_ns(context, timeline)) *free_ns = return_ns;
}

void Process::set_effect(Context& context, Item& item, Work& work) {
  if (!work.operation.has_effect()) return;
  auto effect = [this, &context, operation = std::move(work.operation)]() mutable {
    execute(context, std::move(operation));
  };
  if (!work.polled) {
    item.work = std::move(effect);
    return;
  }
  item.thread_work = std::make_shared<ThreadWork>();
  item.thread_work->at_end = true;
  item.thread_work->admit = [effect = std::move(effect)]() mutable {
    effect();
    return true;
  };
}

abi::Result Process::capture(Call& call,
                             Context& context,
                             CapturePoint& point,
                             double late_ns,
                             Work work) {
  if (point.capture->invalid) return abi::kCaptureInvalidated;
  point.capture->add(std::move(work), point.after);
  late_ns += context.draw(context.description.launch.graph->capture_node_ns);
  return call.return_at(call.begin_ns + late_ns, abi::kSuccess);
}

abi::Result Process::launch(Call& call,
                            Context& context,
                            Timeline& timeline,
                            double late_ns,
                            Work work,
                            Item item) {
  if (context.invalidate_implied_capture(timeline)) return kCaptureImplicit;
  if (CapturePoint* const point = context.capture_of(timeline)) {
    if (item.work || item.opened || item.thread_work) {
      point->capture->invalid = true;
      return abi::kCaptureUnsupported;
    }
    return capture(call, context, *point, late_ns, std::move(work));
  }
  Turn turn = take_turn(call.lock, context, timeline, call.begin_ns);
  if (turn.status != abi::kSuccess) return turn.status;
  turn.late_ns += late_ns;
  turn.late_ns += strike(context.description.launch.hiccups, context.random_at_times);
  const double call_ns = context.draw(context.description.call_ns);
  item.ready_ns = turn.begin_ns + context.draw(context.description.launch_ns);
  item.gap_ns = -work.overlap_ns;
  item.duration_ns = context.work_ns(work, context.random);
  if (work.kernel && call.listener() != nullptr) {
    auto heard = call.listener()->launch(*work.kernel, context.place(timeline));
    item.times = std::move(heard.times);
    turn.late_ns += heard.late_ns;
  } else if (work.transfer && call.listener() != nullptr) {
    item.times = call.listener()->transfer(*work.transfer, context.place(timeline));
  }
  set_effect(context, item, work);
  const double return_ns = turn.begin_ns + call_ns + turn.late_ns;
  enqueue(context, timeline, turn, std::move(item), return_ns);
  if (const abi::Result code = wait_if_blocking(call.lock, context, timeline)) return code;
  return call.return_at(return_ns, abi::kSuccess);
}

abi::Result Process::wait_if_blocking(Lock& lock, Context& context, const Timeline& timeline) {
  static const bool blocking = environment_is("CUDA_LAUNCH_BLOCKING", "1");
  return blocking || node()->serialised ? wait(lock, context, {timeline.last()}) : abi::kSuccess;
}

abi::Result Process::launch(Lock& lock,
                            Context& context,
                            Timeline& timeline,
                            LibraryCaller caller,
                            double begin_ns,
                            std::vector<Work> works) {
  const auto [runtime_call, before_ns] = describe(caller, context, node()->cupti.version);
  if (context.invalidate_implied_capture(timeline)) return kCaptureImplicit;
  if (CapturePoint* const point = context.capture_of(timeline)) {
    if (point->capture->invalid) return abi::kCaptureInvalidated;
    double return_ns = begin_ns + before_ns;
    for (auto& work : works) {
      point->capture->add(std::move(work), point->after);
      return_ns += context.draw(context.description.launch.graph->capture_node_ns);
    }
    lock.unlock();
    spin_until(return_ns);
    return abi::kSuccess;
  }
  Turn turn = take_turn(lock, context, timeline, begin_ns);
  if (turn.status != abi::kSuccess) return turn.status;
  const bool of_library = caller == LibraryCaller::library;
  // A library works before it calls the runtime, which itself does so within its call.
  const double within_ns = of_library ? 0 : before_ns;
  if (of_library) turn.begin_ns += before_ns;
  Listener* const listener = installed_listener.load(std::memory_order_acquire);
  const bool nested = !of_library || node()->cupti.nested != CuptiDescription::Nested::none;
  const double call_ns =
      context.draw(context.description.call_ns) / static_cast<double>(works.size());
  // What the runtime does before and after it calls the driver.
  const double margin_ns = nested ? call_ns / 10 : 0;
  double ready_ns = turn.begin_ns + within_ns + context.draw(context.description.launch_ns);
  const double kernel_ns = context.draw(context.description.kernel_ns);
  double return_ns = turn.begin_ns;
  for (auto& work : works) {
    const bool first = &work == &works.front();
    Item item;
    item.duration_ns = work.share * kernel_ns + context.slowness() * work.work_ns;
    if (!first) item.gap_ns = context.draw(context.description.kernel_gap_ns);
    const double enter_ns = return_ns;
    return_ns += call_ns + within_ns + (first ? turn.late_ns : 0);
    if (listener != nullptr) {
      if (nested) listener->enter(ApiDomain::runtime, runtime_call, enter_ns);
      listener->enter(
          ApiDomain::driver, DriverCall("cuLaunchKernelEx").id(), enter_ns + within_ns + margin_ns);
      auto heard = listener->launch(*work.kernel, context.place(timeline));
      item.times = std::move(heard.times);
      ready_ns += heard.late_ns;
      return_ns = listener->leave(return_ns + heard.late_ns - margin_ns, abi::kSuccess) + margin_ns;
      if (nested) return_ns = listener->leave(return_ns, abi::kSuccess);
    }
    item.ready_ns = ready_ns;
    set_effect(context, item, work);
    const ItemPointer ahead = timeline.last();
    if (work.attendance)
      item.opened = [meeting = work.attendance->meeting, party = work.attendance->party](
                        double own_begin_ns, double at_ns) {
        return meeting->over_ns(party, own_begin_ns, at_ns);
      };
    enqueue(context, timeline, turn, std::move(item), return_ns);
    if (work.attendance)
      work.attendance->meeting->join(
          work.attendance->party, timeline.last(), ahead, std::move(work.attendance->give));
    turn.kernel_late_ns = 0;
  }
  if (const abi::Result code = wait_if_blocking(lock, context, timeline)) return code;
  lock.unlock();
  if (listener != nullptr) listener->write();
  spin_until(return_ns);
  return abi::kSuccess;
}

abi::Result Process::launch(Call& call, Context& context, Timeline& timeline, GraphExec& graph) {
  const GraphDescription& costs = *context.description.launch.graph;
  if (context.invalidate_implied_capture(timeline)) return kCaptureImplicit;
  Turn turn = take_turn(call.lock, context, timeline, call.begin_ns);
  if (turn.status != abi::kSuccess) return turn.status;
  if (!std::exchange(graph.on_device, true)) turn.late_ns += context.draw(costs.first_ns);
  const auto count = static_cast<double>(graph.nodes->size());
  const double call_ns = context.draw(*costs.call_ns) + count * context.draw(costs.call_node_ns);
  Item item;
  item.ready_ns = turn.begin_ns + context.draw(*costs.launch_ns);
  const auto run = std::make_shared<GraphRun>(*this, context, graph.nodes, context.random());
  if (Listener* const listener = call.listener()) {
    item.times = listener->graph(context.place(timeline));
    for (const auto& [work, after] : *graph.nodes) {
      Listener::Launch heard;
      if (work.kernel && !item.times)
        heard = listener->launch(*work.kernel, context.place(timeline));
      if (work.transfer && !item.times)
        heard.times = listener->transfer(*work.transfer, context.place(timeline));
      run->times.push_back(std::move(heard.times));
      turn.late_ns += heard.late_ns;
    }
  }
  item.batch = run;
  if (run->polled()) {
    item.thread_work = std::make_shared<ThreadWork>();
    item.thread_work->at_end = true;
    item.thread_work->admit = [run] {
      run->execute();
      return true;
    };
  } else if (run->has_effect()) {
    item.work = [run] { run->execute(); };
  }
  const double return_ns = turn.begin_ns + call_ns + turn.late_ns;
  enqueue(context, timeline, turn, std::move(item), return_ns);
  if (const abi::Result code = wait_if_blocking(call.lock, context, timeline)) return code;
  return call.return_at(return_ns, abi::kSuccess);
}

}  // namespace launchgap::fake
