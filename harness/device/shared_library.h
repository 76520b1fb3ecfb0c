// Libraries loaded at run time: search order, a table of functions, and the facts of what was
// really loaded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/device/device.h"

namespace launchgap {

/// Where to look for a library.
struct LibrarySearch {
  std::string name;                  // "cuBLAS"
  std::string override_variable;     // environment: full path, nothing else is tried
  std::vector<std::string> sonames;  // in order of preference, "libcublas.so.13" first
  std::vector<std::string> folders;  // pip's folders below site-packages/nvidia: "cublas/lib"
  bool loader_alone = false;         // nothing but the loader's own search
};

/// A library opened with dlopen and never closed: CUDA's libraries keep threads and exit handlers.
class SharedLibrary {
 public:
  /// Search order: the override, the loader's own search, CUDA_HOME and CUDA_PATH, pip's folders
  /// beside the active Python ($VIRTUAL_ENV, or `python3` of the path). Throws Error with every
  /// attempt's reason.
  static SharedLibrary open(const LibrarySearch& search);

  /// The address of a symbol, or null.
  void* find(const char* symbol) const;
  /// The address of a symbol; throws Error that names library and file.
  void* require(const char* symbol) const;

  const std::string& path() const { return facts_.path; }
  /// Name, soname and path; the version is for the caller to fill in.
  const LoadedLibrary& facts() const { return facts_; }

 private:
  void* handle_ = nullptr;
  LoadedLibrary facts_;
};

/// "libcublas.so.12" and so on for the majors given: those up to `newest` first, the newest of them
/// in front; then the others, and the name without a number.
std::vector<std::string> sonames_up_to(const std::string& name,
                                       std::vector<int> majors,
                                       int newest);

/// CUDA's "13000" as "13.0".
std::string cuda_version_text(int version);
/// cuDNN's "8907" as "8.9.7", and "91900" as "9.19.0".
std::string cudnn_version_text(std::size_t version);

}  // namespace launchgap
