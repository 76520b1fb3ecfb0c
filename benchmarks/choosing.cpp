#include "benchmarks/choosing.h"

#include <algorithm>
#include <optional>

#include "harness/core/errors.h"

namespace launchgap {

void judge(Choice& choice, const std::function<void()>& verify) {
  const auto note = [&](const char* outcome, const std::exception& error) {
    choice.outcome = outcome;
    choice.reason = error.what();
  };
  choice.outcome = "slower";
  try {
    verify();
  } catch (const WrongResult& error) {
    note("wrong", error);
  } catch (const Unsupported& error) {
    note("failed", error);
  } catch (const LibraryError& error) {
    if (error.sticky()) throw;
    note("failed", error);
  }
}

std::size_t choose_best(std::vector<Choice>& choices,
                        const std::function<double(std::size_t)>& time) {
  constexpr int kRounds = 7;
  std::vector<std::vector<double>> times(choices.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (is_sound(choices[i])) times[i].push_back(time(i));
    }
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (times[i].empty()) continue;
    std::ranges::nth_element(times[i], times[i].begin() + kRounds / 2);
    choices[i].median_ns = times[i][kRounds / 2];
    if (!best || *choices[i].median_ns < *choices[*best].median_ns) best = i;
  }
  if (!best) {
    throw WrongResult("none of the {} candidates is right: {}",
                      choices.size(),
                      choices.empty() ? "" : choices.front().reason);
  }
  choices[*best].outcome = "chosen";
  return *best;
}

}  // namespace launchgap
