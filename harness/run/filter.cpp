#include "harness/run/filter.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap {
namespace {

constexpr double kLargest = 10'000;  // bytes, each as often as the expression repeats it
constexpr std::int64_t kMostNs = 10'000'000'000;

/// How often the counted repetitions, "{3,5}", can multiply what stands before them, if each were
/// within the next.
double repeats_in(const std::string& text) {
  double product = 1;
  static const std::regex counted(R"(\{(\d*)(,(\d*))?\})");
  for (std::sregex_iterator count(text.begin(), text.end(), counted), end; count != end; ++count) {
    for (const int group : {1, 3})
      product *= std::max(1.0, std::strtod((*count)[group].str().c_str(), nullptr));
  }
  return product;
}

}  // namespace

struct Filter::Expression {
  std::regex regex;
};

Filter::Filter(const std::string& expression) : expression_(expression) {
  std::string text = expression;
  const auto too_large = [&](const char* why) {
    return UsageError(fmt::format("--filter '{}': {}", printable(expression, 60), why));
  };
  if (text.size() > kLongestFilter) throw too_large("it is longer than 1000 bytes");
  if (repeats_in(text) * static_cast<double>(text.size()) > kLargest)
    throw too_large("it repeats too much");
  if (text.starts_with('-')) {
    negated_ = true;
    text.erase(0, 1);
  }
  try {
    // Without trying one way after the other, of which there may be more than anybody waits for.
    compiled_ = std::make_shared<Expression>(
        Expression{std::regex(text, std::regex::ECMAScript | std::regex_constants::__polynomial)});
  } catch (const std::regex_error& error) {
    throw UsageError("--filter '{}' is not a regular expression: {}", expression, error.what());
  }
}

bool Filter::passes(const std::string& case_name) const {
  const std::int64_t begin = now_ns();
  const bool found = std::regex_search(case_name, compiled_->regex);
  spent_ns_ += now_ns() - begin;
  if (spent_ns_ > kMostNs) {
    throw UsageError("--filter '{}' takes too long to be looked for: write it simpler",
                     printable(expression_, 60));
  }
  return found != negated_;
}

namespace {

std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = R"(\^$.|?*+()[]{})";
  std::string filter;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) filter += '\\';
    filter += c;
  }
  return filter;
}

}  // namespace

std::string filter_meant(std::string_view filter, const std::vector<std::string>& case_names) {
  constexpr std::string_view kNoWord = R"(\^$.|?*+()[]{} )";
  // Of "launch/null/mode:idle": itself, "launch/null", "null/mode:idle", "launch", and so on.
  std::set<std::string> parts;
  for (const std::string& name : case_names) {
    for (std::size_t begin = 0; begin < name.size();) {
      for (std::size_t end = begin; end < name.size();) {
        end = std::min(name.find('/', end + 1), name.size());
        parts.insert(name.substr(begin, end - begin));
      }
      begin = std::min(name.find('/', begin), name.size() - 1) + 1;
    }
  }
  const std::vector<std::string> known(parts.begin(), parts.end());
  for (std::size_t begin = filter.starts_with('-') ? 1 : 0; begin < filter.size();) {
    const std::size_t end = std::min(filter.find_first_of(kNoWord, begin), filter.size());
    std::string_view word = filter.substr(begin, end - begin);
    begin = end + 1;
    while (word.starts_with('/')) word.remove_prefix(1);
    while (word.ends_with('/')) word.remove_suffix(1);
    const bool occurs = std::ranges::any_of(
        case_names, [&](const std::string& name) { return name.find(word) != std::string::npos; });
    if (occurs) continue;
    if (std::string meant = did_you_mean(word, known); !meant.empty()) return meant;
  }
  return "";
}

std::string exact_filter(std::string_view case_name) {
  return "^" + escaped(case_name) + "$";
}

std::string exact_filter(const std::vector<std::string>& case_names) {
  if (case_names.size() == 1) return exact_filter(case_names.front());
  std::string filter;
  for (const std::string& name : case_names) filter += (filter.empty() ? "" : "|") + escaped(name);
  return "^(" + filter + ")$";
}

}  // namespace launchgap
