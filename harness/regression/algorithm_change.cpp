#include "harness/regression/algorithm_change.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kUsualShare = 10;  // one session of so many

std::string text_of(const Algorithms& algorithms) {
  return fmt::to_string(fmt::join(algorithms, " or "));
}

}  // namespace

void EarlierAlgorithms::add(const Algorithms& of_session) {
  if (of_session.empty()) return;
  ++sessions_[of_session];
  ++count_;
}

std::optional<KeyChange> EarlierAlgorithms::change_to(const Algorithms& now) const {
  if (now.empty() || count_ == 0) return std::nullopt;
  const auto is_usual = [&](const std::string& algorithm) {
    std::size_t had = 0;
    for (const auto& [algorithms, sessions] : sessions_) {
      if (algorithms.contains(algorithm)) had += sessions;
    }
    return had > 0 && had * kUsualShare >= count_;
  };
  if (std::ranges::all_of(now, is_usual)) return std::nullopt;
  const auto most =
      std::ranges::max_element(sessions_, {}, [](const auto& entry) { return entry.second; });
  return KeyChange{"algorithm", text_of(most->first), text_of(now)};
}

void note_algorithms(Report& report) {
  std::set<CaseKey> cases;
  const Result* first = nullptr;
  for (const Result& result : report.results) {
    if (!result.algorithm || result.verdict != Verdict::same || result.hits != 0) continue;
    if (!first) first = &result;
    cases.insert(result.key.where);
  }
  if (!first) return;
  report.notes.push_back(fmt::format(
      "Another algorithm at the same speed: {} ({}){}.",
      case_text(*first),
      printable(algorithm_text(*first), 300),
      cases.size() == 1 ? "" : fmt::format(", and {} more", counted(cases.size() - 1, "case"))));
}

}  // namespace launchgap::regression
