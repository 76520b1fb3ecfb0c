// Libraries loaded at run time: search order, a table of functions, and the facts of what was
// really loaded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/device/facts.h"

namespace launchgap {

/// What to look for.
struct LibrarySearch {
  std::string name;                  // "cuBLAS"
  std::string override_variable;     // environment: full path, nothing else is tried
  std::vector<std::string> sonames;  // in order of preference, "libcublas.so.13" first
  /// For other drivers or GPUs than these: tried where none of the above is anywhere.
  std::vector<std::string> otherwise;
  bool loader_alone = false;  // nothing but the loader's own search
};

/// Adds the names of a library that has a version of CUDA in its name: those up to `newest` to
/// `sonames`, the newest of them first; the later ones to `otherwise`, and last of all
/// `unnumbered`.
LibrarySearch by_version(LibrarySearch search,
                         const std::map<int, std::string>& sonames,
                         int newest,
                         const std::string& unnumbered);

/// A library opened with dlopen and never closed: CUDA's libraries keep threads and exit handlers.
class SharedLibrary {
 public:
  /// Search order: the override; the loader's own search, then the folders of library_folders() one
  /// by one, each by `sonames`; both by `otherwise`. Throws Error with every attempt's reason.
  static SharedLibrary open(const LibrarySearch& search);
  /// The same for what a device can do without: throws Unsupported, whose last words are `help`.
  static SharedLibrary open(const LibrarySearch& search, std::string_view help);

  /// The address of a symbol, or null.
  void* find(const char* symbol) const;
  /// The address of a symbol; throws Error that names library and file.
  void* require(const char* symbol) const;
  /// Sets a pointer to a function; to null where it is missing and not required.
  template <class Function>
  void take(Function& function, const char* symbol, bool required) const {
    function = reinterpret_cast<Function>(required ? require(symbol) : find(symbol));
  }

  const std::string& path() const { return facts_.path; }
  /// Name, soname and path; the version is for the caller to fill in.
  const LoadedLibrary& facts() const { return facts_; }

 private:
  void* handle_ = nullptr;
  LoadedLibrary facts_;
};

/// Takes a function of the lists in abi/ from the `file` that it is in to its place in `library`.
#define LAUNCHGAP_TAKE(name, required, ...) file.take(library.name, #name, required);

/// CUDA's "13000" as "13.0".
std::string cuda_version_text(int version);
/// cuDNN's "8907" as "8.9.7", and "91900" as "9.19.0".
std::string cudnn_version_text(std::size_t version);
/// NCCL's "2804" as "2.8.4", and "22809" as "2.28.9".
std::string nccl_version_text(int version);

// --- Where CUDA's libraries lie that the loader does not find by itself ---

// launchgap loads them from there, and the doctor tells programs of them: one search, so that the
// two cannot disagree.

/// The folders in the order in which they are searched:
/// 1. `lib64`, `lib` and `extras/CUPTI/lib64` of CUDA_HOME, then of CUDA_PATH;
/// 2. `nvidia/*/lib`, pip's, in the folders of the active Python (see python_folders.h) and of
///    launchgap's own .venv, which comes first unless VIRTUAL_ENV chose another;
/// 3. `lib` of CONDA_PREFIX;
/// 4. of /usr/local/cuda and /usr/local/cuda-*, the highest number first, what 1 has.
/// They need not exist.
std::vector<std::string> library_folders(const SystemFiles& system,
                                         const std::map<std::string, std::string>& environment);

}  // namespace launchgap
