// The forms of a report: for a person at a terminal, for CI systems and for programs.
#pragma once

#include <cstddef>
#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// The sentence that answers, what changed, the worst, what was not judged, and how far to trust
/// it: lines of at most 100 characters, unless a name is longer.
std::string screen_text(const Report& report);

// --- GitHub's workflow commands, which it shows beside a job: "::error title=…::…" ---

/// GitHub shows ten of a kind per step and drops the rest.
inline constexpr std::size_t kMostAnnotations = 10;

/// A line each: what fails first, then what changed with the fingerprint, then the rest of what was
/// found but faster. No more than kMostAnnotations.
std::string github_annotations(const Report& report);

// --- JUnit's XML, which CI systems show: a test case per metric, case, device and node ---

/// What fails the command is a <failure>; else what is invalid or has no baseline is <skipped>,
/// with its reason. A session that is invalid as a whole is an <error> of a test case of its own.
std::string junit_xml(const Report& report);

// --- Markdown, for a CI job's summary ---

/// GitHub takes no longer summary.
inline constexpr std::size_t kLongestMarkdown = std::size_t{1} << 20;

/// The answer, what changed, the ten worst, what was not judged, how many false alarms to expect.
/// At most kLongestMarkdown bytes.
std::string markdown(const Report& report);

// --- One JSON document, for programs: docs/check.schema.json is its schema ---

/// Keys in a fixed order. What is absent, empty or no finite number has no key, except for arrays.
std::string report_json(const Report& report);

}  // namespace launchgap::regression
