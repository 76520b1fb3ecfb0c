// Time on the device: events around work that is enqueued behind a gate, so that launching is not
// measured; where no kernel may wait for the host, without a gate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "harness/core/errors.h"
#include "harness/device/device.h"

namespace launchgap {

/// A gate in a stream: what is enqueued behind it runs only once it is opened. Opens itself when
/// destroyed, so that an exception while work is being enqueued cannot leave the device waiting.
class Gate {
 public:
  Gate(Device& device, Stream& stream);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Enqueues the closed gate.
  void close();
  void open();
  /// Whether the gate gave up waiting since it was last closed. Only after the stream was waited
  /// for.
  bool timed_out() const;

 private:
  struct State {
    unsigned open;
    unsigned timed_out;
  };
  static constexpr unsigned long long kTimeoutNs = 2'000'000'000;

  volatile State& state() const;

  Device& device_;
  Stream& stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> shared_;
};

/// More was enqueued behind a gate than the launch queue takes, or something waited for the device:
/// the gate gave up.
class GateTimedOut : public InvalidMeasurement {
 public:
  explicit GateTimedOut(int operations);
};

class DeviceTimer {
 public:
  DeviceTimer(Device& device, Stream& stream);

  /// Enqueues `operations` operations, the i-th by enqueue(i), and returns the nanoseconds per
  /// operation that the device took. All their loading must be done before. Throws GateTimedOut.
  double time(int operations, const std::function<void(int)>& enqueue);

  /// Works for `seconds` and then says how many operations make at least 1 ms; at most
  /// kMaxOperations, and no more than the launch queue takes: where a gate times out, half as many
  /// are tried. The work lets clocks rise. Throws GateTimedOut if a single operation is too much.
  int operations_for_one_ms(double seconds, const std::function<void(int)>& enqueue);

  static constexpr int kMaxOperations = 256;

 private:
  Device& device_;
  Stream& stream_;
  std::optional<Gate> gate_;  // none where no kernel may wait for the host
  std::unique_ptr<Event> begin_;
  std::unique_ptr<Event> end_;
};

/// For a case's `method`: what is unlike the usual where there is no gate; else empty.
std::string_view remark_on_gate(const Device& device);

}  // namespace launchgap
