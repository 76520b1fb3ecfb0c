#include "harness/run/filter.h"

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

Filter::Filter(const std::string& expression) {
  std::string text = expression;
  if (text.starts_with('-')) {
    negated_ = true;
    text.erase(0, 1);
  }
  try {
    regex_ = std::regex(text, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--filter '{}' is not a regular expression: {}", expression, error.what()));
  }
}

bool Filter::passes(const std::string& case_name) const {
  return std::regex_search(case_name, regex_) != negated_;
}

}  // namespace launchgap
