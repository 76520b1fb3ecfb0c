#include "harness/device/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/device/python_folders.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Attempts to open a library, and what the loader said of those that failed.
class Attempts {
 public:
  /// The library's handle, or null.
  void* open(const std::string& file) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) note(file);
    return handle;
  }

  /// The same for a file in one of `folders`. What it needs and neither it nor the loader finds is
  /// opened first, where it lies beside it or in one of them: many libraries have no RUNPATH.
  void* open_with_needs(const std::string& file,
                        const std::vector<fs::path>& folders,
                        int depth = 0) {
    constexpr int kMostNeeds = 16;
    for (int needs = 0;; ++needs) {
      if (void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      const std::string missing = note(file);
      if (missing.empty() || needs == kMostNeeds || depth == kMostNeeds) return nullptr;
      const auto has_it = [&](const fs::path& folder) {
        std::error_code ignored;
        return fs::exists(folder / missing, ignored);
      };
      const fs::path beside = fs::path(file).parent_path();
      const auto elsewhere = std::ranges::find_if(folders, has_it);
      if (!has_it(beside) && elsewhere == folders.end()) return nullptr;
      const fs::path& folder = has_it(beside) ? beside : *elsewhere;
      if (!open_with_needs(folder / missing, folders, depth + 1)) return nullptr;
    }
  }

  /// "libcublas.so.13, libcublas.so.12: cannot open shared object file: No such file or directory"
  std::string text() const {
    std::string all;
    for (const auto& [reason, files] : failed_) {
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", fmt::join(files, ", "), reason);
    }
    return all;
  }

 private:
  /// Keeps what the loader said: "libcublasLt.so.12: cannot open shared object file: …". Returns
  /// the name of what it looked for in vain, if that is why.
  std::string note(const std::string& file) {
    const char* const said = dlerror();
    const std::string text = said ? said : file + ": it cannot be opened";
    const std::size_t colon = text.find(": ");
    const std::string name = text.substr(0, colon);
    const std::string reason = colon == std::string::npos ? "" : text.substr(colon + 2);
    const auto same = std::ranges::find(failed_, reason, &FailedFiles::reason);
    std::vector<std::string>& names =
        same != failed_.end() ? same->files : failed_.emplace_back(FailedFiles{reason, {}}).files;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    const bool in_vain = reason.starts_with("cannot open shared object file: No such file");
    return in_vain && name != file && name.find('/') == std::string::npos ? name : "";
  }

  struct FailedFiles {
    std::string reason;
    std::vector<std::string> files;
  };
  std::vector<FailedFiles> failed_;
};

/// Where the folders of library_folders() really are.
std::vector<fs::path> candidate_folders() {
  const SystemFiles system = SystemFiles::of_this_system();
  std::vector<fs::path> folders;
  for (const std::string& folder : library_folders(system, own_environment()))
    folders.push_back(system.at(folder));
  return folders;
}

}  // namespace

SharedLibrary SharedLibrary::open(const LibrarySearch& search) {
  Attempts attempts;
  SharedLibrary library;
  const auto open_any = [&] {
    if (const std::string file = environment(search.override_variable.c_str()); !file.empty()) {
      library.facts_.soname = file;
      library.handle_ = attempts.open(file);
      return library.handle_ != nullptr;
    }
    std::optional<std::vector<fs::path>> folders;
    for (const std::vector<std::string>* names : {&search.sonames, &search.otherwise}) {
      for (const std::string& soname : *names) {
        library.facts_.soname = soname;
        if ((library.handle_ = attempts.open(soname))) return true;
      }
      if (search.loader_alone) continue;
      if (!folders) folders = candidate_folders();
      for (const fs::path& folder : *folders) {
        for (const std::string& soname : *names) {
          library.facts_.soname = soname;
          std::error_code ignored;
          if (!fs::exists(folder / soname, ignored)) continue;
          if ((library.handle_ = attempts.open_with_needs(folder / soname, *folders))) return true;
        }
      }
    }
    return false;
  };
  if (!open_any()) throw Error("{} could not be loaded: {}", search.name, attempts.text());

  library.facts_.name = search.name;
  library.facts_.path = library.facts_.soname;
  if (link_map* map = nullptr; dlinfo(library.handle_, RTLD_DI_LINKMAP, &map) == 0 && map) {
    std::error_code failed;
    const fs::path real = fs::canonical(map->l_name, failed);
    library.facts_.path = failed ? std::string(map->l_name) : real.string();
  }
  library.facts_.simulated = library.find("launchgap_fake_library") != nullptr;
  return library;
}

SharedLibrary SharedLibrary::open(const LibrarySearch& search, std::string_view help) {
  try {
    return open(search);
  } catch (const Error& error) {
    throw Unsupported("{}. {}", error.what(), help);
  }
}

void* SharedLibrary::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

void* SharedLibrary::require(const char* symbol) const {
  if (void* address = find(symbol)) return address;
  throw Error("{} ({}) has no function {}: it is not the library it should be, or too old",
              facts_.name,
              facts_.path,
              symbol);
}

LibrarySearch by_version(LibrarySearch search,
                         const std::map<int, std::string>& sonames,
                         int newest,
                         const std::string& unnumbered) {
  const auto later = sonames.upper_bound(newest);
  for (auto at = later; at != sonames.begin();) search.sonames.push_back((--at)->second);
  for (auto at = later; at != sonames.end(); ++at) search.otherwise.push_back(at->second);
  search.otherwise.push_back(unnumbered);
  return search;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string cudnn_version_text(std::size_t version) {
  return version >= 90000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
}

std::string nccl_version_text(int version) {
  return version >= 10000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
}

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
