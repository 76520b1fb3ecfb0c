// Streams as virtual timelines: work is queued with the time at which it could begin and is
// executed when somebody waits or looks, so a host that forgets to wait reads what was there
// before. Only what the host sees without the driver is executed by a thread (worker.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fake_cuda/listener.h"

namespace launchgap::fake {

class Timeline;

/// What the worker does for an entry.
struct ThreadWork {
  std::function<bool()> admit;  // with the driver's lock, when its turn has come: whether to run
  std::function<void()> run;    // without; may be empty
  bool until_returned = false;  // the entry lasts until `run` returns, whatever its duration
  bool at_end = false;          // its turn is the entry's virtual end, not its start

  double returned_ns = 0;  // valid when finished
  std::atomic<bool> finished = false;
};

/// Many kernels in one entry.
class Batch {
 public:
  virtual ~Batch() = default;
  /// The same whenever it is asked for.
  virtual double duration_ns() = 0;
  /// It begins then, for certain.
  virtual void settle(double begin_ns) = 0;
};

/// One entry of a stream.
struct Item {
  Timeline* timeline = nullptr;
  double ready_ns = 0;  // when it could begin on an idle stream
  double gap_ns = 0;    // at least, behind what is before it; negative: it may overlap by so much
  double duration_ns = 0;
  std::shared_ptr<Batch> batch;              // its duration counts instead
  std::vector<std::shared_ptr<Item>> after;  // of other streams
  std::function<void()> work;
  /// Gates only: asked with the gate's begin, its end: when it was first seen open, or its time-out
  /// was over. Nothing while it is shut.
  std::function<std::optional<double>(double begin_ns, double now_ns)> opened;
  std::shared_ptr<ThreadWork> thread_work;
  std::shared_ptr<KernelTimes>
      times;  // of a kernel, or of all of a batch; null when nobody listens

  bool executed = false;
  double end_ns = 0;

  bool complete(double now_ns) const { return executed && end_ns <= now_ns; }
  /// It is over, or given up: whatever the functions hold is free.
  void forget_work() { work = nullptr, opened = nullptr, thread_work = nullptr, batch = nullptr; }
  double length_ns() const { return batch ? batch->duration_ns() : duration_ns; }
};

using ItemPointer = std::shared_ptr<Item>;

class Timeline {
 public:
  Timeline(bool blocking, std::uint32_t id, int priority = 0)
      : blocking_(blocking), id_(id), priority_(priority) {}

  /// Whether it synchronises with the null stream.
  bool blocking() const { return blocking_; }

  /// CUPTI's number of the stream.
  std::uint32_t id() const { return id_; }

  int priority() const { return priority_; }

  double free_ns = 0;  // of launching calls that wait for each other, the last one's end

  ItemPointer push(Item item);

  /// Counts the entry as one of the launches that the stream holds until they are over.
  void hold(ItemPointer launch) { held_.push_back(std::move(launch)); }
  /// Null when fewer than `most` launches are held, or else the one whose end makes that so.
  ItemPointer in_the_way(std::size_t most, double now_ns);

  /// The last entry ever pushed; null at first.
  const ItemPointer& last() const { return last_; }

  bool idle(double now_ns) const { return !last_ || last_->complete(now_ns); }

  /// Executes entries in order, up to `until` (null: all), as far as shut gates let it. Without
  /// `ahead` only those whose virtual end has passed: what a device has done when nobody waits for
  /// it.
  void advance(double now_ns, bool ahead, const Item* until);

  /// Whether nothing is left to execute before `item`.
  bool next_is(const Item& item) const;

  /// When `item` begins, as far as that follows from what is queued before it here: none behind
  /// gates, behind what other threads execute, and behind unfinished work of other streams.
  std::optional<double> begin_of_queued(const Item& item) const;

  /// Gives up everything that is pending, as a dead context does.
  void abandon();

 private:
  bool execute_first(double now_ns, bool ahead);
  double begin_of(const Item& item) const { return begin_of(item, available_ns_); }
  static double begin_of(const Item& item, double available_ns);
  static double end_of(const Item& item, double begin_ns, double available_ns);
  void settle(Item& item, double begin_ns, double end_ns);

  bool blocking_;
  std::uint32_t id_;
  int priority_;
  double available_ns_ = 0;
  std::deque<ItemPointer> queue_;
  ItemPointer last_;
  std::deque<ItemPointer> held_;
};

}  // namespace launchgap::fake
