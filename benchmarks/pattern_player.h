// Does a pattern again on a device: as it was recorded, with memory from a pool, or as graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/pattern.h"
#include "harness/device/allocator.h"
#include "harness/device/device.h"

namespace launchgap {

enum class PatternMode {
  eager,         // each call as it was made
  pool,          // the same, with memory from the device's pool
  graph,         // what lies between two waits, allocations or blocking copies as one graph
  graph_update,  // the same; each graph is captured again, and updated, each time
};

/// What doing a pattern once took, in nanoseconds.
struct PatternTimes {
  std::int64_t begin_ns = 0;  // before the work that is ahead was enqueued
  std::int64_t total_ns = 0;  // from the first gap to the end of all work
  std::int64_t calls_ns = 0;  // until the last call returned, less gaps, waits and allocations
  std::int64_t waits_ns = 0;  // in waits, that for the end among them
  std::int64_t allocations_ns = 0;  // in calls that take blocks or give them back
};

class PatternPlayer {
 public:
  /// Makes streams, events, graphs and memory. Throws Unsupported for a mode that the device does
  /// not have, TooLarge where there is not so much memory free.
  PatternPlayer(Device& device, const Pattern& pattern, PatternMode mode);
  ~PatternPlayer();
  PatternPlayer(const PatternPlayer&) = delete;
  PatternPlayer& operator=(const PatternPlayer&) = delete;

  PatternTimes play();

  /// Throws WrongResult unless each kernel of a pattern that is played runs once, and copies bring
  /// what they take.
  void verify();
  /// By how much a kernel lasts longer on the device than it should, of those that come first; from
  /// behind a gate, so that launching is no part of it.
  double kernel_excess_ns();
  /// How many times as long its copies and fills take here, likewise; 1 where it has none that took
  /// any time.
  double copy_factor();

  /// That a time of it runs.
  std::size_t kernels() const;
  /// And how many kernels a tracer records of it.
  std::size_t recorded_works() const;
  std::string method() const;

 private:
  /// One call of the host, ready to be made.
  struct Call {
    PatternAction action = PatternAction::kernel;
    bool blocks = false;
    std::uint32_t number = 0;
    std::int64_t gap_ns = 0;
    unsigned long long nanoseconds = 0;  // of a kernel
    std::size_t bytes = 0;
    Stream* stream = nullptr;
    Event* event = nullptr;
    ExecutableGraph* graph = nullptr;  // in place of the operations from `first` on
    std::size_t first = 0, count = 0;
  };

  struct Block {
    void* address = nullptr;  // null: not allocated
    std::uint64_t bytes = 0;
    Allocator* allocator = nullptr;
  };

  bool uses_graphs() const {
    return mode_ == PatternMode::graph || mode_ == PatternMode::graph_update;
  }
  struct WorkTimes {
    std::size_t calls = 0;
    double here_ns = 0, recorded_ns = 0;
  };
  WorkTimes time_work(bool (*belongs)(PatternAction));
  void make_memory();
  void make_calls();
  Call call_of(const PatternOperation& operation);
  void add_graph(std::size_t first, std::size_t end, Stream& stream);
  void add_segment(std::size_t first, std::size_t end);
  std::unique_ptr<Graph> capture(std::span<Call> calls, Stream& main, bool with_gaps);
  static std::vector<Stream*> other_streams(std::span<const Call> calls, const Stream& main);
  void fork(Stream& from, const std::vector<Stream*>& others);
  void join(Stream& into, const std::vector<Stream*>& others);
  Event& order_event();

  void perform(Call& call);
  void launch_kernel(Call& call);
  void copy(const Call& call);
  void enqueue_work_ahead();
  void wait_for_all();
  static void release(Block& block);
  void release_rest();
  void check_copies();

  Device& device_;
  const Pattern& pattern_;
  PatternMode mode_;
  PatternTotals totals_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;        // by number; those of graphs behind them
  std::vector<std::unique_ptr<Event>> order_events_;  // of forks and joins in graphs
  std::size_t used_order_events_ = 0;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> counter_, from_, to_, host_;
  std::unique_ptr<Allocator> direct_, pool_;
  std::vector<Block> blocks_;     // by number
  std::vector<Call> operations_;  // one for each of the pattern's that are not ahead
  std::vector<Call> ahead_, calls_;
  std::vector<std::unique_ptr<ExecutableGraph>> graphs_;
  std::int64_t gaps_ns_ = 0;      // of calls_
  std::int64_t lost_gap_ns_ = 0;  // before what only orders streams, and is left out
  void* counter_address_ = nullptr;
};

}  // namespace launchgap
