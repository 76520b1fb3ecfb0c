// What /proc says of a running process.
#pragma once

#include <functional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/doctor/programs/program_facts.h"

namespace launchgap::doctor {

/// The process id that --pid gives. Throws UsageError for what cannot be one.
pid_t parse_pid(std::string_view text);

/// Reads /proc/<pid> and adds what is new to `facts`: a library or node that was there once stays.
/// `proc` is where processes are, `system` whose nodes are meant (the tests' nodes lie below a root
/// of their own). False if the process has ended or cannot be read.
bool look_at_process(pid_t pid,
                     const SystemFiles& proc,
                     const SystemFiles& system,
                     ProcessFacts& facts);

/// The processes below `pid`, itself included, nearest first; at most `limit`.
std::vector<pid_t> process_tree(pid_t pid, const SystemFiles& proc, std::size_t limit = 1024);

/// Where processes are looked for: below the tests' root if it has processes of its own (folders
/// with numbers in its /proc), otherwise the real /proc.
SystemFiles processes_of(const SystemFiles& system);

/// `launchgap doctor --pid`: looks at a process twice, 200 ms apart, and at those below it.
/// `computing` tells which processes NVML lists; it may be empty. Throws Error with the one reason
/// if there is nothing to look at: it is gone, a zombie, a kernel thread or somebody else's.
ProgramFacts look_at_program(pid_t pid,
                             const SystemFiles& system,
                             const std::function<std::set<pid_t>()>& computing);

}  // namespace launchgap::doctor
