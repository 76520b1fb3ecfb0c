// Variables of the environment that change what a worker measures.
#pragma once

#include <map>
#include <string>

namespace launchgap {

using Variables = std::map<std::string, std::string>;

/// Removes the variables that falsify (VariableUse::falsifies), before a library reads them;
/// returns what was removed.
Variables remove_falsifying_variables();

/// Variables that change what the libraries do, as they are set here.
Variables environment_of_libraries();

/// Of those, the ones that must be equal to compare: not those that say where things are, or what a
/// container may see.
Variables environment_to_compare(const Variables& of_libraries);

}  // namespace launchgap
