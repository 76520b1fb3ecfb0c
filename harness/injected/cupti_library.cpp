#include "harness/injected/cupti_library.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <vector>

namespace launchgap::injected {
namespace {

using namespace cupti::abi;

/// The path of a libcupti that the process has; empty if it has none.
std::string loaded_already() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const char* const name = std::strrchr(info->dlpi_name, '/');
        if (!name || std::strncmp(name + 1, "libcupti.so", 11) != 0) return 0;
        *static_cast<std::string*>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

std::vector<std::string> split(const std::string& folders) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    if (end > begin) all.push_back(folders.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

/// A name by the loader's search, then in each of the folders.
void* open_name(const char* name, const std::vector<std::string>& folders) {
  if (void* const library = dlopen(name, RTLD_NOW)) return library;
  for (const std::string& folder : folders) {
    if (void* const library = dlopen((folder + "/" + name).c_str(), RTLD_NOW)) return library;
  }
  return nullptr;
}

void* open_any(int cuda_version, const std::vector<std::string>& folders) {
  for (const bool later : {false, true}) {
    for (const Soname& soname : kSonames) {
      if ((soname.cuda > cuda_version) != later) continue;
      if (void* const library = open_name(soname.name, folders)) return library;
    }
  }
  return open_name("libcupti.so", folders);
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

}  // namespace

bool CuptiLibrary::load(int cuda_version, const std::string& folders, std::string& reason) {
  void* library = nullptr;
  const char* const chosen = std::getenv("LAUNCHGAP_LIBCUPTI");
  if (chosen && *chosen) {
    library = dlopen(chosen, RTLD_NOW);
    if (!library) reason = dlerror();
  } else if (const std::string loaded = loaded_already(); !loaded.empty()) {
    library = dlopen(loaded.c_str(), RTLD_NOW);
    if (!library) reason = dlerror();
  } else {
    library = open_any(cuda_version, split(folders));
    if (!library)
      reason =
          "there is no CUPTI (libcupti.so): install the package nvidia-cuda-cupti, or name the "
          "file by LAUNCHGAP_LIBCUPTI";
  }
  if (!library) return false;
  path = path_of(library);
#define LAUNCHGAP_LOAD(name, required, ...)                                   \
  this->name = reinterpret_cast<decltype(this->name)>(dlsym(library, #name)); \
  if ((required) && !this->name) {                                            \
    reason = path + " has no function " #name;                                \
    return false;                                                             \
  }
  LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
  if (cuptiGetVersion(&version) != kSuccess || version < kOldestVersion) {
    reason = path + " is older than CUDA 11.0, and its records cannot be read";
    return false;
  }
  return true;
}

std::string CuptiLibrary::describe(Result code) const {
  const char* text = nullptr;
  cuptiGetResultString(code, &text);
  return text ? text : "code " + std::to_string(code);
}

}  // namespace launchgap::injected
