#include "harness/doctor/compatibility/table_cells.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"

namespace launchgap::doctor {
namespace {

Version version_in(std::string_view text, std::string_view set) {
  if (auto version = Version::parse(text)) return *std::move(version);
  throw Error(fmt::format("'{}' is no set of versions: '{}' is no version", set, text));
}

/// 2.12 of 2.11: the first version after all of 2.11.x.
Version after(const Version& version) {
  std::string text;
  for (std::size_t i = 0; i < version.parts().size(); ++i) {
    const bool last = i + 1 == version.parts().size();
    text += fmt::format("{}{}", i ? "." : "", version.part(i) + (last ? 1 : 0));
  }
  return *Version::parse(text);
}

bool before(const std::optional<Version>& above, const Version& version) {
  return above && *above <= version;
}

}  // namespace

std::optional<Capability> Capability::parse(std::string_view text) {
  std::string dotted(text);
  if (text.starts_with("sm_")) {
    dotted = text.substr(3);
    if (dotted.size() < 2) return std::nullopt;
    dotted.insert(dotted.size() - 1, ".");
  }
  const auto version = Version::parse(dotted);
  if (!version || version->parts().size() != 2) return std::nullopt;
  if (version->major() < 1 || version->major() > 99 || version->minor() > 9) return std::nullopt;
  return Capability{version->major(), version->minor()};
}

std::string Capability::text() const {
  return fmt::format("{}.{}", major, minor);
}

VersionSet::VersionRange VersionSet::parse_item(std::string_view text) {
  const std::string_view set = text;
  if (text.starts_with(">=")) return {version_in(text.substr(2), set), {}, {}};
  if (text.ends_with("+")) return {version_in(text.substr(0, text.size() - 1), set), {}, {}};
  if (text.starts_with("<=")) {
    const Version last = version_in(text.substr(2), set);
    return {*Version::parse("0"), last, after(last)};
  }
  if (text.ends_with(".x")) text.remove_suffix(2);
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const Version first = version_in(text.substr(0, dash), set);
    const Version last = version_in(text.substr(dash + 1), set);
    if (last < first)
      throw Error(fmt::format("'{}' is no set of versions: it runs backwards", set));
    return {first, last, after(last)};
  }
  const Version version = version_in(text, set);
  return {version, version, after(version)};
}

VersionSet VersionSet::parse(std::string_view text) {
  VersionSet set;
  set.text_ = text;
  for (const std::string_view item : parts_of(text, " ")) set.items_.push_back(parse_item(item));
  if (set.items_.empty()) throw Error("an empty set of versions");
  return set;
}

bool VersionSet::contains(const Version& version) const {
  return std::ranges::any_of(items_, [&](const VersionRange& item) {
    return item.first <= version && !before(item.above, version);
  });
}

bool VersionSet::overlaps(const VersionSet& other) const {
  return std::ranges::any_of(items_, [&](const VersionRange& a) {
    return std::ranges::any_of(other.items_, [&](const VersionRange& b) {
      return !before(a.above, b.first) && !before(b.above, a.first);
    });
  });
}

std::vector<Version> VersionSet::versions() const {
  std::vector<Version> out;
  for (const VersionRange& item : items_) {
    out.push_back(item.first);
    if (!item.last || *item.last == item.first) continue;
    if (item.first.major() == item.last->major()) {
      for (int minor = item.first.minor() + 1; minor < item.last->minor(); ++minor) {
        out.push_back(*Version::parse(fmt::format("{}.{}", item.first.major(), minor)));
      }
    }
    out.push_back(*item.last);
  }
  return out;
}

bool Source::recalled(std::string_view column) const {
  for (std::string_view part : parts_of(text, "; ")) {
    if (!part.starts_with("recalled")) continue;
    const std::size_t colon = part.find(": ");
    if (colon == std::string_view::npos) return true;
    const auto columns = parts_of(part.substr(colon + 2), " ");
    if (std::ranges::find(columns, column) != columns.end()) return true;
  }
  return false;
}

}  // namespace launchgap::doctor
