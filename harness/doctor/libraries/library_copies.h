// Where else the same library lies: what the loader would have had, and what it never looks at.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/libraries/loader_trace.h"
#include "harness/doctor/system_files.h"

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

/// Where a library lies that the loader does not look at: CUDA_HOME, CUDA_PATH and
/// /usr/local/cuda*, pip's nvidia/*/lib of `site_packages`. `environment` is the program's.
std::vector<std::string> unused_copies(const std::string& name,
                                       const std::map<std::string, std::string>& environment,
                                       const std::vector<std::string>& site_packages,
                                       const SystemFiles& system);

/// "libcusolver" of "libcusolver.so.10" and of "/opt/libcusolver.so.10.6.1".
std::string library_stem(std::string_view name_or_path);
/// Whether it is one of CUDA's: the driver, the runtime, cuBLAS, cuDNN, NCCL and the like.
bool is_cuda_library(std::string_view name_or_path);
/// "/a", "/b" of "/a:/b"; an empty entry is the current folder, as for the loader.
std::vector<std::string> path_entries(std::string_view list);

}  // namespace launchgap::doctor
