// Decoding without NVIDIA's headers or library: versions that nobody has here, and broken buffers.
// cupti_abi_test.cpp compares with the real library.
#include "harness/trace/cupti/decode.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace launchgap::cupti {
namespace {

/// Strides of the library that is being played.
std::map<std::uint32_t, std::size_t> strides;

abi::Result next_record(std::uint8_t* buffer, std::size_t valid, abi::Activity** record) {
  std::uint8_t* at = buffer;
  if (*record) {
    const auto known = strides.find((*record)->kind);
    if (known == strides.end()) return abi::kInvalidKind;
    at = reinterpret_cast<std::uint8_t*>(*record) + known->second;
  }
  if (at >= buffer + valid) return abi::kMaxLimitReached;
  *record = reinterpret_cast<abi::Activity*>(at);
  return abi::kSuccess;
}

/// Records laid out with a version's strides.
class Buffer {
 public:
  template <class Record>
  void add(const Record& record) {
    const std::size_t at = bytes.size();
    bytes.resize(at + std::max(strides.at(record_kind(record)), sizeof record), 0xEE);
    std::memcpy(bytes.data() + at, &record, sizeof record);
    bytes.resize(at + strides.at(record_kind(record)));
  }
  activity::Trace decoded(std::uint32_t version) {
    activity::Trace trace;
    decode({next_record, version}, bytes.data(), bytes.size(), trace);
    return trace;
  }
  std::vector<std::uint8_t> bytes;

 private:
  static std::uint32_t record_kind(const abi::ApiActivity& record) { return record.kind; }
  static std::uint32_t record_kind(const abi::KernelActivity& record) { return record.kind; }
  static std::uint32_t record_kind(const abi::MemoryActivity& record) { return record.kind; }
  static std::uint32_t record_kind(const abi::OverheadActivity& record) { return record.kind; }
  static std::uint32_t record_kind(const abi::OverheadActivity3& record) {
    return record.common.kind;
  }
};

/// Sizes of the kernel's record by version; its fields are where they always were.
TEST(Decode, ReadsTheKernelRecordsOfEveryVersion) {
  for (const std::size_t stride : {144, 160, 168, 176, 200, 208, 216, 232}) {
    strides = {{abi::kConcurrentKernel, stride}};
    Buffer buffer;
    for (std::uint32_t i = 1; i <= 3; ++i) {
      abi::KernelActivity kernel{};
      kernel.kind = abi::kConcurrentKernel;
      kernel.start = std::uint64_t{100} * i;
      kernel.end = kernel.start + 50;
      kernel.correlation = i;
      kernel.stream = 7;
      kernel.grid_x = 11, kernel.grid_y = 12, kernel.grid_z = 13;
      kernel.block_x = 21, kernel.block_y = 22, kernel.block_z = 23;
      kernel.name = i == 2 ? nullptr : "k";
      buffer.add(kernel);
    }
    const activity::Trace trace = buffer.decoded(130001);
    ASSERT_EQ(trace.kernels.size(), 3u) << stride;
    EXPECT_EQ(trace.kernels[2].begin_ns, 300);
    EXPECT_EQ(trace.kernels[2].end_ns, 350);
    EXPECT_EQ(trace.kernels[2].correlation, 3u);
    EXPECT_EQ(trace.kernels[2].stream, 7u);
    EXPECT_EQ(trace.kernels[2].grid[2], 13);
    EXPECT_EQ(trace.kernels[2].block[0], 21);
    EXPECT_EQ(trace.name(trace.kernels[2].name), "k");
    EXPECT_EQ(trace.name(trace.kernels[1].name), "(unnamed)");
  }
}

/// Bytes that a version does not have are never read: beyond each record lies another.
TEST(Decode, ReadsOfAnOverheadWhatItsVersionHas) {
  struct Version {
    std::uint32_t api;
    std::size_t stride;
    std::uint32_t correlation;
  };
  for (const auto& [api, stride, correlation] :
       {Version{18, 40, 0}, Version{20, 48, 9}, Version{130001, 56, 9}}) {
    strides = {{abi::kOverhead, stride}};
    abi::OverheadActivity3 record{};
    record.common.kind = abi::kOverhead;
    record.common.overhead = abi::kLazyFunctionLoading;
    record.common.start = 5;
    record.common.end = 8;
    record.correlation = 9;
    record.data = api >= abi::kFirstWithOverheadData ? std::malloc(8) : nullptr;
    Buffer buffer;
    buffer.add(record);
    const activity::Trace trace = buffer.decoded(api);
    ASSERT_EQ(trace.overheads.size(), 1u) << api;
    EXPECT_EQ(
        trace.overheads[0],
        (activity::Overhead{5, 8, correlation, activity::OverheadKind::lazy_function_loading}));
  }
}

TEST(Decode, TellsThePoolOfAnAllocationThatHasOne) {
  strides = {{abi::kMemory2, sizeof(abi::MemoryActivity)}};
  Buffer buffer;
  for (const std::uint32_t pool_type : {0u, 1u}) {
    abi::MemoryActivity record{};
    record.kind = abi::kMemory2;
    record.pool_type = pool_type;
    record.pool = 0x77;  // without a type it is whatever was there
    buffer.add(record);
  }
  const activity::Trace trace = buffer.decoded(130001);
  ASSERT_EQ(trace.memory.size(), 2u);
  EXPECT_EQ(trace.memory[0].pool, 0u);
  EXPECT_EQ(trace.memory[1].pool, 0x77u);
}

TEST(Decode, CountsKindsThatNobodyAskedForAndReadsOn) {
  strides = {{abi::kDriverApi, 40}, {77, 40}};
  Buffer buffer;
  for (const std::uint32_t kind : {4u, 77u, 4u})
    buffer.add(abi::ApiActivity{static_cast<abi::Kind>(kind), 652, 1, 2, 0, 1, 1, 0});
  const activity::Trace trace = buffer.decoded(130001);
  EXPECT_EQ(trace.calls.size(), 2u);
  EXPECT_EQ(trace.unknown, 1u);
}

TEST(Decode, AnEmptyBufferIsNothing) {
  EXPECT_EQ(Buffer().decoded(130001).size(), 0u);
}

TEST(Decode, NamesAreTakenBeforeTheLibraryChangesThem) {
  strides = {{abi::kConcurrentKernel, 216}};
  char name[] = "first";
  activity::Trace trace;
  for (const char* text : {"first", "other", "first"}) {
    std::memcpy(name, text, 5);
    abi::KernelActivity kernel{};
    kernel.kind = abi::kConcurrentKernel;
    kernel.name = name;
    Buffer buffer;
    buffer.add(kernel);
    decode({next_record, 130001}, buffer.bytes.data(), buffer.bytes.size(), trace);
  }
  EXPECT_EQ(trace.name(trace.kernels[0].name), "first");
  EXPECT_EQ(trace.name(trace.kernels[1].name), "other");
  EXPECT_EQ(trace.kernels[2].name, trace.kernels[0].name);
}

TEST(Purposes, AreThoseOfLaunchesAndAllocationsInBothDomains) {
  EXPECT_EQ(driver_purpose(abi::kLaunchKernelEx), activity::Purpose::launch);
  EXPECT_EQ(driver_purpose(abi::kGraphLaunch), activity::Purpose::launch);
  EXPECT_EQ(driver_purpose(abi::kMemAllocAsync), activity::Purpose::allocate);
  EXPECT_EQ(driver_purpose(abi::kMemFree), activity::Purpose::release);
  EXPECT_EQ(driver_purpose(1), activity::Purpose::other);
  EXPECT_EQ(runtime_purpose(abi::kInternalCudaLaunchKernel), activity::Purpose::launch);
  EXPECT_EQ(runtime_purpose(abi::kLaunchKernelEx), activity::Purpose::other)
      << "ids of one domain mean something else in the other";
}

TEST(CuptiVersion, IsThatOfItsToolkitWhereItIsKnown) {
  EXPECT_EQ(cupti::version_text(17), "11.6 (API 17)");
  EXPECT_EQ(cupti::version_text(18), "11.8 (API 18)");
  EXPECT_EQ(cupti::version_text(22), "12.4 (API 22)");
  EXPECT_EQ(cupti::version_text(23), "12.5 (API 23)");
  EXPECT_EQ(cupti::version_text(25), "API 25");
  EXPECT_EQ(cupti::version_text(99'999), "API 99999");
  EXPECT_EQ(cupti::version_text(130'001), "13.0 (API 130001)");
  EXPECT_EQ(cupti::version_text(131'200), "13.12 (API 131200)");
}

}  // namespace
}  // namespace launchgap::cupti
