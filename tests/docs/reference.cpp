// Prints tables.json: what the docs' tables and the tests of the page are made from; how
// quantities are written, for the test that the page writes them so too; patterns of allocations;
// and the actions of recorded steps.
#include <cstdio>

#include "harness/allocation/patterns.h"
#include "harness/core/pattern.h"
#include "harness/core/text.h"
#include "harness/summary/all_tables.h"

int main() {
  nlohmann::ordered_json described = launchgap::describe_tables();
  for (const char* unit : {"ns", "TFLOP/s", "GB/s", "B", "W", "1", ""}) {
    for (const double digits : {1.0, 1.2345, 2.0, 5.0049, 9.994, 9.9951, 9.9999}) {
      for (double scale = 1e-7; scale < 1e13; scale *= 10) {
        const double value = digits * scale;
        described["quantities"].push_back({value, unit, launchgap::quantity(value, unit)});
      }
    }
    described["quantities"].push_back({0.0, unit, launchgap::quantity(0.0, unit)});
    described["quantities"].push_back({-2310.0, unit, launchgap::quantity(-2310.0, unit)});
  }
  for (const auto& [pattern, about, parameters] : launchgap::allocation::patterns()) {
    for (const auto& [name, usual, least, most, meaning] : parameters)
      described["patterns"].push_back({pattern, name, usual, least, most, meaning});
  }
  for (const launchgap::PatternActionInfo& info : launchgap::pattern_actions())
    described["step_actions"].push_back({{"key", info.name}, {"meaning", info.meaning}});
  return std::puts(described.dump(1).c_str()) < 0;
}
