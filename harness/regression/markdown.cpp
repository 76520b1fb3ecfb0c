#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/regression/report.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kListed = 8;  // changes, reasons and notes

/// Text that means itself, in a cell of a table too: no HTML, no marks of Markdown, nobody
/// mentioned. A `_` within a word is none.
std::string plain(std::string_view text) {
  constexpr std::string_view kMarks = "\\`*[]~|#";
  const auto in_word = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool mark = kMarks.find(c) != std::string_view::npos ||
                      (c == '_' && !(i > 0 && in_word(i - 1) && in_word(i + 1)));
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '@') {
      out += "&#64;";
    } else {
      if (mark) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string row(const Result& result) {
  const bool erratic = result.steadiness == Steadiness::erratic;
  return fmt::format(
      "| {}{} | {} | {} | {} | {} | {} | {} |\n",
      result.verdict == Verdict::slower ? "**slower**" : std::string(name_of(result.verdict)),
      erratic       ? ", erratic"
      : result.tail ? ", longer tail"
                    : "",
      plain(change_text(result)),
      plain(values_text(result)),
      plain(metric_text(result)),
      plain(case_text(result)),
      plain(device_text(result)),
      plain(why_text(result)));
}

std::string what_changed(const Report& report) {
  std::string text;
  const std::vector<Group> groups = changed(report);
  for (std::size_t g = 0; g < std::min(groups.size(), kListed); ++g) {
    const std::vector<const Result*>& results = groups[g].results;
    text += fmt::format("\nChanged with **{}**, compared with before: {}.\n\n",
                        plain(groups[g].what),
                        range_text(groups[g]));
    for (std::size_t i = 0; i < std::min(results.size(), kShownOfEach); ++i) {
      const Result& result = *results[i];
      text += plain(fmt::format("{}: {} of {}, {}, {}",
                                change_text(result),
                                metric_text(result),
                                case_text(result),
                                device_text(result),
                                values_text(result)))
                  .insert(0, "- ") +
              "\n";
    }
    if (results.size() > kShownOfEach)
      text += fmt::format("- and {} more\n", results.size() - kShownOfEach);
  }
  if (groups.size() > kListed)
    text += fmt::format("\nLeft out: {}.\n", counted(groups.size() - kListed, "other change"));
  return text;
}

std::string worst(const Report& report) {
  const std::vector<const Result*> all = found(report);
  if (all.empty()) return "";
  std::string text =
      "\n| verdict | change | before → now | metric | case | device | why |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (std::size_t i = 0; i < std::min(all.size(), kWorstShown); ++i) text += row(*all[i]);
  if (all.size() > kWorstShown)
    text += fmt::format("\nThe worst {} of {}.\n", kWorstShown, all.size());
  return text;
}

std::string not_judged_list(const Report& report) {
  const std::vector<Group> groups = not_judged(report);
  if (groups.empty()) return "";
  std::string text = "\nNot judged:\n\n";
  for (std::size_t i = 0; i < std::min(groups.size(), kListed); ++i)
    text += fmt::format("- {} {}\n", groups[i].results.size(), plain(groups[i].what));
  if (groups.size() > kListed)
    text += fmt::format("- and for {}\n", counted(groups.size() - kListed, "other reason"));
  return text;
}

}  // namespace

std::string markdown(const Report& report) {
  std::string text = fmt::format("**{}**\n", plain(answer_sentence(report)));
  if (!report.base.empty() || !report.subject.empty())
    text += fmt::format(
        "\n{} against {}\n", plain(printable(report.subject)), plain(printable(report.base)));
  if (!report.page.empty()) text += fmt::format("\nPage: {}\n", plain(printable(report.page)));
  text += what_changed(report) + worst(report) + not_judged_list(report);
  for (std::size_t i = 0; i < std::min(report.notes.size(), kListed); ++i)
    text += fmt::format("\n{}\n", plain(printable(report.notes[i])));
  if (report.notes.size() > kListed)
    text += fmt::format("\nLeft out: {}.\n", counted(report.notes.size() - kListed, "note"));
  if (const std::string alarms = false_alarm_sentence(report); !alarms.empty())
    text += fmt::format("\n{}\n", alarms);
  return cut_at_line(std::move(text), kLongestMarkdown);
}

}  // namespace launchgap::regression
