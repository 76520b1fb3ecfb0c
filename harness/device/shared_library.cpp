#include "harness/device/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The folders `lib/python*/site-packages` below a Python installation.
std::vector<fs::path> site_packages_of(const fs::path& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    const fs::path site = entry.path() / "site-packages";
    if (entry.path().filename().string().starts_with("python") && fs::is_directory(site, ignored)) {
      found.push_back(site);
    }
  }
  return found;
}

/// Prefixes of the active Python: the virtual environment; else the checkout's own, which
/// scripts/setup made, and that of the first `python3` of PATH.
std::vector<fs::path> python_prefixes() {
  if (const std::string venv = environment("VIRTUAL_ENV"); !venv.empty()) return {venv};
  std::error_code ignored;
  std::vector<fs::path> prefixes;
  const fs::path own_venv =
      fs::read_symlink("/proc/self/exe", ignored).parent_path() / "../../.venv";
  if (fs::exists(own_venv, ignored)) prefixes.push_back(own_venv);
  const std::string path = environment("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path python = fs::path(path.substr(begin, end - begin)) / "python3";
    if (fs::exists(python, ignored)) {
      const fs::path own = python.parent_path().parent_path();
      const fs::path real = fs::canonical(python, ignored).parent_path().parent_path();
      prefixes.push_back(own);
      if (own != real) prefixes.push_back(real);
      break;
    }
    begin = end + 1;
  }
  return prefixes;
}

std::vector<fs::path> candidate_folders(const LibrarySearch& search) {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(variable); !root.empty()) {
      folders.push_back(fs::path(root) / "lib64");
      folders.push_back(fs::path(root) / "lib");
      folders.push_back(fs::path(root) / "extras/CUPTI/lib64");
    }
  }
  for (const fs::path& prefix : python_prefixes()) {
    for (const fs::path& site : site_packages_of(prefix)) {
      for (const std::string& folder : search.folders) folders.push_back(site / "nvidia" / folder);
    }
  }
  return folders;
}

}  // namespace

SharedLibrary SharedLibrary::open(const LibrarySearch& search) {
  std::string attempts;
  SharedLibrary library;
  const auto attempt = [&](const std::string& file) {
    library.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_) return true;
    const char* reason = dlerror();
    attempts += fmt::format("{}{}", attempts.empty() ? "" : "; ", reason ? reason : file);
    return false;
  };
  const auto open_any = [&] {
    if (const std::string file = environment(search.override_variable.c_str()); !file.empty()) {
      library.facts_.soname = file;
      return attempt(file);
    }
    for (const std::string& soname : search.sonames) {
      library.facts_.soname = soname;
      if (attempt(soname)) return true;
    }
    if (search.loader_alone) return false;
    std::error_code ignored;
    for (const fs::path& folder : candidate_folders(search)) {
      for (const std::string& soname : search.sonames) {
        library.facts_.soname = soname;
        if (fs::exists(folder / soname, ignored) && attempt(folder / soname)) return true;
      }
    }
    return false;
  };
  if (!open_any()) throw Error(fmt::format("{} could not be loaded: {}", search.name, attempts));

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

void* SharedLibrary::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

void* SharedLibrary::require(const char* symbol) const {
  if (void* address = find(symbol)) return address;
  throw Error(
      fmt::format("{} ({}) has no function {}: it is not the library it should be, or too old",
                  facts_.name,
                  facts_.path,
                  symbol));
}

std::vector<std::string> sonames_up_to(const std::string& name,
                                       std::vector<int> majors,
                                       int newest) {
  std::ranges::sort(majors, [newest](int a, int b) {
    return std::pair(a <= newest, a) > std::pair(b <= newest, b);
  });
  std::vector<std::string> names;
  for (const int major : majors) names.push_back(fmt::format("{}.so.{}", name, major));
  names.push_back(name + ".so");
  return names;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string cudnn_version_text(std::size_t version) {
  return version >= 90000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
}

}  // namespace launchgap
