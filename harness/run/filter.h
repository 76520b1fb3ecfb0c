// `--filter`: the expression that Google Benchmark takes, checked before anything runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// Matches anywhere in a case's name; a '-' in front negates. The empty filter passes everything.
class Filter {
 public:
  /// Throws UsageError that says what is wrong with the expression: no expression, longer than
  /// anybody writes, or repetitions of repetitions that would have it grow.
  explicit Filter(const std::string& expression);
  /// Throws UsageError once all names together took longer than anybody waits.
  bool passes(const std::string& case_name) const;

 private:
  std::string expression_;
  bool negated_ = false;
  struct Expression;  // which takes its users longer to compile than all else
  std::shared_ptr<const Expression> compiled_;
  mutable std::int64_t spent_ns_ = 0;
};

/// Longest expression that a Filter takes.
inline constexpr std::size_t kLongestFilter = 1000;  // bytes

/// ": did you mean 'launch/null'?" for a filter that none of these names passes: of the words in it
/// that occur in none of them, the first that is near to one. Empty if there is none.
std::string filter_meant(std::string_view filter, const std::vector<std::string>& case_names);

/// An expression that matches the case of this name and no other.
std::string exact_filter(std::string_view case_name);
/// One that matches the cases of these names and no others. It may be longer than kLongestFilter.
std::string exact_filter(const std::vector<std::string>& case_names);

}  // namespace launchgap
