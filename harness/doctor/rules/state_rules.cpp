// What lets GPUs that work be slow, uneven or full, and what is good to know before measuring.
#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/rules/rules.h"

namespace launchgap::doctor {
namespace {

std::optional<Finding> diagnose_memory(const JoinedGpu& gpu) {
  const cuda::NvmlGpu& nvml = *gpu.in_nvml;
  if (nvml.processes.empty()) return std::nullopt;
  std::vector<std::string> holders;
  for (const cuda::GpuProcess& process : nvml.processes) {
    holders.push_back(fmt::format(
        "process {}{}{}",
        process.pid,
        process.name.empty() ? "" : fmt::format(" ({})", process.name),
        process.memory_bytes ? " holds " + bytes_text(static_cast<double>(*process.memory_bytes))
                             : ""));
  }
  if (holders.empty()) return std::nullopt;
  if (nvml.memory_free_bytes && nvml.memory_total_bytes)
    holders.push_back(fmt::format("{} of {} are free",
                                  bytes_text(static_cast<double>(*nvml.memory_free_bytes)),
                                  bytes_text(static_cast<double>(*nvml.memory_total_bytes))));
  const bool server = std::ranges::any_of(nvml.processes, [](const cuda::GpuProcess& process) {
    return process.name.starts_with("nvidia-cuda-mps");
  });
  if (server) {
    return about(
        gpu.subject(),
        "mps-active",
        Severity::note,
        "MPS shares the GPU: other processes disturb what is measured, and tracing may not work.",
        holders,
        "`echo quit | nvidia-cuda-mps-control`, to measure without");
  }
  return about(gpu.subject(),
               "gpu-in-use",
               Severity::distorts,
               fmt::format("{} on the GPU: it disturbs what is measured.",
                           holders.size() > 2 ? "Other processes are" : "Another process is"),
               holders,
               "measure when the GPU is free, or on another one (`--devices`)");
}

std::optional<Finding> diagnose_health(const JoinedGpu& gpu) {
  const cuda::NvmlGpu& nvml = *gpu.in_nvml;
  if (nvml.remap_failed == true) {
    return about(gpu.subject(),
                 "memory-remap-failed",
                 Severity::distorts,
                 "A row of the GPU's memory is broken and could not be replaced by a spare one.",
                 {"NVML says that remapping a row has failed"},
                 "have the GPU replaced");
  }
  if (nvml.uncorrected_ecc_errors.value_or(0) > 0) {
    return about(
        gpu.subject(),
        "ecc-uncorrectable",
        Severity::distorts,
        "The GPU's memory had errors that ECC could not correct since the driver was loaded.",
        {fmt::format("uncorrected: {}", *nvml.uncorrected_ecc_errors)},
        "end its processes and reset it (`nvidia-smi -r`), which also remaps the row; if the count "
        "grows again, have it replaced");
  }
  if (nvml.remap_pending == true) {
    return about(gpu.subject(),
                 "memory-remap-pending",
                 Severity::note,
                 "The next reset will replace a broken row of the GPU's memory by a spare one.",
                 {"NVML says that a remapping is pending"},
                 "end its processes and reset it (`nvidia-smi -r`)");
  }
  return std::nullopt;
}

struct ClockReason {
  long long bit;
  const char* text;
};
/// nvmlClocksEventReasons. Idle, application clocks and the power cap are no illness.
constexpr ClockReason kReasons[] = {{0x8, "a slowdown by the hardware"},
                                    {0x20, "heat (software)"},
                                    {0x40, "heat (hardware)"},
                                    {0x80, "the power brake"}};
constexpr long long kApplicationClocks = 0x2;

std::vector<Finding> diagnose_clocks(const JoinedGpu& gpu) {
  const cuda::NvmlGpu& nvml = *gpu.in_nvml;
  std::vector<Finding> findings;
  const bool loaded = gpu.proof && gpu.proof->clock_reasons;
  const long long reasons =
      loaded ? static_cast<long long>(*gpu.proof->clock_reasons) : nvml.clock_reasons.value_or(0);
  // An idle GPU gives reasons that say nothing of one that works.
  constexpr long long kIdle = 0x1;
  if (!loaded && (reasons & kIdle)) return findings;
  std::vector<std::string> why;
  for (const ClockReason& reason : kReasons) {
    if (reasons & reason.bit) why.emplace_back(reason.text);
  }
  const std::string when = loaded ? "under load" : "now";
  if (!why.empty()) {
    findings.push_back(
        about(gpu.subject(),
              "clocks-held-down",
              Severity::distorts,
              fmt::format("The GPU's clocks are held down by {}.", fmt::join(why, " and ")),
              {fmt::format("reasons {}: {:#x}", when, reasons),
               nvml.sm_clock_mhz ? fmt::format("SM clock: {} MHz", *nvml.sm_clock_mhz) : ""},
              "look after cooling, the power supply and its cables"));
  }
  const double sm_clock = loaded ? gpu.proof->sm_clock_mhz.value_or(0) : 0;
  // With a reason, such as the power cap, it is as it should be to stay below the maximum.
  const bool low = reasons == 0 && nvml.max_sm_clock_mhz && sm_clock > 0 &&
                   sm_clock < 0.9 * *nvml.max_sm_clock_mhz;
  if (why.empty() && ((reasons & kApplicationClocks) || low)) {
    findings.push_back(about(
        gpu.subject(),
        "clocks-capped",
        Severity::note,
        reasons & kApplicationClocks
            ? "The GPU's clocks are capped by its application clocks."
            : "The GPU's clocks stay below their maximum under load, as when they are locked.",
        {fmt::format("reasons {}: {:#x}", when, reasons),
         fmt::format("SM clock {}: {:.0f} MHz of at most {}",
                     when,
                     loaded ? sm_clock : nvml.sm_clock_mhz.value_or(0),
                     nvml.max_sm_clock_mhz.value_or(0))},
        "nothing, if that is meant to make measurements steadier; otherwise as root `nvidia-smi "
        "-rac` and `nvidia-smi -rgc`"));
  }
  if (nvml.power_limit_w && nvml.default_power_limit_w &&
      *nvml.power_limit_w < 0.98 * *nvml.default_power_limit_w) {
    findings.push_back(about(
        gpu.subject(),
        "power-limit-lowered",
        Severity::note,
        "The GPU's power limit is below its default: it is not as fast as its kind.",
        {fmt::format(
            "{:.0f} W, by default {:.0f} W", *nvml.power_limit_w, *nvml.default_power_limit_w)},
        fmt::format("nothing, if that is meant; otherwise as root `nvidia-smi -pl {:.0f}`",
                    *nvml.default_power_limit_w)));
  }
  return findings;
}

/// The generation falls while a GPU idles; the number of lanes does not.
std::optional<Finding> diagnose_link(const JoinedGpu& gpu) {
  const auto known = [](const std::optional<int>& value) { return value.value_or(0); };
  int lanes = 0, most_lanes = 0, generation = 0, most = 0;
  if (gpu.on_pci) {
    lanes = known(gpu.on_pci->width);
    most_lanes = known(gpu.on_pci->max_width);
  }
  if (gpu.in_nvml && gpu.in_nvml->pcie_width && gpu.in_nvml->max_pcie_width) {
    lanes = *gpu.in_nvml->pcie_width;
    most_lanes = *gpu.in_nvml->max_pcie_width;
  }
  if (gpu.in_nvml) most = known(gpu.in_nvml->max_pcie_generation);
  if (gpu.proof) {
    if (gpu.proof->pcie_width) lanes = *gpu.proof->pcie_width;
    generation = known(gpu.proof->pcie_generation);
  }
  const bool narrow = lanes > 0 && lanes < most_lanes;
  const bool slow = generation > 0 && generation < most;
  if (!narrow && !slow) return std::nullopt;
  std::vector<std::string> evidence;
  if (narrow) evidence.push_back(fmt::format("{} of {} lanes", lanes, most_lanes));
  if (slow) evidence.push_back(fmt::format("generation {} of {}, under load", generation, most));
  return about(gpu.subject(),
               "pcie-narrow",
               // Some idle narrow, and without NVML the maximum is the card's and not the slot's.
               gpu.proof && gpu.proof->pcie_width ? Severity::distorts : Severity::note,
               "The GPU's PCIe link is narrower or slower than it could be.",
               evidence,
               "seat the card again, look at the slot (its lanes may be shared), the riser and the "
               "firmware's settings");
}

std::vector<Finding> diagnose_modes(const MachineFacts& facts, const JoinedGpu& gpu) {
  const cuda::NvmlGpu& nvml = *gpu.in_nvml;
  std::vector<Finding> findings;
  if (nvml.persistence == false && !facts.machine.wsl) {
    findings.push_back(about(gpu.subject(),
                             "persistence-off",
                             Severity::note,
                             "Persistence mode is off: the driver shuts the GPU down after its "
                             "last user, and the next program waits.",
                             {"NVML says that persistence mode is off"},
                             "start nvidia-persistenced, or as root `nvidia-smi -pm 1`; launchgap "
                             "keeps the driver open while it measures"));
  }
  if (nvml.compute_mode == "exclusive process") {
    findings.push_back(
        about(gpu.subject(),
              "exclusive-mode",
              Severity::note,
              "The GPU lets in one process at a time; a second process gets error 46.",
              {"NVML says its compute mode is exclusive process"},
              "nothing, if that is meant; otherwise as root `nvidia-smi -c DEFAULT`"));
  }
  if (nvml.mig == true && nvml.mig_instances.value_or(0) > 0) {
    findings.push_back(about(gpu.subject(),
                             "mig-active",
                             Severity::note,
                             "The GPU is partitioned (MIG): a process sees one instance, and "
                             "neighbours share its clocks.",
                             {fmt::format("{} instances", *nvml.mig_instances)},
                             "nothing, if that is meant"));
  }
  if (nvml.fabric && *nvml.fabric != "completed") {
    findings.push_back(about(
        gpu.subject(),
        "fabric-manager",
        Severity::distorts,
        fmt::format("The GPU has not yet joined the fabric of its NVSwitches ({}).", *nvml.fabric),
        {"NVML: fabric " + *nvml.fabric},
        "`systemctl status nvidia-fabricmanager`, in the driver's own version"));
  }
  return findings;
}

/// How long the GPU's kind is served, and by what.
std::optional<Finding> diagnose_age(const MachineFacts& facts, const JoinedGpu& gpu) {
  if (!gpu.capability || gpu.hidden) return std::nullopt;
  const Capability capability{*gpu.capability / 10, *gpu.capability % 10};
  const ArchitectureRow* const life = life_of(capability);
  if (!life || !life->last_toolkit) return std::nullopt;
  std::vector<std::string> evidence = {
      fmt::format("{} ({})", life->source.text, life->architecture)};
  const std::optional<Version>& driver = facts.machine.module_version;
  if (const auto toolkit = newest_toolkit(capability, driver))
    evidence.push_back("newest CUDA: " + toolkit->text());
  for (const char* framework : {"tensorflow", "torch"}) {
    if (const auto newest = newest_builds(framework, capability, driver).certain)
      evidence.push_back("newest " + newest->text());
  }
  return about(gpu.subject(),
               "architecture-ageing",
               Severity::note,
               fmt::format("The last CUDA for {} GPUs is {}, the last driver branch R{}.",
                           life->architecture,
                           life->last_toolkit->text(),
                           life->last_driver_branch.value_or(0)),
               evidence,
               "keep a driver and frameworks that still support it, or plan for its successor");
}

std::optional<Finding> diagnose_xids(const MachineFacts& facts, const JoinedGpu& gpu) {
  std::vector<std::string> evidence;
  for (const Xid& xid : facts.machine.xids) {
    if (!gpu.pci.empty() && gpu.pci.starts_with(xid.address))
      evidence.push_back(fmt::format("Xid {}: {}", xid.code, xid.text));
  }
  if (evidence.empty()) return std::nullopt;
  return about(gpu.subject(),
               "xid-reported",
               Severity::note,
               "The kernel reported errors of this GPU since the machine was started.",
               evidence,
               "look the numbers up in NVIDIA's Xid catalogue: 13, 31 and 43 are mostly the fault "
               "of programs, 48, 63, 64, 74, 79, 94 and 95 of hardware");
}

}  // namespace

std::vector<Finding> diagnose_state(const MachineFacts& facts) {
  std::vector<Finding> findings;
  const auto add = [&](std::optional<Finding> finding) {
    if (finding) findings.push_back(*std::move(finding));
  };
  for (const JoinedGpu& gpu : facts.gpus) {
    if (!gpu.in_driver || gpu.hidden) continue;
    if (!gpu.locked.empty()) {
      findings.push_back(
          about(gpu.subject(),
                "session-on-gpu",
                Severity::note,
                "A session of launchgap measures on the GPU just now, so nothing was run on it.",
                {gpu.locked},
                "ask again when it is done"));
    }
    if (gpu.in_nvml) {
      add(diagnose_memory(gpu));
      add(diagnose_health(gpu));
      for (Finding& finding : diagnose_clocks(gpu)) findings.push_back(std::move(finding));
      for (Finding& finding : diagnose_modes(facts, gpu)) findings.push_back(std::move(finding));
    }
    add(diagnose_link(gpu));
    add(diagnose_xids(facts, gpu));
    add(diagnose_age(facts, gpu));
  }
  if (facts.machine.profiling_needs_root == true && geteuid() != 0) {
    findings.push_back(about(
        "machine",
        "profiling-needs-root",
        Severity::note,
        "Hardware counters are for root only: ncu will say ERR_NVGPUCTRPERM. launchgap's tracing "
        "does not need them.",
        {"/proc/driver/nvidia/params: RmProfilingAdminOnly is 1"},
        "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d, then restart"));
  }
  return findings;
}

}  // namespace launchgap::doctor
