// The findings about programs that are watched, in words.
#pragma once

#include <string>

#include "harness/core/finding.h"
#include "harness/doctor/programs/program_causes.h"
#include "harness/doctor/programs/program_facts.h"

namespace launchgap::doctor {

Finding program_uses_gpu(const ProgramFacts& facts);
/// program-library-missing; library-broken where a file of that name is there and no library.
Finding program_library_missing(const ProgramFacts& facts,
                                const MissingLibrary& cause,
                                const Surroundings& surroundings);
Finding program_library_shadowed(const ProgramFacts& facts, const ShadowedLibrary& shadow);
Finding program_has_no_context(const ProgramFacts& facts, const ProcessFacts& process);
Finding program_never_asks(const ProgramFacts& facts);
/// `why` is a sentence.
Finding program_not_seen(const ProgramFacts& facts, const std::string& why);

}  // namespace launchgap::doctor
