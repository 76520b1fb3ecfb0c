#include "harness/run/rank.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

/// How a launcher names what it tells a process. One that lacks `rank` or `ranks` did not start it.
struct Launcher {
  const char *name, *rank, *ranks, *local_rank, *local_ranks;
  bool tells_places = true;  // on the node, or it did not start the process either
};

constexpr const char* kSlurm = "Slurm";
constexpr const char* kKubernetes = "Kubernetes";

/// In the order in which they count. Within a job of Slurm, mpirun has srun start its daemons,
/// whose variables its processes inherit; and srun itself sets PMI_RANK for the MPI that it is told
/// of.
constexpr Launcher kLaunchers[] = {
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
    {"MPI", "PMI_RANK", "PMI_SIZE", nullptr, nullptr, false},
    {kKubernetes, "JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr, false},
};

/// A number from 0 on; nothing for any other text.
std::optional<int> number_in(const Environment& environment, const char* name) {
  if (!name) return std::nullopt;
  const std::optional<int> number = number_of_text<int>(variable_in(environment, name));
  return number && *number < 0 ? std::nullopt : number;
}

/// Of "4(x2),3", by node, the number of the node at `place`.
std::optional<int> tasks_of_node(std::string_view text, int place) {
  while (!text.empty() && place >= 0) {
    const int tasks = take_number<int>(text).value_or(0);
    if (tasks < 1) return std::nullopt;
    int times = 1;
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      times = take_number<int>(text).value_or(0);
      if (times < 1) return std::nullopt;
      if (!text.starts_with(')')) return std::nullopt;
      text.remove_prefix(1);
    }
    if (place < times) return tasks;
    place -= times;
    if (!text.empty() && !text.starts_with(',')) return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
  }
  return std::nullopt;
}

/// Whether one of the words between commas is this one.
bool has_word(const std::string& selection, const std::string& word) {
  return fmt::format(",{},", selection).find(fmt::format(",{},", word)) != std::string::npos;
}

bool several_on_node(const std::optional<RankFacts>& rank) {
  return rank && rank->local_ranks.value_or(1) > 1;
}

std::string tasks_text(const RankFacts& rank) {
  return fmt::format("{} processes of this job are on this node", *rank.local_ranks);
}

std::string one_each(const RankFacts& rank) {
  return rank.launcher == kSlurm
             ? "start each with a GPU of its own, `srun --gpus-per-task=1` or "
               "`srun --gpu-bind=single:1`, or have each take the GPU at its place, `launchgap run "
               "--devices rank`"
             : "have each take the GPU at its place, `launchgap run --devices rank`, or give each "
               "a CUDA_VISIBLE_DEVICES of its own";
}

/// Whether each process of the node has GPUs of its own. Slurm tells how many the job has there,
/// and shows each task fewer by `--gpu-bind` or `--gpus-per-task`; where that is not told, one GPU
/// may be its own, which its lock decides.
bool has_its_own_gpus(const RankFacts& rank, const Environment& environment, std::size_t visible) {
  if (const auto on_node = number_in(environment, "SLURM_GPUS_ON_NODE"))
    return visible * static_cast<std::size_t>(*rank.local_ranks) <=
           static_cast<std::size_t>(*on_node);
  const std::string per_task = variable_in(environment, "SLURM_GPUS_PER_TASK");
  const std::string count = per_task.substr(per_task.find_last_of(":=") + 1);
  return visible == 1 || count == std::to_string(visible);
}

/// A job of Slurm whose GPUs are not shown to its processes must not take what it finds. What the
/// step inherits of its job (SLURM_JOB_GPUS) does not tell that it has GPUs.
void check_granted(const MachineDevices& machine,
                   const std::string& selection,
                   const Environment& environment) {
  if (!environment.contains("SLURM_JOB_ID") ||
      !variable_in(environment, "CUDA_VISIBLE_DEVICES").empty())
    return;
  const bool granted = number_in(environment, "SLURM_GPUS_ON_NODE").value_or(0) > 0;
  const bool would_take_all =
      !environment.contains("CUDA_VISIBLE_DEVICES") && std::ranges::any_of(machine.devices, is_gpu);
  if (!granted && !would_take_all && !has_word(selection, "gpu") && selection != "rank") return;
  const char* const variable =
      environment.contains("CUDA_VISIBLE_DEVICES") ? "is empty" : "is not set";
  if (granted) {
    throw NoGpuError(
        "Slurm gave this job GPUs, and shows this process none: CUDA_VISIBLE_DEVICES {}. See that "
        "gres.conf of {} names device files (/dev/nvidia0), ask for GPUs without a type "
        "(`--gpus-per-task=1`), or bind them (`--gpu-bind=single:1`)",
        variable,
        printable(node_name(environment), 60));
  }
  throw NoGpuError(
      "this job of Slurm has no GPU: CUDA_VISIBLE_DEVICES {}. Ask for one (`srun "
      "--gpus-per-task=1`), or say what to measure: `--devices host`, or the UUIDs of GPUs",
      variable);
}

}  // namespace

std::optional<RankFacts> rank_of(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number_in(environment, launcher.rank);
    if (!rank) continue;
    RankFacts facts;
    facts.launcher = launcher.name;
    facts.rank = *rank;
    facts.ranks = number_in(environment, launcher.ranks);
    if (launcher.ranks && !facts.ranks) continue;
    if (facts.ranks && *facts.ranks <= *rank) continue;
    facts.local_rank = number_in(environment, launcher.local_rank);
    if (launcher.tells_places && !facts.local_rank) continue;
    facts.local_ranks = number_in(environment, launcher.local_ranks);
    if (facts.launcher == kSlurm) {
      facts.local_ranks = tasks_of_node(variable_in(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                        number_in(environment, "SLURM_NODEID").value_or(0));
    }
    facts.job = variable_in(environment, "SLURM_ARRAY_JOB_ID");
    if (facts.job.empty()) facts.job = variable_in(environment, "SLURM_JOB_ID");
    if (facts.job.empty()) facts.job = variable_in(environment, "PMIX_NAMESPACE");
    facts.cluster = variable_in(environment, "SLURM_CLUSTER_NAME");
    facts.array_task = number_in(environment, "SLURM_ARRAY_TASK_ID");
    facts.step = variable_in(environment, "SLURM_STEP_ID");
    facts.restarts = number_in(environment, "SLURM_RESTART_COUNT");
    facts.nodes = variable_in(environment, "SLURM_JOB_NODELIST");
    return facts;
  }
  return std::nullopt;
}

Environment alone_environment() {
  Environment environment;
  for (const Launcher& launcher : kLaunchers) environment[launcher.rank] = "";
  return environment;
}

std::string node_name(const Environment& environment) {
  if (std::string name = variable_in(environment, "SLURMD_NODENAME"); !name.empty()) return name;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::vector<DeviceFacts> select_own_devices(const MachineDevices& machine,
                                            const std::string& selection,
                                            const std::optional<RankFacts>& rank,
                                            const Environment& environment) {
  std::vector<DeviceFacts> gpus;
  std::ranges::copy_if(machine.devices, std::back_inserter(gpus), is_gpu);
  if (selection == "rank") {
    if (!rank || !rank->local_rank) {
      throw UsageError(
          "--devices rank goes with srun or mpirun, which tell a process its place on the node: "
          "nothing here does");
    }
    check_granted(machine, selection, environment);
    const auto place = static_cast<std::size_t>(*rank->local_rank);
    if (place >= gpus.size()) {
      throw NoGpuError(
          "rank {} is process {} of this node, counted from 0, and {} GPUs are visible: start one "
          "process per GPU",
          rank->rank,
          place,
          gpus.size());
    }
    return {gpus[place]};
  }
  const bool all = has_word(selection, "all"), gpu = has_word(selection, "gpu");
  if (all || gpu) check_granted(machine, selection, environment);
  std::vector<DeviceFacts> selected = select_devices(machine, selection);
  if (!several_on_node(rank) || !(all || gpu)) return selected;
  if (gpus.empty()) {
    throw UsageError("{}, and no GPU is found: each would measure the same CPU. Start one per node",
                     tasks_text(*rank));
  }
  if (!has_its_own_gpus(*rank, environment, gpus.size())) {
    throw UsageError("{}, and each sees the same {}, which all would measure at once: {}",
                     tasks_text(*rank),
                     counted(gpus.size(), "GPU"),
                     one_each(*rank));
  }
  if (!has_word(selection, "host"))
    std::erase_if(selected, [](const DeviceFacts& device) { return !is_gpu(device); });
  return selected;
}

std::string shared_device_remedy(const std::optional<RankFacts>& rank) {
  return several_on_node(rank) ? fmt::format("; {}: {}", tasks_text(*rank), one_each(*rank)) : "";
}

fs::path own_folder(const fs::path& output,
                    const std::optional<RankFacts>& rank,
                    const std::string& node,
                    const std::vector<DeviceFacts>& devices) {
  if (!rank) return output;
  const std::string device = devices.size() != 1       ? fmt::format("rank{}", rank->rank)
                             : is_gpu(devices.front()) ? devices.front().uuid
                                                       : devices.front().backend;
  const std::string name = file_name_part(fmt::format("{}.{}", node, device));
  std::error_code failed;
  fs::create_directories(output, failed);
  for (int attempt = 1; !failed; ++attempt) {
    fs::path folder = output / (attempt == 1 ? name : fmt::format("{}.{}", name, attempt));
    if (fs::create_directory(folder, failed)) return folder;
    constexpr int kMostAttempts = 10'000;
    if (!failed && attempt == kMostAttempts) {
      throw UsageError("{} holds {} sessions of {} already: name another folder with -o",
                       output.string(),
                       attempt,
                       name);
    }
  }
  throw UsageError("{} cannot be made: {}", output.string(), failed.message());
}

}  // namespace launchgap
