// Of a process that Slurm, MPI or Kubernetes started as one of several: which it is, and which GPUs
// are its own.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/session_record.h"
#include "harness/run/devices.h"

namespace launchgap {

using Environment = std::map<std::string, std::string>;

/// Which process of several this is; nothing where it is one alone. Open MPI's mpirun and MPICH's
/// count before Slurm, in whose jobs they start processes of their own. Numbers that are none are
/// not told.
std::optional<RankFacts> rank_of(const Environment& environment);

/// What tells a process that launchgap starts that it is alone: it writes where it is told to.
Environment alone_environment();

/// The machine's name to the scheduler, else in the network.
std::string node_name(const Environment& environment);

/// What `--devices` means for this process: `rank` is the GPU at the place of its rank on the node;
/// `all` of several processes on a node are the GPUs alone, which one process each has. Beside
/// these as select_devices().
///
/// Throws UsageError, with the remedy, where several processes of a node would measure the same
/// devices, and NoGpuError where a scheduler's job was given no GPU: neither all GPUs nor the CPU
/// stands in for it.
std::vector<DeviceFacts> select_own_devices(const MachineDevices& machine,
                                            const std::string& selection,
                                            const std::optional<RankFacts>& rank,
                                            const Environment& environment);

/// Why another process holds a device, if those of one node were given the same; else empty.
std::string shared_device_remedy(const std::optional<RankFacts>& rank);

/// Where a process writes that srun or mpirun started, be it the only one: by node and device,
/// `output`/n1.GPU-5f3a…; with ".2" behind it where that is taken, by the same rank before. It is
/// made, so that no two have one. `output` itself for any other process. Throws UsageError if it
/// cannot be made.
std::filesystem::path own_folder(const std::filesystem::path& output,
                                 const std::optional<RankFacts>& rank,
                                 const std::string& node,
                                 const std::vector<DeviceFacts>& devices);

}  // namespace launchgap
