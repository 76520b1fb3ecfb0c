#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/regression/report.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kMostGroups = 6;
constexpr std::size_t kMostNotes = 12;

/// Devices in as few words as tell them apart. A UUID's first group is what NVIDIA's tools take
/// too.
class Devices {
 public:
  explicit Devices(const Report& report) {
    std::set<std::string> uuids, nodes;
    for (const Result& result : report.results) {
      uuids.insert(result.key.where.device);
      nodes.insert(result.node);
    }
    several_ = uuids.size() > 1 || nodes.size() > 1;
    nodes_ = nodes.size() > 1;
    const auto tells_apart = [&](std::size_t length) {
      std::set<std::string> shortened;
      for (const std::string& uuid : uuids) shortened.insert(uuid.substr(0, length));
      return shortened.size() == uuids.size();
    };
    while (length_ < kWhole && !tells_apart(length_)) ++length_;
  }

  /// ", on NVIDIA H100 80GB HBM3 (GPU-11111111)"; empty where there is only one.
  std::string text(const Result& result) const {
    if (!several_) return "";
    Result shortened = result;
    shortened.key.where.device.resize(std::min(length_, result.key.where.device.size()));
    if (!nodes_) shortened.node.clear();
    return ", on " + device_text(shortened);
  }

 private:
  static constexpr std::size_t kShort = 12, kWhole = 80;
  bool several_ = false, nodes_ = false;
  std::size_t length_ = kShort;
};

enum class Say { all, but_what_changed };

/// The numbers as a table, and below each row what they are of: names are too long for a column.
std::string listed(const std::vector<const Result*>& results,
                   std::size_t most,
                   const Devices& devices,
                   Say say = Say::all) {
  const std::size_t shown = std::min(results.size(), most);
  std::vector<std::vector<std::string>> rows = {{"", "change", "before", "now"}};
  for (std::size_t i = 0; i < shown; ++i) {
    const Result& result = *results[i];
    rows.push_back({std::string(short_verdict(result)),
                    change_text(result),
                    value_text(result, result.baseline),
                    value_text(result, result.value)});
  }
  const std::string numbers = table(rows);
  std::string text;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t end = numbers.find('\n', begin) + 1;
    text += "  " + numbers.substr(begin, end - begin);
    begin = end;
    if (i == 0) continue;
    Result result = *results[i - 1];
    const std::string of =
        fmt::format("{} of {}{}", metric_text(result), case_text(result), devices.text(result));
    text += "      " + wrapped(of, 6) + "\n";
    if (say == Say::but_what_changed) result.changed.clear();
    if (const std::string why = why_text(result); !why.empty())
      text += "      " + wrapped(why, 6) + "\n";
  }
  return text;
}

std::string what_changed(const Report& report, const Devices& devices) {
  std::string text;
  const std::vector<Group> groups = changed(report);
  for (std::size_t g = 0; g < std::min(groups.size(), kMostGroups); ++g) {
    const std::vector<const Result*>& results = groups[g].results;
    text += "\n" +
            wrapped(fmt::format("Changed with {}: {}.", groups[g].what, range_text(groups[g])), 0) +
            "\n" + listed(results, kShownOfEach, devices, Say::but_what_changed);
    if (results.size() > kShownOfEach)
      text += fmt::format("  and {} more\n", results.size() - kShownOfEach);
  }
  if (groups.size() > kMostGroups)
    text += fmt::format("\nIn --json: {}.\n", counted(groups.size() - kMostGroups, "other change"));
  return text;
}

std::string worst(const Report& report, const Devices& devices) {
  const std::vector<const Result*> all = found(report);
  if (all.empty()) return "";
  std::string text = all.size() > kWorstShown
                         ? fmt::format("\nThe worst {} of {}:\n", kWorstShown, all.size())
                         : "\nWhat was found:\n";
  return text + listed(all, kWorstShown, devices);
}

/// What a person who compares two things wants to see of those that did not differ; of a night
/// nobody does.
std::string the_same(const Report& report, const Devices& devices) {
  if (report.kind == Kind::history) return "";
  std::vector<const Result*> same;
  for (const Result* const result : report.worst_first()) {
    if (result->verdict == Verdict::same && short_verdict(*result) == name_of(Verdict::same))
      same.push_back(result);
  }
  if (same.empty()) return "";
  std::string text = "\nWithin what chance explains, or too small to count:\n";
  text += listed(same, kWorstShown, devices);
  if (same.size() > kWorstShown)
    text += fmt::format("  and {} more, which differ by less\n", same.size() - kWorstShown);
  return text;
}

std::string left_out(const Report& report) {
  const std::vector<Group> groups = not_judged(report);
  if (groups.empty()) return "";
  std::string text = "\nNot judged:\n";
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i) {
    const std::string count = fmt::format("{:>5} ", groups[i].results.size());
    text += count + wrapped(groups[i].what, count.size()) + "\n";
  }
  if (groups.size() > kMostGroups)
    text += fmt::format("      and for {}, in --json\n",
                        counted(groups.size() - kMostGroups, "other reason"));
  return text;
}

std::string steadiness(const Report& report) {
  const auto count = [&](Steadiness of) {
    return std::ranges::count(report.results, of, &Result::steadiness);
  };
  const auto erratic = count(Steadiness::erratic), steadier = count(Steadiness::steadier);
  if (erratic == 0 && steadier == 0) return "";
  return fmt::format(
      "Steadiness: {} erratic, {} steadier; {}.\n",
      erratic,
      steadier,
      report.strictness.gate_spread ? "what is erratic fails" : "watched, not gated");
}

/// So that a name is no command where the text is a CI job's log: GitHub's runner obeys lines that
/// begin with "::", after blanks too, and "##[" anywhere.
std::string inert(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    out += text[i];
    if ((line_begins && rest.starts_with("::")) || rest.starts_with("#[")) out += ' ';
    line_begins = text[i] == '\n' || (line_begins && text[i] == ' ');
  }
  return out;
}

}  // namespace

std::string screen_text(const Report& report) {
  std::string text = wrapped(answer_sentence(report), 0) + "\n";
  if (!report.base.empty() || !report.subject.empty())
    text += wrapped(fmt::format("{} against {}", printable(report.subject), printable(report.base)),
                    0) +
            "\n";
  const Devices devices(report);
  text += what_changed(report, devices) + worst(report, devices) + the_same(report, devices) +
          left_out(report);
  std::string end = steadiness(report);
  for (std::size_t i = 0; i < std::min(report.notes.size(), kMostNotes); ++i)
    end += wrapped(printable(report.notes[i]), 0) + "\n";
  if (report.notes.size() > kMostNotes)
    end += fmt::format("In --json: {}.\n", counted(report.notes.size() - kMostNotes, "other note"));
  if (const std::string alarms = false_alarm_sentence(report); !alarms.empty())
    end += wrapped(alarms, 0) + "\n";
  return inert(text + (end.empty() ? "" : "\n" + end));
}

}  // namespace launchgap::regression
