// What tests make launchgap say, kept for docs/sentences.md: a line of JSON for each sentence,
// added to the program's file in the folder that LAUNCHGAP_SAID names. Without it nothing is kept.
// tests/sentences/sentences.py reads them.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/record/finding_json.h"

namespace launchgap {

inline void keep_said(Json line) {
  const char* const folder = std::getenv("LAUNCHGAP_SAID");
  if (!folder) return;
  std::ofstream(std::string(folder) + "/" + program_invocation_short_name, std::ios::app)
      << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

/// The findings that a source has made, as they are.
inline std::vector<Finding> said(std::vector<Finding> findings) {
  for (const Finding& finding : findings) {
    Json line = to_json(finding);
    line["source"] = name_of(finding.source);
    line["evidence_text"] = Json::array();
    for (const Evidence& evidence : finding.evidence)
      line["evidence_text"].push_back(text_of(evidence));
    keep_said(std::move(line));
  }
  return findings;
}

/// An answer: what it is of, its verdict, and what it says.
inline void said(std::string_view of, std::string_view verdict, std::string_view sentence) {
  if (sentence.empty()) return;
  keep_said({{"source", of}, {"code", verdict}, {"severity", ""}, {"sentence", sentence}});
}

}  // namespace launchgap
