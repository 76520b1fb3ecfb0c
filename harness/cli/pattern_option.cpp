#include "harness/cli/pattern_option.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/import/step_pattern.h"
#include "harness/measure/pattern_list.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Pattern read(const fs::path& place, std::string_view step) {
  if (place.extension() == ".csv" && !fs::is_directory(place)) {
    if (!step.empty()) throw Error("{}: a table of operations has no steps", place.string());
    return read_pattern(place);
  }
  return recording::pattern_of_session(place, recording::WantedStep::parse(step));
}

Pattern find(const std::string& text) {
  for (const Pattern& shipped : shipped_patterns()) {
    if (shipped.origin.name == text) return shipped;
  }
  if (is_there(text)) return read(text, "");
  // Either may have colons: the longest path that is there.
  for (std::size_t colon = text.rfind(':'); colon != std::string::npos && colon > 0;
       colon = text.rfind(':', colon - 1)) {
    if (is_there(text.substr(0, colon)))
      return read(text.substr(0, colon), std::string_view(text).substr(colon + 1));
  }
  std::vector<std::string> names;
  for (const Pattern& shipped : shipped_patterns()) names.push_back(shipped.origin.name);
  throw Error("'{}' is no session, no file and no pattern that ships{}: those are {}",
              printable(text, 200),
              did_you_mean(text, names),
              list_text(names));
}

/// What lasts as long as it did has an own time to compare with.
void stretch(Pattern& pattern, double factor) {
  if (factor == 1) return;
  for (PatternOperation& one : pattern.operations) {
    const bool kernel = one.action == PatternAction::kernel || one.action == PatternAction::ahead;
    if (kernel)
      one.device_ns = std::llround(
          std::min(static_cast<double>(one.device_ns) * factor, 2.0 * kLongestPatternNs));
  }
  pattern.origin.kernel_factor = factor;
  pattern.origin.name = pattern_name(pattern.origin.name, fmt::format(".x{:g}", factor));
  check_pattern(pattern);
}

}  // namespace

std::vector<Pattern> patterns_of(const std::vector<std::string>& texts, double kernel_factor) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    try {
      patterns.push_back(find(text));
      stretch(patterns.back(), kernel_factor);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      throw UsageError("--pattern: {}", error.what());
    }
  }
  return patterns;
}

}  // namespace launchgap::cli
