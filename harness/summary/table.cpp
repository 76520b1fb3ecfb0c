#include "harness/summary/table.h"

#include <array>

namespace launchgap {

std::string_view name_of(CellKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"text", "number", "count", "flag"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(TableUse use) {
  constexpr std::array<std::string_view, 7> kNames = {
      "session", "details", "fleet", "every_page", "export", "comparison", "comparison_cases"};
  return kNames.at(static_cast<std::size_t>(use));
}

}  // namespace launchgap
