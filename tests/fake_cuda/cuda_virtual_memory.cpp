// The fake driver's virtual memory management.
#include "tests/fake_cuda/device_memory.h"

namespace launchgap::fake {
namespace {

constexpr std::size_t kGranularity = ReservedRanges::kGranularity;

bool is_whole(std::uintptr_t address, std::size_t bytes) {
  return bytes != 0 && bytes % kGranularity == 0 && address % kGranularity == 0;
}

/// Any of these calls: body(context), then it lasts for `cost_ns`.
template <typename Body>
Result with_virtual_memory(Call& call, double (*cost_ns)(Context& context), Body body) {
  return with_context(call, [&](Context& context) -> Result {
    if (!context.description.virtual_memory) return kNotSupported;
    const double end = call.begin_ns + cost_ns(context);
    return call.return_at(end, body(context));
  });
}

double nothing(Context&) {
  return 0;
}
double half_an_allocation(Context& context) {
  return context.description.alloc_ns(context.random) / 2;
}
double half_a_release(Context& context) {
  return context.description.free_ns(context.random) / 2;
}

/// Its last owner gives it back to the device.
void forget(Context& context, std::shared_ptr<PhysicalPages> memory) {
  if (memory.use_count() == 1) context.used_bytes -= memory->bytes;
}

/// The mappings that fill `range` exactly, each as a whole; none where they do not.
std::vector<BlockPointer> mappings(Process& process, const Context& context, const Range& range) {
  std::vector<BlockPointer> blocks = process.addresses.within(range);
  std::size_t bytes = 0;
  for (const auto& block : blocks) {
    if (!block->physical || block->device() != context.index || !range.contains(block->range()))
      return {};
    bytes += block->bytes();
  }
  return bytes == range.bytes ? blocks : std::vector<BlockPointer>();
}

bool describes_device_memory(const Context& context, const PhysicalMemoryProperties* properties) {
  return properties != nullptr && properties->type == kPinned &&
         properties->location.type == kOnDevice && properties->location.id == context.ordinal;
}

}  // namespace

EXPORT Result cuMemGetAllocationGranularity(std::size_t* bytes,
                                            const PhysicalMemoryProperties* properties,
                                            int option) {
  Call call("cuMemGetAllocationGranularity");
  return with_virtual_memory(call, nothing, [&](Context& context) -> Result {
    constexpr int kRecommended = 1;
    if (bytes == nullptr || option < 0 || option > kRecommended) return kInvalidValue;
    if (!describes_device_memory(context, properties)) return kInvalidValue;
    *bytes = kGranularity;
    return kSuccess;
  });
}

EXPORT Result cuMemAddressReserve(DevicePointer* pointer,
                                  std::size_t bytes,
                                  std::size_t alignment,
                                  DevicePointer,
                                  unsigned long long flags) {
  Call call("cuMemAddressReserve");
  return with_virtual_memory(call, nothing, [&](Context&) -> Result {
    const bool is_power = (alignment & (alignment - 1)) == 0;
    if (pointer == nullptr || flags != 0 || !is_power || !is_whole(0, bytes)) return kInvalidValue;
    const std::optional<Range> range = call.process.reserved.reserve(bytes);
    if (!range) return kOutOfMemory;
    *pointer = static_cast<DevicePointer>(range->begin);
    return kSuccess;
  });
}

EXPORT Result cuMemAddressFree(DevicePointer pointer, std::size_t bytes) {
  Call call("cuMemAddressFree");
  return with_virtual_memory(call, nothing, [&](Context&) -> Result {
    const Range range = range_of(pointer_to(pointer), bytes);
    if (!call.process.addresses.within(range).empty()) return kInvalidValue;
    return call.process.reserved.free(range) ? kSuccess : kInvalidValue;
  });
}

EXPORT Result cuMemCreate(abi::PhysicalMemory* memory,
                          std::size_t bytes,
                          const PhysicalMemoryProperties* properties,
                          unsigned long long flags) {
  Call call("cuMemCreate");
  return with_virtual_memory(call, half_an_allocation, [&](Context& context) -> Result {
    if (memory == nullptr || flags != 0 || !is_whole(0, bytes)) return kInvalidValue;
    if (!describes_device_memory(context, properties)) return kInvalidValue;
    if (!makes_room(call.process, context, bytes)) return kOutOfMemory;
    context.used_bytes += bytes;
    *memory = call.process.next_physical_memory();
    context.physical.emplace(*memory,
                             std::make_shared<PhysicalPages>(PhysicalPages{context.index, bytes}));
    return kSuccess;
  });
}

EXPORT Result cuMemRelease(abi::PhysicalMemory memory) {
  Call call("cuMemRelease");
  return with_virtual_memory(call, nothing, [&](Context& context) -> Result {
    const auto found = context.physical.extract(memory);
    if (found.empty()) return kInvalidValue;
    forget(context, std::move(found.mapped()));
    return kSuccess;
  });
}

EXPORT Result cuMemMap(DevicePointer pointer,
                       std::size_t bytes,
                       std::size_t offset,
                       abi::PhysicalMemory memory,
                       unsigned long long flags) {
  Call call("cuMemMap");
  return with_virtual_memory(call, nothing, [&](Context& context) -> Result {
    const Range range = range_of(pointer_to(pointer), bytes);
    const auto found = context.physical.find(memory);
    if (found == context.physical.end() || offset != 0 || flags != 0) return kInvalidValue;
    if (!is_whole(range.begin, bytes) || bytes > found->second->bytes) return kInvalidValue;
    if (!call.process.reserved.contains(range) || !call.process.addresses.within(range).empty())
      return kInvalidValue;
    call.process.addresses.insert(Block::mapping(range, found->second));
    return kSuccess;
  });
}

EXPORT Result cuMemSetAccess(DevicePointer pointer,
                             std::size_t bytes,
                             const AccessDescription* access,
                             std::size_t count) {
  Call call("cuMemSetAccess");
  return with_virtual_memory(call, half_an_allocation, [&](Context& context) -> Result {
    if (access == nullptr || count != 1 || access->flags != kReadAndWrite ||
        access->location.type != kOnDevice || access->location.id != context.ordinal)
      return kInvalidValue;
    const Range range = range_of(pointer_to(pointer), bytes);
    const auto blocks = mappings(call.process, context, range);
    if (blocks.empty()) return kInvalidValue;
    ReservedRanges::fill(range);
    for (const auto& block : blocks) block->live = true;
    return kSuccess;
  });
}

/// Does not wait for work that uses the memory, which then fails. Addresses without memory are no
/// error (seen with driver 580).
EXPORT Result cuMemUnmap(DevicePointer pointer, std::size_t bytes) {
  Call call("cuMemUnmap");
  return with_virtual_memory(call, half_a_release, [&](Context& context) -> Result {
    const Range range = range_of(pointer_to(pointer), bytes);
    call.process.look(context);
    if (call.process.reserved.contains(range) && call.process.addresses.within(range).empty())
      return kSuccess;
    const auto blocks = mappings(call.process, context, range);
    if (blocks.empty()) return kInvalidValue;
    context.results.before_write(range, true);
    context.results.freed(range);
    for (const auto& block : blocks) {
      call.process.addresses.erase(*block);
      forget(context, std::move(block->physical));
    }
    ReservedRanges::empty(range);
    return kSuccess;
  });
}

}  // namespace launchgap::fake
