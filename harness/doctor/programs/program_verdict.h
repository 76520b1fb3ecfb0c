// The folder `programs` takes a command or a process id, and gives what was seen of the program
// (program_facts.h) and a verdict. It uses `rules`, since a program may suffer from the machine.
//
// Whether a program is on the GPU, and if not, the one reason.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/core/finding.h"
#include "harness/core/system_files.h"
#include "harness/doctor/libraries/library_copies.h"
#include "harness/doctor/programs/program_facts.h"
#include "harness/record/json.h"

namespace launchgap::doctor {

enum class GpuUse {
  on_gpu,
  on_cpu_silently,  // it asked for the GPU, did not get it, and went on without a failure
  on_cpu,           // it never asked, or failed when it did not get it
  unknown,
};
std::string_view name_of(GpuUse use);  // "on-gpu", "on-cpu-silently"

/// What of the machine explains a program's troubles.
struct Surroundings {
  SystemFiles system;
  LoaderCache cache;
  std::map<std::string, std::string> environment;  // what a program's own does not name
};

struct ProgramVerdict {
  GpuUse use = GpuUse::unknown;
  /// Exactly one: program-uses-gpu, program-library-missing, program-library-shadowed,
  /// library-broken, program-has-no-context, program-never-asks or program-not-seen. A finding
  /// about the machine that prevents every program (no driver, hidden GPUs) may take the place of
  /// program-has-no-context and of a missing libcuda.so.1.
  Finding finding;
};

ProgramVerdict judge_program(const ProgramFacts& facts, const Surroundings& surroundings);

/// The same on this machine. What keeps every program here from the GPU takes the place of what one
/// program shows of it.
ProgramVerdict judge_program_here(const ProgramFacts& facts);

std::string text(const ProgramFacts& facts, const ProgramVerdict& verdict, const TextStyle& style);
/// {"use": …, "program": …, "findings": […]}: docs/doctor.md has every field.
Json to_json(const ProgramFacts& facts, const ProgramVerdict& verdict);

/// Whether a file is the toolkit's stub of the driver, whose calls all return 34: it lies in a
/// folder "stubs", as all toolkits have it.
bool is_stub(std::string_view path);

}  // namespace launchgap::doctor
