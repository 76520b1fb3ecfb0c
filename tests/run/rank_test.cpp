#include "harness/run/rank.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "tests/device/a_device.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

using namespace testing;

/// Task 5 of `srun -N2 -n8 --gpus-per-task=1`, as Slurm 22.05 tells it.
Environment of_slurm() {
  return {{"SLURM_JOB_ID", "12"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_JOB_NODELIST", "n[1-2]"},
          {"SLURM_PROCID", "5"},
          {"SLURM_STEP_NUM_TASKS", "8"},
          {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
          {"SLURM_NODEID", "1"},
          {"SLURM_LOCALID", "1"},
          {"SLURMD_NODENAME", "n2"},
          {"SLURM_GPUS_ON_NODE", "4"},
          {"CUDA_VISIBLE_DEVICES", "1"}};
}

Environment of_open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
}

MachineDevices machine(int gpus) {
  MachineDevices machine{{a_device("host-1", "", "host")}, {}};
  for (int i = 0; i < gpus; ++i) {
    machine.devices.push_back(a_device("GPU-aaaa000" + std::to_string(i), ""));
    machine.devices.back().index = i;
  }
  return machine;
}

std::vector<std::string> own(const MachineDevices& machine,
                             const std::string& selection,
                             const Environment& environment) {
  std::vector<std::string> uuids;
  for (const DeviceFacts& device :
       select_own_devices(machine, selection, rank_of(environment), environment))
    uuids.push_back(device.uuid);
  return uuids;
}

TEST(Rank, OfSlurm) {
  const auto rank = rank_of(of_slurm());
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "Slurm");
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->ranks, 8);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->local_ranks, 4);
  EXPECT_EQ(rank->job, "12");
  EXPECT_EQ(rank->nodes, "n[1-2]");
  EXPECT_EQ(rank->array_task, std::nullopt);
}

TEST(Rank, OfATaskOfAnArrayTheJobIsTheArray) {
  Environment environment = of_slurm();
  environment["SLURM_ARRAY_JOB_ID"] = "11";
  environment["SLURM_ARRAY_TASK_ID"] = "1";
  environment["SLURM_RESTART_COUNT"] = "2";
  const auto rank = rank_of(environment);
  EXPECT_EQ(rank->job, "11");
  EXPECT_EQ(rank->array_task, 1);
  EXPECT_EQ(rank->restarts, 2);
}

TEST(Rank, TasksByNodeAreCountedAtTheNodesPlace) {
  Environment environment = of_slurm();
  for (const auto& [text, node, tasks] :
       std::vector<std::tuple<std::string, std::string, std::optional<int>>>{{"4(x2),3", "1", 4},
                                                                             {"4(x2),3", "2", 3},
                                                                             {"4(x2),3", "3", {}},
                                                                             {"1,2,3", "1", 2},
                                                                             {"", "0", {}},
                                                                             {"x", "0", {}},
                                                                             {"4(x", "1", {}},
                                                                             {"0", "0", {}}}) {
    environment["SLURM_STEP_TASKS_PER_NODE"] = text;
    environment["SLURM_NODEID"] = node;
    EXPECT_EQ(rank_of(environment)->local_ranks, tasks) << text << " " << node;
  }
}

TEST(Rank, WithinSlurmsJobMpirunsProcessesAreItsOwn) {
  Environment environment = of_slurm();
  environment.merge(of_open_mpi());
  const auto rank = rank_of(environment);
  EXPECT_EQ(rank->launcher, "Open MPI");
  EXPECT_EQ(rank->rank, 2);
  EXPECT_EQ(rank->job, "12");
}

TEST(Rank, WhatSrunTellsMpiIsSlurms) {
  Environment environment = of_slurm();  // srun --mpi=pmi2
  environment["PMI_RANK"] = "5";
  environment["PMI_SIZE"] = "8";
  const auto rank = rank_of(environment);
  EXPECT_EQ(rank->launcher, "Slurm");
  EXPECT_EQ(rank->local_ranks, 4);
}

TEST(Rank, OfMpichAndKubernetes) {
  const auto mpich = rank_of(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(mpich->launcher, "MPI");
  EXPECT_EQ(mpich->local_ranks, 2);
  const auto pod = rank_of({{"JOB_COMPLETION_INDEX", "7"}});
  EXPECT_EQ(pod->rank, 7);
  EXPECT_EQ(pod->ranks, std::nullopt);
}

TEST(Rank, ABatchScriptAndWhatIsNoNumberAreNone) {
  EXPECT_FALSE(rank_of({}));
  EXPECT_FALSE(rank_of({{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
  for (const char* text : {"", "-1", "x", "1x", "99999999999999999999"})
    EXPECT_FALSE(rank_of({{"PMI_RANK", text}, {"PMI_SIZE", "2"}})) << text;
  EXPECT_FALSE(rank_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}})) << "there is no third of two";
}

TEST(Rank, NodesAreCalledAsTheSchedulerCallsThem) {
  EXPECT_EQ(node_name(of_slurm()), "n2");
  EXPECT_FALSE(node_name({}).empty());
  EXPECT_EQ(node_name({{"SLURMD_NODENAME", ""}}), node_name({}));
}

TEST(OwnDevices, OfATaskWithOneGpuAreThatOne) {
  EXPECT_THAT(own(machine(1), "all", of_slurm()), ElementsAre("GPU-aaaa0000"))
      << "the CPU is shared by all tasks of the node";
  EXPECT_THAT(own(machine(1), "gpu", of_slurm()), ElementsAre("GPU-aaaa0000"));
  EXPECT_THAT(own(machine(1), "host,gpu", of_slurm()), ElementsAre("host-1", "GPU-aaaa0000"));
  EXPECT_THAT(own(machine(1), "host", of_slurm()), ElementsAre("host-1"));
}

TEST(OwnDevices, SeveralTasksThatSeeTheSameGpusAreRefused) {
  for (const Environment& environment : {of_slurm(), of_open_mpi()}) {
    const std::string error = error_of([&] { own(machine(4), "all", environment); });
    EXPECT_THAT(error, AllOf(HasSubstr("same 4 GPUs"), HasSubstr("--devices rank")));
    EXPECT_THROW(own(machine(4), "gpu", environment), UsageError);
    EXPECT_THROW(own(machine(4), "host,gpu", environment), UsageError);
  }
  EXPECT_THAT(error_of([] { own(machine(4), "gpu", of_slurm()); }), HasSubstr("--gpus-per-task=1"));
  EXPECT_THAT(own(machine(4), "2", of_slurm()), ElementsAre("GPU-aaaa0002"))
      << "who names a GPU has it, and its lock keeps others away";
}

TEST(OwnDevices, SeveralTasksThatSeeOneGpuAreRefusedWhereSlurmTellsIt) {
  Environment environment = of_slurm();  // srun -n4 --gres=gpu:1
  environment["SLURM_GPUS_ON_NODE"] = "1";
  EXPECT_THAT(error_of([&] { own(machine(1), "gpu", environment); }),
              HasSubstr("each sees the same 1 GPU,"));
  environment.erase("SLURM_GPUS_ON_NODE");
  EXPECT_THAT(own(machine(1), "gpu", environment), SizeIs(1)) << "its lock decides";
}

TEST(OwnDevices, TasksWithSeveralGpusOfTheirOwnHaveThem) {
  Environment environment = of_slurm();  // srun -n4 --gpus-per-task=2
  environment["SLURM_GPUS_ON_NODE"] = "8";
  EXPECT_THAT(own(machine(2), "gpu", environment), SizeIs(2));
  EXPECT_THROW(own(machine(8), "gpu", environment), UsageError);
  environment.erase("SLURM_GPUS_ON_NODE");
  for (const char* per_task : {"2", "h100:2", "gres/gpu:2"}) {
    environment["SLURM_GPUS_PER_TASK"] = per_task;
    EXPECT_THAT(own(machine(2), "gpu", environment), SizeIs(2)) << per_task;
    EXPECT_THROW(own(machine(4), "gpu", environment), UsageError) << per_task;
  }
}

TEST(OwnDevices, RankIsTheGpuAtItsPlace) {
  EXPECT_THAT(own(machine(4), "rank", of_slurm()), ElementsAre("GPU-aaaa0001"));
  EXPECT_THAT(own(machine(2), "rank", of_open_mpi()), ElementsAre("GPU-aaaa0000"));
  EXPECT_THROW(own(machine(1), "rank", of_slurm()), NoGpuError) << "there is no second";
  EXPECT_THROW(own(machine(4), "rank", {}), UsageError);
}

TEST(OwnDevices, AJobWhoseGpusAreNotShownMeasuresNeitherAllNorNothing) {
  Environment environment = of_slurm();  // a type, --gpu-bind=none, or plain files in gres.conf
  for (const char* given : {"is empty", "is not set"}) {
    environment.erase("CUDA_VISIBLE_DEVICES");
    if (given == std::string("is empty")) environment["CUDA_VISIBLE_DEVICES"] = "";
    for (const char* selection : {"all", "gpu", "rank", "host,gpu"}) {
      for (const int gpus : {0, 4}) {
        EXPECT_THAT(error_of([&] { own(machine(gpus), selection, environment); }),
                    AllOf(HasSubstr(given), HasSubstr("gres.conf")))
            << selection;
        EXPECT_THROW(own(machine(gpus), selection, environment), NoGpuError);
      }
    }
  }
  EXPECT_THAT(own(machine(2), "host", environment), ElementsAre("host-1"));
  EXPECT_THAT(own(machine(2), "0", environment), ElementsAre("GPU-aaaa0000"));
}

TEST(OwnDevices, AJobThatAskedForNoGpuDoesNotTakeThoseThatItFinds) {
  Environment environment = of_slurm();
  environment.erase("CUDA_VISIBLE_DEVICES");
  environment.erase("SLURM_GPUS_ON_NODE");
  environment["SLURM_JOB_GPUS"] = "0,1";  // inherited by a step that has none
  EXPECT_THAT(error_of([&] { own(machine(4), "all", environment); }), HasSubstr("has no GPU"));
  EXPECT_THROW(own(machine(0), "gpu", environment), NoGpuError);
}

TEST(OwnDevices, AJobOfAPartitionWithoutGpusMeasuresTheCpu) {
  Environment environment = of_slurm();
  environment.erase("CUDA_VISIBLE_DEVICES");
  environment.erase("SLURM_GPUS_ON_NODE");
  environment["SLURM_STEP_TASKS_PER_NODE"] = "1(x8)";
  EXPECT_THAT(own(machine(0), "all", environment), ElementsAre("host-1"));
  environment["SLURM_STEP_TASKS_PER_NODE"] = "4(x2)";
  EXPECT_THAT(error_of([&] { own(machine(0), "all", environment); }), HasSubstr("the same CPU"));
}

TEST(OwnDevices, WithoutASchedulerAreThoseThatAreAskedFor) {
  EXPECT_THAT(own(machine(2), "all", {}), SizeIs(3));
  EXPECT_THAT(own(machine(2), "gpu", {}), SizeIs(2));
}

TEST(OwnFolder, IsNamedByNodeAndDeviceAndTakenByNobodyElse) {
  const TemporaryFolder folder;
  const auto rank = rank_of(of_slurm());
  const std::vector<DeviceFacts> one = {a_device("GPU-aaaa0000", "")};
  const auto name = [&](const auto& path) { return path.lexically_relative(folder.path()); };
  EXPECT_EQ(name(own_folder(folder.path(), rank, "n2", one)), "n2.GPU-aaaa0000");
  EXPECT_EQ(name(own_folder(folder.path(), rank, "n2", one)), "n2.GPU-aaaa0000.2");
  EXPECT_EQ(name(own_folder(folder.path(), rank, "../n2", one)), "_._n2.GPU-aaaa0000");
  EXPECT_EQ(name(own_folder(folder.path(), rank, "n2", machine(2).devices)), "n2.rank5");
  EXPECT_EQ(own_folder(folder.path() / "x", {}, "n2", one), folder.path() / "x")
      << "of a process alone it is the folder that was named";
}

}  // namespace
}  // namespace launchgap
