#include "harness/device/library_folders.h"

#include <algorithm>
#include <filesystem>

#include "harness/device/python_folders.h"

namespace launchgap {
namespace fs = std::filesystem;

namespace {

using Environment = std::map<std::string, std::string>;

/// Bounds a search in a system that is made to be searched for ever.
constexpr std::size_t kMaxFolders = 1024;

/// The folders for packages of launchgap's own virtual environment, which scripts/setup makes.
std::vector<std::string> own_packages(const SystemFiles& system) {
  const fs::path program = system.link("/proc/self/exe").value_or("");
  if (program.empty()) return {};
  const fs::path venv = (program.parent_path() / "../../.venv").lexically_normal();
  return find_python(system, {{"VIRTUAL_ENV", venv.string()}}).folders;
}

/// Where the Python that programs use looks for packages, and launchgap's own.
std::vector<std::string> packages(const SystemFiles& system, const Environment& environment) {
  const PythonFolders active = find_python(system, environment);
  std::vector<std::string> own = own_packages(system);
  std::vector<std::string> all = active.folders;
  all.insert(active.chosen_by == "VIRTUAL_ENV" ? all.end() : all.begin(), own.begin(), own.end());
  return all;
}

}  // namespace

std::vector<std::string> library_folders(const SystemFiles& system,
                                         const Environment& environment) {
  std::vector<std::string> folders;
  const auto add_toolkit = [&](const std::string& root) {
    for (const char* folder : {"/lib64", "/lib", "/extras/CUPTI/lib64"})
      folders.push_back(root + folder);
  };
  const auto value_of = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second.starts_with('/') ? found->second : "";
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = value_of(variable); !root.empty()) add_toolkit(root);
  }
  for (const std::string& site : packages(system, environment)) {
    for (const std::string& package : system.entries(site + "/nvidia")) {
      if (folders.size() < kMaxFolders) folders.push_back(site + "/nvidia/" + package + "/lib");
    }
  }
  if (const std::string conda = value_of("CONDA_PREFIX"); !conda.empty())
    folders.push_back(conda + "/lib");
  add_toolkit("/usr/local/cuda");
  std::vector<std::string> installed = system.entries("/usr/local");
  std::erase_if(installed, [](const std::string& name) { return !name.starts_with("cuda-"); });
  std::ranges::sort(installed, std::greater());
  for (const std::string& name : installed) {
    if (folders.size() < kMaxFolders) add_toolkit("/usr/local/" + name);
  }
  return folders;
}

}  // namespace launchgap
