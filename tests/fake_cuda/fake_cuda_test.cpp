// What the fake driver, cuBLAS and their like refuse, as the real ones do, and the faults that a
// description brings about.
#include <functional>
#include <thread>

#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

// What the driver answers beside the codes that launchgap tells apart. Source: cuda.h.
constexpr Result kIllegalState = 401, kUnjoined = 904, kIsolation = 905, kImplicit = 906;

class FakeDriver : public FakeCuda {
 protected:
  static constexpr std::size_t kPage = std::size_t{2} << 20;  // of virtual memory
  const PhysicalMemoryProperties properties = [] {
    PhysicalMemoryProperties made{};
    made.type = kPinned;
    made.location = {kOnDevice, 0};
    return made;
  }();
  const AccessDescription access = {{kOnDevice, 0}, kReadAndWrite};

  /// A tensor map of a matrix: what is asked for, and what the driver answers.
  struct MatrixMap {
    void* address;
    std::uint64_t sizes[2] = {256, 128}, stride = 512;
    unsigned box[2] = {64, 128}, steps[2] = {1, 1};
  };
  Result encode(const MatrixMap& asked) {
    TensorMap map;
    return cu.cuTensorMapEncodeTiled(&map,
                                     kTensorBfloat16,
                                     2,
                                     asked.address,
                                     asked.sizes,
                                     &asked.stride,
                                     asked.box,
                                     asked.steps,
                                     kTensorNoInterleave,
                                     kTensorSwizzle128,
                                     kTensorPromote128,
                                     kTensorFillZero);
  }
};

TEST_F(FakeDriver, CallsNeedInitialisationAndAContext) {
  describe(a_node().dump());
  EXPECT_EQ(cu.cuCtxSynchronize(), kNotInitialized);
  ASSERT_EQ(cu.cuInit(0), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(nullptr), kInvalidContext);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  std::thread([&] {
    EXPECT_EQ(cu.cuCtxSynchronize(), kInvalidContext) << "is the thread's";
  }).join();
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kContextIsDestroyed);
}

TEST_F(FakeDriver, AStreamOfAContextThatIsGoneCrashes) {
  start();
  const auto on = stream();
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), kSuccess);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
  EXPECT_EXIT(cu.cuStreamDestroy_v2(on), testing::KilledBySignal(SIGABRT), "context is gone");
}

/// A call with a device that has these keys, and what it answers.
struct Answer {
  const char* what;
  Json keys;
  Result expected;
  std::function<Result(FakeDriver&)> call;
};

TEST_F(FakeDriver, AnswersAsTheRealOneDoes) {
  using T = FakeDriver;
  const Json none = Json::object();
  const auto find = [](const char* name) {
    return [name](T& t) {
      Function found = nullptr;
      return t.cu.cuModuleGetFunction(&found, t.module, name);
    };
  };
  const auto pooled = [](T& t) {
    DevicePointer pointer = 0;
    return t.cu.cuMemAllocAsync(&pointer, 16, nullptr);
  };
  const auto reserved = [](T& t) {
    DevicePointer pointer = 0;
    return t.cu.cuMemAddressReserve(&pointer, 2 << 20, 0, 0, 0);
  };
  const auto managed = [](T& t) {
    DevicePointer pointer = 0;
    return t.cu.cuMemAllocManaged(&pointer, 16, kAttachGlobal);
  };
  const auto free_twice = [](T& t) {
    const auto pointer = t.memory(16);
    EXPECT_EQ(t.cu.cuMemFree_v2(pointer), kSuccess);
    return t.cu.cuMemFree_v2(pointer);
  };
  const auto with = [](int attribute) {
    return [=](T& t) {
      return t.launch_with(LaunchAttributeId(attribute), t.null, t.stream(), nullptr);
    };
  };
  const auto begin = [](bool twice) {
    return [twice](T& t) {
      const Stream on = t.stream();
      EXPECT_TRUE(!twice || t.begin_capture(on) == kSuccess);
      return t.begin_capture(on);
    };
  };
  const auto begin_in_null_stream = [](T& t) { return t.begin_capture(nullptr); };
  const auto unjoined = [](T& t) {
    const Stream on = t.stream(), side = t.stream();
    EXPECT_EQ(t.begin_capture(on), kSuccess);
    t.order(on, side);
    EXPECT_EQ(t.launch(t.null, side), kSuccess);
    Graph graph = nullptr;
    return t.cu.cuStreamEndCapture(on, &graph);
  };
  const Answer answers[] = {
      {"freeing twice", none, kInvalidValue, free_twice},
      {"no pools", {{"memory_pools", false}}, kNotSupported, pooled},
      {"no virtual memory", {{"virtual_memory", false}}, kNotSupported, reserved},
      {"no managed memory", {{"managed_memory", "none"}}, kNotSupported, managed},
      {"a kernel that is none", none, kNotFound, find("nothing")},
      {"one that PTX has not", none, kNotFound, find("launchgap_dependent")},
      {"no cooperation", {{"cooperative", false}}, kInvalidValue, with(kLaunchCooperative)},
      {"an unknown attribute", none, kInvalidValue, with(99)},
      {"a dependent launch below 9.0", none, kNotSupported, with(kLaunchProgrammatic)},
      {"no graphs", {{"graph", nullptr}}, kNotSupported, begin(false)},
      {"two begins", none, kIllegalState, begin(true)},
      {"a start in the null stream", none, kCaptureUnsupported, begin_in_null_stream},
      {"an end without a join", none, kUnjoined, unjoined},
  };
  on_each(answers, &Answer::keys, [&](const Answer& answer) {
    EXPECT_EQ(answer.call(*this), answer.expected) << answer.what;
  });
}

TEST_F(FakeDriver, CopiesGoWrongAsDescribed) {
  struct Kind {
    const char* copies;
    std::vector<unsigned> after_one, after_two;  // of what was 7, from 1 and 2 and then 3 and 4
  };
  const Kind kinds[] = {{"right", {1, 2}, {3, 4}},
                        {"nothing", {7, 7}, {7, 7}},
                        {"half", {1, 7}, {3, 7}},
                        {"first only", {1, 2}, {1, 2}}};
  const auto keys = [](const Kind& kind) { return Json{{"copies", kind.copies}}; };
  on_each(kinds, keys, [&](const Kind& kind) {
    void* pinned = nullptr;
    ASSERT_EQ(cu.cuMemHostAlloc(&pinned, 8, 0), kSuccess);
    unsigned pageable[2];
    const auto on = stream();
    const auto device = memory(8), other = memory(8);
    const auto to_device = [&](const void* from) {
      return cu.cuMemcpyHtoDAsync_v2(device, from, 8, on);
    };
    const auto to_host = [&](void* to) { return cu.cuMemcpyDtoHAsync_v2(to, other, 8, on); };
    struct Way {
      const char* name;
      void* host;  // null: within the device
      bool to_device;
    };
    for (const Way& way : {Way{"within", nullptr, true},
                           Way{"from pinned", pinned, true},
                           Way{"from pageable", pageable, true},
                           Way{"to pinned", pinned, false},
                           Way{"to pageable", pageable, false}}) {
      SCOPED_TRACE(std::string(kind.copies) + ", " + way.name);
      auto* const host = static_cast<unsigned*>(way.host);
      const std::vector<unsigned> before = {7, 7};
      if (way.to_device) {
        ASSERT_EQ(cu.cuMemcpyHtoD_v2(device, before.data(), 8), kSuccess);
      } else {
        std::copy(before.begin(), before.end(), host);
      }
      for (const std::vector<unsigned>& values :
           {std::vector<unsigned>{1, 2}, std::vector<unsigned>{3, 4}}) {
        std::vector<unsigned> found(2);
        if (way.to_device && host) std::copy(values.begin(), values.end(), host);
        ASSERT_EQ(cu.cuMemcpyHtoD_v2(other, values.data(), 8), kSuccess);
        EXPECT_EQ(host == nullptr ? cu.cuMemcpyDtoDAsync_v2(device, other, 8, on)
                  : way.to_device ? to_device(host)
                                  : to_host(host),
                  kSuccess);
        EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
        if (way.to_device) {
          EXPECT_EQ(cu.cuMemcpyDtoH_v2(found.data(), device, 8), kSuccess);
        } else {
          std::copy(host, host + 2, found.begin());
        }
        EXPECT_EQ(found, values[0] == 1 ? kind.after_one : kind.after_two);
      }
      if (std::string_view(kind.copies) == "first only") break;  // to the same place
    }
  });
}

TEST_F(FakeDriver, CopiesOfPageableMemoryWaitAndOthersDoNot) {
  start(a_node(a_device({{"pageable_gbs", 1}})));
  constexpr std::size_t kBytes = 4'000'000;  // 4 ms
  std::vector<char> pageable(kBytes);
  void* pinned = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&pinned, kBytes, 0), kSuccess);
  const auto on = stream();
  const auto device = memory(kBytes);
  for (const bool to_device : {true, false}) {
    SCOPED_TRACE(to_device);
    // The copy's own result, after a kernel of 20 ms; how long after that kernel's launch the call
    // returned; and what a query of the stream then says.
    struct Copied {
      double after_ns;
      int query;
    };
    const auto copy = [&](void* host) {
      const double launched = now_ns();
      EXPECT_EQ(launch(spin, on, 20'000'000ull, DevicePointer{0}), kSuccess);
      EXPECT_EQ(to_device ? cu.cuMemcpyHtoDAsync_v2(device, host, kBytes, on)
                          : cu.cuMemcpyDtoHAsync_v2(host, device, kBytes, on),
                kSuccess);
      const int query = cu.cuStreamQuery(on);
      const Copied copied = {now_ns() - launched, query};
      EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
      return copied;
    };
    EXPECT_GE(copy(pageable.data()).after_ns, 24e6) << "what is ahead of it, and the copy";
    // A thread that was not run for 24 ms in between finds the copy done, and proves nothing.
    Copied copied = copy(pinned);
    for (int again = 0; again < 20 && copied.after_ns >= 24e6; ++again) copied = copy(pinned);
    EXPECT_LT(copied.after_ns, 24e6);
    EXPECT_EQ(copied.query, kNotReady);
  }
}

TEST_F(FakeDriver, RefusesCopiesOfMemoryThatIsNone) {
  start(a_node());
  const auto on = stream();
  const auto device = memory(16), other = memory(16);
  char host[16] = {};
  EXPECT_EQ(cu.cuMemcpyDtoDAsync_v2(device, other, 4096, on), kInvalidValue) << "beyond its end";
  EXPECT_EQ(cu.cuMemcpyDtoDAsync_v2(device, 0, 16, on), kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyHtoDAsync_v2(device, nullptr, 16, on), kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyHtoDAsync_v2(0, host, 16, on), kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyDtoHAsync_v2(nullptr, device, 16, on), kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(other), device, 16, on), kInvalidValue)
      << "a device's address in place of the host's";
  EXPECT_EQ(cu.cuMemcpyDtoDAsync_v2(device, other, 16, reinterpret_cast<Stream>(host)),
            kInvalidHandle);
  EXPECT_EQ(cu.cuMemcpyDtoDAsync_v2(0, 0, 0, on), kSuccess) << "nothing to copy";
  EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
}

TEST_F(FakeDriver, MapsMemoryByTheRulesOfTheRealOne) {
  start(a_node(a_device({{"memory_bytes", 64 << 20}})));
  std::size_t granularity = 0;
  ASSERT_EQ(cu.cuMemGetAllocationGranularity(&granularity, &properties, kLeastGranularity),
            kSuccess);
  ASSERT_EQ(granularity, kPage);
  const auto free_bytes = [&] {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cu.cuMemGetInfo_v2(&free, &total), kSuccess);
    return free;
  };
  const std::size_t all = free_bytes();
  DevicePointer range = 0;
  EXPECT_EQ(cu.cuMemAddressReserve(&range, kPage + 1, 0, 0, 0), kInvalidValue);
  ASSERT_EQ(cu.cuMemAddressReserve(&range, 4 * kPage, 0, 0, 0), kSuccess);
  PhysicalMemory memory = 0, more = 0;
  EXPECT_EQ(cu.cuMemCreate(&memory, kPage - 1, &properties, 0), kInvalidValue);
  EXPECT_EQ(cu.cuMemCreate(&memory, 64 * kPage, &properties, 0), kOutOfMemory);
  ASSERT_EQ(cu.cuMemCreate(&memory, kPage, &properties, 0), kSuccess);
  EXPECT_EQ(cu.cuMemMap(range + 1, kPage, 0, memory, 0), kInvalidValue) << "not aligned";
  EXPECT_EQ(cu.cuMemMap(range, 2 * kPage, 0, memory, 0), kInvalidValue) << "more than there is";
  EXPECT_EQ(cu.cuMemMap(range + 4 * kPage, kPage, 0, memory, 0), kInvalidValue) << "not reserved";
  ASSERT_EQ(cu.cuMemMap(range, kPage, 0, memory, 0), kSuccess);
  EXPECT_EQ(cu.cuMemMap(range, kPage, 0, memory, 0), kInvalidValue) << "over what is mapped";
  unsigned word = 0;
  EXPECT_EQ(cu.cuMemcpyDtoH_v2(&word, range, 4), kInvalidValue) << "before cuMemSetAccess";
  EXPECT_EQ(cu.cuMemSetAccess(range, 2 * kPage, &access, 1), kInvalidValue) << "mapped in part";
  ASSERT_EQ(cu.cuMemSetAccess(range, kPage, &access, 1), kSuccess);
  EXPECT_EQ(cu.cuMemcpyDtoH_v2(&word, range, 4), kSuccess);
  EXPECT_EQ(cu.cuMemcpyDtoH_v2(&word, range + kPage - 2, 4), kInvalidValue) << "beyond the mapping";
  EXPECT_EQ(cu.cuMemFree_v2(range), kInvalidValue) << "is no block of cuMemAlloc";
  EXPECT_EQ(cu.cuMemAddressFree(range, 4 * kPage), kInvalidValue) << "is mapped";

  EXPECT_EQ(cu.cuMemRelease(memory), kSuccess);
  EXPECT_EQ(cu.cuMemRelease(memory), kInvalidValue) << "twice";
  EXPECT_EQ(free_bytes(), all - kPage) << "memory lives as long as it is mapped";
  EXPECT_EQ(cu.cuMemUnmap(range, kPage / 2), kInvalidValue) << "a part";
  EXPECT_EQ(cu.cuMemUnmap(range, kPage), kSuccess);
  EXPECT_EQ(free_bytes(), all);
  EXPECT_EQ(cu.cuMemUnmap(range, kPage), kSuccess) << "twice";
  ASSERT_EQ(cu.cuMemCreate(&more, kPage, &properties, 0), kSuccess);
  ASSERT_EQ(cu.cuMemMap(range, kPage, 0, more, 0), kSuccess);
  EXPECT_EQ(cu.cuMemUnmap(range, kPage), kSuccess);
  EXPECT_EQ(free_bytes(), all - kPage) << "and as long as it is not released";
  EXPECT_EQ(cu.cuMemRelease(more), kSuccess);
  EXPECT_EQ(free_bytes(), all);
  EXPECT_EQ(cu.cuMemAddressFree(range, kPage), kInvalidValue) << "a part";
  EXPECT_EQ(cu.cuMemAddressFree(range, 4 * kPage), kSuccess);
  EXPECT_EQ(cu.cuMemUnmap(range, kPage), kInvalidValue) << "not reserved";
}

TEST_F(FakeDriver, AKernelWhoseMemoryIsUnmappedFails) {
  start();
  DevicePointer range = 0;
  PhysicalMemory memory = 0;
  ASSERT_EQ(cu.cuMemAddressReserve(&range, kPage, 0, 0, 0), kSuccess);
  ASSERT_EQ(cu.cuMemCreate(&memory, kPage, &properties, 0), kSuccess);
  ASSERT_EQ(cu.cuMemMap(range, kPage, 0, memory, 0), kSuccess);
  ASSERT_EQ(cu.cuMemSetAccess(range, kPage, &access, 1), kSuccess);
  ASSERT_EQ(launch(spin, nullptr, 100'000'000ull, range), kSuccess);
  EXPECT_EQ(cu.cuMemUnmap(range, kPage), kSuccess) << "it does not wait";
  EXPECT_EQ(cu.cuCtxSynchronize(), kIllegalAddress);
}

TEST_F(FakeDriver, WhatCudaForbidsMakesACaptureInvalid) {
  start();
  const auto on = stream(), other = stream(), blocking = stream(kStreamDefault);
  const auto pointer = memory(4);
  unsigned word = 0;
  auto* const pinned = mapped();
  const auto flags = reinterpret_cast<DevicePointer>(pinned);
  const auto passed = event();
  ASSERT_EQ(cu.cuEventRecord(passed, other), kSuccess);
  const auto executable = instantiated(captured(on, [] {}));
  DevicePointer fresh = 0;
  struct Case {
    const char* what;
    std::function<Result()> call;
    Result expected = kCaptureUnsupported;
    Stream captured = nullptr;  // another than `on`
  };
  const Case cases[] = {
      {"context", [&] { return cu.cuCtxSynchronize(); }},
      {"stream", [&] { return cu.cuStreamSynchronize(on); }},
      {"another stream", [&] { return cu.cuStreamSynchronize(other); }},
      {"event of another stream", [&] { return cu.cuEventSynchronize(passed); }},
      {"query", [&] { return cu.cuStreamQuery(on); }},
      {"destroy", [&] { return cu.cuStreamDestroy_v2(on); }},
      {"alloc", [&] { return cu.cuMemAlloc_v2(&fresh, 4); }},
      {"free", [&] { return cu.cuMemFree_v2(pointer); }},
      {"host free", [&] { return cu.cuMemFreeHost(pinned); }},
      {"to the device", [&] { return cu.cuMemcpyHtoD_v2(pointer, &word, 4); }},
      {"from the device", [&] { return cu.cuMemcpyDtoH_v2(&word, pointer, 4); }},
      {"pool", [&] { return cu.cuMemAllocAsync(&fresh, 4, on); }},
      {"upload", [&] { return cu.cuGraphUpload(executable, on); }},
      {"graph", [&] { return cu.cuGraphLaunch(executable, on); }},
      {"gate", [&] { return launch(gate, on, flags, flags + 4, 1ull); }},
      {"flag", [&] { return launch(function("launchgap_flag"), on, flags, 1u); }},
      {"event of work that runs", [&] { return cu.cuStreamWaitEvent(on, passed, 0); }, kIsolation},
      {"null stream", [&] { return launch(null, nullptr); }, kImplicit, blocking},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(row.what);
    const Stream captured = row.captured != nullptr ? row.captured : on;
    Graph graph = nullptr;
    EXPECT_EQ(begin_capture(captured), kSuccess);
    EXPECT_EQ(row.call(), row.expected);
    EXPECT_EQ(launch(null, captured), kCaptureInvalidated);
    EXPECT_EQ(cu.cuStreamEndCapture(captured, &graph), kCaptureInvalidated);
    EXPECT_EQ(launch(null, captured), kSuccess) << "it is over";
    EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  }
}

TEST_F(FakeDriver, ImagesAreToldApart) {
  Json node = a_node(a_device({{"compute_capability", "7.0"}}));
  node["driver_version"] = 12040;
  start(node);
  const std::pair<const char*, Result> images[] = {
      {nullptr, kInvalidImage},
      {"", kInvalidImage},
      {"hello", kInvalidImage},
      {"\x50\xED\x55\xBA....", kNoBinaryForGpu},
      {kPtx, kSuccess},
      {".version 8.4\n.target sm_70\n", kSuccess},
      {".version 8.5\n.target sm_70\n", kUnsupportedPtxVersion},
      {".version 8.0\n.target sm_80\n", kNoBinaryForGpu},
      {".target sm_35\n", kInvalidPtx},
  };
  for (const auto& [image, expected] : images) {
    Module loaded = nullptr;
    EXPECT_EQ(cu.cuModuleLoadDataEx(&loaded, image, 0, nullptr, nullptr), expected)
        << (image ? image : "null");
  }
  int value = 0;
  EXPECT_EQ(cu.cuFuncGetAttribute(&value, kPtxVersion, null), kSuccess);
  EXPECT_EQ(value, 35);
  EXPECT_EQ(cu.cuFuncGetAttribute(&value, kBinaryVersion, null), kSuccess);
  EXPECT_EQ(value, 70);
}

/// So a harness that forgets to wait reads what was there before.
TEST_F(FakeDriver, ACopyWaitsForBlockingStreamsAlone) {
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto count = new_counter();
  ASSERT_EQ(launch(increment, stream(0), count), kSuccess);
  EXPECT_EQ(counter(count), 1u);
  const auto on = stream();
  ASSERT_EQ(launch(increment, on, count), kSuccess);
  EXPECT_EQ(counter(count), 1u);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(counter(count), 2u);
}

// What is seen at the next wait: each kills its context

TEST_F(FakeDriver, AccessesOutsideOfMemoryAreIllegal) {
  using T = FakeDriver;
  const auto increment_at = [](const std::function<DevicePointer(T&, Stream)>& address) {
    return [=](T& t, Stream on) { t.launch(t.increment, on, address(t, on)); };
  };
  const auto nowhere = [](T&, Stream) { return DevicePointer{4096}; };
  const auto beyond = [](T& t, Stream) { return t.memory(4096) + 4096; };
  const auto given_back = [](T& t, Stream on) {
    DevicePointer pointer = 0;
    EXPECT_EQ(t.cu.cuMemAllocAsync(&pointer, 4096, on), kSuccess);
    EXPECT_EQ(t.cu.cuMemFreeAsync(pointer, on), kSuccess);
    return pointer;
  };
  const auto flag = [](T& t, Stream on) {
    const auto unmapped = reinterpret_cast<DevicePointer>(t.mapped(0));
    t.launch(t.function("launchgap_flag"), on, unmapped, 1u);
  };
  const auto in_a_graph = [](T& t, Stream on) {
    const auto work = [&] { t.launch(t.increment, on, DevicePointer{4096}); };
    EXPECT_EQ(t.cu.cuGraphLaunch(t.instantiated(t.captured(on, work)), on), kSuccess);
  };
  struct Access {
    const char* what;
    std::function<void(T&, Stream)> make;
  };
  const Access accesses[] = {
      {"a wild pointer", increment_at(nowhere)},
      {"beyond the end", increment_at(beyond)},
      {"what was given back", increment_at(given_back)},
      {"a flag in memory that is not mapped", flag},
      {"in a graph", in_a_graph},
  };
  const auto no_keys = [](const Access&) { return Json::object(); };
  on_each(accesses, no_keys, [&](const Access& access) {
    SCOPED_TRACE(access.what);
    const auto on = stream();
    access.make(*this, on);
    EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
    EXPECT_EQ(launch(null, on), kIllegalAddress);
  });
}

// Faults

TEST_F(FakeDriver, StickyCodesKillTheContext) {
  start(a_node(a_device(), Json::array({fault("cuda", "cuLaunchKernel", 2, kIllegalAddress)})));
  const auto on = stream();
  EXPECT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(launch(null, on), kSuccess);
  EXPECT_EQ(launch(null, on), kIllegalAddress);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
  DevicePointer pointer = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 16), kIllegalAddress);
  int version = 0;
  EXPECT_EQ(cu.cuDriverGetVersion(&version), kSuccess);
  EXPECT_EQ(cu.cuInit(0), kSuccess);
  const char* name = nullptr;
  EXPECT_EQ(cu.cuGetErrorName(kIllegalAddress, &name), kSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(FakeDriver, OtherCodesFailTheirCallsOnly) {
  Json transient = fault("cuda", "cuMemAlloc_v2", 1, kOutOfMemory);
  transient["times"] = 2;
  start(
      a_node(a_device(),
             Json::array({transient, fault("cublas", "cublasSgemm_v2", 1, kCublasInternalError)})));
  DevicePointer pointer = 0;
  for (const Result code : {kSuccess, kOutOfMemory, kOutOfMemory, kSuccess})
    EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 16), code);
  for (const CublasStatus code : {kCublasSuccess, kCublasInternalError, kCublasInternalError})
    EXPECT_EQ(multiply(nullptr), code);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakeDriver, FaultsOfOtherDevicesDoNotAct) {
  Json node = a_node();
  node["devices"].push_back(a_device({{"uuid", "GPU-00000000-0000-0000-0000-000000000002"}}));
  node["faults"] = {{{"device", "GPU-00000000-0000-0000-0000-000000000002"},
                     {"library", "cuda"},
                     {"call", "cuCtxSynchronize"},
                     {"code", kUnknown}}};
  setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  start(node);
  EXPECT_EQ(cu.cuCtxSynchronize(), kUnknown);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 1), kSuccess);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakeDriver, AbortAbortsAndHangHangs) {
  const Json abort = {{"library", "cuda"}, {"call", "cuCtxSynchronize"}, {"abort", true}};
  const Json hang = {{"library", "cuda"}, {"call", "cuStreamSynchronize"}, {"hang", true}};
  start(a_node(a_device(), Json::array({abort, hang})));
  EXPECT_EXIT(cu.cuCtxSynchronize(), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT((alarm(1), cu.cuStreamSynchronize(nullptr)), testing::KilledBySignal(SIGALRM), "");
}

// cuBLAS

using FakeCublas = FakeCuda;

TEST_F(FakeCublas, TypesHaveTheirStatusOnEachGeneration) {
  constexpr auto kOk = kCublasSuccess, kNo = kCublasNotSupported, kOld = kCublasArchMismatch,
                 kBad = kCublasInvalidValue;
  struct Generation {
    const char* capability;
    CublasStatus fp32, fp16, bf16, mixed, narrow;
  };
  const Generation generations[] = {{"3.5", kOld, kOld, kOld, kOld, kOld},
                                    {"5.2", kOk, kOld, kOld, kNo, kBad},
                                    {"8.0", kOk, kOk, kOk, kNo, kBad}};
  const Json rates = {{"fp32", 1}, {"fp16", 1}, {"bf16", 1}};
  const auto keys = [&](const Generation& row) {
    return Json{{"compute_capability", row.capability}, {"tflops", rates}};
  };
  const Cublas blas;
  on_each(generations, keys, [&](const Generation& row) {
    SCOPED_TRACE(row.capability);
    CublasHandle handle = nullptr;
    ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
    auto* const matrix = reinterpret_cast<void*>(memory(4096));
    const auto gemm = [&](int in, int out, int lda = 8) {
      const float one = 1, zero = 0;
      // clang-format off
      return blas.cublasGemmEx(handle, 0, 0, 8, 8, 8, &one, matrix, in, lda, matrix, in, 8, &zero,
                               matrix, out, 8, kCompute32F, kGemmDefault);
      // clang-format on
    };
    EXPECT_EQ(gemm(kCudaR32F, kCudaR32F), row.fp32);
    EXPECT_EQ(gemm(kCudaR16F, kCudaR16F), row.fp16);
    EXPECT_EQ(gemm(kCudaR16BF, kCudaR16BF), row.bf16);
    EXPECT_EQ(gemm(kCudaR32F, kCudaR16F), row.mixed);
    EXPECT_EQ(gemm(kCudaR32F, kCudaR32F, 7), row.narrow);
    EXPECT_EQ(multiply(nullptr), kCublasSuccess) << "SGEMM is of every generation";
    EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
  });
}

TEST_F(FakeDriver, MapsOfMatricesAreRefusedAsByTheRealOne) {
  start(a_node(a_device({{"compute_capability", "9.0"}})));
  auto* const base = reinterpret_cast<void*>(memory(1 << 20));
  const auto asked = [&](auto change) {
    MatrixMap with{base};
    change(with);
    return encode(with);
  };
  EXPECT_EQ(asked([](MatrixMap&) {}), kSuccess);
  EXPECT_EQ(asked([](MatrixMap& with) { with.sizes[0] = with.sizes[1] = 100; }), kSuccess);
  const std::function<void(MatrixMap&)> wrong[] = {
      [](MatrixMap& with) { with.address = static_cast<char*>(with.address) + 8; },
      [](MatrixMap& with) { with.stride = 520; },
      [](MatrixMap& with) { with.stride = 256; },
      [](MatrixMap& with) { with.sizes[1] = 0; },
      [](MatrixMap& with) { with.box[0] = 72; },
      [](MatrixMap& with) { with.box[1] = 257; },
      [](MatrixMap& with) { with.box[1] = 0; },
      [](MatrixMap& with) { with.steps[0] = 0; },
      [](MatrixMap& with) { with.steps[1] = 9; }};
  for (std::size_t i = 0; i < std::size(wrong); ++i) EXPECT_EQ(asked(wrong[i]), kInvalidValue) << i;
}

TEST_F(FakeDriver, AGpuBeforeHopperHasNoMapsOfMatrices) {
  start();
  EXPECT_EQ(encode({reinterpret_cast<void*>(memory(1 << 20))}), kNotSupported);
}

TEST_F(FakeDriver, MoreSharedMemoryThanUsualIsAskedForBefore) {
  start(a_node(a_device({{"compute_capability", "9.0"}})));
  const auto launched = [&](unsigned shared_bytes) {
    return cu.cuLaunchKernel(null, 1, 1, 1, 1, 1, 1, shared_bytes, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(launched(48 << 10), kSuccess);
  EXPECT_EQ(launched((48 << 10) + 1), kInvalidValue);
  EXPECT_EQ(cu.cuFuncSetAttribute(null, kMaxDynamicSharedBytes, 227 << 10), kSuccess);
  EXPECT_EQ(launched(227 << 10), kSuccess);
  EXPECT_EQ(cu.cuFuncSetAttribute(null, kMaxDynamicSharedBytes, (227 << 10) + 1), kInvalidValue);
  EXPECT_EQ(cu.cuFuncSetAttribute(null, kPtxVersion, 1), kInvalidValue);
}

}  // namespace
}  // namespace launchgap::fake
