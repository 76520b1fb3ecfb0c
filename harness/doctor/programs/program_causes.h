// What can keep a program from the GPU: a library that is missing, or taken from the wrong place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/libraries/library_copies.h"
#include "harness/doctor/programs/program_facts.h"
#include "harness/doctor/programs/program_verdict.h"

namespace launchgap::doctor {

/// Points into the facts that it was found in.
struct MissingLibrary {
  const ProcessFacts* process = nullptr;
  const LoaderSearch* search = nullptr;
};

/// A CUDA library that a process took, and where it lies.
struct TakenLibrary {
  const ProcessFacts* process = nullptr;
  std::string name, path;
  PathOrigin origin;
};

struct ShadowedLibrary {
  TakenLibrary taken;
  std::optional<LibraryCopy> other;  // what would have been right; a stub may have no other
};

/// The missing library that explains the rest, if one does: the one that is needed first, of those
/// that are not optional and have no other version in the process.
std::optional<MissingLibrary> missing_library(const ProgramFacts& facts);

/// The CUDA libraries that were taken, those that are needed first in front.
std::vector<TakenLibrary> taken_libraries(const ProgramFacts& facts);

/// The library that was taken in place of a better one, if there is such a thing: a stub, another
/// driver than the system's, or an older version than the system's.
std::optional<ShadowedLibrary> shadowed_library(const ProgramFacts& facts,
                                                const Surroundings& surroundings);

/// Whether the process has this library, in whatever version.
bool has_library(const ProcessFacts& process, std::string_view stem);
/// One of the libraries without which nothing works, not a special one.
bool is_basic(std::string_view name);
/// A variable of its environment; empty if it is not set.
std::string variable(const ProcessFacts& process, const std::string& name);

}  // namespace launchgap::doctor
