// Every variable of the environment that launchgap reads, sets or removes, in one table.
#pragma once

#include <span>
#include <string_view>

namespace launchgap {

enum class VariableUse {
  library,    // the full path of a library: nothing else is tried
  setting,    // changes what launchgap does
  search,     // says where libraries are looked for, or which GPUs are found
  falsifies,  // would make results say something else than their names: workers remove it
  set,        // launchgap sets it for processes that it starts
  outside,    // says who started launchgap: a tool that traces, a container
  test,       // of launchgap's own tests
};
std::string_view name_of(VariableUse use);

struct EnvironmentVariable {
  std::string_view name;
  VariableUse use;
  std::string_view meaning;  // of one that falsifies: its effect
};

/// In the order in which docs list them.
std::span<const EnvironmentVariable> environment_variables();

}  // namespace launchgap
