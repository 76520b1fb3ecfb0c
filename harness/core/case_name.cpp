#include "harness/core/case_name.h"

#include <algorithm>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"

namespace launchgap {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The number that `text` begins with, without the zeros before it.
std::string_view first_number(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of('0'), text.size());
  const auto end = std::ranges::find_if_not(text.substr(begin), is_digit);
  return text.substr(begin, static_cast<std::size_t>(end - text.begin()) - begin);
}

std::strong_ordering by_numbers(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const bool number = is_digit(a[i]);
    if (number != is_digit(b[j]))
      return number ? std::strong_ordering::less : std::strong_ordering::greater;
    if (!number) {
      if (a[i] != b[j]) return a[i] <=> b[j];
      ++i, ++j;
      continue;
    }
    const std::string_view mine = first_number(a.substr(i)), others = first_number(b.substr(j));
    if (const auto order = mine.size() <=> others.size(); order != 0) return order;
    if (const auto order = mine <=> others; order != 0) return order;
    i = static_cast<std::size_t>(mine.end() - a.begin());
    j = static_cast<std::size_t>(others.end() - b.begin());
  }
  if (const auto order = a.size() - i <=> b.size() - j; order != 0) return order;
  return a <=> b;
}

}  // namespace

std::strong_ordering CaseName::operator<=>(const CaseName& other) const {
  if (const auto order = benchmark <=> other.benchmark; order != 0) return order;
  for (std::size_t i = 0; i < std::min(params.size(), other.params.size()); ++i) {
    if (const auto order = params[i].first <=> other.params[i].first; order != 0) return order;
    if (const auto order = by_numbers(params[i].second, other.params[i].second); order != 0)
      return order;
  }
  return params.size() <=> other.params.size();
}

std::string CaseName::family() const {
  return benchmark.substr(0, benchmark.find('/'));
}

std::string CaseName::params_text() const {
  std::string text;
  for (const auto& [axis, value] : params) {
    if (!text.empty()) text += '/';
    text += axis + ":" + value;
  }
  return text;
}

std::string CaseName::text() const {
  return params.empty() ? benchmark : benchmark + "/" + params_text();
}

const std::string* CaseName::find(std::string_view axis) const {
  for (const auto& [name, value] : params) {
    if (name == axis) return &value;
  }
  return nullptr;
}

const std::string& CaseName::at(std::string_view axis) const {
  if (const std::string* const value = find(axis)) return *value;
  throw Error("case '{}' has no axis '{}'", text(), axis);
}

long long CaseName::number(std::string_view axis) const {
  const auto number = number_of_text<long long>(at(axis));
  if (!number) throw Error("case '{}': axis '{}' is not a whole number", text(), axis);
  return *number;
}

bool CaseName::has(std::string_view values) const {
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('/'), values.size());
    const std::string_view value = values.substr(0, end);
    const std::size_t colon = value.find(':');
    if (colon == std::string_view::npos) throw Error("'{}' is not axis:value", value);
    const bool found = std::ranges::any_of(params, [&](const auto& own) {
      return own.first == value.substr(0, colon) && own.second == value.substr(colon + 1);
    });
    if (!found) return false;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return true;
}

CaseName CaseName::parse(std::string_view text) {
  CaseName name;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t colon = part.find(':');
    if (part.empty() || colon == 0) throw Error("'{}' is not the name of a case", text);
    if (colon != std::string_view::npos) {
      name.params.emplace_back(part.substr(0, colon), part.substr(colon + 1));
    } else if (name.params.empty()) {
      if (!name.benchmark.empty()) name.benchmark += '/';
      name.benchmark += part;
    } else {
      throw Error("'{}' is not the name of a case: '{}' is not axis:value", text, part);
    }
    begin = end + 1;
  }
  if (name.benchmark.empty()) throw Error("'{}' is not the name of a case", text);
  return name;
}

}  // namespace launchgap
