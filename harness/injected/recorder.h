// Records the process that it is injected into. One per process, never destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <semaphore.h>
#include <string>

#include "harness/injected/cupti_library.h"
#include "harness/injected/range_rings.h"
#include "harness/injected/raw_file.h"
#include "harness/injected/record_buffers.h"
#include "harness/injected/record_encoder.h"
#include "harness/injected/settings.h"

namespace launchgap::injected {

class Recorder {
 public:
  /// The process's; null where nothing is recorded, as in a process that was forked from one that
  /// is.
  static Recorder* get();

  /// As the driver is initialised. Whatever fails is written into the file's header, and the
  /// program goes on.
  static void start() noexcept;

  /// The clock of CUPTI's records.
  std::int64_t now_ns() const;

  /// By the thread that the range was on.
  void keep(const EndedRange& range) noexcept;
  /// One that cannot be kept.
  void lose_range() { lost_ranges_.fetch_add(1, std::memory_order_relaxed); }

 private:
  explicit Recorder(const Settings& settings) : settings_(settings) {}

  void describe_process();
  bool prepare();
  bool find_driver();
  bool subscribe();
  bool enable();
  bool enable_calls();
  bool refuse(cupti::abi::Result code, const char* call);
  bool start_thread();
  void wait_for_end();

  static void* run_thread(void* recorder);
  void run();
  /// Takes what CUPTI has delivered, with `flushed` also what is in buffers that are not full.
  void collect(bool flushed, bool forced);
  void stop(const std::string& reason);
  void disable();
  void end();

  static void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
  static void buffer_completed(cupti::abi::Context context,
                               std::uint32_t stream,
                               std::uint8_t* buffer,
                               std::size_t bytes,
                               std::size_t valid_bytes);
  static void at_exit();
  static void in_forked_child();

  const Settings settings_;
  CuptiLibrary cupti_;
  cupti::abi::Subscriber subscriber_ = nullptr;
  RawFile file_;
  RecordEncoder encoder_{file_, cupti_};
  RecordBuffers buffers_;
  RangeRings rings_;
  std::uint8_t* scratch_ = nullptr;  // for libraries that crash without a buffer
  std::atomic<std::uint64_t> scratched_{0}, lost_ranges_{0};
  std::atomic<bool> asked_to_end_{false};
  bool stopped_ = false;
  std::int64_t started_ns_ = 0;
  sem_t work_{}, done_{};
  pthread_t thread_{};
};

}  // namespace launchgap::injected
