#include "benchmarks/team.h"

#include <algorithm>
#include <utility>

#include "harness/core/cpus.h"
#include "harness/measure/cpu_counters.h"

namespace launchgap {
namespace {

/// The first of the hardware threads of its core, which stand for the core; -1 if it is not told.
int core_of(int cpu) {
  const CpuList threads = threads_of_core(SystemFiles(), cpu);
  return threads.empty() ? -1 : threads.front();
}

}  // namespace

CpuList cpus_for_others(const Device& device, const CpuList& own) {
  const CpuList near = cpus_of_numa_node(device.facts().numa_node.value_or(-1)).value_or(CpuList());
  struct Choice {
    bool shared, far;
    int cpu;
    auto operator<=>(const Choice&) const = default;
  };
  std::vector<Choice> choices;
  std::vector<int> used;
  if (own.size() == 1) used.push_back(core_of(own.front()));
  for (const int cpu : device.cpus()) {
    if (own.size() == 1 && cpu == own.front()) continue;
    const int core = core_of(cpu);
    const bool shared = core >= 0 && std::ranges::find(used, core) != used.end();
    if (!shared) used.push_back(core);
    const bool far = !near.empty() && !std::ranges::binary_search(near, cpu);
    choices.push_back({shared, far, cpu});
  }
  std::ranges::sort(choices);
  CpuList cpus;
  for (const Choice& choice : choices) cpus.push_back(choice.cpu);
  return cpus;
}

Team::Team(Device& device,
           int members,
           std::function<void(int)> work,
           std::function<void()> release)
    : work_(std::move(work)), release_(std::move(release)) {
  const CpuList others = cpus_for_others(device, allowed_cpus());
  for (int i = 1; i < members; ++i) {
    threads_.emplace_back([this, &device, i, cpu = others[static_cast<std::size_t>(i - 1)]] {
      bind_thread({cpu});
      serve(device, i);
    });
  }
}

Team::~Team() {
  stopping_ = true;
  ++round_;
  for (std::thread& thread : threads_) thread.join();
}

void Team::run() {
  ended_.store(0, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  attempt(0);
  while (ended_.load(std::memory_order_acquire) < static_cast<int>(threads_.size())) {
  }
  // All have ended: nobody writes it now.
  if (first_failure_) std::rethrow_exception(std::exchange(first_failure_, nullptr));
}

void Team::serve(Device& device, int member) {
  unsigned seen = 0;
  std::exception_ptr unusable;
  try {
    device.use_on_this_thread();
  } catch (...) {
    unusable = std::current_exception();
  }
  for (;;) {
    while (round_.load(std::memory_order_acquire) == seen) {
    }
    ++seen;
    if (stopping_) return;
    if (unusable) {
      fail(unusable);
    } else {
      attempt(member);
    }
    ended_.fetch_add(1, std::memory_order_release);
  }
}

void Team::attempt(int member) {
  try {
    work_(member);
  } catch (...) {
    fail(std::current_exception());
  }
}

void Team::fail(const std::exception_ptr& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = failure;
  }
  release_();  // only now, lest what the others throw then is taken for the first
}

}  // namespace launchgap
