#include "harness/run/process_environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "harness/core/environment_variables.h"

namespace launchgap {
namespace {

/// Says where things are or what a container may see.
bool is_a_place(const std::string& name) {
  return name.ends_with("_HOME") || name.ends_with("_PATH") || name.starts_with("NVIDIA_");
}

}  // namespace

std::vector<FalsifyingVariable> falsifying_variables() {
  std::vector<FalsifyingVariable> found;
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.use != VariableUse::falsifies) continue;
    std::string name(variable.name);
    if (const char* const value = std::getenv(name.c_str()))
      found.push_back({std::move(name), value, variable.meaning});
  }
  return found;
}

Variables remove_falsifying_variables() {
  Variables removed;
  for (const FalsifyingVariable& variable : falsifying_variables()) {
    removed[variable.name] = variable.value;
    unsetenv(variable.name.c_str());
  }
  return removed;
}

Variables environment_of_libraries() {
  constexpr std::string_view kPrefixes[] = {"CUDA_",
                                            "CUBLAS",
                                            "CUDNN_",
                                            "NVIDIA_",
                                            "OMP_",
                                            "GOMP_",
                                            "KMP_",
                                            "OPENBLAS_",
                                            "DNNL_",
                                            "ONEDNN_",
                                            "MALLOC_",
                                            "GLIBC_TUNABLES",
                                            "LD_PRELOAD",
                                            "LAUNCHGAP_KERNELS",
                                            "LAUNCHGAP_WARM_UP",
                                            "LAUNCHGAP_DELAY_NS"};
  Variables found;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool chosen_by_parent = name == "CUDA_VISIBLE_DEVICES";
    if (!chosen_by_parent && std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
          return name.starts_with(prefix);
        })) {
      found[std::string(name)] = text.substr(std::min(text.size(), name.size() + 1));
    }
  }
  return found;
}

Variables environment_to_compare(const Variables& of_libraries) {
  Variables compared;
  for (const auto& [name, value] : of_libraries) {
    if (!is_a_place(name)) compared[name] = value;
  }
  return compared;
}

}  // namespace launchgap
