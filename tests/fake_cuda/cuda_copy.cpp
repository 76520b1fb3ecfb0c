// The fake driver's asynchronous copies.
#include <cstring>

#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

/// Bytes of a copy that really come, as the description of the device has it.
std::size_t copied_bytes(Context& context, const Range& to) {
  const Copies copies = context.description.copies;
  const bool nothing = copies == Copies::nothing ||
                       (copies == Copies::first_only && !context.copied_to.insert(to.begin).second);
  return nothing ? 0 : copies == Copies::half ? to.bytes / 2 : to.bytes;
}

/// What a copy does; of host memory neither reads nor writes are known, since the host may change
/// it at any time.
Operation copy_operation(Context& context,
                         const Range& to,
                         const Range& from,
                         bool reads_device,
                         bool writes_device) {
  const std::size_t bytes = copied_bytes(context, to);
  Operation operation;
  if (bytes == 0) return operation;
  const Range source{from.begin, bytes}, target{to.begin, bytes};
  if (reads_device) operation.reads = {source};
  if (writes_device) operation.writes = {target};
  if (reads_device && writes_device && !source.overlaps(target)) {
    operation.signature = signature_of("copy", target.begin, source.begin, bytes);
    operation.compute = [=](std::size_t begin, std::size_t end) {
      std::memcpy(pointer_to(target.begin + begin), pointer_to(source.begin + begin), end - begin);
    };
  } else {
    operation.compute = [=](std::size_t, std::size_t) {
      std::memmove(pointer_to(target.begin), pointer_to(source.begin), bytes);
    };
  }
  return operation;
}

/// Between the host and the device.
Result copy_over_link(Call& call,
                      Stream stream,
                      const Range& host,
                      const Range& on_device,
                      bool to_device) {
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (host.bytes == 0) return kSuccess;
    if (host.begin == 0 || !call.process.addresses.accessible(on_device, context.index))
      return kInvalidValue;
    const auto block = call.process.addresses.holding(host);
    if (block && !block->pinned_host() && !block->managed) return kInvalidValue;
    const Range &to = to_device ? on_device : host, &from = to_device ? host : on_device;
    Operation operation = copy_operation(context, to, from, !to_device, to_device);
    const auto bytes = static_cast<double>(host.bytes);
    Work work;
    work.transfer = {.bytes = host.bytes};
    if (block) {
      work.operation = std::move(operation);
      work.work_ns = bytes / context.description.link_gbs;
      return call.process.launch(call, context, timeline, 0, std::move(work));
    }
    // The driver goes through pinned memory of its own: the call waits for what is ahead, and
    // returns when it needs the pageable memory no more.
    if (context.invalidate_capture_of(timeline)) return kCaptureUnsupported;
    if (const Result code = call.process.wait(call.lock, context, context.ends_of(timeline)))
      return code;
    const double waited_ns = now_ns() - call.begin_ns;
    if (operation.has_effect()) call.process.execute(context, std::move(operation));
    return call.process.launch(
        call,
        context,
        timeline,
        waited_ns + context.slowness() * bytes / context.description.pageable_gbs,
        std::move(work));
  });
}

}  // namespace

EXPORT Result cuMemcpyDtoDAsync_v2(DevicePointer to,
                                   DevicePointer from,
                                   std::size_t bytes,
                                   Stream stream) {
  Call call("cuMemcpyDtoDAsync_v2");
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (bytes == 0) return kSuccess;
    const Range target = range_of(pointer_to(to), bytes),
                source = range_of(pointer_to(from), bytes);
    for (const Range& range : {target, source}) {
      if (!call.process.addresses.accessible(range, context.index)) return kInvalidValue;
    }
    Work work;
    work.transfer = {.bytes = bytes};
    work.operation = copy_operation(context, target, source, true, true);
    work.work_ns = 2 * static_cast<double>(bytes) / context.description.bandwidth_gbs;
    return call.process.launch(call, context, timeline, 0, std::move(work));
  });
}

EXPORT Result cuMemcpyHtoDAsync_v2(DevicePointer to,
                                   const void* from,
                                   std::size_t bytes,
                                   Stream stream) {
  Call call("cuMemcpyHtoDAsync_v2");
  return copy_over_link(call, stream, range_of(from, bytes), range_of(pointer_to(to), bytes), true);
}

EXPORT Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
  Call call("cuMemcpyDtoHAsync_v2");
  return copy_over_link(
      call, stream, range_of(to, bytes), range_of(pointer_to(from), bytes), false);
}

}  // namespace launchgap::fake
