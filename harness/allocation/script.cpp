#include "harness/allocation/script.h"

#include "harness/core/errors.h"
#include "harness/core/stop.h"

namespace launchgap::allocation {

std::uint32_t Places::take(std::uint64_t id) {
  std::uint32_t place = 0;
  if (unused_.empty()) {
    place = most_++;
  } else {
    place = unused_.back();
    unused_.pop_back();
  }
  places_.emplace(id, place);
  return place;
}

std::uint32_t Places::give_back(std::uint64_t id) {
  const auto entry = places_.find(id);
  const std::uint32_t place = entry->second;
  places_.erase(entry);
  unused_.push_back(place);
  return place;
}

bool step_of(const TraceEvent& event, Places& places, Step& step) {
  switch (event.op) {
    case Op::alloc:
      if (event.bytes == 0) return false;
      step =
          Step(Step::Kind::allocate, event.bytes, event.align, places.take(event.id), event.stream);
      return true;
    case Op::free:
      if (event.bytes == 0) return false;
      step = Step(Step::Kind::release, event.bytes, 0, places.give_back(event.id), event.stream);
      return true;
    case Op::sync:
      step = Step(Step::Kind::wait, 0, 0, 0, event.stream);
      return true;
    default:
      return false;
  }
}

Script script_of(Trace& trace, std::uint32_t device) {
  constexpr std::size_t kMostSteps = std::size_t{1} << 28;  // 4 GiB
  Script script;
  Places places;
  LiveBytes live;
  trace.rewind();
  Step step;
  for (TraceEvent event; trace.next(event);) {
    if (event.device != device || !step_of(event, places, step)) continue;
    if (script.steps.size() == kMostSteps)
      throw Error(
          "the trace has more than {} events, which are played once but not "
          "again and again",
          kMostSteps);
    if (script.steps.size() % 65536 == 0) stop_if_asked();
    if (step.kind() == Step::Kind::allocate) live.add(step.bytes());
    if (step.kind() == Step::Kind::release) live.remove(step.bytes());
    script.steps.push_back(step);
  }
  script.places = places.most();
  script.peak_live_bytes = live.most;
  return script;
}

}  // namespace launchgap::allocation
