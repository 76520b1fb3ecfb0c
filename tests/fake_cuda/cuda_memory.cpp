// The fake driver's memory.
#include <cstring>

#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/kernel_operation.h"

namespace launchgap::fake {
namespace {

template <typename Body>
Result with_pool(Call& call, MemoryPool pool, Body body) {
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    for (int ordinal = 0; ordinal < process.device_count(); ++ordinal) {
      Context& context = *process.device(ordinal);
      if (static_cast<const void*>(&context.pool) != pool) continue;
      if (context.sticky != kSuccess) return context.sticky;
      if (const Result code = process.fault(lock, Library::cuda, call.name(), &context))
        return code;
      return body(process, context);
    }
    return kInvalidValue;
  });
}

DevicePointer address_of(const Block& block) {
  return static_cast<DevicePointer>(block.range().begin);
}

/// Tells who listens that the call allocated or freed `block`.
void report(Call& call, const Context& context, const Block& block, MemoryEvent event) {
  if (call.listener() == nullptr) return;
  event.host = block.pinned_host();
  event.address = address_of(block);
  event.bytes = block.requested_bytes;
  if (block.pooled) {
    event.pool = reinterpret_cast<std::uintptr_t>(&context.pool);
    event.pool_threshold = context.pool.threshold;
    event.pool_bytes = context.pool.reserved();
    event.pool_used_bytes = context.pool.in_use();
  }
  call.listener()->memory(event);
}

/// Fresh device memory, accounted; null when the device or the host has no more.
BlockPointer allocate(Process& process, Context& context, std::size_t bytes) {
  if (bytes > context.description.memory_bytes) return nullptr;
  const std::size_t rounded =
      (bytes + Block::kAlignment - 1) / Block::kAlignment * Block::kAlignment;
  const auto fits = [&] {
    return rounded <= context.description.memory_bytes - context.used_bytes;
  };
  if (!fits()) process.release_pool(context, 0);
  if (!fits()) return nullptr;
  auto block = Block::create(bytes, context.index);
  if (!block) return nullptr;
  context.used_bytes += block->bytes();
  process.addresses.insert(block);
  return block;
}

}  // namespace

EXPORT Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Call call("cuMemGetInfo_v2");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *total = context.description.memory_bytes;
    *free = *total - context.used_bytes;
    return kSuccess;
  });
}

EXPORT Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  Call call("cuMemAlloc_v2");
  const double begin = call.begin_ns();
  return with_context_at_rest(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (pointer == nullptr || bytes == 0) return kInvalidValue;
    const double end = begin + context.description.alloc_ns(context.random);
    const auto block = allocate(process, context, bytes);
    if (block) {
      *pointer = address_of(*block);
      report(call, context, *block, {.allocation = true, .place = context.place()});
    }
    lock.unlock();
    return call.return_at(end, block ? kSuccess : kOutOfMemory);
  });
}

EXPORT Result cuMemFree_v2(DevicePointer pointer) {
  Call call("cuMemFree_v2");
  return with_context_at_rest(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    const auto valid = [&] {
      const auto block = process.addresses.at(pointer);
      return block && !block->freed && block->device() == context.index ? block : nullptr;
    };
    if (!valid()) return kInvalidValue;
    if (const Result code = process.wait(lock, context, context.all_ends())) return code;
    const auto block = valid();  // another thread may have been faster
    if (!block) return kInvalidValue;
    const double end = now_ns() + context.description.free_ns(context.random);
    report(call, context, *block, {.place = context.place()});
    context.results.freed(block->range());
    block->live = false;
    if (block->pooled) {
      block->freed = true;
      block->freed_by = std::make_shared<Item>();
      block->freed_by->executed = true;
      context.pool.put(block);
    } else {
      context.used_bytes -= block->bytes();
      process.addresses.erase(*block);
    }
    lock.unlock();
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  Call call("cuMemHostAlloc");
  return with_context_at_rest(call, [&](Process& process, Lock&, Context& context) -> Result {
    constexpr unsigned kKnown = 7;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return kInvalidValue;
    const auto block = Block::create(bytes, Block::kHost);
    if (!block) return kOutOfMemory;
    block->mapped = (flags & kHostAllocDeviceMap) != 0;
    process.addresses.insert(block);
    *pointer = pointer_to(address_of(*block));
    report(call, context, *block, {.allocation = true, .place = context.place()});
    return kSuccess;
  });
}

EXPORT Result cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* host, unsigned flags) {
  Call call("cuMemHostGetDevicePointer_v2");
  return with_context(call, [&](Process& process, Lock&, Context&) -> Result {
    if (pointer == nullptr || flags != 0) return kInvalidValue;
    const auto block = process.addresses.holding(range_of(host, 1));
    if (!block || !block->mapped) return kInvalidValue;
    *pointer = static_cast<DevicePointer>(range_of(host, 1).begin);
    return kSuccess;
  });
}

EXPORT Result cuMemFreeHost(void* pointer) {
  Call call("cuMemFreeHost");
  return with_context_at_rest(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    const auto block = process.addresses.at(range_of(pointer, 1).begin);
    if (!block || !block->pinned_host()) return kInvalidValue;
    if (const Result code = process.wait(lock, context, context.all_ends())) return code;
    report(call, context, *block, {.place = context.place()});
    process.addresses.erase(*block);
    return kSuccess;
  });
}

EXPORT Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  Call call("cuMemcpyHtoD_v2");
  return with_context_at_rest(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (const Result code = process.wait(lock, context, context.null_stream_ends())) return code;
    const Range range = range_of(pointer_to(to), bytes);
    if (!process.addresses.accessible(range, context.index)) return kInvalidValue;
    context.results.before_write(range, true);
    std::memcpy(pointer_to(to), from, bytes);
    return kSuccess;
  });
}

EXPORT Result cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  Call call("cuMemcpyDtoH_v2");
  return with_context_at_rest(call, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (const Result code = process.wait(lock, context, context.null_stream_ends())) return code;
    const Range range = range_of(pointer_to(from), bytes);
    if (!process.addresses.accessible(range, context.index)) return kInvalidValue;
    context.results.before_read(range);
    std::memcpy(to, pointer_to(from), bytes);
    return kSuccess;
  });
}

EXPORT Result cuMemsetD8Async(DevicePointer to,
                              unsigned char value,
                              std::size_t bytes,
                              Stream stream) {
  Call call("cuMemsetD8Async");
  call.begin_ns();
  return with_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        Work work;
        Operation& operation = work.operation;
        auto* const memory = static_cast<unsigned char*>(pointer_to(to));
        operation.writes = {range_of(memory, bytes)};
        operation.signature = "memset " + std::to_string(to) + " " + std::to_string(bytes) + " " +
                              std::to_string(value);
        operation.compute = [=](std::size_t first, std::size_t end) {
          std::memset(memory + first, value, end - first);
        };
        work.work_ns = moved_bytes(operation) / context.description.bandwidth_gbs;
        double late_ns = 0;
        if (context.description.launch.lazy_memsets && !context.memsets_loaded &&
            context.capture_of(timeline) == nullptr) {
          context.memsets_loaded = true;
          if (const Result code = process.wait(lock, context, context.all_ends())) return code;
          late_ns = now_ns() - call.begin_ns() + context.draw(context.description.launch.lazy_ns);
        }
        return process.launch(lock, context, timeline, call, late_ns, std::move(work));
      });
}

EXPORT Result cuMemAllocAsync(DevicePointer* pointer, std::size_t bytes, Stream stream) {
  Call call("cuMemAllocAsync");
  const double begin = call.begin_ns();
  return with_running_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        if (!context.description.memory_pools) return kNotSupported;
        if (pointer == nullptr || bytes == 0) return kInvalidValue;
        constexpr double kPoolSpeedup = 20;
        double cost_ns = context.description.alloc_ns(context.random);
        process.look(context);
        auto block = context.pool.take(bytes, &timeline, now_ns());
        if (block) {
          cost_ns /= kPoolSpeedup;
        } else {
          block = allocate(process, context, bytes);
          if (block) context.pool.add_reserved(block->bytes());
        }
        if (block) {
          block->requested_bytes = bytes;
          block->pooled = true;
          block->freed = false;
          block->freed_by = nullptr;
          block->live = false;
          Item item;
          item.ready_ns = begin;
          item.work = [block] { block->live = true; };
          context.push(timeline, std::move(item));
          *pointer = address_of(*block);
          report(call,
                 context,
                 *block,
                 {.allocation = true, .async = true, .place = context.place(timeline)});
        }
        lock.unlock();
        return call.return_at(begin + cost_ns, block ? kSuccess : kOutOfMemory);
      });
}

EXPORT Result cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  Call call("cuMemFreeAsync");
  const double begin = call.begin_ns();
  return with_running_stream(
      call,
      stream,
      [&](Process& process, Lock& lock, Context& context, Timeline& timeline) -> Result {
        if (!context.description.memory_pools) return kNotSupported;
        const auto block = process.addresses.at(pointer);
        if (!block || !block->pooled || block->freed || block->device() != context.index)
          return kInvalidValue;
        constexpr double kPoolSpeedup = 20;
        const double cost_ns = context.description.free_ns(context.random) / kPoolSpeedup;
        Item item;
        item.ready_ns = begin;
        item.work = [&context, block] {
          block->live = false;
          context.results.freed(block->range());
        };
        report(call, context, *block, {.async = true, .place = context.place(timeline)});
        block->freed = true;
        block->freed_by = context.push(timeline, std::move(item));
        context.pool.put(block);
        lock.unlock();
        return call.return_at(begin + cost_ns, kSuccess);
      });
}

EXPORT Result cuDeviceGetDefaultMemPool(MemoryPool* pool, Device device) {
  Call call("cuDeviceGetDefaultMemPool");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (pool == nullptr) return kInvalidValue;
    if (!context.description.memory_pools) return kNotSupported;
    *pool = reinterpret_cast<MemoryPool>(&context.pool);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolSetAttribute(MemoryPool pool, int attribute, void* value) {
  Call call("cuMemPoolSetAttribute");
  return with_pool(call, pool, [&](Process&, Context& context) -> Result {
    if (attribute != kReleaseThreshold || value == nullptr) return kInvalidValue;
    std::memcpy(&context.pool.threshold, value, sizeof context.pool.threshold);
    return kSuccess;
  });
}

EXPORT Result cuMemPoolTrimTo(MemoryPool pool, std::size_t bytes_to_keep) {
  Call call("cuMemPoolTrimTo");
  return with_pool(call, pool, [&](Process& process, Context& context) -> Result {
    process.look(context);
    process.release_pool(context, bytes_to_keep);
    return context.sticky;
  });
}

}  // namespace launchgap::fake
