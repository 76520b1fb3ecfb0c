// Why a GPU is not used: all that the rest of launchgap includes of the doctor.
//
// Its folders, each of which includes only those before it:
//   libraries      what a library's file is, and why the loader takes it
//   machine        the facts about this machine; what may crash or hang is asked in a probe
//   compatibility  which GPU, driver, toolkit and framework go together
//   rules          from the facts to their root causes
//   programs       whether one program is on the GPU
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/compatibility/what_if.h"
#include "harness/record/json.h"

namespace launchgap::doctor {

/// An answer to one question.
struct Diagnosis {
  std::vector<Finding> findings;  // the most severe first
  /// Whether any GPU can be used: by this machine's programs, by the framework or the program that
  /// was asked about.
  bool any_gpu_usable = false;
  std::function<std::string(const TextStyle&)> text;
  Json json;  // docs/doctor.md has every field
};

struct MachineQuestion {
  bool prove = false;            // by a kernel, a matrix product and a convolution on each GPU
  bool python_packages = false;  // also what is wrong with those of the active Python
};

/// Which GPUs of this machine can be used, and what is in the way. Never throws for what is wrong
/// with the machine. Without a proof it takes a fraction of a second where the driver answers.
Diagnosis diagnose_machine(const MachineQuestion& question);

/// Would a framework use the GPUs, or what still works on a GPU. Throws UsageError as what_if().
Diagnosis answer_what_if(const WhatIf& question);

/// Whether a running program is on the GPU. Throws UsageError for what is no process id, and Error
/// with the one reason if there is nothing to look at.
Diagnosis diagnose_process(std::string_view pid);

struct WatchedProgram {
  int exit_code = 0;                   // to exit with: the program's own, or a shell's 126 or 127
  int signal = 0;                      // that ended it; 0: none did
  std::optional<Diagnosis> diagnosis;  // whether the program was on the GPU
  std::string problem;                 // why there is no diagnosis
};

/// Starts a program on this process's standard streams and waits for its end. To be called on the
/// only thread that takes signals. Throws Error if the system has no more processes or files.
WatchedProgram watch(const std::vector<std::string>& command);

/// The same, of a program that is measured: its loader is not traced, its environment gets
/// `environment`, and it is not looked at any more once `enough()` holds.
WatchedProgram watch_measured(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment,
                              const std::function<bool()>& enough);

/// The page of a finding's code, in Markdown; of "list" all codes, a line each. Throws UsageError
/// that names the nearest code for another.
std::string explain(const std::string& code);

/// The side of a worker whose job is one of the doctor's probes: its exit code. Nothing if the job
/// is none.
std::optional<int> answer_probe_job(const Json& job);

// --- The pages of docs/findings, as the build put them into the binary ---

/// The page of a finding's code, in Markdown; empty for a code that has none.
std::string_view page_of(std::string_view code);
/// All codes that have a page, in alphabetical order.
const std::vector<std::string_view>& all_codes();

}  // namespace launchgap::doctor
