#include "harness/cli/json_output.h"

#include <utility>

#include "harness/core/output_file.h"
#include "harness/core/say.h"

namespace launchgap::cli {
namespace {

constexpr const char* kStandardOutput = "-";

}  // namespace

JsonOutput JsonOutput::to_standard_output() {
  JsonOutput output;
  output.place_ = kStandardOutput;
  return output;
}

void JsonOutput::add_option(CLI::App& command, const std::string& what) {
  command.add_option("--json", place_, what + ", as JSON: to this file, or to standard output (-)")
      ->expected(0, 1)
      ->default_str(kStandardOutput)
      ->type_name("[FILE]");
}

std::string JsonOutput::file() const {
  return place_ == kStandardOutput ? "" : place_;
}

void JsonOutput::begin() const {
  if (!asked()) return;
  if (place_ == kStandardOutput) {
    answer_beside_document();
  } else {
    check_output_place(place_);
  }
}

void JsonOutput::write(const Json& json) const {
  if (!asked()) return;
  // ASCII alone: what a device calls itself is data to a program, and nothing to a terminal.
  const std::string text = json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (place_ == kStandardOutput) {
    answer_document(text);
  } else {
    write_file(place_, text);
  }
}

std::string JsonOutput::take_back() {
  if (file().empty() || place_.find_first_of("./") != std::string::npos) return "";
  return std::exchange(place_, kStandardOutput);
}

}  // namespace launchgap::cli
