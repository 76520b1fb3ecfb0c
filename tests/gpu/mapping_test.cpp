// Virtual memory: addresses are reserved, memory comes to parts of them and goes again.
#include <vector>

#include "harness/device/allocator.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

class GpuVirtualMemory : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    SKIP_UNLESS_SUPPORTED(memory = device->virtual_memory());
    // Pages of 64 MiB or more are no GPU's.
    page = memory->granularity();
    ASSERT_TRUE(page != 0 && (page & (page - 1)) == 0 && page <= 64 << 20) << page;
  }
  char* reserve(std::size_t pages) { return static_cast<char*>(memory->reserve(pages * page)); }

  std::unique_ptr<VirtualMemory> memory;
  std::size_t page = 0;
};

TEST_F(GpuVirtualMemory, PagesMappedSideBySideAreOneBlock) {
  char* const range = reserve(4);
  memory->map(range + page, page);
  memory->map(range, page);
  memory->map(range + 2 * page, page);
  stream->fill_bytes(range, 7, 3 * page);
  stream->wait();
  std::vector<unsigned char> content(3 * page);
  device->read(MemoryView(range, 3 * page), 0, content.data(), content.size());
  EXPECT_EQ(content, std::vector<unsigned char>(3 * page, 7));
  memory->unmap(range, page);
  memory->unmap(range + page, 2 * page);  // of two calls of map
  memory->unreserve(range, 4 * page);
}

TEST_F(GpuVirtualMemory, ComesBackWhenItIsUnmapped) {
  const std::size_t pages = ((128 << 20) + page - 1) / page;
  const std::uint64_t before = device->free_memory_bytes();
  char* const range = reserve(pages);
  EXPECT_GE(device->free_memory_bytes() + kTolerance, before) << "addresses are no memory";
  for (int round = 0; round < 2; ++round) {
    memory->map(range, pages * page);
    EXPECT_LE(device->free_memory_bytes(), before - pages * page + kTolerance);
    memory->unmap(range, pages * page);
    EXPECT_GE(device->free_memory_bytes() + kTolerance, before);
  }
  memory->unreserve(range, pages * page);
}

TEST_F(GpuVirtualMemory, WhatCannotBeMappedLeavesNothingBehind) {
  const std::uint64_t before = device->free_memory_bytes();
  char* const range = reserve(4);
  memory->map(range, page);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(memory->map(range, page), LibraryError) << "is mapped";
    EXPECT_THROW(memory->map(range, 2 * page), LibraryError) << "is mapped in part";
    EXPECT_THROW(memory->map(range + page, page / 2), Error) << "is no whole page";
    EXPECT_THROW(memory->map(range + page / 2, page), Error) << "begins within a page";
  }
  EXPECT_GE(device->free_memory_bytes() + kTolerance + page, before);
  stream->fill_bytes(range, 1, page);
  stream->wait();
  memory->unmap(range, page);
  memory->unreserve(range, 4 * page);
}

TEST_F(GpuVirtualMemory, SaysWhenThereIsNotSoMuch) {
  const std::size_t bytes = std::size_t{1} << 42;
  void* range = nullptr;
  try {
    range = memory->reserve(bytes);
  } catch (const OutOfMemory&) {
    GTEST_SKIP() << "there are not so many addresses";
  }
  const std::uint64_t before = device->free_memory_bytes();
  EXPECT_THROW(memory->map(range, bytes), OutOfMemory);
  EXPECT_GE(device->free_memory_bytes() + kTolerance, before);
  memory->unreserve(range, bytes);
}

}  // namespace
}  // namespace launchgap
