#include "tests/fake_cuda/timeline.h"

#include <algorithm>

namespace launchgap::fake {
namespace {

/// Whether everything of other streams that the item waits for is over.
bool others_are_executed(const Item& item) {
  return std::all_of(
      item.after.begin(), item.after.end(), [](const auto& other) { return other->executed; });
}

}  // namespace

ItemPointer Timeline::push(Item item) {
  item.timeline = this;
  last_ = std::make_shared<Item>(std::move(item));
  Item& pushed = *last_;
  const bool nothing_to_run =
      !pushed.work && !pushed.opened && !pushed.thread_work && !pushed.batch;
  const bool known_begin = queue_.empty() && others_are_executed(pushed);
  // What has no effect but its time needs no turn in the queue: the wait after a burst of empty
  // kernels would spend noticeable time on them.
  if (nothing_to_run && known_begin) {
    const double begin = begin_of(pushed);
    settle(pushed, begin, end_of(pushed, begin, available_ns_));
  } else {
    queue_.push_back(last_);
  }
  return last_;
}

double Timeline::begin_of(const Item& item, double available_ns) {
  double begin = std::max(item.ready_ns, available_ns + item.gap_ns);
  for (const auto& dependency : item.after) begin = std::max(begin, dependency->end_ns);
  return begin;
}

double Timeline::end_of(const Item& item, double begin_ns, double available_ns) {
  // One that overlaps does not end before what it overlaps.
  return std::max(begin_ns + item.length_ns(), available_ns);
}

ItemPointer Timeline::in_the_way(std::size_t most, double now_ns) {
  // A few with each launch: all at once would take longer than the driver said that a call takes.
  for (int i = 0; i < 4 && !held_.empty() && held_.front()->complete(now_ns); ++i)
    held_.pop_front();
  if (held_.size() < most) return nullptr;
  advance(now_ns, false, nullptr);
  while (!held_.empty() && held_.front()->complete(now_ns)) held_.pop_front();
  return held_.size() < most ? nullptr : held_[held_.size() - most];
}

void Timeline::settle(Item& item, double begin_ns, double end_ns) {
  item.executed = true;
  item.end_ns = end_ns;
  available_ns_ = end_ns;
  item.after.clear();
  if (item.times) item.times->set(begin_ns, end_ns);
  item.times = nullptr;
  if (item.batch) item.batch->settle(begin_ns);
}

bool Timeline::next_is(const Item& item) const {
  return !queue_.empty() && queue_.front().get() == &item && others_are_executed(item);
}

std::optional<double> Timeline::begin_of_queued(const Item& item) const {
  double available = available_ns_;
  for (const auto& queued : queue_) {
    if (!others_are_executed(*queued)) return std::nullopt;
    const double begin = begin_of(*queued, available);
    if (queued.get() == &item) return begin;
    if (queued->opened || queued->thread_work) return std::nullopt;
    available = end_of(*queued, begin, available);
  }
  return std::nullopt;
}

bool Timeline::execute_first(double now_ns, bool ahead) {
  const ItemPointer item = queue_.front();
  for (const auto& dependency : item->after) {
    if (!dependency->executed) dependency->timeline->advance(now_ns, ahead, dependency.get());
    if (!dependency->executed) return false;
  }
  const double begin = begin_of(*item);
  double end = end_of(*item, begin, available_ns_);
  if (item->opened) {
    const std::optional<double> opened_ns = item->opened(begin, now_ns);
    if (!opened_ns) return false;
    end = *opened_ns;
  }
  if (const auto& thread_work = item->thread_work) {
    if (!thread_work->finished.load(std::memory_order_acquire)) return false;
    if (thread_work->until_returned) end = std::max(begin, thread_work->returned_ns);
  }
  if (!ahead && end > now_ns) return false;
  queue_.pop_front();
  settle(*item, begin, end);
  if (item->work) item->work();
  item->forget_work();
  return true;
}

void Timeline::advance(double now_ns, bool ahead, const Item* until) {
  while (!queue_.empty() && !(until != nullptr && until->executed)) {
    if (!execute_first(now_ns, ahead)) return;
  }
}

void Timeline::abandon() {
  while (!queue_.empty()) {
    const ItemPointer item = queue_.front();
    queue_.pop_front();
    item->executed = true;
    item->end_ns = 0;
    item->after.clear();
    item->times = nullptr;
    item->forget_work();
  }
}

}  // namespace launchgap::fake
