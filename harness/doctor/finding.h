// What the doctor finds: one cause each, with its evidence, its effect and a fix.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/schema.h"

namespace launchgap::doctor {

/// What a finding does to a measurement, and to any other program that wants the GPU.
enum class Severity {
  note,      // good to know; nothing is wrong
  distorts,  // work is done, but not as fast, not as evenly or not where it seems
  prevents,  // work is not done on the GPU
};
std::string_view name_of(Severity severity);

struct Finding {
  std::string code;  // stable, "driver-mismatch"; docs/findings/<code>.md explains it
  Severity severity = Severity::note;
  std::string subject;                // "machine", a GPU's UUID or PCI address, "tensorflow 2.4.0"
  std::string sentence;               // what is wrong and what follows, one sentence
  std::vector<std::string> evidence;  // what was seen where: "libcuda.so.1 is /usr/lib/…"
  std::string remedy;                 // what to do, as a command where there is one
  std::vector<std::string> symptoms = {};  // what else was seen that this explains
  std::vector<std::string> subjects = {};  // where it is about several: each of them

  bool is_about(const std::string& one) const;
};

Json to_json(const Finding& finding);

/// How an answer is written.
struct TextStyle {
  bool colour = false;      // by escape sequences
  bool verbose = false;     // all of every note
  std::size_t width = 100;  // of the terminal, in columns
};

/// The most severe first. Notes are a line each, unless there is nothing else or `verbose`. With
/// `first_is_said` the first one's sentence stands above already.
std::string findings_text(const std::vector<Finding>& findings,
                          const TextStyle& style,
                          bool first_is_said = false);

/// The same about several GPUs as one finding, with the evidence of all.
std::vector<Finding> merged_alike(std::vector<Finding> findings);

/// The most severe first; those of one severity stay in their order.
void sort_by_severity(std::vector<Finding>& findings);

}  // namespace launchgap::doctor
