#include "harness/core/case_name.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

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
  throw Error(fmt::format("case '{}' has no axis '{}'", text(), axis));
}

long long CaseName::number(std::string_view axis) const {
  const std::string& value = at(axis);
  long long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    throw Error(fmt::format("case '{}': axis '{}' is not a whole number", text(), axis));
  }
  return number;
}

bool CaseName::has(std::string_view values) const {
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('/'), values.size());
    const std::string_view value = values.substr(0, end);
    const std::size_t colon = value.find(':');
    if (colon == std::string_view::npos) throw Error(fmt::format("'{}' is not axis:value", value));
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
    if (part.empty() || colon == 0)
      throw Error(fmt::format("'{}' is not the name of a case", text));
    if (colon != std::string_view::npos) {
      name.params.emplace_back(part.substr(0, colon), part.substr(colon + 1));
    } else if (name.params.empty()) {
      if (!name.benchmark.empty()) name.benchmark += '/';
      name.benchmark += part;
    } else {
      throw Error(
          fmt::format("'{}' is not the name of a case: '{}' is not axis:value", text, part));
    }
    begin = end + 1;
  }
  if (name.benchmark.empty()) throw Error(fmt::format("'{}' is not the name of a case", text));
  return name;
}

}  // namespace launchgap
