#include "tests/fake_cuda/timeline.h"

#include <algorithm>

namespace launchgap::fake {

ItemPointer Timeline::push(Item item) {
  item.timeline = this;
  last_ = std::make_shared<Item>(std::move(item));
  Item& pushed = *last_;
  const bool nothing_to_run = !pushed.work && !pushed.shut;
  const bool known_begin =
      queue_.empty() && std::all_of(pushed.after.begin(),
                                    pushed.after.end(),
                                    [](const auto& other) { return other->executed; });
  // What has no effect but its time needs no turn in the queue: the wait after a burst of empty
  // kernels would spend noticeable time on them.
  if (nothing_to_run && known_begin) {
    settle(pushed, begin_of(pushed) + pushed.duration_ns);
  } else {
    queue_.push_back(last_);
  }
  return last_;
}

double Timeline::begin_of(const Item& item) const {
  double begin = std::max(item.ready_ns, available_ns_);
  for (const auto& dependency : item.after) begin = std::max(begin, dependency->end_ns);
  return begin;
}

void Timeline::settle(Item& item, double end_ns) {
  item.executed = true;
  item.end_ns = end_ns;
  available_ns_ = end_ns;
  item.after.clear();
}

bool Timeline::execute_first(double now_ns, bool ahead) {
  const ItemPointer item = queue_.front();
  for (const auto& dependency : item->after) {
    if (!dependency->executed) dependency->timeline->advance(now_ns, ahead, dependency.get());
    if (!dependency->executed) return false;
  }
  const double begin = begin_of(*item);
  double end = begin + item->duration_ns;
  if (item->shut) {
    if (item->shut(begin, now_ns)) return false;
    end = std::max(begin, now_ns);
  }
  if (!ahead && end > now_ns) return false;
  queue_.pop_front();
  settle(*item, end);
  if (item->work) item->work();
  item->work = nullptr;
  item->shut = nullptr;
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
    item->work = nullptr;
    item->shut = nullptr;
  }
}

}  // namespace launchgap::fake
