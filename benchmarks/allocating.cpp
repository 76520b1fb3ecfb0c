#include "benchmarks/allocating.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

std::vector<std::string> all_allocators(Profile, const DeviceFacts& facts) {
  return allocation::allocators_of(facts);
}

bool beyond_quick(Profile profile, const DeviceFacts&, const CaseName&) {
  return profile != Profile::quick;
}

std::unique_ptr<Allocator> allocator_of_case(const CaseContext& context,
                                             Stream& stream,
                                             std::size_t bytes,
                                             std::size_t blocks) {
  const std::string name = context.name.at("allocator");
  const std::uint64_t free = context.device.free_memory_bytes();
  const std::uint64_t most = std::min(free / 4, allocatable_bytes(context.device));
  if (bytes > most / blocks) {
    throw Unsupported(
        blocks == 1
            ? fmt::format("{} MiB are more than a quarter of the {} MiB that are free",
                          bytes >> 20,
                          free >> 20)
            : fmt::format("{} blocks of {} MiB are more than a quarter of the {} MiB that are free",
                          blocks,
                          bytes >> 20,
                          free >> 20));
  }
  if (bytes > allocation::most_bytes_of(name))
    throw Unsupported("{} is measured with small blocks only", name);
  // What launchgap's own allocators need at most: regions double, and rests are not always used.
  const std::uint64_t limit = (std::uint64_t{1} << 30) + 4 * bytes * (blocks + 1);
  return allocation::allocator_named(context.device, stream, name, limit);
}

void MarkedBlock::mark(Stream& stream) const {
  auto* const first = static_cast<unsigned char*>(address);
  stream.fill_bytes(first, value, 1);
  if (bytes > 1) stream.fill_bytes(first + bytes - 1, value, 1);
}

void MarkedBlock::check(Device& device) const {
  const MemoryView memory(address, bytes);
  for (const std::size_t at : {std::size_t{0}, bytes - 1}) {
    unsigned char found = 0;
    device.read(memory, at, &found, 1);
    if (found != value) {
      throw WrongResult(
          "byte {} of a live block of {} bytes has {} in place of {}", at, bytes, found, value);
    }
  }
}

void check_apart(const std::vector<MarkedBlock>& blocks) {
  std::vector<MarkedBlock> sorted = blocks;
  std::ranges::sort(sorted, std::less<>(), &MarkedBlock::address);
  for (std::size_t i = 0; i + 1 < sorted.size(); ++i) {
    if (static_cast<char*>(sorted[i].address) + sorted[i].bytes > sorted[i + 1].address)
      throw WrongResult("two live allocations of {} bytes overlap", sorted[i].bytes);
  }
}

}  // namespace launchgap
