#include "benchmarks/repeater.h"

#include <utility>

#include "harness/core/cpus.h"

namespace launchgap {

Repeater::Repeater(Device& device, int cpu, std::function<Work()> make)
    : thread_([this, &device, cpu, own = std::move(make)] { serve(device, cpu, own); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_; });
  if (!failure_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

Repeater::~Repeater() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = false;
    state_ = State::leaving;
    changed_.notify_all();
  }
  thread_.join();
}

void Repeater::begin() {
  std::unique_lock lock(mutex_);
  state_ = State::working;
  begun_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return begun_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Repeater::end() {
  std::unique_lock lock(mutex_);
  wanted_ = false;
  state_ = State::resting;
  changed_.wait(lock, [&] { return !busy_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Repeater::serve(Device& device, int cpu, const std::function<Work()>& make) {
  try {
    bind_thread({cpu});
    device.use_on_this_thread();
    repeat(make());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    ready_ = true;
    busy_ = false;
    changed_.notify_all();
  }
}

void Repeater::repeat(const Work& work) {
  std::unique_lock lock(mutex_);
  ready_ = true;
  for (;;) {
    changed_.notify_all();
    changed_.wait(lock, [&] { return state_ != State::resting; });
    if (state_ == State::leaving) return;
    busy_ = wanted_ = true;
    lock.unlock();
    work();
    lock.lock();
    begun_ = true;
    changed_.notify_all();
    lock.unlock();
    while (wanted_) work();
    lock.lock();
    busy_ = false;
  }
}

}  // namespace launchgap
