#include "harness/regression/report_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/rules/nights.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kLongestAlgorithm = 300;  // kernels of templates have long names

bool is_found(const Result& result) {
  return (result.is_compared() && result.verdict != Verdict::same) ||
         result.verdict == Verdict::cannot_tell || result.steadiness == Steadiness::erratic ||
         result.tail;
}

std::string_view compared_with(Kind kind) {
  constexpr std::array<std::string_view, 3> kNouns = {"pair", "run", "session"};
  return kNouns.at(static_cast<std::size_t>(kind));
}

/// " with 60 sessions each", " with 20 to 60 sessions each".
std::string depth_text(const Report& report) {
  std::size_t least = std::string::npos, most = 0;
  for (const Result& result : report.results) {
    if (!result.is_compared()) continue;
    least = std::min(least, result.compared_with);
    most = std::max(most, result.compared_with);
  }
  if (most == 0) return "";
  const std::string range = least == most ? "" : fmt::format("{} to ", least);
  return fmt::format(" with {}{} each", range, counted(most, compared_with(report.kind)));
}

/// " (driver 570.12 → 575.08)": what changed for those that lack a baseline, if it is one thing;
/// with how many they are, if it is not so for all.
std::string change_behind(const Report& report, Verdict verdict) {
  std::set<std::string> changes;
  std::size_t changed = 0;
  for (const Result& result : report.results) {
    if (result.verdict != verdict || result.changed.empty()) continue;
    changes.insert(printable(text_of(result.changed), 120));
    ++changed;
  }
  if (changes.empty()) return "";
  const std::string what = changes.size() == 1 ? *changes.begin() : "of several fingerprints";
  return changed == report.count(verdict) ? fmt::format(" ({})", what)
                                          : fmt::format(" ({} of them: {})", changed, what);
}

/// "3 suspect, 12 to watch, 8 without a baseline (driver 570.12 → 575.08)"; empty if all is same.
std::string others_text(const Report& report) {
  constexpr std::pair<Verdict, std::string_view> kSaid[] = {
      {Verdict::suspect, "suspect"},
      {Verdict::faster, "faster"},
      {Verdict::cannot_tell, "that cannot be told"},
      {Verdict::unstable, "unstable"},
      {Verdict::watch, "to watch"},
      {Verdict::invalid, "invalid"},
      {Verdict::no_baseline, "without a baseline"},
  };
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto erratic = std::ranges::count(report.results, Steadiness::erratic, &Result::steadiness);
  const auto tails = std::ranges::count_if(report.results, [](const Result& result) {
    return result.tail && result.steadiness != Steadiness::erratic;
  });
  for (const auto& [verdict, said] : kSaid) {
    if (const std::size_t count = report.count(verdict); count > 0)
      add(fmt::format("{} {}{}",
                      count,
                      said,
                      verdict == Verdict::no_baseline ? change_behind(report, verdict) : ""));
    if (verdict != Verdict::suspect) continue;
    if (erratic > 0) add(fmt::format("{} erratic", erratic));
    if (tails > 0) add(fmt::format("{} with a longer tail", tails));
  }
  return text;
}

/// Of results that have a change.
bool slower_first(const Result* a, const Result* b) {
  return *a->slowdown() > *b->slowdown();
}

/// Groups in the order in which their first result came.
class Groups {
 public:
  std::vector<const Result*>& of(const std::string& what) {
    const auto [entry, added] = places_.try_emplace(what, groups_.size());
    if (added) groups_.push_back({what, {}});
    return groups_[entry->second].results;
  }
  std::vector<Group> take() { return std::move(groups_); }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<Group> groups_;
};

}  // namespace

std::string device_text(const Result& result) {
  std::string text = printable(result.device_name, 80);
  const std::string uuid = printable(result.key.where.device, 80);
  text += text.empty() ? uuid : fmt::format(" ({})", uuid);
  if (!result.node.empty()) text += " on " + printable(result.node, 80);
  return text;
}

std::string case_text(const Result& result) {
  const CaseKey& where = result.key.where;
  std::string apart;
  if (where.arm != name_of(Arm::plain)) apart = where.arm;
  if (!where.process_config.usual())
    apart += (apart.empty() ? "" : ", ") + where.process_config.text();
  return printable(where.name.text()) +
         (apart.empty() ? "" : fmt::format(" [{}]", printable(apart, 80)));
}

std::string_view short_verdict(const Result& result) {
  if (result.verdict > Verdict::suspect && result.steadiness == Steadiness::erratic)
    return name_of(result.steadiness);
  return result.verdict == Verdict::same && result.tail ? "tail" : name_of(result.verdict);
}

std::string metric_text(const Result& result) {
  return result.key.metric.empty() ? "the result" : printable(result.key.metric, 80);
}

std::string value_text(const Result& result, std::optional<double> value) {
  std::string text = quantity(value, unit_of(result.key.metric));
  if (text.ends_with(' ')) text.pop_back();  // of a metric that this launchgap does not know
  return text;
}

std::string values_text(const Result& result) {
  if (!result.value) return "";
  const std::string now = value_text(result, result.value);
  return result.baseline ? fmt::format("{} → {}", value_text(result, result.baseline), now) : now;
}

std::string why_text(const Result& result) {
  std::string text = printable(result.reason);
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!result.changed.empty())
    add(fmt::format("changed with {}", printable(text_of(result.changed))));
  if (result.algorithm)
    add(fmt::format("another algorithm: {}", printable(algorithm_text(result), kLongestAlgorithm)));
  if (const std::string tail = tail_text(result); !tail.empty()) add(tail);
  if (result.steadiness == Steadiness::same) return text;
  add(std::string(name_of(result.steadiness)) +
      (result.steadiness_reason.empty() ? "" : ": " + printable(result.steadiness_reason)));
  return text;
}

std::string facts_text(const Result& result) {
  std::vector<std::string> facts = {change_text(result), values_text(result), why_text(result)};
  std::erase(facts, "");
  return fmt::to_string(fmt::join(facts, ", "));
}

std::string algorithm_text(const Result& result) {
  return result.algorithm ? fmt::format("{} → {}", result.algorithm->from, result.algorithm->to)
                          : "";
}

namespace {

/// Too little to count, and not on the way to be more either.
bool is_unchanged(const Result& result) {
  return result.verdict == Verdict::same && result.hits == 0 &&
         std::abs(result.change.value_or(0)) < result.minimum.value_or(rules::kNightLeastChange);
}

}  // namespace

std::string tail_text(const Result& result) {
  if (!result.tail) return "";
  return fmt::format("p99 {:.3g} times as long ({} → {}); {}",
                     *result.tail,
                     value_text(result, result.baseline_p99),
                     value_text(result, result.p99),
                     is_unchanged(result)
                         ? "medians equal"
                         : fmt::format("median {:+.1f} %", 100 * result.change.value_or(0)));
}

bool fails(const Result& result, const Strictness& strictness) {
  const bool lacks = result.verdict == Verdict::invalid || result.verdict == Verdict::no_baseline ||
                     result.verdict == Verdict::cannot_tell;
  return result.verdict == Verdict::slower || (strictness.require_baseline && lacks) ||
         (strictness.gate_spread && result.steadiness == Steadiness::erratic);
}

namespace {

/// "api_ns of launch/null/mode:idle, device_ns of matmul/library/… and 3 more".
std::string names_of_slower(const Report& report) {
  constexpr std::size_t kNamed = 3;
  std::string names;
  std::size_t slower = 0;
  for (const Result* const result : report.worst_first()) {
    if (result->verdict != Verdict::slower || ++slower > kNamed) continue;
    names += fmt::format(
        "{}{} of {}", slower == 1 ? "" : ", ", metric_text(*result), case_text(*result));
  }
  return slower > kNamed ? fmt::format("{} and {} more", names, slower - kNamed) : names;
}

}  // namespace

std::string answer_sentence(const Report& report) {
  if (!report.invalid.empty())
    return fmt::format("{}: {}.",
                       report.kind == Kind::pairs
                           ? "Nothing could be compared"
                           : "The session is invalid, and nothing of it counts",
                       printable(report.invalid));
  const std::string others = others_text(report);
  if (report.tests() == 0) {
    if (others.empty()) return "Nothing was compared: there are no metrics.";
    return fmt::format("{}: {}.",
                       report.count(Verdict::cannot_tell) > 0
                           ? "These runs cannot tell whether anything is slower"
                           : "Nothing was compared",
                       others);
  }
  const std::string end = others.empty() ? "." : "; " + others + ".";
  const std::size_t slower = report.count(Verdict::slower);
  if (slower == 0)
    return fmt::format("Nothing is slower: {} compared{}{}",
                       counted(report.tests(), "measurement"),
                       depth_text(report),
                       end);
  return fmt::format("{} of {} {} slower: {}. Compared{}{}",
                     slower,
                     counted(report.tests(), "measurement"),
                     slower == 1 ? "is" : "are",
                     names_of_slower(report),
                     depth_text(report),
                     end);
}

std::string false_alarm_sentence(const Report& report) {
  const std::size_t tests = report.tests();
  if (tests == 0) return "";
  const auto expected = report.expected_false_alarms();
  const std::size_t without = report.tests_without_rate();
  const std::string_view measure =
      report.kind == Kind::history
          ? ": `launchgap selftest --history` measures it from 40 nights on"
      : report.kind == Kind::pairs ? ": `launchgap selftest` measures it"
                                   : "";
  std::string text = counted(tests, "test");
  if (expected)
    text += fmt::format("; {:.2g} false alarms are to be expected{}",
                        *expected,
                        without == 0 ? "" : fmt::format(" of {} of them", tests - without));
  if (without > 0)
    text += fmt::format("; {} rate of false alarms{}",
                        without == tests ? "none has a measured"
                        : without == 1   ? "1 has no measured"
                                         : fmt::format("{} have no measured", without),
                        measure);
  return text + ".";
}

std::vector<Group> changed(const Report& report) {
  Groups groups;
  for (const Result& result : report.results) {
    // What a night is the same as is its level, and not what was before the change.
    const bool is_level = report.kind == Kind::history && result.verdict == Verdict::same;
    if (!result.changed.empty() && result.change && !is_level)
      groups.of(printable(text_of(result.changed))).push_back(&result);
  }
  std::vector<Group> sorted = groups.take();
  for (Group& group : sorted) std::ranges::stable_sort(group.results, slower_first);
  std::ranges::stable_sort(sorted, slower_first, [](const Group& g) { return g.results.front(); });
  return sorted;
}

std::string range_text(const Group& group, const std::string& slowest) {
  const Result &first = *group.results.front(), &last = *group.results.back();
  if (group.results.size() == 1) return change_text(first);
  return fmt::format("{} metrics, from {:+.1f} %{} to {:+.1f} %",
                     group.results.size(),
                     100 * *first.change,
                     slowest,
                     100 * *last.change);
}

std::string change_sentence(const Group& change) {
  const Result& slowest = *change.results.front();
  const std::string of = fmt::format(" ({} of {})", metric_text(slowest), case_text(slowest));
  return fmt::format("Changed with {}: {}{}.",
                     change.what,
                     range_text(change, of),
                     change.results.size() == 1 ? of : "");
}

std::vector<const Result*> found(const Report& report) {
  std::vector<const Result*> found = report.worst_first();
  std::erase_if(found, [](const Result* result) { return !is_found(*result); });
  // What is erratic is graver than what is faster, whatever its verdict.
  std::ranges::stable_sort(found, {}, [](const Result* result) {
    if (result->verdict <= Verdict::suspect) return static_cast<int>(result->verdict);
    return result->steadiness == Steadiness::erratic ? 2 : 3;
  });
  return found;
}

std::vector<Group> not_judged(const Report& report) {
  std::vector<Group> all;
  for (const Verdict verdict :
       {Verdict::invalid, Verdict::no_baseline, Verdict::unstable, Verdict::watch}) {
    Groups groups;
    for (const Result& result : report.results) {
      if (result.verdict != verdict) continue;
      std::string why = printable(result.reason);
      if (why.empty() && !result.changed.empty()) why = printable(text_of(result.changed));
      groups.of(fmt::format("{}{}", name_of(verdict), why.empty() ? "" : ": " + why))
          .push_back(&result);
    }
    std::vector<Group> of_verdict = groups.take();
    std::ranges::stable_sort(of_verdict, std::ranges::greater{}, [](const Group& group) {
      return group.results.size();
    });
    std::ranges::move(of_verdict, std::back_inserter(all));
  }
  return all;
}

std::string cut_at_line(std::string text, std::size_t limit) {
  constexpr std::string_view kCut = "… the rest is left out: it is too long.\n";
  if (text.size() <= limit) return text;
  const std::size_t room = limit - std::min(limit, kCut.size());
  const std::size_t line = room == 0 ? std::string::npos : text.rfind('\n', room - 1);
  text.resize(line == std::string::npos ? 0 : line + 1);
  return text.append(kCut.substr(0, limit));
}

}  // namespace launchgap::regression
