// What stands in the cells of the tables: capabilities, sets of versions, sources.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/version.h"

namespace launchgap::doctor {

/// A GPU's compute capability, 3.5.
struct Capability {
  int major = 0;
  int minor = 0;

  /// "3.5", "12.0", "sm_90", "sm_120"; nothing for anything else.
  static std::optional<Capability> parse(std::string_view text);
  std::string text() const;

  friend auto operator<=>(const Capability&, const Capability&) = default;
};

/// Versions as a table names them. Items are separated by blanks: "11.2" (and all of 11.2.x),
/// "2.5-2.11" (both ends included), "12.x", "9.11+", ">=2.8", "<=1.12".
class VersionSet {
 public:
  /// Throws Error for what is no set.
  static VersionSet parse(std::string_view text);

  bool contains(const Version& version) const;
  bool overlaps(const VersionSet& other) const;
  const std::string& text() const { return text_; }
  /// The versions that the items name one by one, oldest first: 2.5, 2.6, … 2.11. Of an item
  /// without an upper end only the lower one.
  std::vector<Version> versions() const;

 private:
  struct VersionRange {
    Version first;                 // as it was written
    std::optional<Version> last;   // as it was written, still inside; nothing: no upper end
    std::optional<Version> above;  // the first version that is no longer inside
  };
  static VersionRange parse_item(std::string_view text);

  std::string text_;
  std::vector<VersionRange> items_;
};

/// Where a row comes from. Parts are separated by "; ". A part "recalled…" says that the row was
/// not confirmed, "recalled: min_cc cuda" that only these columns were not.
struct Source {
  std::string text;

  bool recalled(std::string_view column) const;
};

}  // namespace launchgap::doctor
