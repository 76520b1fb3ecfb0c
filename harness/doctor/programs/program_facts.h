// What was seen of a program that runs: its libraries, its device nodes, its environment.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/doctor/libraries/loader_trace.h"
#include "harness/record/schema.h"

namespace launchgap::doctor {

/// A CUDA library that a process had in its memory.
struct MappedLibrary {
  std::string name;  // as it was asked for, where that is known, otherwise the file's name
  std::string path;
  PathOrigin origin;     // why this file; unknown without the loader's account
  bool deleted = false;  // the file is gone or was replaced since, as after an upgrade
};

struct ProcessFacts {
  pid_t pid = 0;
  std::string command;     // its command line, printable
  std::string executable;  // its program's file
  std::optional<bool> statically_linked;
  std::vector<MappedLibrary> libraries;
  std::set<std::string> nodes_open;    // "/dev/nvidia0", held by a descriptor
  std::set<std::string> nodes_mapped;  // and mapped into its memory
  bool listed_by_nvml = false;         // as computing, at any time
  /// The variables that decide about GPUs and libraries, as the process was started with them. What
  /// a program sets for itself cannot be seen.
  std::map<std::string, std::string> environment;
  /// What the loader looked for: CUDA's libraries, and what these need.
  std::vector<LoaderSearch> searches;
  bool loader_told = false;  // there is its account: none for static programs and other loaders
  std::size_t looks = 0;     // how often its memory could be read
  std::size_t looks_with_driver = 0;  // and libcuda was in it

  /// Evidence of a context, not the context itself: creating one maps /dev/nvidia<N> or
  /// /dev/nvidia-uvm into memory, and NVML lists the process. Initialising the driver opens the
  /// same nodes and maps none of these two kinds.
  bool had_context() const;
  /// libcuda was in its memory, or taken by the loader.
  bool had_driver() const;
  /// It loaded or looked for any CUDA library, or opened a node.
  bool asked() const;
};

struct ProgramFacts {
  std::string command;                   // printable
  std::vector<ProcessFacts> processes;   // the first is the one that was started or asked for
  bool traced = false;                   // the loader's account was asked for
  std::optional<int> exit_code;          // absent while it runs, and after a signal
  std::optional<int> signal;             // that ended it
  std::vector<std::string> limitations;  // what is not known and why, one sentence each

  bool had_context() const;
  bool had_driver() const;
  bool asked() const;
};

Json to_json(const ProgramFacts& facts);

}  // namespace launchgap::doctor
