// What becomes of memory if a call of the CUDA driver fails half way: all of it is given back.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/device/allocator.h"
#include "harness/device/backend.h"
#include "harness/device/device.h"

namespace launchgap {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

/// A fake GPU of which calls fail, from the first on. One process per test.
class CudaMemoryFaults : public testing::Test {
 protected:
  void open(const std::string& failing_call, int code, const std::string& keys = "") {
    const std::string faults = failing_call.empty()
                                   ? ""
                                   : fmt::format(R"({{"device": 0, "library": "cuda",)"
                                                 R"( "call": "{}", "code": {}}})",
                                                 failing_call,
                                                 code);
    const std::filesystem::path node = folder_.path() / "node.json";
    std::ofstream(node) << fmt::format(
        R"({{"devices": [{{"name": "Fake A100", "compute_capability": "8.0",)"
        R"( "uuid": "GPU-00000000-0000-0000-0000-000000000001", "memory_bytes": 1073741824{}}}],)"
        R"( "faults": [{}]}})",
        keys,
        faults);
    setenv("LAUNCHGAP_LIBCUDA", LAUNCHGAP_FAKE_CUDA_FOLDER "/libcuda.so.1", 1);
    setenv("LAUNCHGAP_FAKE_NODE", node.c_str(), 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    device = open_device("cuda", "GPU-00000000-0000-0000-0000-000000000001");
    stream = device->create_stream();
  }

  void map_fails() {
    const auto memory = device->virtual_memory();
    void* const range = memory->reserve(4 * kPage);
    const std::uint64_t before = device->free_memory_bytes();
    EXPECT_THROW(memory->map(range, kPage), LibraryError);
    EXPECT_EQ(device->free_memory_bytes(), before);
    memory->unreserve(range, 4 * kPage);  // nothing is mapped
  }
  void allocation_fails(AllocatorKind kind) {
    const std::uint64_t before = device->free_memory_bytes();
    {
      const auto allocator = device->allocator(*stream, kind);
      EXPECT_THROW(allocator->allocate(3 * kPage), LibraryError);
    }
    EXPECT_EQ(device->free_memory_bytes(), before);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;

 private:
  const TemporaryFolder folder_;
};

TEST_F(CudaMemoryFaults, CreatedAndNotMapped) {
  open("cuMemMap", 1);
  map_fails();
}
TEST_F(CudaMemoryFaults, MappedAndNotAccessible) {
  open("cuMemSetAccess", 801);
  map_fails();
}
TEST_F(CudaMemoryFaults, NotCreated) {
  open("cuMemCreate", 2);
  map_fails();
}
TEST_F(CudaMemoryFaults, ABlockOfItsOwn) {
  open("cuMemSetAccess", 801);
  allocation_fails(AllocatorKind::vmm);
}
TEST_F(CudaMemoryFaults, AChunk) {
  open("cuMemMap", 1);
  allocation_fails(AllocatorKind::vmm_expand);
}
TEST_F(CudaMemoryFaults, APoolOfItsOwn) {
  open("cuMemPoolSetAttribute", 1);
  EXPECT_THROW(device->allocator(*stream, AllocatorKind::pool_own), LibraryError);
}
TEST_F(CudaMemoryFaults, Registering) {
  open("cuMemHostRegister_v2", 1);
  allocation_fails(AllocatorKind::host_register);
}

TEST_F(CudaMemoryFaults, WhatAGpuLacksIsUnsupported) {
  open("", 0, R"(, "memory_pools": false, "virtual_memory": false, "managed_memory": "exclusive")");
  EXPECT_THROW(device->virtual_memory(), Unsupported);
  for (const AllocatorKind kind : {AllocatorKind::mapped,
                                   AllocatorKind::pool,
                                   AllocatorKind::pool_t0,
                                   AllocatorKind::pool_own,
                                   AllocatorKind::vmm,
                                   AllocatorKind::vmm_expand,
                                   AllocatorKind::managed}) {
    EXPECT_THROW(device->allocator(*stream, kind), Unsupported) << info_of(kind).name;
  }
}

}  // namespace
}  // namespace launchgap
