#include <fmt/format.h>

#include "harness/summary/adviser.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/causes.h"
#include "harness/summary/cliffs.h"
#include "harness/summary/equal_bits.h"
#include "harness/summary/fallback.h"
#include "harness/summary/ladder.h"
#include "harness/summary/layout_kernels.h"
#include "harness/summary/replayed_steps.h"
#include "harness/summary/selections.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/skew.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

std::string evidence_text(const Finding& finding) {
  std::string text;
  for (const Evidence& evidence : finding.evidence) {
    const std::string line = text_of(evidence);
    if (!line.empty()) text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

std::string symptoms_text(const Finding& finding) {
  std::string text;
  for (const Evidence& symptom : finding.symptoms)
    text += (text.empty() ? "" : "; ") + text_of(symptom);
  return text;
}

/// "doctor: The check of the machine. cause: What a recorded job shows."
std::string in_one_line(const auto& all) {
  std::string text;
  for (const auto& info : all)
    text += fmt::format("{}{}: {}", text.empty() ? "" : " ", info.name, info.meaning);
  return text;
}

}  // namespace

std::vector<Finding> all_findings(const TableInputs& inputs) {
  const SessionData& session = inputs.session;
  std::vector<Finding> all = session.doctor;
  const auto add = [&all](std::vector<Finding> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  add(merged_findings(session));
  if (inputs.fleet) {
    add(inputs.fleet->findings);
    sort_findings(all);
    return all;
  }
  add(session_findings(session, inputs.rows));
  if (inputs.nights) add(night_findings(session, inputs.nights->verdicts));
  add(selection_findings(session));
  add(layout_findings(session));
  add(bits_findings(session));
  add(skew_findings(session));
  add(ladder_findings(session, inputs.rows));
  add(cliff_findings(session));
  add(causes(session));
  add(advice(session, inputs.rows));
  add(pattern_findings(session, pattern_rows(session, inputs.rows)));
  add(fallback_findings(session, fallback_costs(session, inputs.rows)));
  sort_findings(all);
  return all;
}

Table findings_table() {
  using Row = const Finding&;
  static const std::string source_meaning = "Who found it. " + in_one_line(finding_sources());
  static const std::string severity_meaning = in_one_line(severities());
  return make_table<Finding>(
      "findings.csv",
      "finding, in the order of what is at stake",
      TableUse::every_page,
      all_findings,
      {{"source", source_meaning, [](Row row) { return name_of(row.source); }},
       {"code", "Which finding: stable, for programs.", &Finding::code},
       {"severity", severity_meaning, [](Row row) { return name_of(row.severity); }},
       {"subject", "What it is about.", &Finding::subject},
       {"sentence", "What is so, and what follows.", &Finding::sentence},
       {"evidence", "The numbers behind it, or what was seen, separated by `; `.", evidence_text},
       {"remedy", "What to do.", &Finding::remedy},
       {"share",
        "Of the time of what it is about, what is at stake; empty where that is not known.",
        &Finding::share,
        kShare},
       {"unknown", "What these numbers do not tell.", &Finding::unknown},
       {"effects", "What else was seen that this explains, separated by `; `.", symptoms_text},
       {"device_id", "The device's UUID; empty: not of one device.", &Finding::device},
       {"replicate", "The process on it, of a recording; else empty.", &Finding::replicate},
       {"cases", "The cases whose numbers these are, separated by blanks.", &Finding::cases}});
}

}  // namespace launchgap
