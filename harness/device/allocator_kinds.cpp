#include <algorithm>
#include <array>

#include "harness/device/allocator.h"
#include "harness/device/device.h"

namespace launchgap {
namespace {

constexpr auto kKinds = std::to_array<AllocatorKindInfo>({
    {AllocatorKind::direct, "direct", "`cuMemAlloc`, `cuMemFree`", "`malloc`, `free`"},
    {AllocatorKind::mapped, "mapped", "", "`mmap`, `munmap`, private anonymous pages"},
    {AllocatorKind::pool,
     "pool",
     "`cuMemAllocAsync`, `cuMemFreeAsync` on the default pool, told to keep what is freed",
     "`std::pmr::unsynchronized_pool_resource`; `method` names the block size up to which it "
     "pools, and beyond that `operator new` serves"},
    {AllocatorKind::pool_t0,
     "pool_t0",
     "the same, told to keep nothing (release threshold 0, the driver's default)",
     ""},
    {AllocatorKind::pool_own,
     "pool_own",
     "`cuMemAllocFromPoolAsync`, `cuMemFreeAsync` on a pool of its own, told to keep what is freed",
     ""},
    {AllocatorKind::vmm,
     "vmm",
     "for each block addresses and memory of its own: `cuMemAddressReserve`, `cuMemCreate`, "
     "`cuMemMap`, `cuMemSetAccess`; `cuMemUnmap`, `cuMemAddressFree`",
     "for each block pages of its own: `mmap` without access, `mprotect`; `madvise`, `munmap`"},
    {AllocatorKind::vmm_expand,
     "vmm_expand",
     "one range of addresses, to whose end memory is mapped in chunks of 20 MiB; what is given "
     "back is used again once all behind it is given back too",
     "the same"},
    {.kind = AllocatorKind::host_pinned,
     .name = "host_pinned",
     .on_gpu = "`cuMemHostAlloc`, `cuMemFreeHost`",
     .on_host = "",
     .in_host_memory = true},
    {.kind = AllocatorKind::host_register,
     .name = "host_register",
     .on_gpu = "`aligned_alloc` and `cuMemHostRegister`; `cuMemHostUnregister` and `free`",
     .on_host = "",
     .in_host_memory = true},
    {AllocatorKind::managed,
     "managed",
     "`cuMemAllocManaged`, `cuMemFree`; blocks of at most 64 MiB",
     "",
     std::uint64_t{64} << 20},
});

}  // namespace

std::span<const AllocatorKindInfo> allocator_kinds() {
  return kKinds;
}

const AllocatorKindInfo& info_of(AllocatorKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<AllocatorKind> allocator_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &AllocatorKindInfo::name);
  return found == kKinds.end() ? std::nullopt : std::optional(found->kind);
}

std::uint64_t allocatable_bytes(Device& device) {
  const std::uint64_t free = device.free_memory_bytes();
  const std::uint64_t kept = device.facts().memory_bytes.value_or(free) / 20;
  return free > kept ? free - kept : 0;
}

}  // namespace launchgap
