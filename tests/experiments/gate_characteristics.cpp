// gate_characteristics [SERIES]: how often the rule of nights is wrong about simulated nights, and
// what it finds, as the table of docs/definitions.md. Ends with 1 if a limit is not kept.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/regression/simulated_nights.h"

namespace {

using namespace launchgap::regression;

bool kept = true;

std::string percent(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share > 0 && share < 0.1 ? 2 : 0);
}

std::string limit(std::string_view which, double share, bool holds) {
  kept = kept && holds;
  return fmt::format("{} {:g} %{}", which, 100 * share, holds ? "" : " NOT KEPT");
}

void print_without_change(int series, std::uint64_t& seed) {
  fmt::print(
      "| nights without a change | slower, of all nights | limit | suspect | unstable | series "
      "ever "
      "slower |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const NightKind& kind : kinds_without_change()) {
    const Characteristics found = characteristics_of(kind, series, ++seed);
    fmt::print("| {} | {:.3f} % | {} | {} | {} | {} |\n",
               kind.name,
               100 * found.slower,
               limit("at most", kind.most_false_alarms, found.slower <= kind.most_false_alarms),
               percent(found.suspect),
               percent(found.unstable),
               percent(found.ever));
    std::fflush(stdout);
  }
}

void print_with_change(int series, std::uint64_t& seed) {
  fmt::print("\n| change | slower, of all series | limit |\n| --- | --- | --- |\n");
  for (const NightKind& kind : kinds_with_change()) {
    const Characteristics found = characteristics_of(kind, series, ++seed);
    std::string shares, limits;
    for (std::size_t i = 0; i < kind.found.size(); ++i) {
      const Within& within = kind.found[i];
      shares += fmt::format("{}{} {}", i > 0 ? ", " : "", within.name, percent(found.found[i]));
      if (within.least == 0) continue;
      limits += fmt::format("{}{}",
                            limits.empty() ? "" : ", ",
                            limit("at least", within.least, found.found[i] >= within.least));
    }
    fmt::print("| {} | {} | {} |\n", kind.name, shares, limits);
    std::fflush(stdout);
  }
}

void print_predictions(std::uint64_t& seed) {
  constexpr int kMetrics = 60;
  fmt::print(
      "\n| nights without a change | alarms predicted | counted | limit |\n| --- | --- | --- | --- "
      "|\n");
  for (const NightKind& kind : kinds_without_change()) {
    const Prediction found = predicted_and_counted(kind, kMetrics, ++seed);
    const bool within_two = kind.name.starts_with("stretches");
    const bool holds = found.holds(within_two);
    kept = kept && holds;
    fmt::print("| {} | {:.1f} | {} | {}{} |\n",
               kind.name,
               found.predicted,
               found.counted,
               within_two ? "half to twice" : "within Poisson's 99 %",
               holds ? "" : " NOT KEPT");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int series = argc > 1 ? std::atoi(argv[1]) : 2000;
  if (series <= 0) {
    fmt::print(stderr, "gate_characteristics [SERIES]: the number of series of each kind\n");
    return 2;
  }
  std::uint64_t seed = 0;
  print_without_change(series, seed);
  print_with_change(series, seed);
  print_predictions(seed);
  return kept ? 0 : 1;
}
