#include "harness/core/finding.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"

namespace launchgap {
namespace {

constexpr FindingSourceInfo kSources[] = {
    {"doctor", "The check of machine, driver, libraries and frameworks before measuring."},
    {"session", "What of the session was not measured, or is not to be trusted."},
    {"gate", "A comparison with earlier sessions."},
    {"cause", "What a recorded job shows."},
    {"advice", "What this machine's own numbers say a program should do."},
    {"fallback", "What the same work costs on the CPU."},
};

constexpr SeverityInfo kSeverities[] = {
    {"prevents", "Work is not done on the GPU."},
    {"distorts", "Work is done, but not as fast, not as evenly or not where it seems."},
    {"act", "It costs so much that a change of the program is worth while."},
    {"note", "Good to know; nothing has to be done."},
    {"open", "A question that these numbers do not answer."},
    {"fine", "It was looked at, and no action is needed."},
};

constexpr std::string_view kReset = "\x1b[0m";

std::string_view colour_of(Severity severity) {
  switch (severity) {
    case Severity::prevents:
      return "\x1b[1;31m";
    case Severity::distorts:
    case Severity::act:
      return "\x1b[1;33m";
    case Severity::note:
    case Severity::open:
    case Severity::fine:
      return "\x1b[1;36m";
  }
  return "";
}

constexpr std::size_t kIndent = 10;

/// Whether a line is enough for it.
bool is_minor(const Finding& finding) {
  return finding.severity >= Severity::note;
}

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
std::string list(const char* head, const std::vector<Evidence>& lines, std::size_t width) {
  std::string out;
  for (const Evidence& line : lines) {
    const std::string text = text_of(line);
    if (!text.empty()) out += paragraph(out.empty() ? head : "", text, width);
  }
  return out;
}

/// Cause, evidence, effect, fix, and where more is said. The cause may stand above already.
std::string details(const Finding& finding, bool cause_is_said, std::size_t width) {
  std::string out;
  if (finding.subject != "machine" && !finding.subject.empty())
    out += paragraph("where ", finding.subject, width);
  if (!cause_is_said) out += paragraph("cause ", sentence_of(finding), width);
  out += list("evidence ", finding.evidence, width);
  out += list("effect ", finding.symptoms, width);
  out += list("fix ", {finding.remedy}, width);
  out += list("unknown ", {finding.unknown}, width);
  if (finding.source == FindingSource::doctor)
    out += paragraph("more ", fmt::format("launchgap doctor --explain {}", finding.code), width);
  return out;
}

std::string value_text(double value, std::string_view unit) {
  if (unit == kShareUnit) return percent_text(value);
  if (unit == kTimes) return times_text(value) + " times";
  if (unit == "B") return bytes_text(value);
  if (unit == kNoUnit) return fmt::format("{:.4g}", value);
  return quantity(value, unit);
}

template <class Info>
std::size_t index_of(std::span<const Info> infos, std::string_view name, std::string_view what) {
  const auto found = std::ranges::find(infos, name, &Info::name);
  if (found == infos.end()) throw Error("there is no {} '{}'", what, name);
  return static_cast<std::size_t>(found - infos.begin());
}

}  // namespace

std::span<const FindingSourceInfo> finding_sources() {
  return kSources;
}

std::span<const SeverityInfo> severities() {
  return kSeverities;
}

std::string_view name_of(FindingSource source) {
  return kSources[static_cast<std::size_t>(source)].name;
}

std::string_view name_of(Severity severity) {
  return kSeverities[static_cast<std::size_t>(severity)].name;
}

FindingSource parse_finding_source(std::string_view name) {
  return static_cast<FindingSource>(index_of(finding_sources(), name, "source of findings"));
}

Severity parse_severity(std::string_view name) {
  return static_cast<Severity>(index_of(severities(), name, "severity"));
}

std::string text_of(const Evidence& evidence) {
  if (!evidence.value) return evidence.name;
  std::string text =
      fmt::format("{}: {}", evidence.name, value_text(*evidence.value, evidence.unit));
  if (evidence.low && evidence.high) {
    const auto end = [&](double value) {
      return evidence.unit == kTimes ? times_text(value) : value_text(value, evidence.unit);
    };
    text += fmt::format(" (95 % {} to {})", end(*evidence.low), end(*evidence.high));
  }
  return text;
}

std::vector<Evidence> in_words(const std::vector<std::string>& lines) {
  return {lines.begin(), lines.end()};
}

bool Finding::is_about(const std::string& one) const {
  return subject == one || std::ranges::find(subjects, one) != subjects.end();
}

void sort_findings(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const Finding& finding) {
    return std::tuple(finding.severity, -finding.share.value_or(-1));
  });
}

std::vector<Finding> merged_alike(std::vector<Finding> findings) {
  std::vector<Finding> merged;
  for (Finding& finding : findings) {
    const auto same = std::ranges::find_if(merged, [&](const Finding& other) {
      return other.source == finding.source && other.code == finding.code &&
             other.severity == finding.severity && other.sentence == finding.sentence;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(finding));
      continue;
    }
    for (Evidence& line : finding.evidence) {
      if (std::ranges::find(same->evidence, line) == same->evidence.end())
        same->evidence.push_back(std::move(line));
    }
    if (finding.share && (!same->share || *finding.share > *same->share))
      same->share = finding.share;
    if (same->is_about(finding.subject)) continue;
    if (same->subjects.empty()) same->subjects.push_back(same->subject);
    same->subject += ", " + finding.subject;
    same->subjects.push_back(std::move(finding.subject));
  }
  return merged;
}

std::string findings_text(const std::vector<Finding>& findings,
                          const TextStyle& style,
                          bool first_is_said) {
  std::string out;
  const bool only_minor = findings.empty() || is_minor(findings.front());
  bool any_brief = false;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool said = i == 0 && first_is_said;
    const bool brief =
        is_minor(finding) && !style.verbose && !said && !(only_minor && findings.size() == 1);
    any_brief = any_brief || brief;
    // Those of a line stand together.
    if (!brief || i == 0 || !is_minor(findings[i - 1])) out += '\n';
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

}  // namespace launchgap
