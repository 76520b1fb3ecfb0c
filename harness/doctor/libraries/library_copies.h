// The folder `libraries` takes files and what glibc's loader says. It gives what a file is
// (elf_file.h), for which GPUs it has code (device_code.h), why the loader took it
// (loader_trace.h), and its other copies (here).
//
// Where else the same library lies: what the loader would have had, and what it never looks at.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/doctor/libraries/loader_trace.h"

namespace launchgap::doctor {

/// /etc/ld.so.cache, as `ldconfig -p` prints it.
class LoaderCache {
 public:
  LoaderCache() = default;
  /// Asks ldconfig, at most 2 s; empty if it cannot be asked.
  static LoaderCache of(const SystemFiles& system);
  /// From what ldconfig printed.
  static LoaderCache parse(std::string_view text);

  /// The files by this name, in the cache's order.
  std::vector<std::string> paths(const std::string& name) const;
  /// The names that begin so: "libcusolver.so." finds libcusolver.so.11.
  std::vector<std::string> names_with(const std::string& beginning) const;
  bool empty() const { return paths_.empty(); }

 private:
  std::map<std::string, std::vector<std::string>> paths_;
};

struct LibraryCopy {
  std::string path;
  PathOrigin origin;  // by which the loader would find it; `unknown`: it would not
};

/// The other files that the loader would have had for what was searched: further entries of
/// LD_LIBRARY_PATH, as the process had it, the cache, the default folders. Links to one file are
/// one copy; files that are no library of this machine are left out.
std::vector<LibraryCopy> other_copies(const std::string& name,
                                      const std::string& taken,
                                      std::string_view ld_library_path,
                                      const LoaderCache& cache,
                                      const SystemFiles& system);

/// Where a library lies in folders that the loader does not look at. Links to one file are one
/// copy; files that are no library of this machine are left out.
std::vector<std::string> unused_copies(const std::string& name,
                                       const std::vector<std::string>& folders,
                                       const SystemFiles& system);

/// "libcusolver" of "libcusolver.so.10" and of "/opt/libcusolver.so.10.6.1".
std::string library_stem(std::string_view name_or_path);
/// Whether it is one of CUDA's: the driver, the runtime, cuBLAS, cuDNN, NCCL and the like.
bool is_cuda_library(std::string_view name_or_path);

}  // namespace launchgap::doctor
