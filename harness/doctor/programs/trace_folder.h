// The private folder into which the loaders of a program's processes write their accounts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>

#include "harness/doctor/libraries/loader_trace.h"

namespace launchgap::doctor {

class TraceFolder {
 public:
  /// Makes it, in TMPDIR or /tmp. Throws Error if that cannot be.
  TraceFolder();
  /// Removes it with all that is in it, unless it is to be kept.
  ~TraceFolder();
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Leaves it where it is, for processes that still write.
  void keep() { kept_ = true; }

  /// Reads what was written since, gives its disk space back, and stops at a limit. True if there
  /// was anything new about CUDA's libraries.
  bool read();
  /// The processes that have written.
  std::set<pid_t> pids() const;
  /// By process id, CUDA's libraries and what these need.
  std::map<pid_t, ProcessTrace> processes() const;
  /// Not everything was read.
  bool limited() const { return limited_; }

 private:
  struct TraceFile {
    std::uint64_t offset = 0;
    LoaderTraceReader reader{};
    std::size_t searches = 0;
  };
  bool read_file(const std::string& name, TraceFile& file);

  std::filesystem::path path_;
  std::map<std::string, TraceFile> files_;
  std::uint64_t bytes_ = 0;
  bool limited_ = false;
  bool kept_ = false;
};

}  // namespace launchgap::doctor
