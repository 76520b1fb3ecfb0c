#include "harness/run/devices.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

using ::testing::ElementsAre;

DeviceFacts device(const char* backend, const char* uuid, int index, bool usable = true) {
  DeviceFacts facts = a_device(uuid, "", backend);
  facts.index = index;
  facts.usable = usable;
  facts.reason = usable ? "" : "broken";
  return facts;
}

std::vector<std::string> select(const MachineDevices& machine, const std::string& selection) {
  std::vector<std::string> uuids;
  for (const DeviceFacts& facts : select_devices(machine, selection)) uuids.push_back(facts.uuid);
  return uuids;
}

const MachineDevices kMachine{{device("host", "host-1", 0),
                               device("cuda", "GPU-aaaa0000", 0),
                               device("cuda", "GPU-bbbb1111", 1, false)},
                              {}};
const MachineDevices kNoGpu{{device("host", "host-1", 0)}, {"No GPU can be used: no driver"}};

TEST(SelectDevices, ByKindIndexAndUuid) {
  EXPECT_THAT(select(kMachine, "all"), ElementsAre("host-1", "GPU-aaaa0000", "GPU-bbbb1111"));
  EXPECT_THAT(select(kMachine, "gpu"), ElementsAre("GPU-aaaa0000", "GPU-bbbb1111"));
  EXPECT_THAT(select(kMachine, "host"), ElementsAre("host-1"));
  EXPECT_THAT(select(kMachine, "1"), ElementsAre("GPU-bbbb1111"));
  EXPECT_THAT(select(kMachine, "GPU-aaaa"), ElementsAre("GPU-aaaa0000"));
  EXPECT_THAT(select(kMachine, "host,0,GPU-aaaa0000"), ElementsAre("host-1", "GPU-aaaa0000"));
  EXPECT_THAT(select(kNoGpu, "all"), ElementsAre("host-1"));
}

TEST(SelectDevices, WhatNamesNothingIsAMistake) {
  for (const char* selection : {"", "2", "GPU", "gpus", "all,", "GPU-cccc0000", "-1", "0x1"}) {
    EXPECT_THROW(select(kMachine, selection), UsageError) << selection;
  }
}

TEST(SelectDevices, AGpuThatIsAskedForAndNotThereIsTold) {
  EXPECT_THROW(select(kNoGpu, "gpu"), NoGpuError);
  // It fails to be measured then, which is no want of a GPU.
  const MachineDevices broken{{device("cuda", "GPU-bbbb1111", 0, false)}, {}};
  EXPECT_THAT(select(broken, "gpu"), ElementsAre("GPU-bbbb1111"));
}

TEST(WorkerEnvironment, ShowsAWorkerItsOwnDeviceOnly) {
  EXPECT_EQ(worker_environment(kMachine.devices[1]).at("CUDA_VISIBLE_DEVICES"), "GPU-aaaa0000");
  EXPECT_EQ(worker_environment(kMachine.devices[0]).at("CUDA_VISIBLE_DEVICES"), "");
}

TEST(HostFacts, NameTheMachine) {
  const HostFacts facts = host_facts();
  for (const std::string& text : {facts.node, facts.os, facts.kernel, facts.cpu_model})
    EXPECT_FALSE(text.empty());
  EXPECT_GT(facts.cores, 0u);
  EXPECT_GT(facts.memory_bytes, 0u);
}

}  // namespace
}  // namespace launchgap
