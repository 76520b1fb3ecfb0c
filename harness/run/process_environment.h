// Variables of the environment that change what a worker measures.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

using Variables = std::map<std::string, std::string>;

struct FalsifyingVariable {
  std::string name, value;
  std::string_view effect;
};
/// Those that are set here, of the variables that falsify (VariableUse::falsifies).
std::vector<FalsifyingVariable> falsifying_variables();

/// Removes them, before a library reads them; returns what was removed.
Variables remove_falsifying_variables();

/// Variables that change what the libraries do, as they are set here.
Variables environment_of_libraries();

/// Those of them that must be equal for two runs to be comparable: all except paths and what a
/// container may see.
Variables environment_to_compare(const Variables& of_libraries);

}  // namespace launchgap
