#include "harness/doctor/version.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"

namespace launchgap::doctor {

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  version.text_ = text;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const bool digits = std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (part.empty() || part.size() > 9 || !digits) return std::nullopt;
    version.parts_.push_back(*number_of_text<int>(part));
    begin = end + 1;
  }
  return version;
}

Version Version::require(std::string_view text, std::string_view what) {
  if (auto version = parse(text)) return *std::move(version);
  throw UsageError("{} '{}' is no version: numbers with dots are, such as 12.4", what, text);
}

std::string Version::prefix(std::size_t count) const {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{}{}", i ? "." : "", part(i));
  return out;
}

bool Version::in_series(const Version& series) const {
  for (std::size_t i = 0; i < series.parts_.size(); ++i) {
    if (part(i) != series.part(i)) return false;
  }
  return true;
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  for (std::size_t i = 0; i < std::max(a.parts_.size(), b.parts_.size()); ++i) {
    if (const auto order = a.part(i) <=> b.part(i); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

bool operator==(const Version& a, const Version& b) {
  return (a <=> b) == 0;
}

}  // namespace launchgap::doctor
