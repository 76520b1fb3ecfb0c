// The state of the fake CUPTI in this process: what is enabled, who subscribed, and what is made of
// what the driver tells.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/cupti_buffers.h"
#include "tests/fake_cuda/cupti_records.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// A call that has not returned.
struct OpenCall {
  ApiDomain domain{};
  std::uint32_t id = 0;
  double begin_ns = 0;
  std::uint32_t correlation = 0;
  std::int64_t clock_ns = 0;
  bool recorded = false;
  int kernels = 0;
  bool clock_steps = false;
  std::optional<MemoryEvent> memory;
  std::optional<SynchronizationEvent> synchronization;
};

/// What a thread is at.
struct CallingThread {
  std::uint32_t process = static_cast<std::uint32_t>(getpid());
  std::uint32_t id = static_cast<std::uint32_t>(pthread_self());
  std::uint32_t system_id = static_cast<std::uint32_t>(gettid());
  std::vector<OpenCall> open;
  std::vector<Record> records;
};

class Session : public Listener {
 public:
  /// Never destroyed.
  static Session& instance();

  /// Whether there is a driver with a valid description: without, little works.
  bool has_driver() const { return driver_ != nullptr; }
  const CuptiDescription& description() const { return description_; }
  Buffers& buffers() { return buffers_; }

  /// What records of calls to come call their threads by.
  void set_thread_ids(cupti::abi::ThreadIdType type) { thread_ids_ = type; }

  std::uint64_t now() const { return timestamp(now_ns(), clock_ns_); }

  /// 39 when somebody has the process; `*owner` is then who.
  cupti::abi::Result subscribe(const std::string& name, std::string* owner);
  cupti::abi::Result unsubscribe(cupti::abi::Subscriber subscriber);
  cupti::abi::Subscriber subscriber();

  /// Of one kind of records; the kinds of API records set every id.
  cupti::abi::Result enable(std::uint32_t kind, bool enabled);
  /// Of the API records of one function.
  cupti::abi::Result enable_call(ApiDomain domain, std::uint32_t call, bool enabled);

  void flush(bool forced);

  /// Whether anything is left that a client has to stop before the process ends.
  bool active() const;
  bool subscribed();

  void enter(ApiDomain domain, std::uint32_t call, double begin_ns) override;
  Launch launch(const KernelShape& kernel, const Place& place) override;
  std::shared_ptr<KernelTimes> graph(const Place& place) override;
  std::shared_ptr<KernelTimes> transfer(const TransferEvent& event, const Place& place) override;
  bool records_kernels() const override { return enabled(cupti::abi::kConcurrentKernel); }
  void memory(const MemoryEvent& event) override;
  void synchronized(const SynchronizationEvent& event) override;
  double leave(double end_ns, int result) override;
  void write() override;

 private:
  struct Counted {
    TracingOverhead overhead;
    long long launches = 0;
  };

  // Ids of functions; those of CUDA 13.0 end at 807.
  static constexpr std::size_t kMostCalls = 1024;
  using Calls = std::array<std::atomic<bool>, kMostCalls>;

  Session();

  CallingThread& this_thread();
  bool enabled(std::uint32_t kind) const { return (kinds_ >> kind & 1) != 0; }
  const Calls& calls(ApiDomain domain) const { return calls_[static_cast<std::size_t>(domain)]; }
  std::uint32_t last_call(ApiDomain domain) const;
  void set_call(ApiDomain domain, std::uint32_t call, bool enabled);
  void listen();
  std::uint32_t next_correlation();
  double draw(const Distribution& distribution);
  double wait_for_overheads(const OpenCall& call, CallingThread& thread);
  /// Of what the device does for the innermost call: takes the times that go into its record.
  std::shared_ptr<KernelTimes> add_timed(Record record, std::size_t begin_at, std::size_t end_at);
  /// What is wrong with a kernel's record, by its number and by chance.
  Spoilt draw_fault(long long number, double begin_ns);
  /// Whether the trace is at its corrupt beginning.
  bool in_start_burst(double begin_ns);
  /// What the conversion of the device's clock adds to a kernel's times.
  double draw_clock_error(double begin_ns);
  Driver* driver_;
  const CuptiDescription description_;
  std::atomic<std::int64_t> clock_ns_;  // from CLOCK_MONOTONIC to the records' time
  Buffers buffers_;
  std::atomic<std::uint64_t> kinds_ = 0;  // bits; not those of API records
  std::array<Calls, 2> calls_{};          // by domain: whose API records are wanted
  std::atomic<int> enabled_calls_ = 0;    // of both
  std::atomic<std::uint32_t> next_correlation_;
  std::atomic<long long> kernels_ = 0;
  std::atomic<cupti::abi::ThreadIdType> thread_ids_ = cupti::abi::kThreadIdDefault;
  std::mutex mutex_;  // of what follows
  bool subscribed_ = false;
  std::string subscriber_;
  std::mt19937_64 random_;
  double enabled_ns_ = 0;       // when the first kind was
  double first_kernel_ns_ = 0;  // when the first kernel was launched since
  double flushed_ns_ = 0;
  std::vector<Counted> overheads_;
  std::vector<std::unique_ptr<CallingThread>> threads_;
};

}  // namespace launchgap::fake
