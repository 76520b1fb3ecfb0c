// A clock that a fake GPU sets forward: libfake_clock.so, for LD_PRELOAD. A process that waits for
// a fake GPU, or in one of its calls, gets there at once, and to all who read the clock the time
// has passed.
#include "tests/fake_cuda/clock.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>

#include "tests/fake_cuda/operation.h"

namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

std::atomic<std::int64_t> ahead_ns = 0;
// Of the processor's time: what the thread would have spun.
thread_local std::int64_t spun_ns = 0;
std::atomic<int> callers = 0;

/// A thread that called the fake driver and is not over yet.
struct Caller {
  Caller() { callers.fetch_add(1, std::memory_order_relaxed); }
  ~Caller() { callers.fetch_sub(1, std::memory_order_relaxed); }
};

void add(timespec& time, std::int64_t ns) {
  const std::int64_t sum = std::int64_t{time.tv_sec} * kSecond_ns + time.tv_nsec + ns;
  time.tv_sec = static_cast<std::time_t>(sum / kSecond_ns);
  time.tv_nsec = static_cast<long>(sum % kSecond_ns);
}

timespec without_skipped(const timespec& time) {
  timespec real = time;
  add(real, -ahead_ns.load(std::memory_order_relaxed));
  return real;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = next<decltype(clock_gettime)>("clock_gettime");
  const int code = real(clock, time);
  if (code != 0) return code;
  if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME ||
      clock == CLOCK_REALTIME) {
    add(*time, ahead_ns.load(std::memory_order_relaxed));
  } else if (clock == CLOCK_THREAD_CPUTIME_ID) {
    add(*time, spun_ns);
  }
  return 0;
}

// Until a time that the clock above shows.
EXPORT int pthread_cond_timedwait(pthread_cond_t* condition,
                                  pthread_mutex_t* mutex,
                                  const timespec* until) {
  static const auto real = next<decltype(pthread_cond_timedwait)>("pthread_cond_timedwait");
  const timespec then = without_skipped(*until);
  return real(condition, mutex, &then);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t* condition,
                                  pthread_mutex_t* mutex,
                                  clockid_t clock,
                                  const timespec* until) {
  static const auto real = next<decltype(pthread_cond_clockwait)>("pthread_cond_clockwait");
  const timespec then = without_skipped(*until);
  return real(condition, mutex, clock, &then);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static const auto real = next<decltype(clock_nanosleep)>("clock_nanosleep");
  const timespec then = (flags & TIMER_ABSTIME) != 0 ? without_skipped(*time) : *time;
  return real(clock, flags, &then, left);
}

EXPORT bool launchgap_fake_clock_skip(double until_ns, bool spinning) {
  thread_local const Caller caller;
  if (callers.load(std::memory_order_relaxed) != 1) return false;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto left_ns =
      static_cast<std::int64_t>(until_ns) - (std::int64_t{now.tv_sec} * kSecond_ns + now.tv_nsec);
  if (left_ns <= 0) return true;
  ahead_ns.fetch_add(left_ns, std::memory_order_relaxed);
  if (spinning) spun_ns += left_ns;
  return true;
}
