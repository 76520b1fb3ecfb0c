// The client's buffers on their way: requested on the thread that records, given back when full or
// flushed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/cupti_records.h"

namespace launchgap::fake {

class Buffers {
 public:
  struct Manner {
    bool callback_thread = false;  // buffers are given back on another thread
    bool shuffle = false;          // records are in no order
  };
  Buffers(const Manner& manner, std::uint64_t seed) : manner_(manner), random_(seed) {}

  void set_callbacks(cupti::abi::BufferRequested requested, cupti::abi::BufferCompleted completed) {
    requested_ = requested;
    completed_ = completed;
  }
  bool has_callbacks() const { return requested_ != nullptr; }

  /// Whether this thread is in one of the client's callbacks.
  static bool in_callback();

  /// Puts the records into the calling thread's buffers; gives back those that are full and
  /// complete. Within a callback, where clients must not call the driver, the records are dropped.
  void write(const std::vector<Record>& records);

  /// Gives back every thread's buffers that are complete, or all of them.
  void flush(bool forced);

  void drop(std::size_t count) { dropped_ += count; }

  /// How many records were dropped since the last time.
  std::size_t take_dropped() { return dropped_.exchange(0); }

 private:
  struct Buffer {
    std::uint8_t* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;
    std::size_t most_records = 0;     // 0: as many as fit
    std::deque<std::size_t> records;  // offsets
    std::deque<std::pair<std::size_t, std::shared_ptr<const PendingKernel>>> kernels;  // by offset

    bool takes(const Record& record) const;
    void put(const Record& record);
    /// Puts the times of kernels that have ended into their records, of `most` at once: a call that
    /// converted them all would take longer than the driver said that it takes.
    void convert(double now_ns, std::size_t most);
    bool complete(double now_ns) const;
  };
  /// What one thread has got from the client.
  struct Thread {
    std::mutex mutex;
    Buffer current;
    std::vector<Buffer> full;
  };

  Thread& this_thread();
  bool put(Thread& thread, const Record& record);
  Buffer request();
  std::vector<Buffer> take_complete(Thread& thread, bool current_too, bool forced, double now_ns);
  void give_back(std::vector<Buffer> buffers, double now_ns);
  void shuffle(Buffer& buffer);

  const Manner manner_;
  std::atomic<cupti::abi::BufferRequested> requested_ = nullptr;
  std::atomic<cupti::abi::BufferCompleted> completed_ = nullptr;
  std::atomic<std::size_t> dropped_ = 0;
  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Thread>> threads_;
  std::mt19937_64 random_;
};

}  // namespace launchgap::fake
