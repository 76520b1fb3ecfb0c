// The fake libnccl sums as the real one does: whoever comes first waits, and one that does not come
// keeps all waiting.
#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

/// Two devices, each with a stream, a number to give and a place for the sum.
class FakeNccl : public FakeCuda {
 protected:
  struct Member {
    Context context = nullptr;
    Stream stream = nullptr;
    DevicePointer given = 0, sum = 0;
    Event begin = nullptr, end = nullptr;
    Function spin = nullptr;
    NcclCommunicator communicator = nullptr;
  };

  void start_members(const Json& faults = Json::array()) {
    start_devices({Json::object(), Json::object()},
                  {{"faults", faults}, {"nccl", {{"all_reduce_ns", 10'000}}}});
    for (int i = 0; i < 2; ++i) {
      use_device(i);
      members[i] = {context, stream(), memory(4), memory(4), event(), event(), spin, nullptr};
      const float number = 1.5F + static_cast<float>(i);
      ASSERT_EQ(cu.cuMemcpyHtoD_v2(members[i].given, &number, sizeof number), kSuccess);
    }
  }
  void start_communicators() {
    std::array<NcclCommunicator, 2> made{};
    ASSERT_EQ(nccl.ncclCommInitAll(made.data(), 2, nullptr), kNcclSuccess);
    for (int i = 0; i < 2; ++i) members[i].communicator = made[i];
  }

  void TearDown() override {
    for (const Member& member : members) nccl.ncclCommAbort(member.communicator);
    FakeCuda::TearDown();
  }

  /// Spins for so long, and gives its number between two events.
  NcclResult give(const Member& member, unsigned long long spin_ns) {
    EXPECT_EQ(cu.cuCtxSetCurrent(member.context), kSuccess);
    if (spin_ns > 0) {
      EXPECT_EQ(launch(member.spin, member.stream, spin_ns, DevicePointer{0}), kSuccess);
    }
    EXPECT_EQ(cu.cuEventRecord(member.begin, member.stream), kSuccess);
    return nccl.ncclAllReduce(reinterpret_cast<void*>(member.given),
                              reinterpret_cast<void*>(member.sum),
                              1,
                              kNcclFloat32,
                              kNcclSum,
                              member.communicator,
                              member.stream);
  }
  float sum_of(const Member& member) {
    EXPECT_EQ(cu.cuCtxSetCurrent(member.context), kSuccess);
    EXPECT_EQ(cu.cuStreamSynchronize(member.stream), kSuccess);
    float sum = 0;
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(&sum, member.sum, sizeof sum), kSuccess);
    return sum;
  }
  double waited_ns(const Member& member) {
    EXPECT_EQ(cu.cuCtxSetCurrent(member.context), kSuccess);
    return elapsed_ns(member.begin, member.end);
  }
  void record_end(const Member& member) {
    EXPECT_EQ(cu.cuCtxSetCurrent(member.context), kSuccess);
    EXPECT_EQ(cu.cuEventRecord(member.end, member.stream), kSuccess);
  }

  const Nccl nccl;
  std::array<Member, 2> members;
};

TEST_F(FakeNccl, SumsInAGroupAndTheQuickOneWaits) {
  start_members();
  start_communicators();
  ASSERT_EQ(nccl.ncclGroupStart(), kNcclSuccess);
  ASSERT_EQ(give(members[0], 0), kNcclSuccess);
  ASSERT_EQ(give(members[1], 5'000'000), kNcclSuccess);
  ASSERT_EQ(nccl.ncclGroupEnd(), kNcclSuccess);
  for (const Member& member : members) record_end(member);
  for (const Member& member : members) EXPECT_EQ(sum_of(member), 4);
  EXPECT_GT(waited_ns(members[0]), 4'500'000);
  EXPECT_LT(waited_ns(members[1]), 4'000'000);
  for (Member& member : members)
    EXPECT_EQ(nccl.ncclCommDestroy(std::exchange(member.communicator, nullptr)), kNcclSuccess);
}

TEST_F(FakeNccl, SumsAgainWhatIsThereThen) {
  start_members();
  start_communicators();
  for (const float number : {7.0F, 20.0F}) {
    ASSERT_EQ(cu.cuCtxSetCurrent(members[0].context), kSuccess);
    ASSERT_EQ(cu.cuMemcpyHtoD_v2(members[0].given, &number, sizeof number), kSuccess);
    ASSERT_EQ(nccl.ncclGroupStart(), kNcclSuccess);
    for (const Member& member : members) ASSERT_EQ(give(member, 0), kNcclSuccess);
    ASSERT_EQ(nccl.ncclGroupEnd(), kNcclSuccess);
    for (const Member& member : members) EXPECT_EQ(sum_of(member), number + 2.5F);
  }
}

TEST_F(FakeNccl, SumsFromAThreadEach) {
  start_members();
  start_communicators();
  std::vector<std::thread> threads;
  for (const Member& member : members) {
    threads.emplace_back([&, late = &member == &members[1]] {
      if (late) usleep(20'000);
      EXPECT_EQ(give(member, 0), kNcclSuccess);
      record_end(member);
      EXPECT_EQ(sum_of(member), 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(waited_ns(members[0]), 15'000'000);
}

TEST_F(FakeNccl, WaitsForOneThatDoesNotComeUntilItIsAborted) {
  start_members();
  start_communicators();
  ASSERT_EQ(give(members[0], 0), kNcclSuccess);
  record_end(members[0]);
  usleep(50'000);
  EXPECT_EQ(cu.cuStreamQuery(members[0].stream), kNotReady);
  std::thread([&] {
    usleep(20'000);
    const auto aborted = std::exchange(members[0].communicator, nullptr);
    EXPECT_EQ(nccl.ncclCommAbort(aborted), kNcclSuccess);
  }).join();
  EXPECT_EQ(cu.cuStreamSynchronize(members[0].stream), kSuccess);
  EXPECT_GT(waited_ns(members[0]), 60'000'000);
}

TEST_F(FakeNccl, RefusesADeviceTwiceAndOneThatIsNotUsed) {
  start_members();
  std::array<NcclCommunicator, 2> made{};
  const int twice[] = {1, 1}, missing[] = {0, 7};
  EXPECT_EQ(nccl.ncclCommInitAll(made.data(), 2, twice), kNcclInvalidUsage);
  EXPECT_EQ(nccl.ncclCommInitAll(made.data(), 2, missing), kNcclUnhandledCudaError);
  EXPECT_EQ(nccl.ncclCommInitAll(nullptr, 2, nullptr), kNcclInvalidArgument);
  EXPECT_EQ(nccl.ncclGroupEnd(), kNcclInvalidUsage);
}

TEST_F(FakeNccl, FailsWhereTheNodeSaysSo) {
  start_members(Json::array({fault("nccl", "ncclAllReduce", 0, 3)}));
  start_communicators();
  EXPECT_EQ(give(members[0], 0), 3);
  int version = 0;
  EXPECT_EQ(nccl.ncclGetVersion(&version), kNcclSuccess);
  EXPECT_EQ(version, 22809);
}

}  // namespace
}  // namespace launchgap::fake
