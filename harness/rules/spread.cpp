#include "harness/rules/spread.h"

namespace launchgap::rules {

std::string_view name_of(SpreadFigure figure) {
  constexpr std::array<std::string_view, kSpreadFigures> kNames = {
      "within-run CV", "between-run CV", "p99/p50", "modes"};
  return kNames.at(static_cast<std::size_t>(figure));
}

}  // namespace launchgap::rules
