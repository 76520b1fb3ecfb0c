// `--filter`: the expression that Google Benchmark takes, checked before anything runs.
#pragma once

#include <regex>
#include <string>

namespace launchgap {

/// Matches anywhere in a case's name; a '-' in front negates. The empty filter passes everything.
class Filter {
 public:
  /// Throws UsageError that says what is wrong with the expression.
  explicit Filter(const std::string& expression);
  bool passes(const std::string& case_name) const;

 private:
  bool negated_ = false;
  std::regex regex_;
};

}  // namespace launchgap
