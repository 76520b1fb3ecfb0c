// Settings of a worker's whole process, as the name of its setup spells them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/device/device.h"

namespace launchgap {

/// A variable of the environment that would make results say something else than their names.
struct FalsifyingVariable {
  const char* name;
  const char* effect;
};

/// All of them, which a worker removes before it measures. docs/architecture.md lists them.
std::span<const FalsifyingVariable> falsifying_variables();

/// "launch+wait=block", "launch+loading=eager". `jit_cache` is the folder for loading=jit_cached.
/// Throws UsageError for a value that there is not.
OpenOptions open_options(std::string_view setup, const std::string& jit_cache);

}  // namespace launchgap
