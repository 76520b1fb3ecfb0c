// The fake driver's streams and events, and waiting for them.
#include <algorithm>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

Result synchronize(Call& call,
                   Context& context,
                   const std::vector<ItemPointer>& ends,
                   unsigned flags,
                   const SynchronizationEvent& event) {
  double until_ns = 0;
  const Result code = call.process.wait(call.lock, context, ends, flags, &until_ns);
  if (call.listener() != nullptr) call.listener()->synchronized(event);
  // Whoever listens does so while the call waits: it takes no longer for that.
  return until_ns <= now_ns() ? code : call.return_at(until_ns, code);
}

/// Of the nearest priority that there is.
Result create_stream(Call& call, Stream* stream, unsigned flags, int priority) {
  return with_context(call, [&](Context& context) -> Result {
    if (stream == nullptr || (flags & ~unsigned{kStreamNonBlocking}) != 0) return kInvalidValue;
    const auto& ends = context.description.launch.priorities;
    *stream = context.add_stream((flags & kStreamNonBlocking) == 0,
                                 std::clamp<int>(priority, ends[1], ends[0]));
    return kSuccess;
  });
}

/// What is ahead of the stream in the capture that the event was recorded into.
Result wait_in_capture(Context& context, const Timeline& timeline, const CapturePoint& event) {
  if (event.capture->ended) return kInvalidValue;
  CapturePoint* const point = context.capture_of(timeline);
  if (point == nullptr) {
    context.captures[&timeline] = event;
    return kSuccess;
  }
  if (point->capture != event.capture) {
    point->capture->invalid = event.capture->invalid = true;
    return kCaptureMerge;
  }
  for (const std::size_t node : event.after) {
    if (std::ranges::find(point->after, node) == point->after.end()) point->after.push_back(node);
  }
  std::ranges::sort(point->after);
  return kSuccess;
}

}  // namespace

EXPORT Result cuCtxSynchronize() {
  Call call("cuCtxSynchronize");
  return with_context_at_rest(call, [&](Context& context) {
    return synchronize(call,
                       context,
                       context.all_ends(),
                       context.flags,
                       {cupti::abi::kContextSynchronize, context.place()});
  });
}

EXPORT Result cuStreamCreate(Stream* stream, unsigned flags) {
  Call call("cuStreamCreate");
  return create_stream(call, stream, flags, 0);
}

EXPORT Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  Call call("cuStreamCreateWithPriority");
  return create_stream(call, stream, flags, priority);
}

EXPORT Result cuStreamDestroy_v2(Stream stream) {
  Call call("cuStreamDestroy_v2");
  return with_running_stream(call, stream, [&](Context& context, Timeline&) -> Result {
    const auto found = context.streams.find(stream);
    if (found == context.streams.end()) return kInvalidHandle;
    // Its work still runs.
    context.destroyed_streams.push_back(std::move(found->second));
    context.streams.erase(found);
    context.drop_finished_streams();
    return kSuccess;
  });
}

EXPORT Result cuStreamSynchronize(Stream stream) {
  Call call("cuStreamSynchronize");
  return with_running_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (context.invalidate_forbidding_capture()) return kCaptureUnsupported;
    return synchronize(call,
                       context,
                       context.ends_of(timeline),
                       context.flags,
                       {cupti::abi::kStreamSynchronize, context.place(timeline)});
  });
}

EXPORT Result cuStreamQuery(Stream stream) {
  Call call("cuStreamQuery");
  return with_running_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    call.process.look(context);
    if (context.sticky != kSuccess) return context.sticky;
    const double now = now_ns();
    const auto ends = context.ends_of(timeline);
    const bool idle =
        std::all_of(ends.begin(), ends.end(), [&](const auto& end) { return end->complete(now); });
    return idle ? kSuccess : kNotReady;
  });
}

EXPORT Result cuEventCreate(abi::Event* event, unsigned flags) {
  Call call("cuEventCreate");
  return with_context(call, [&](Context& context) -> Result {
    if (event == nullptr) return kInvalidValue;
    auto created = std::make_unique<fake::Event>();
    created->flags = flags;
    created->id = context.next_event_id++;
    keep(context.events, std::move(created), event);
    return kSuccess;
  });
}

EXPORT Result cuEventDestroy_v2(abi::Event event) {
  Call call("cuEventDestroy_v2");
  return with_context(call, [&](Context& context) -> Result {
    return context.events.erase(event) == 1 ? kSuccess : kInvalidHandle;
  });
}

EXPORT Result cuEventRecord(abi::Event event, Stream stream) {
  Call call("cuEventRecord");
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    fake::Event* const found = find_in(context.events, event);
    if (found == nullptr) return kInvalidHandle;
    if (const CapturePoint* const point = context.capture_of(timeline)) {
      if (point->capture->invalid) return kCaptureInvalidated;
      found->captured = *point;
      return kSuccess;
    }
    found->captured.reset();
    Item item;
    // It travels to an idle device as a launch does.
    item.ready_ns = call.begin_ns + context.draw(context.description.launch_ns);
    found->recorded = context.push(timeline, std::move(item));
    return kSuccess;
  });
}

EXPORT Result cuStreamWaitEvent(Stream stream, abi::Event event, unsigned flags) {
  Call call("cuStreamWaitEvent");
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    fake::Event* const found = find_in(context.events, event);
    if (found == nullptr) return kInvalidHandle;
    if (flags != 0) return kInvalidValue;
    if (found->captured) {
      return wait_in_capture(context, timeline, *found->captured);
    }
    if (CapturePoint* const point = context.capture_of(timeline)) {
      if (!found->recorded) return kSuccess;
      point->capture->invalid = true;
      return kCaptureIsolation;
    }
    if (!found->recorded) return kSuccess;
    Item item;
    item.after = {found->recorded};
    context.push(timeline, std::move(item));
    return kSuccess;
  });
}

EXPORT Result cuEventSynchronize(abi::Event event) {
  Call call("cuEventSynchronize");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    fake::Event* const found = find_in(context.events, event);
    if (found == nullptr) return kInvalidHandle;
    if (found->captured) return kCapturedEvent;
    const std::uint32_t id = found->id;
    const bool blocking = (found->flags & kEventBlockingSync) != 0;
    std::vector<ItemPointer> ends;
    if (found->recorded) ends.push_back(found->recorded);
    return synchronize(call,
                       context,
                       ends,
                       blocking ? unsigned{kScheduleBlockingSync} : context.flags,
                       {cupti::abi::kEventSynchronize, context.place(), id});
  });
}

EXPORT Result cuEventElapsedTime(float* milliseconds, abi::Event begin, abi::Event end) {
  Call call("cuEventElapsedTime");
  return with_context(call, [&](Context& context) -> Result {
    if (milliseconds == nullptr) return kInvalidValue;
    const fake::Event* const first = find_in(context.events, begin);
    const fake::Event* const last = find_in(context.events, end);
    for (const fake::Event* const found : {first, last}) {
      if (found != nullptr && found->captured) return kCapturedEvent;
      if (found == nullptr || !found->recorded) return kInvalidHandle;
      if (found->flags & kEventDisableTiming) return kInvalidHandle;
    }
    call.process.look(context);
    if (context.sticky != kSuccess) return context.sticky;
    const double now = now_ns();
    for (const fake::Event* const found : {first, last}) {
      if (!found->recorded->complete(now)) return kNotReady;
    }
    const double elapsed_ns = last->recorded->end_ns - first->recorded->end_ns;
    *milliseconds = static_cast<float>(elapsed_ns * 1e-6);
    return kSuccess;
  });
}

}  // namespace launchgap::fake
