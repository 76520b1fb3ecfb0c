// What launchgap finds, whoever finds it: a defect of the machine, a cause of slow launches,
// advice, what a fallback costs, a metric that is slower. One type, one order, one text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// Who found it.
enum class FindingSource {
  doctor,    // the check of machine, driver, libraries and frameworks
  session,   // what of a session was not measured, or is not to be trusted
  gate,      // a comparison with earlier sessions
  cause,     // a recorded job
  advice,    // this machine's own numbers
  fallback,  // the same work on the CPU
};

/// What a finding means to who reads it, the gravest first.
enum class Severity {
  prevents,  // work is not done on the GPU
  distorts,  // work is done, but not as fast, not as evenly or not where it seems
  act,       // worth a change of the program
  note,      // good to know; nothing has to be done
  open,      // a question that these numbers do not answer
  fine,      // looked at, and no action is needed
};

struct FindingSourceInfo {
  std::string_view name, meaning;
};
struct SeverityInfo {
  std::string_view name, meaning;
};
/// All of them, in the order of the enumerations.
std::span<const FindingSourceInfo> finding_sources();
std::span<const SeverityInfo> severities();

std::string_view name_of(FindingSource source);
std::string_view name_of(Severity severity);
/// Throw Error for what is none.
FindingSource parse_finding_source(std::string_view name);
Severity parse_severity(std::string_view name);

/// Units of evidence beside those of metrics.
inline constexpr std::string_view kTimes = "times";      // a ratio
inline constexpr std::string_view kShareUnit = "share";  // of 1, said in percent
inline constexpr std::string_view kNoUnit = "1";

/// What a finding rests on: a named number with its unit, or what was seen, in words.
struct Evidence {
  std::string name;                 // "launches on an idle stream"; without a value, the words
  std::optional<double> value;      // in `unit`
  std::string unit;                 // of a metric, "B", or one of those above
  std::optional<double> low, high;  // its 95 % interval

  Evidence(std::string words) : name(std::move(words)) {}  // NOLINT(google-explicit-constructor)
  Evidence(const char* words) : name(words) {}             // NOLINT(google-explicit-constructor)
  Evidence(std::string name_, double value_, std::string unit_)
      : name(std::move(name_)), value(value_), unit(std::move(unit_)) {}
  Evidence(std::string name_, double value_, std::string unit_, double low_, double high_)
      : name(std::move(name_)), value(value_), unit(std::move(unit_)), low(low_), high(high_) {}

  bool operator==(const Evidence&) const = default;
};
/// "call to kernel, p50: 4.40 ms (95 % 4.31 ms to 4.52 ms)"; or the words.
std::string text_of(const Evidence& evidence);

/// Each line as evidence in words.
std::vector<Evidence> in_words(const std::vector<std::string>& lines);

struct Finding {
  std::string code;  // stable, "driver-mismatch"
  Severity severity = Severity::note;
  std::string subject;             // "machine", a GPU's UUID or PCI address, "tensorflow 2.4.0"
  std::string sentence;            // what is so and what follows, one sentence
  std::vector<Evidence> evidence;  // the numbers behind it; what was seen where
  std::string remedy;              // what to do, as a command where there is one
  std::vector<Evidence> symptoms = {};     // what else was seen that this explains
  std::vector<std::string> subjects = {};  // where it is about several: each of them
  FindingSource source = FindingSource::doctor;
  /// Of the time of what it is about (a recording, a launch, a product), what is at stake. 0 to 1.
  std::optional<double> share = {};
  std::string unknown = {};           // what the numbers do not tell; empty: nothing is known of
  std::string device = {};            // UUID, where it is about one device that was measured
  std::optional<int> replicate = {};  // the process on it, of a recording
  std::string cases = {};             // whose numbers these are, separated by blanks

  bool is_about(const std::string& one) const;
};

/// The one order of findings: by severity, the gravest first; of one severity by the share of time
/// at stake, the largest first, and those without a share last; else as they were.
void sort_findings(std::vector<Finding>& findings);

/// The same code, severity and sentence about several subjects as one finding, with the evidence
/// of all.
std::vector<Finding> merged_alike(std::vector<Finding> findings);

/// How an answer is written.
struct TextStyle {
  bool colour = false;      // by escape sequences
  bool verbose = false;     // all of every note
  std::size_t width = 100;  // of the terminal, in columns
};

/// Each with its evidence, effect, remedy and what is not known, in the order in which they are.
/// Notes are a line each, unless there is nothing else or `verbose`. With `first_is_said` the first
/// one's sentence stands above already.
std::string findings_text(const std::vector<Finding>& findings,
                          const TextStyle& style,
                          bool first_is_said = false);

}  // namespace launchgap
