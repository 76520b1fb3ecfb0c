// The rules on facts that no machine of the tests can be made to have.
#include "harness/doctor/rules/rules.h"

#include <cerrno>
#include <functional>

#include <gmock/gmock.h>

#include "harness/doctor/rules/diagnose.h"
#include "tests/sentences/said.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

/// A machine whose one A100 works.
struct Healthy {
  MachineFacts facts;
  cuda::NvmlGpu nvml;
  DeviceNode node{"/dev/nvidia0", true, "crw-rw-rw- 0:0", 0};

  Healthy() {
    facts.machine.nvidia_module = facts.machine.uvm_module = true;
    facts.machine.module_version = Version::parse("580.65.06");
    for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"})
      facts.machine.nodes.push_back({path, true, "crw-rw-rw- 0:0", 0});
    facts.driver.asked = true;
    facts.driver.path = "/usr/lib/libcuda.so.580.65.06";
    facts.driver.version = Version::parse("580.65.06");
    facts.driver.cuda_version = 13000;
    facts.driver.init = CallResult{0, ""};
    facts.driver.devices.emplace_back().name = "NVIDIA A100";
    JoinedGpu& gpu = facts.gpus.emplace_back();
    gpu.pci = "0000:07:00.0";
    gpu.name = "NVIDIA A100";
    gpu.capability = 80;
    gpu.node = &node;
    gpu.in_nvml = &nvml;
    gpu.in_driver = &facts.driver.devices.front();
  }
  Healthy(const Healthy&) = delete;

  JoinedGpu& gpu() { return facts.gpus.front(); }
  DeviceNode& node_at(std::size_t i) { return facts.machine.nodes.at(i); }
  void driver_answers(int code) {
    facts.driver.init = CallResult{code, ""};
    facts.driver.devices.clear();
    gpu().in_driver = nullptr;
  }
  void proof(ProofStep step) {
    gpu().proof.emplace().steps = {{"context", "ok", "", "", "", "", {}, 0}, std::move(step)};
  }
  LibraryFacts& add_library(const char* kind, const char* soname, const char* version) {
    LibraryFacts& library = facts.libraries.emplace_back();
    library.kind = kind;
    library.soname = soname;
    library.path = std::string("/usr/lib/") + soname;
    library.version = version;
    return library;
  }
};

ProofStep step(const char* name, const char* status, const char* detail) {
  return {name, status, detail, "", "", "", {}, 0};
}

void expect_cause(const MachineFacts& facts, const char* code, const char* says) {
  EXPECT_THAT(
      said(diagnose(facts)),
      Contains(AllOf(Field(&Finding::code, code), Field(&Finding::sentence, HasSubstr(says)))))
      << code;
}

TEST(Rules, NameTheCause) {
  const struct {
    const char *code, *says;
    std::function<void(Healthy&)> breaks;
  } sicknesses[] = {
      {"driver-hangs",
       "The CUDA driver",
       [](Healthy& m) {
         m.driver_answers(0);
         m.facts.driver.init.reset();
         m.facts.driver.hung = true;
         m.facts.driver.died = "it did not answer within 30 s";
       }},
      {"driver-lists-no-gpu",
       "lists no GPU",
       [](Healthy& m) {
         m.driver_answers(0);
         m.facts.gpus.clear();
         m.facts.nvml.gpus.emplace_back();  // without its PCI address
       }},
      {"driver-error",
       "cannot list its GPUs",
       [](Healthy& m) {
         m.driver_answers(0);
         m.facts.driver.devices_error = "cuDeviceGetCount answers 999";
       }},
      {"uvm-unavailable",
       "/dev/nvidia-uvm cannot be used",
       [](Healthy& m) {
         m.driver_answers(999);
         m.node_at(1).open_error = EACCES;
       }},
      {"device-node-denied",
       "This user may not open",
       [](Healthy& m) {
         m.driver_answers(999);
         m.node_at(0).open_error = EACCES;
       }},
      {"container-lost-devices",
       "its device rules were reset",
       [](Healthy& m) {
         m.driver_answers(999);
         m.facts.machine.container = "docker";
         m.node_at(0).open_error = EPERM;
       }},
      {"device-node-denied",
       "/dev/nvidia0 cannot be opened",
       [](Healthy& m) {
         m.gpu().in_driver = nullptr;
         m.node.open_error = EACCES;
       }},
      {"proof-hangs",
       "does not end",
       [](Healthy& m) {
         m.proof(step("kernel", "ok", ""));
         m.gpu().proof->hung = true;
         m.gpu().proof->died = "it did not answer within 60 s";
       }},
      {"driver-library-shadowed",
       "minor-version compatibility covers it",
       [](Healthy& m) {
         m.add_library("cudart", "libcudart.so.13", "13.2").call = CallResult{35, ""};
         m.facts.driver.others = {"/opt/libcuda.so.1"};
       }},
      {"cudnn-has-no-code-for-gpu",
       "a cuDNN without code",
       [](Healthy& m) { m.add_library("cudnn", "libcudnn.so.9", "9.1").machine_code = {"9.0"}; }},
      {"mps-active",
       "MPS shares the GPU",
       [](Healthy& m) {
         m.nvml.processes = {{7, {}, "nvidia-cuda-mps-server"}};
       }},
      {"mig-active",
       "is partitioned (MIG)",
       [](Healthy& m) {
         m.nvml.mig = true;
         m.nvml.mig_instances = 2;
       }},
      {"clocks-capped",
       "stay below their maximum under load",
       [](Healthy& m) {
         m.proof(step("kernel", "ok", ""));
         m.gpu().proof->clock_reasons = 0;
         m.gpu().proof->sm_clock_mhz = 1000;
         m.nvml.max_sm_clock_mhz = 1980;
       }},
      {"session-on-gpu",
       "A session of launchgap measures",
       [](Healthy& m) { m.gpu().locked = "process 7 measures on it"; }},
  };
  for (const auto& sickness : sicknesses) {
    Healthy machine;
    sickness.breaks(machine);
    expect_cause(machine.facts, sickness.code, sickness.says);
  }
}

TEST(Rules, NameTheCauseOfAProofThatFails) {
  const struct {
    const char *code, *says, *step, *status, *detail;
  } proofs[] = {
      {"cublas-missing",
       "launchgap measures no matrix products",
       "matmul",
       "unsupported",
       "cuBLAS could not be loaded"},
      {"cudnn-missing",
       "launchgap measures no convolutions",
       "convolution",
       "unsupported",
       "cuDNN could not be loaded"},
      {"cudnn-fails",
       "A convolution by cuDNN fails",
       "convolution",
       "failed",
       "CUDNN_STATUS_EXECUTION_FAILED"},
      {"driver-too-old",
       "too old for the loaded cuDNN",
       "convolution",
       "failed",
       "CUDNN_STATUS_INCOMPATIBLE_CUDA_DRIVER"},
      {"wrong-result",
       "computed a wrong result (kernel)",
       "kernel",
       "wrong",
       "element 7 is 8 and must be 9"},
      {"proof-fails", "cannot be used (kernel)", "kernel", "failed", "no device code"},
  };
  for (const auto& proof : proofs) {
    Healthy machine;
    machine.proof(step(proof.step, proof.status, proof.detail));
    expect_cause(machine.facts, proof.code, proof.says);
  }
}

TEST(RulesOf, OfEachCodeOfTheDriverHaveASentence) {
  Healthy machine;
  machine.facts.machine.environment["CUDA_VISIBLE_DEVICES"] = "7";
  for (const auto& [code, finding] :
       std::vector<std::pair<int, const char*>>{{35, "driver-too-old"},
                                                {101, "cuda-visible-devices-invalid"},
                                                {803, "driver-mismatch"},
                                                {999, "driver-unknown-error"},
                                                {1234, "driver-error"}}) {
    const Finding found =
        said({finding_of_code(machine.facts, nullptr, "cuInit", code, "")}).front();
    EXPECT_EQ(found.code, finding);
    EXPECT_TRUE(found.sentence.ends_with(".")) << found.sentence;
  }
}

TEST(RulesOf, FindNothingWhereNothingIsWrong) {
  const Healthy machine;
  EXPECT_THAT(diagnose(machine.facts), IsEmpty());
}

}  // namespace
}  // namespace launchgap::doctor
