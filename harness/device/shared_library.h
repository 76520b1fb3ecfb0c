// Libraries loaded at run time: search order, a table of functions, and the facts of what was
// really loaded.
#pragma once

#include <map>
#include <string>
#include <vector>

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
  /// Search order: the override; the loader's own search, then the folders of library_folders.h one
  /// by one, each by `sonames`; both by `otherwise`. Throws Error with every attempt's reason.
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

/// CUDA's "13000" as "13.0".
std::string cuda_version_text(int version);
/// cuDNN's "8907" as "8.9.7", and "91900" as "9.19.0".
std::string cudnn_version_text(std::size_t version);

}  // namespace launchgap
