#include "harness/doctor/finding.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "harness/core/text.h"

namespace launchgap::doctor {
namespace {

constexpr std::string_view kReset = "\x1b[0m";

std::string_view colour_of(Severity severity) {
  switch (severity) {
    case Severity::prevents:
      return "\x1b[1;31m";
    case Severity::distorts:
      return "\x1b[1;33m";
    case Severity::note:
      return "\x1b[1;36m";
  }
  return "";
}

constexpr std::size_t kIndent = 10;

std::string paragraph(const char* head, const std::string& text, std::size_t width) {
  return fmt::format("{:>{}}{}\n", head, kIndent, wrapped(text, kIndent, width));
}

/// The sentence, with how many it is about.
std::string sentence_of(const Finding& finding) {
  return finding.subjects.size() < 2
             ? finding.sentence
             : fmt::format("{} ({} GPUs)", finding.sentence, finding.subjects.size());
}

/// One heading for all lines; nothing for none.
std::string list(const char* head, const std::vector<std::string>& lines, std::size_t width) {
  std::string out;
  for (const std::string& line : lines) {
    if (!line.empty()) out += paragraph(out.empty() ? head : "", line, width);
  }
  return out;
}

/// Cause, evidence, effect, fix, and where more is said. The cause may stand above already.
std::string details(const Finding& finding, bool cause_is_said, std::size_t width) {
  std::string out;
  if (finding.subject != "machine") out += paragraph("where ", finding.subject, width);
  if (!cause_is_said) out += paragraph("cause ", sentence_of(finding), width);
  return out + list("evidence ", finding.evidence, width) +
         list("effect ", finding.symptoms, width) + paragraph("fix ", finding.remedy, width) +
         paragraph("more ", fmt::format("launchgap doctor --explain {}", finding.code), width);
}

}  // namespace

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::distorts:
      return "distorts";
    case Severity::prevents:
      return "prevents";
  }
  return "";
}

bool Finding::is_about(const std::string& one) const {
  return subject == one || std::ranges::find(subjects, one) != subjects.end();
}

Json to_json(const Finding& finding) {
  Json json = {{"code", finding.code},
               {"severity", name_of(finding.severity)},
               {"subject", finding.subject},
               {"sentence", finding.sentence},
               {"evidence", finding.evidence},
               {"remedy", finding.remedy}};
  if (!finding.symptoms.empty()) json["symptoms"] = finding.symptoms;
  if (!finding.subjects.empty()) json["subjects"] = finding.subjects;
  return json;
}

std::vector<Finding> merged_alike(std::vector<Finding> findings) {
  std::vector<Finding> merged;
  for (Finding& finding : findings) {
    const auto same = std::ranges::find_if(merged, [&](const Finding& other) {
      return other.code == finding.code && other.severity == finding.severity &&
             other.sentence == finding.sentence;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(finding));
      continue;
    }
    for (std::string& line : finding.evidence) {
      if (std::ranges::find(same->evidence, line) == same->evidence.end())
        same->evidence.push_back(std::move(line));
    }
    if (same->is_about(finding.subject)) continue;
    if (same->subjects.empty()) same->subjects.push_back(same->subject);
    same->subject += ", " + finding.subject;
    same->subjects.push_back(std::move(finding.subject));
  }
  return merged;
}

void sort_by_severity(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

std::string findings_text(const std::vector<Finding>& findings,
                          const TextStyle& style,
                          bool first_is_said) {
  std::string out;
  const bool only_notes = findings.empty() || findings.front().severity == Severity::note;
  bool any_brief = false;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool said = i == 0 && first_is_said;
    const bool brief = finding.severity == Severity::note && !style.verbose && !said &&
                       !(only_notes && findings.size() == 1);
    any_brief = any_brief || brief;
    // Notes stand together.
    if (!brief || i == 0 || findings[i - 1].severity != Severity::note) out += '\n';
    const std::string text =
        brief ? fmt::format("{} [{}]", sentence_of(finding), finding.code) : finding.code;
    out += fmt::format("{}{:<{}}{}{}\n",
                       style.colour ? colour_of(finding.severity) : "",
                       name_of(finding.severity),
                       kIndent,
                       style.colour ? kReset : "",
                       wrapped(text, kIndent, style.width));
    if (!brief) out += details(finding, said, style.width);
  }
  if (any_brief)
    out += paragraph(
        "", "--verbose shows the evidence; --explain CODE says what a code means.", style.width);
  return out;
}

}  // namespace launchgap::doctor
