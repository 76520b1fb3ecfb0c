#include "harness/device/host/queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/device/host/recorder.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::host {
namespace {

/// Where the next argument is: no type has a greater alignment than what its size is a
/// multiple of.
std::size_t place_of(std::size_t bytes, std::size_t offset) {
  const std::size_t alignment = std::min<std::size_t>(bytes & (~bytes + 1), 16);
  return (offset + alignment - 1) / alignment * alignment;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins while `counter` is `value`, for at most `spin_ns`, and then sleeps. Returns the new value.
std::uint32_t await_change(const std::atomic<std::uint32_t>& counter,
                           std::uint32_t value,
                           std::int64_t spin_ns) {
  std::uint32_t now = counter.load(std::memory_order_acquire);
  if (now != value) return now;
  const std::int64_t begin = now_ns();
  while (now_ns() - begin < spin_ns) {
    for (int i = 0; i < 64; ++i) {
      now = counter.load(std::memory_order_acquire);
      if (now != value) return now;
      relax();
    }
  }
  counter.wait(value, std::memory_order_acquire);
  return counter.load(std::memory_order_acquire);
}

}  // namespace

Queue::Queue(const CpuList& cpus, bool shares_cpu)
    : shares_cpu_(shares_cpu), worker_([this, cpus] { serve(cpus); }) {}

Queue::~Queue() {
  stopping_.store(true, std::memory_order_release);
  submitted_.fetch_add(1);
  submitted_.notify_one();
  worker_.join();
}

Queue::Task& Queue::next_slot() {
  while (submitted_local_ - completed_local_ >= kCapacity)
    completed_local_ = await_change(completed_, completed_local_, spin_ns(kForever));
  return (*tasks_)[submitted_local_ % kCapacity];
}

void Queue::publish() {
  submitted_.store(++submitted_local_);
  submitted_.notify_one();
}

/// As `publish`, and writes the call down. The number is in the task before the worker can see it.
void Queue::publish_recorded(Task& task, const char* name, std::int64_t begin_ns) {
  task.name = name;
  task.correlation = recorder->next_correlation();
  const std::uint32_t correlation = task.correlation;
  publish();
  recorder->call({begin_ns,
                  now_ns(),
                  correlation,
                  0,
                  kQueueLaunch,
                  activity::Domain::host,
                  activity::Purpose::launch});
}

void Queue::launch(const kernels::KernelDescription& kernel,
                   kernels::LaunchShape shape,
                   void* const* arguments) {
  const std::int64_t begin_ns = recorder ? now_ns() : 0;
  insert_delay();
  Task& task = next_slot();
  task.kernel = &kernel;
  task.shape = shape;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < kernel.parameter_bytes.size(); ++i) {
    const std::size_t bytes = kernel.parameter_bytes[i];
    offset = place_of(bytes, offset);
    if (offset + bytes > kMaxArgumentBytes)
      throw Error("a kernel has more arguments than the host queue holds");
    std::memcpy(task.arguments.data() + offset, arguments[i], bytes);
    offset += bytes;
  }
  if (recorder) {
    publish_recorded(task, kernel.name, begin_ns);
  } else {
    publish();
  }
}

void Queue::run(std::function<void()> work, const char* name) {
  const std::int64_t begin_ns = recorder && name ? now_ns() : 0;
  Task& task = next_slot();
  task.kernel = nullptr;
  task.work = std::move(work);
  task.name = nullptr;
  task.shape = {};
  if (recorder && name) {
    publish_recorded(task, name, begin_ns);
  } else {
    publish();
  }
}

void Queue::wait() {
  const std::int64_t begin_ns = recorder ? now_ns() : 0;
  std::uint32_t done = completed_.load(std::memory_order_acquire);
  while (done != submitted_local_) done = await_change(completed_, done, spin_ns(kSpinNs));
  if (recorder && recorder->kinds().everything) {
    constexpr std::uint32_t kStreamSynchronize = 3;
    recorder->wait({begin_ns, now_ns(), 0, kStreamSynchronize});
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Queue::execute(Task& task) {
  const bool recorded = recorder && task.name && recorder->kinds().kernels;
  const std::int64_t begin_ns = recorded ? now_ns() : 0;
  if (task.kernel) {
    std::array<void*, 16> pointers;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < task.kernel->parameter_bytes.size(); ++i) {
      const std::size_t bytes = task.kernel->parameter_bytes[i];
      offset = place_of(bytes, offset);
      pointers[i] = task.arguments.data() + offset;
      offset += bytes;
    }
    task.kernel->host(pointers.data(), task.shape);
  } else {
    task.work();
    task.work = nullptr;
  }
  if (recorded) {
    recorder->kernel(begin_ns,
                     now_ns(),
                     task.correlation,
                     task.name,
                     static_cast<std::int32_t>(task.shape.blocks),
                     static_cast<std::int32_t>(task.shape.threads));
  }
}

void Queue::serve(const CpuList& cpus) {
  bind_thread(cpus);
  std::uint32_t done = 0;
  for (;;) {
    const std::uint32_t until = await_change(submitted_, done, spin_ns(kIdleSpinNs));
    if (stopping_.load(std::memory_order_acquire)) return;
    for (; done != until;) {
      try {
        execute((*tasks_)[done % kCapacity]);
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
      }
      completed_.store(++done);
    }
    completed_.notify_one();  // once for all: on a shared CPU each time would be two switches
  }
}

}  // namespace launchgap::host
