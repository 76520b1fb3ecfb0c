#include "harness/run/settings.h"

#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"

namespace launchgap {
namespace {

template <class Value, std::size_t count>
void set(Value& value,
         std::string_view setup,
         std::string_view name,
         const std::pair<std::string_view, Value> (&choices)[count]) {
  const auto text = setting_of(setup, name);
  if (!text) return;
  for (const auto& [choice, meaning] : choices) {
    if (*text == choice) {
      value = meaning;
      return;
    }
  }
  throw UsageError(fmt::format("setup '{}' has no value '{}' of {}", setup, *text, name));
}

}  // namespace

OpenOptions open_options(std::string_view setup, const std::string& jit_cache) {
  OpenOptions options;
  options.jit_cache = jit_cache;
  set(options.wait,
      setup,
      "wait",
      {std::pair<std::string_view, WaitMode>{"spin", WaitMode::spin},
       {"yield", WaitMode::yield},
       {"block", WaitMode::block}});
  set(options.loading,
      setup,
      "loading",
      {std::pair<std::string_view, CodeLoading>{"none", CodeLoading::unchanged},
       {"lazy", CodeLoading::lazy},
       {"eager", CodeLoading::eager},
       {"jit_warming", CodeLoading::jit_warming},
       {"jit_cached", CodeLoading::jit_cached},
       {"jit_uncached", CodeLoading::jit_uncached}});
  return options;
}

}  // namespace launchgap
