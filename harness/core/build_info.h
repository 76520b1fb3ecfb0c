// What this program was built of, and by.
#pragma once

namespace launchgap {
extern const char* const kVersion;
extern const char* const kGitRevision;  // of `git describe --always --dirty`
extern const char* const kCompiler;
extern const char* const kBuildType;
}  // namespace launchgap
