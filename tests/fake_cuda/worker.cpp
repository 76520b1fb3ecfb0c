#include "tests/fake_cuda/worker.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <utility>

#include "tests/fake_cuda/call.h"

namespace launchgap::fake {
namespace {

// Waking up takes 100 us and more in a virtual machine: the thread is awake that long before an
// entry begins, and stays awake after one for a host that launches the next.
constexpr double kAwakeBefore_ns = 300e3;
constexpr double kAwakeAfter_ns = 2e6;
// Behind a gate nobody knows when an entry begins.
constexpr double kPollPeriod_ns = 5e3;

// Where it has to share a processor, being awake costs the host or itself time slices of 4 ms, and
// a sleeping thread is woken at once: then it sleeps, for longer each time.
constexpr double kLostProcessor_ns = 500e3;
constexpr double kAwakeBeforeWhenSharing_ns = 20e3;
constexpr double kPollPeriodWhenSharing_ns = 50e3;
constexpr double kShortestSharing_ns = 20e6;
constexpr double kLongestSharing_ns = 2e9;

std::chrono::duration<double, std::nano> nanoseconds(double ns) {
  return std::chrono::duration<double, std::nano>(ns);
}

/// Lets the thread run on every processor but `without`; false where there is no other.
bool use_processors_but(int without) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  // Whatever the launching thread is bound to. The kernel leaves out those that do not exist.
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (i != without) CPU_SET(i, &processors);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof processors, &processors) == 0;
}

void use_all_processors() {
  use_processors_but(-1);
}

}  // namespace

void Worker::add(ItemPointer item) {
  pending_[item->timeline].push_back(std::move(item));
  unfinished_.fetch_add(1, std::memory_order_release);
  added_.fetch_add(1, std::memory_order_release);
  host_processor_.store(sched_getcpu(), std::memory_order_relaxed);
  if (!started_) start();
  changed_.notify_one();
}

void Worker::start() {
  started_ = true;
  sigset_t all, before;
  sigfillset(&all);
  // Signals are for the threads of the program.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Detached: what it uses is never destroyed, and the process may end at any time.
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::forget_executed() {
  for (auto stream = pending_.begin(); stream != pending_.end();) {
    auto& items = stream->second;
    for (; !items.empty() && items.front()->executed; items.pop_front()) {
      // Given up before its turn came.
      unfinished_.fetch_sub(1, std::memory_order_release);
    }
    stream = items.empty() ? pending_.erase(stream) : std::next(stream);
  }
}

void Worker::finish(ThreadWork& work) {
  work.returned_ns = now_ns();
  work.finished.store(true, std::memory_order_release);
  unfinished_.fetch_sub(1, std::memory_order_release);
  finished_.fetch_add(1, std::memory_order_release);
}

ItemPointer Worker::find_next(double now_ns, double& turn_ns) {
  ItemPointer next;
  for (const auto& [timeline, items] : pending_) {
    const ItemPointer& item = items.front();
    item->timeline->advance(now_ns, false, item.get());
    const auto begin = item->timeline->begin_of_queued(*item);
    if (!begin) continue;
    const double turn = *begin + (item->thread_work->at_end ? item->length_ns() : 0);
    if (next && turn >= turn_ns) continue;
    next = item;
    turn_ns = turn;
  }
  return next;
}

void Worker::execute(Lock& lock, const Item& item) {
  const auto work = item.thread_work;
  if (!item.timeline->next_is(item)) return;
  const bool runs = work->admit() && work->run;
  if (runs) {
    lock.unlock();
    // It talks with the host, which polls.
    if (work->until_returned) use_processors_but(host_processor_);
    work->run();
  }
  finish(*work);
  if (runs) lock.lock();
  pending_.at(item.timeline).pop_front();
  if (!item.executed) item.timeline->advance(now_ns(), false, &item);
}

template <typename Done>
bool Worker::stay_awake(double until_ns, Done done) {
  for (double now = now_ns(); now < until_ns && !done();) {
    const double before = std::exchange(now, now_ns());
    const int host = host_processor_.load(std::memory_order_relaxed);
    if (now - before < kLostProcessor_ns && (sched_getcpu() != host || use_processors_but(host))) {
      continue;
    }
    use_all_processors();
    sharing_ns_ = std::clamp(2 * sharing_ns_, kShortestSharing_ns, kLongestSharing_ns);
    shares_until_ns_ = now + sharing_ns_;
    return false;
  }
  return true;
}

void Worker::wait_for_work(Lock& lock) {
  if (!sharing()) {
    const unsigned seen = added_.load(std::memory_order_acquire);
    lock.unlock();
    const bool undisturbed = stay_awake(now_ns() + kAwakeAfter_ns, [&] {
      sched_yield();
      return added_.load(std::memory_order_acquire) != seen;
    });
    if (undisturbed) sharing_ns_ /= 2;
    lock.lock();
  }
  changed_.wait(lock, [this] { return !pending_.empty(); });
}

void Worker::run() {
  use_all_processors();
  Lock lock(mutex_);
  for (;;) {
    forget_executed();
    if (pending_.empty()) {
      wait_for_work(lock);
      continue;
    }
    double turn = 0;
    const double now = now_ns();
    const ItemPointer next = find_next(now, turn);
    if (next && turn <= now) {
      execute(lock, *next);
      continue;
    }
    // Nobody knows when that happens which is behind a gate.
    const double until =
        next ? turn : now + (sharing() ? kPollPeriodWhenSharing_ns : kPollPeriod_ns);
    const double early = until - now - (sharing() ? kAwakeBeforeWhenSharing_ns : kAwakeBefore_ns);
    if (early > 0) {
      changed_.wait_for(lock, nanoseconds(early));
    } else {
      lock.unlock();
      stay_awake(until, [] { return false; });
      lock.lock();
    }
  }
}

}  // namespace launchgap::fake
