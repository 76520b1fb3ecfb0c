#include "harness/doctor/machine/examine.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/doctor/libraries/library_copies.h"
#include "harness/doctor/libraries/loader_trace.h"
#include "harness/doctor/machine/probe.h"
#include "harness/record/fields.h"
#include "harness/run/device_lock.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;
namespace {

/// Ctrl-C and its like wait until everything is tidied up; `ask` sees them coming and hurries.
class HeldBackSignals {
 public:
  HeldBackSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldBackSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldBackSignals(const HeldBackSignals&) = delete;
  HeldBackSignals& operator=(const HeldBackSignals&) = delete;

 private:
  sigset_t before_{};
};

template <class Value>
void take(std::optional<Value>& into, const Json& json, const char* key) {
  into = maybe<Value>(json, key);
}

std::string text(const Json& json, const char* key) {
  return printable(maybe<std::string>(json, key).value_or(""));
}

std::optional<CallResult> call_result(const Json& json) {
  const auto code = maybe<int>(json, "code");
  if (!code) return std::nullopt;
  return CallResult{*code, text(json, "text")};
}

/// "580.65.06" of ".../libcuda.so.580.65.06"; a mere "1" is no version.
std::optional<Version> version_in_name(const std::string& path) {
  const std::size_t at = path.rfind(".so.");
  if (at == std::string::npos) return std::nullopt;
  auto version = Version::parse(path.substr(at + 4));
  return version && version->parts().size() >= 2 ? version : std::nullopt;
}

void take_probed(const ProbeAnswer& answer, ProbedLibrary& library) {
  library.error = text(answer.facts, "error");
  library.path = text(answer.facts, "path");
  library.origin = text(answer.facts, "origin");
  library.died = answer.died;
  library.hung = answer.hung;
  library.simulated = maybe<bool>(answer.facts, "simulated").value_or(false);
}

DriverFacts driver_facts(const ProbeAnswer& answer) {
  DriverFacts driver;
  take_probed(answer, driver);
  driver.asked = true;
  // In WSL and on Jetson the file is libcuda.so.1.1, which is no driver's version.
  driver.version = version_in_name(driver.path);
  if (driver.version && driver.version->major() < 100) driver.version.reset();
  driver.init = call_result(answer.facts);
  take(driver.cuda_version, answer.facts, "cuda_version");
  for (const Json& device : answer.facts.value("devices", Json::array())) {
    DeviceFacts facts = fields_from_json<DeviceFacts>(device);
    facts.name = printable(facts.name, 100);
    driver.devices.push_back(std::move(facts));
  }
  if (driver.loaded() && driver.init) std::swap(driver.error, driver.devices_error);
  return driver;
}

cuda::NvmlGpu nvml_gpu(const Json& json) {
  auto gpu = fields_from_json<cuda::NvmlGpu>(json);
  for (std::string* const said : {&gpu.problem, &gpu.uuid, &gpu.name, &gpu.pci_bus_id})
    *said = printable(*said);
  return gpu;
}

NvmlFacts nvml_facts(const ProbeAnswer& answer) {
  NvmlFacts nvml;
  take_probed(answer, nvml);
  nvml.asked = true;
  nvml.version = text(answer.facts, "version");
  nvml.failed = call_result(answer.facts);
  nvml.driver_version = Version::parse(text(answer.facts, "driver_version"));
  for (const Json& gpu : answer.facts.value("gpus", Json::array()))
    nvml.gpus.push_back(nvml_gpu(gpu));
  return nvml;
}

/// A library that is asked for, and the beginning of its names.
struct LibraryKind {
  const char* name;
  const char* beginning;
  bool starts_driver = false;  // asking it takes as long as starting the driver
};
/// Of one library; who has more is not asked about the rest.
constexpr std::size_t kMostSonames = 16;

constexpr LibraryKind kLibraries[] = {{"cudart", "libcudart.so.", true},
                                      {"cublas", "libcublas.so."},
                                      {"cudnn", "libcudnn.so."},
                                      {"cupti", "libcupti.so."},
                                      {"nccl", "libnccl.so."}};

bool is_soname(const std::string& name, const std::string& beginning) {
  // Names with a full version, libcudart.so.12.4.127, are what a SONAME's link points to.
  return name.starts_with(beginning) &&
         std::ranges::count(name.substr(beginning.size()), '.') <= 1 &&
         Version::parse(name.substr(beginning.size()));
}

/// The names of a library under which the loader would find something.
std::set<std::string> sonames(const LibraryKind& kind,
                              const LoaderCache& cache,
                              const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const std::string& name : cache.names_with(kind.beginning)) names.insert(name);
  for (const std::string& folder : folders) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      names.insert(entry->path().filename().string());
    }
  }
  std::erase_if(names, [&](const std::string& name) { return !is_soname(name, kind.beginning); });
  while (names.size() > kMostSonames) names.erase(std::prev(names.end()));
  return names;
}

LibraryFacts library_facts(const LibraryKind& kind,
                           const std::string& soname,
                           const ProbeAnswer& answer) {
  LibraryFacts facts;
  take_probed(answer, facts);
  facts.kind = kind.name;
  facts.soname = soname;
  facts.version = text(answer.facts, "version");
  facts.call = call_result(answer.facts);
  if (facts.version.empty()) {
    if (const auto version = version_in_name(facts.path)) facts.version = version->text();
  }
  for (const Json& step : answer.steps) {
    const auto result = call_result(step);
    if (result && result->code != 0)
      facts.checks.push_back(
          {result->code, fmt::format("{}: {}", text(step, "check"), result->text)});
  }
  for (const Json& file : answer.facts.value("files", Json::array()))
    facts.files.push_back(printable(file.get<std::string>()));
  facts.machine_code = answer.facts.value("machine_code", std::vector<std::string>());
  facts.ptx = answer.facts.value("ptx", std::vector<std::string>());
  facts.code_incomplete = text(answer.facts, "code_incomplete");
  return facts;
}

Proof proof_of(const ProbeAnswer& answer) {
  Proof proof;
  proof.died = answer.died;
  proof.hung = answer.hung;
  for (const Json& json : answer.steps) {
    ProofStep step;
    step.name = text(json, "name");
    step.status = text(json, "status");
    step.detail = text(json, "detail");
    step.callee = text(json, "library");
    step.call = text(json, "call");
    step.text = text(json, "text");
    step.ms = json.value("ms", 0.0);
    take(step.code, json, "code");
    if (step.name == "load") {
      take(proof.pcie_generation, json, "pcie_generation");
      take(proof.pcie_width, json, "pcie_width");
      take(proof.sm_clock_mhz, json, "sm_clock_mhz");
      take(proof.clock_reasons, json, "clock_reasons");
    }
    proof.steps.push_back(step);
  }
  return proof;
}

/// The names of the programs that use a GPU, as far as this user may see them. In a container the
/// numbers can be those of another name space, and then nothing or something else is there.
void name_processes(const SystemFiles& files, NvmlFacts& nvml) {
  for (cuda::NvmlGpu& gpu : nvml.gpus) {
    for (cuda::GpuProcess& process : gpu.processes)
      process.name =
          printable(files.read(fmt::format("/proc/{}/comm", process.pid), 64).value_or(""), 64);
  }
}

/// What of the environment that is asked about concerns CUDA and the loader.
std::map<std::string, std::string> environment_of(const ExamineOptions& options) {
  if (!options.environment) return cuda_environment();
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : *options.environment) {
    if (concerns_cuda(name)) found[name] = value;
  }
  return found;
}

/// Probes in a row, each with what takes its answer.
class Questions {
 public:
  /// All of them see this environment in place of this process's.
  explicit Questions(const ExamineOptions& options) {
    if (!options.environment) return;
    for (const auto& [name, value] : cuda_environment()) {
      // CUDA has no variable with such a name, and a job could not carry it.
      if (options.environment->contains(name) || printable(name) != name) continue;
      // The loader reads its variables before a worker can unset them.
      name.starts_with("LD_") ? void(environment_[name] = "") : unset_.push_back(name);
    }
    for (const auto& [name, value] : environment_of(options)) environment_[name] = value;
  }

  void add(ProbeRequest probe, std::function<void(const ProbeAnswer&)> take_answer) {
    for (const auto& [name, value] : environment_) probe.environment.try_emplace(name, value);
    for (const std::string& name : unset_) probe.job["unset"].push_back(name);
    probes_.push_back(std::move(probe));
    takers_.push_back(std::move(take_answer));
  }
  void ask_all() {
    const std::vector<ProbeAnswer> answers = ask(probes_);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      try {
        takers_[i](answers[i]);
      } catch (const std::exception& error) {
        // Something that was loaded there has written into it.
        ProbeAnswer none;
        none.died = fmt::format("its answer makes no sense: {}", printable(error.what()));
        takers_[i](none);
      }
    }
  }

 private:
  std::map<std::string, std::string> environment_;
  std::vector<std::string> unset_;
  std::vector<ProbeRequest> probes_;
  std::vector<std::function<void(const ProbeAnswer&)>> takers_;
};

/// Leaves GPUs alone on which a session measures.
void prove_gpus(MachineFacts& facts, const ExamineOptions& options) {
  std::vector<DeviceLock> locks;
  Questions questions(options);
  for (JoinedGpu& gpu : facts.gpus) {
    if (!gpu.in_driver || gpu.hidden) continue;
    try {
      locks.emplace_back(gpu.uuid);
    } catch (const Error& error) {
      gpu.locked = printable(error.what());
      continue;
    }
    questions.add({{{"task", "doctor-proof"}, {"uuid", gpu.uuid}},
                   {{"CUDA_VISIBLE_DEVICES", gpu.uuid}},
                   options.proof_timeout_s},
                  [&gpu](const ProbeAnswer& answer) { gpu.proof = proof_of(answer); });
  }
  questions.ask_all();
  facts.proven =
      std::ranges::any_of(facts.gpus, [](const JoinedGpu& gpu) { return gpu.proof.has_value(); });
}

}  // namespace

std::unique_ptr<MachineFacts> examine(const ExamineOptions& options) {
  const std::int64_t begin = now_ns();
  const HeldBackSignals signals;
  auto facts = std::make_unique<MachineFacts>();
  const SystemFiles files = SystemFiles::of_this_system();
  facts->machine = read_machine(files, environment_of(options));
  const LoaderCache cache = LoaderCache::of(files);
  const std::string search_path = facts->machine.environment["LD_LIBRARY_PATH"];
  if (search_path.empty()) facts->machine.environment.erase("LD_LIBRARY_PATH");
  const std::vector<std::string> folders =
      search_path.empty() ? std::vector<std::string>() : path_entries(search_path);

  const TemporaryFolder traces("launchgap-doctor-");  // of the loader
  const std::map<std::string, std::string> traced = traces.path().empty() || std::getenv("LD_DEBUG")
                                                        ? std::map<std::string, std::string>()
                                                        : loader_trace_environment(traces.path());
  const auto others = [&](const std::string& soname, const std::string& path) {
    std::vector<std::string> found;
    for (const LibraryCopy& copy : other_copies(soname, path, search_path, cache, files)) {
      std::error_code failed;
      const bool by_variable = copy.origin.kind == PathOrigin::Rule::ld_library_path;
      const fs::path real =
          fs::canonical(by_variable ? fs::path(copy.path) : files.at(copy.path), failed);
      found.push_back(printable(
          fmt::format("{} ({})", failed ? copy.path : real.string(), copy.origin.text())));
    }
    return found;
  };

  Questions questions(options);
  questions.add({{{"task", "doctor-driver"}}, traced, options.driver_timeout_s()},
                [&](const ProbeAnswer& answer) {
                  facts->driver = driver_facts(answer);
                  facts->driver.others = others("libcuda.so.1", facts->driver.path);
                });
  if (facts->machine.environment.contains("CUDA_VISIBLE_DEVICES")) {
    questions.add({{{"task", "doctor-driver"}, {"unset", {"CUDA_VISIBLE_DEVICES"}}},
                   {},
                   options.driver_timeout_s()},
                  [&](const ProbeAnswer& answer) { facts->unrestricted = driver_facts(answer); });
  }
  questions.add({{{"task", "doctor-nvml"}}, {}, options.driver_timeout_s()},
                [&](const ProbeAnswer& answer) { facts->nvml = nvml_facts(answer); });
  for (DeviceNode& node : facts->machine.nodes) {
    if (!node.exists) continue;
    questions.add({{{"task", "doctor-node"}, {"path", node.path}}, {}, options.driver_timeout_s()},
                  [&node](const ProbeAnswer& answer) {
                    node.open_error =
                        answer.facts.value("open_error", answer.hung ? ETIMEDOUT : EIO);
                  });
  }
  // Without a GPU nobody asks whether there is code for it.
  const bool read_code = !facts->machine.gpus.empty() || facts->machine.wsl;
  for (const LibraryKind& kind : kLibraries) {
    for (const std::string& soname : sonames(kind, cache, folders)) {
      questions.add({{{"task", "doctor-library"},
                      {"library", kind.name},
                      {"soname", soname},
                      {"code", read_code}},
                     traced,
                     kind.starts_driver ? options.driver_timeout_s() : options.load_timeout_s},
                    [&, soname](const ProbeAnswer& answer) {
                      facts->libraries.push_back(library_facts(kind, soname, answer));
                      facts->libraries.back().others = others(soname, facts->libraries.back().path);
                    });
    }
  }
  questions.ask_all();
  // In a container the numbers are those of the host, and here somebody else may have them.
  if (facts->machine.container.empty()) name_processes(files, facts->nvml);
  join_gpus(*facts);
  if (options.prove) prove_gpus(*facts, options);
  facts->simulated = facts->machine.simulated || facts->driver.simulated || facts->nvml.simulated ||
                     std::ranges::any_of(facts->libraries, &LibraryFacts::simulated);
  facts->seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  return facts;
}

}  // namespace launchgap::doctor
