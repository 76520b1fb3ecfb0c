// The fake driver's memory.
#include <algorithm>
#include <cstring>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "tests/fake_cuda/device_memory.h"
#include "tests/fake_cuda/kernel_operation.h"

namespace launchgap::fake {
/// What is pinned is there, and not only promised.
static std::size_t host_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Pinned pages are there when the call returns, so their first use costs nothing more. Of blocks
/// so large that tests would need the host's memory it is left out.
static void pin(const Range& range) {
  constexpr std::size_t kMost = std::size_t{256} << 20, kPage = 4096;
  if (range.bytes > kMost) return;
  for (std::uintptr_t at = range.begin; at < range.end(); at += kPage) {
    auto* const byte = reinterpret_cast<volatile unsigned char*>(at);
    *byte = *byte;
  }
}

/// A GPU's fill leaves the CPU's caches as they are.
static void fill_past_caches(unsigned char* memory, unsigned char value, std::size_t bytes) {
#ifdef __SSE2__
  constexpr std::size_t kLine = sizeof(__m128i);
  const std::size_t before =
      std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(memory) % kLine) % kLine);
  std::memset(memory, value, before);
  const __m128i line = _mm_set1_epi8(static_cast<char>(value));
  std::size_t at = before;
  for (; at + kLine <= bytes; at += kLine)
    _mm_stream_si128(reinterpret_cast<__m128i*>(memory + at), line);
  _mm_sfence();
  std::memset(memory + at, value, bytes - at);
#else
  std::memset(memory, value, bytes);
#endif
}

BlockPointer allocate(Process& process, Context& context, std::size_t bytes) {
  if (bytes > context.description.memory_bytes) return nullptr;
  const std::size_t rounded =
      (bytes + Block::kAlignment - 1) / Block::kAlignment * Block::kAlignment;
  if (!makes_room(process, context, rounded)) return nullptr;
  auto block = Block::create(bytes, context.index);
  if (!block) return nullptr;
  context.used_bytes += block->bytes();
  process.addresses.insert(block);
  return block;
}

bool makes_room(Process& process, Context& context, std::size_t bytes) {
  const auto fits = [&] { return bytes <= context.description.memory_bytes - context.used_bytes; };
  if (!context.description.pools_give_way) return fits();
  if (!fits()) process.release_pool(context, context.pool, 0, now_ns());
  for (const auto& [handle, pool] : context.pools) {
    if (!fits()) process.release_pool(context, *pool, 0, now_ns());
  }
  return fits();
}

void report(Call& call, const Block& block, MemoryEvent event) {
  if (call.listener() == nullptr) return;
  event.host = block.pinned_host();
  event.address = address_of(block);
  event.bytes = block.requested_bytes;
  if (block.pool != nullptr) {
    event.pool = reinterpret_cast<std::uintptr_t>(block.pool);
    event.pool_threshold = block.pool->threshold;
    event.pool_bytes = block.pool->reserved();
    event.pool_used_bytes = block.pool->in_use();
  }
  call.listener()->memory(event);
}

EXPORT Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Call call("cuMemGetInfo_v2");
  return with_context(call, [&](Context& context) -> Result {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *total = context.description.memory_bytes;
    *free = *total - context.used_bytes;
    return kSuccess;
  });
}

EXPORT Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  Call call("cuMemAlloc_v2");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    if (pointer == nullptr || bytes == 0) return kInvalidValue;
    const double end = call.begin_ns + context.description.alloc_ns(context.random);
    const auto block = allocate(call.process, context, bytes);
    if (block) {
      *pointer = address_of(*block);
      report(call, *block, {.allocation = true, .place = context.place()});
    }
    return call.return_at(end, block ? kSuccess : kOutOfMemory);
  });
}

/// Every other GPU of this process.
static Result wait_for_others(Process& process, Lock& lock, const Context& own) {
  for (const auto& other : process.contexts()) {
    if (other.get() == &own) continue;
    if (const Result code = process.wait(lock, *other, other->all_ends())) return code;
  }
  return kSuccess;
}

EXPORT Result cuMemFree_v2(DevicePointer pointer) {
  Call call("cuMemFree_v2");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    const auto valid = [&] {
      const auto block = call.process.addresses.at(pointer);
      const bool can_be_freed =
          block && !block->freed && !block->physical && block->device() == context.index;
      return can_be_freed ? block : nullptr;
    };
    if (!valid()) return kInvalidValue;
    ++context.frees_in_progress;
    Result waited = call.process.wait(call.lock, context, context.all_ends());
    if (waited == kSuccess && context.description.frees_wait_for_all)
      waited = wait_for_others(call.process, call.lock, context);
    --context.frees_in_progress;
    if (waited != kSuccess) return waited;
    const auto block = valid();  // another thread may have been faster
    if (!block) return kInvalidValue;
    const double end = now_ns() + context.description.free_ns(context.random);
    report(call, *block, {.place = context.place()});
    context.results.freed(block->range());
    block->live = false;
    if (block->pool != nullptr) {
      block->freed = true;
      block->freed_by = std::make_shared<Item>();
      block->freed_by->executed = true;
      block->pool->put(block);
    } else {
      context.used_bytes -= block->bytes();
      call.process.addresses.erase(*block);
    }
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  Call call("cuMemHostAlloc");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    constexpr unsigned kKnown = 7;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return kInvalidValue;
    if (bytes > host_memory_bytes()) return kOutOfMemory;
    const auto block = Block::create(bytes, Block::kHost);
    if (!block) return kOutOfMemory;
    block->mapped = (flags & kHostAllocDeviceMap) != 0;
    pin(block->range());
    call.process.addresses.insert(block);
    *pointer = pointer_to(address_of(*block));
    report(call, *block, {.allocation = true, .place = context.place()});
    return kSuccess;
  });
}

EXPORT Result cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* host, unsigned flags) {
  Call call("cuMemHostGetDevicePointer_v2");
  return with_context(call, [&](Context&) -> Result {
    if (pointer == nullptr || flags != 0) return kInvalidValue;
    const auto block = call.process.addresses.holding(range_of(host, 1));
    if (!block || !block->mapped) return kInvalidValue;
    *pointer = static_cast<DevicePointer>(range_of(host, 1).begin);
    return kSuccess;
  });
}

EXPORT Result cuMemFreeHost(void* pointer) {
  Call call("cuMemFreeHost");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    const auto block = call.process.addresses.at(range_of(pointer, 1).begin);
    if (!block || !block->pinned_host() || block->registered()) return kInvalidValue;
    if (const Result code = call.process.wait(call.lock, context, context.all_ends())) return code;
    report(call, *block, {.place = context.place()});
    call.process.addresses.erase(*block);
    return kSuccess;
  });
}

EXPORT Result cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
  Call call("cuMemHostRegister_v2");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    constexpr unsigned kKnown = 15;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return kInvalidValue;
    const Range range = range_of(pointer, bytes);
    // No page is registered twice, even if the ranges are apart.
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t first = range.begin / kPage * kPage,
                         end_of_pages = (range.end() + kPage - 1) / kPage * kPage;
    for (const auto& block : call.process.addresses.within({first, end_of_pages - first})) {
      if (block->registered()) return kHostMemoryAlreadyRegistered;
    }
    pin(range);
    call.process.addresses.insert(Block::registered(range));
    const double end = call.begin_ns + context.description.alloc_ns(context.random);
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuMemHostUnregister(void* pointer) {
  Call call("cuMemHostUnregister");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    const auto block = call.process.addresses.at(range_of(pointer, 1).begin);
    if (!block || !block->registered()) return kHostMemoryNotRegistered;
    if (const Result code = call.process.wait(call.lock, context, context.all_ends())) return code;
    call.process.addresses.erase(*block);
    return kSuccess;
  });
}

EXPORT Result cuMemAllocManaged(DevicePointer* pointer, std::size_t bytes, unsigned flags) {
  Call call("cuMemAllocManaged");
  return with_context_at_rest(call, [&](Context& context) -> Result {
    if (context.description.managed_memory == ManagedMemory::none) return kNotSupported;
    if (pointer == nullptr || bytes == 0 || flags != kAttachGlobal) return kInvalidValue;
    const double end = call.begin_ns + context.description.alloc_ns(context.random);
    const auto block = allocate(call.process, context, bytes);
    if (block) {
      block->managed = true;
      *pointer = address_of(*block);
    }
    return call.return_at(end, block ? kSuccess : kOutOfMemory);
  });
}

/// Waits for the null stream, and copies between the device and the host.
static Result copy_now(Call& call, const void* host, const Range& range, bool to_device) {
  return with_context_at_rest(call, [&](Context& context) -> Result {
    if (const Result code = call.process.wait(call.lock, context, context.null_stream_ends()))
      return code;
    if (!call.process.addresses.accessible(range, context.index)) return kInvalidValue;
    const double begin_ns = now_ns();
    if (to_device) {
      context.results.before_write(range, true);
      std::memcpy(pointer_to(range.begin), host, range.bytes);
    } else {
      context.results.before_read(range);
      std::memcpy(const_cast<void*>(host), pointer_to(range.begin), range.bytes);
    }
    if (call.listener() != nullptr) {
      const auto times =
          call.listener()->transfer({.bytes = range.bytes}, context.place(context.null_stream));
      if (times) times->set(begin_ns, now_ns());
    }
    return kSuccess;
  });
}

EXPORT Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  Call call("cuMemcpyHtoD_v2");
  return copy_now(call, from, range_of(pointer_to(to), bytes), true);
}

EXPORT Result cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  Call call("cuMemcpyDtoH_v2");
  return copy_now(call, to, range_of(pointer_to(from), bytes), false);
}

EXPORT Result cuMemsetD8Async(DevicePointer to,
                              unsigned char value,
                              std::size_t bytes,
                              Stream stream) {
  Call call("cuMemsetD8Async");
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    Work work;
    work.transfer = {.bytes = bytes, .fill = true};
    Operation& operation = work.operation;
    auto* const memory = static_cast<unsigned char*>(pointer_to(to));
    operation.writes = {range_of(memory, bytes)};
    operation.signature = signature_of("memset", to, bytes, int(value));
    operation.compute = [=](std::size_t first, std::size_t end) {
      fill_past_caches(memory + first, value, end - first);
    };
    work.work_ns = moved_bytes(operation) / context.description.bandwidth_gbs;
    double late_ns = 0;
    if (context.description.launch.lazy_memsets && !context.memsets_loaded &&
        context.capture_of(timeline) == nullptr) {
      context.memsets_loaded = true;
      if (const Result code = call.process.wait(call.lock, context, context.all_ends()))
        return code;
      late_ns = now_ns() - call.begin_ns + context.draw(context.description.launch.lazy_ns);
    }
    return call.process.launch(call, context, timeline, late_ns, std::move(work));
  });
}

}  // namespace launchgap::fake
