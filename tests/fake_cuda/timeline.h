// Streams as virtual timelines: work is queued with the time at which it could begin and is
// executed when somebody waits or looks. No threads, so a host that forgets to wait reads what was
// there before.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace launchgap::fake {

class Timeline;

/// One entry of a stream.
struct Item {
  Timeline* timeline = nullptr;
  double ready_ns = 0;  // when it could begin on an idle stream
  double duration_ns = 0;
  std::vector<std::shared_ptr<Item>> after;  // of other streams
  std::function<void()> work;
  /// Gates only: asked with the gate's begin, whether it is still shut now. Its end is when it was
  /// first seen open.
  std::function<bool(double begin_ns, double now_ns)> shut;

  bool executed = false;
  double end_ns = 0;

  bool complete(double now_ns) const { return executed && end_ns <= now_ns; }
};

using ItemPointer = std::shared_ptr<Item>;

class Timeline {
 public:
  explicit Timeline(bool blocking) : blocking_(blocking) {}

  /// Whether it synchronises with the null stream.
  bool blocking() const { return blocking_; }

  ItemPointer push(Item item);

  /// The last entry ever pushed; null at first.
  const ItemPointer& last() const { return last_; }

  bool idle(double now_ns) const { return !last_ || last_->complete(now_ns); }

  /// Executes entries in order, up to `until` (null: all), as far as shut gates let it. Without
  /// `ahead` only those whose virtual end has passed: what a device has done when nobody waits for
  /// it.
  void advance(double now_ns, bool ahead, const Item* until);

  /// Gives up everything that is pending, as a dead context does.
  void abandon();

 private:
  bool execute_first(double now_ns, bool ahead);
  double begin_of(const Item& item) const;
  void settle(Item& item, double end_ns);

  bool blocking_;
  double available_ns_ = 0;
  std::deque<ItemPointer> queue_;
  ItemPointer last_;
};

}  // namespace launchgap::fake
