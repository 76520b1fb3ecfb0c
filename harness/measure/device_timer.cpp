#include "harness/measure/device_timer.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "kernels/kernels.h"

namespace launchgap {

Gate::Gate(Device& device, Stream& stream)
    : device_(device),
      stream_(stream),
      kernel_(device.load(kernels::gate_kernel)),
      shared_(device.allocate_shared(sizeof(State))) {
  // Launched once while open: with lazy loading, a kernel's first launch may wait for the device,
  // and behind a closed gate that wait would never end (nvbench issue 136).
  state().timed_out = 0;
  close();
  open();
  stream_.wait();
}

Gate::~Gate() {
  open();
  try {
    stream_.wait();  // the gate reads memory that is about to go
  } catch (const std::exception&) {
    // Whatever broke the stream was reported where it happened.
  }
}

volatile Gate::State& Gate::state() const {
  return *static_cast<volatile State*>(shared_->address());
}

void Gate::close() {
  state().open = 0;
  state().timed_out = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto* const base = static_cast<char*>(device_.device_address(*shared_));
  void* open = base + offsetof(State, open);
  void* timed_out = base + offsetof(State, timed_out);
  unsigned long long timeout_ns = kTimeoutNs;
  void* arguments[] = {&open, &timed_out, &timeout_ns};
  stream_.launch(*kernel_, {1, 1}, arguments);
}

void Gate::open() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  state().open = 1;
}

bool Gate::timed_out() const {
  return state().timed_out != 0;
}

GateTimedOut::GateTimedOut(int operations)
    : InvalidMeasurement(
          fmt::format("the gate timed out while {} operations were enqueued behind it: one of them "
                      "waited for the device, or the launch queue was full",
                      operations)) {}

DeviceTimer::DeviceTimer(Device& device, Stream& stream)
    : device_(device), stream_(stream), begin_(device.create_event()), end_(device.create_event()) {
  if (device.kernels_may_wait()) gate_.emplace(device, stream);
}

double DeviceTimer::time(int operations, const std::function<void(int)>& enqueue) {
  struct Opener {
    std::optional<Gate>& gate;
    ~Opener() {
      if (gate) gate->open();
    }
  };
  if (gate_) gate_->close();
  {
    const Opener opener{gate_};
    stream_.record(*begin_);
    for (int i = 0; i < operations; ++i) enqueue(i);
    stream_.record(*end_);
  }
  stream_.wait();
  if (gate_ && gate_->timed_out()) throw GateTimedOut(operations);
  return device_.elapsed_ns(*begin_, *end_) / operations;
}

int DeviceTimer::operations_for_one_ms(double seconds, const std::function<void(int)>& enqueue) {
  // A first operation that was slow would pass for a long one, so short samples must be long enough
  // twice.
  constexpr double kSurelyLongNs = 20e6;
  int operations = 1;
  int most = kMaxOperations;
  int confirmed = 0;
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  for (;;) {
    double total_ns = 0;
    try {
      total_ns = std::max(1.0, time(operations, enqueue) * operations);
    } catch (const GateTimedOut&) {
      if (operations == 1) throw;
      most = operations = operations / 2;
      confirmed = 0;
      continue;
    }
    if (total_ns >= 1e6 || operations == most) {
      ++confirmed;
      if ((confirmed >= 2 || total_ns >= kSurelyLongNs) && now_ns() >= until) return operations;
    } else {
      confirmed = 0;
      const double wanted = std::ceil(1.1e6 / total_ns * operations);
      operations =
          static_cast<int>(std::clamp(wanted, operations + 1.0, static_cast<double>(most)));
    }
  }
}

std::string_view remark_on_gate(const Device& device) {
  return device.kernels_may_wait() ? "" : ", not from behind a gate since a tool watches";
}

}  // namespace launchgap
