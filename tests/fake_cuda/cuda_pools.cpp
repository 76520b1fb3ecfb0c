// The fake driver's memory pools.
#include <cstring>

#include "tests/fake_cuda/device_memory.h"

namespace launchgap::fake {
namespace {

constexpr double kPoolSpeedup = 20;

Pool* default_pool(Context& context, MemoryPool) {
  return &context.pool;
}

/// Null where it is none of the device's.
Pool* find_pool(Context& context, MemoryPool handle) {
  if (static_cast<const void*>(&context.pool) == handle) return &context.pool;
  Pool* const found = find_in(context.pools, handle);
  return found != nullptr && found->destroyed ? nullptr : found;
}

template <typename Body>
Result with_pool(Call& call, MemoryPool handle, Body body) {
  return with_process(call, [&]() -> Result {
    if (!call.process.initialized()) return kNotInitialized;
    for (const auto& context : call.process.contexts()) {
      Pool* const pool = find_pool(*context, handle);
      if (pool == nullptr) continue;
      if (context->sticky != kSuccess) return context->sticky;
      if (const Result code = call.fault(context.get())) return code;
      return body(*context, *pool);
    }
    return kInvalidValue;
  });
}

/// The call takes `bytes` of a pool, in stream order.
Result allocate_from(Call& call,
                     DevicePointer* pointer,
                     std::size_t bytes,
                     Stream stream,
                     Pool* (*pool_of)(Context& context, MemoryPool handle),
                     MemoryPool handle) {
  return with_running_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (!context.description.memory_pools) return kNotSupported;
    Pool* const pool = pool_of(context, handle);
    if (pool == nullptr || pointer == nullptr || bytes == 0) return kInvalidValue;
    double cost_ns = context.description.alloc_ns(context.random);
    call.process.look(context);
    auto block = pool->take(bytes, &timeline, now_ns());
    if (block) {
      cost_ns /= kPoolSpeedup;
    } else {
      block = allocate(call.process, context, bytes);
      if (block) pool->add_reserved(block->bytes());
    }
    if (block) {
      block->requested_bytes = bytes;
      block->pool = pool;
      block->freed = false;
      block->freed_by = nullptr;
      block->live = false;
      Item item;
      item.ready_ns = call.begin_ns;
      item.work = [block] { block->live = true; };
      context.push(timeline, std::move(item));
      *pointer = address_of(*block);
      report(call, *block, {.allocation = true, .async = true, .place = context.place(timeline)});
    }
    return call.return_at(call.begin_ns + cost_ns, block ? kSuccess : kOutOfMemory);
  });
}

}  // namespace

EXPORT Result cuMemAllocAsync(DevicePointer* pointer, std::size_t bytes, Stream stream) {
  Call call("cuMemAllocAsync");
  return allocate_from(call, pointer, bytes, stream, default_pool, nullptr);
}

EXPORT Result cuMemAllocFromPoolAsync(DevicePointer* pointer,
                                      std::size_t bytes,
                                      MemoryPool pool,
                                      Stream stream) {
  Call call("cuMemAllocFromPoolAsync");
  return allocate_from(call, pointer, bytes, stream, find_pool, pool);
}

EXPORT Result cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  Call call("cuMemFreeAsync");
  return with_running_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (!context.description.memory_pools) return kNotSupported;
    const auto block = call.process.addresses.at(pointer);
    if (!block || block->pool == nullptr || block->freed || block->device() != context.index)
      return kInvalidValue;
    const double cost_ns = context.description.free_ns(context.random) / kPoolSpeedup;
    Item item;
    item.ready_ns = call.begin_ns;
    item.duration_ns = context.draw(context.description.pool_free_ns);
    item.work = [&context, block] {
      block->live = false;
      context.results.freed(block->range());
    };
    report(call, *block, {.async = true, .place = context.place(timeline)});
    block->freed = true;
    block->freed_by = context.push(timeline, std::move(item));
    block->pool->put(block);
    return call.return_at(call.begin_ns + cost_ns, kSuccess);
  });
}

EXPORT Result cuDeviceGetDefaultMemPool(MemoryPool* pool, Device device) {
  Call call("cuDeviceGetDefaultMemPool");
  return with_device(call, device, [&](Context& context) -> Result {
    if (!context.description.memory_pools) return kNotSupported;
    return put(pool, reinterpret_cast<MemoryPool>(&context.pool));
  });
}

EXPORT Result cuMemPoolSetAttribute(MemoryPool handle, int attribute, void* value) {
  Call call("cuMemPoolSetAttribute");
  return with_pool(call, handle, [&](Context&, Pool& pool) -> Result {
    if (attribute != kReleaseThreshold || value == nullptr) return kInvalidValue;
    std::memcpy(&pool.threshold, value, sizeof pool.threshold);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolGetAttribute(MemoryPool handle, int attribute, void* value) {
  Call call("cuMemPoolGetAttribute");
  return with_pool(call, handle, [&](Context&, Pool& pool) -> Result {
    if (value == nullptr) return kInvalidValue;
    std::uint64_t bytes = 0;
    if (attribute == kReleaseThreshold) {
      bytes = pool.threshold;
    } else if (attribute == kReservedMemory) {
      bytes = pool.reserved();
    } else {
      return kInvalidValue;
    }
    std::memcpy(value, &bytes, sizeof bytes);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolTrimTo(MemoryPool handle, std::size_t bytes_to_keep) {
  Call call("cuMemPoolTrimTo");
  return with_pool(call, handle, [&](Context& context, Pool& pool) -> Result {
    call.process.look(context);
    call.process.release_pool(context, pool, bytes_to_keep, now_ns());
    return context.sticky;
  });
}

EXPORT Result cuMemPoolCreate(MemoryPool* pool, const MemoryPoolProperties* properties) {
  Call call("cuMemPoolCreate");
  if (pool == nullptr || properties == nullptr) return kInvalidValue;
  return with_device(call, properties->location.id, [&](Context& context) -> Result {
    if (!context.description.memory_pools) return kNotSupported;
    if (properties->type != kPinned || properties->location.type != kOnDevice) return kInvalidValue;
    keep(context.pools, std::make_unique<Pool>(), pool);
    return kSuccess;
  });
}

/// Its memory goes when nothing of it is in use any more.
EXPORT Result cuMemPoolDestroy(MemoryPool handle) {
  Call call("cuMemPoolDestroy");
  return with_pool(call, handle, [&](Context& context, Pool& pool) -> Result {
    if (&pool == &context.pool) return kInvalidValue;
    pool.destroyed = true;
    call.process.look(context);
    call.process.release_pools(context, now_ns());
    return kSuccess;
  });
}

}  // namespace launchgap::fake
