// Versions of drivers, toolkits, libraries and frameworks.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap::doctor {

/// "580.65.06", "13.0", "9.19.1": numbers with dots. Compared number by number, missing ones count
/// as zero; the text is kept as it was written.
class Version {
 public:
  /// Nothing for what is no version: empty parts, signs, letters, more than nine digits.
  static std::optional<Version> parse(std::string_view text);
  /// Throws UsageError that names `what` for what is no version.
  static Version require(std::string_view text, std::string_view what);

  const std::string& text() const { return text_; }
  const std::vector<int>& parts() const { return parts_; }
  /// The part at `index`, 0 where it is missing.
  int part(std::size_t index) const { return index < parts_.size() ? parts_[index] : 0; }
  int major() const { return part(0); }
  int minor() const { return part(1); }
  /// "13.0" of "13.0.1": the first `count` parts, as they were written, zeros where missing.
  std::string prefix(std::size_t count) const;
  /// Whether every part that `series` has is the same here: 11.2 contains 11.2.1 and not 11.3.
  bool in_series(const Version& series) const;

  friend std::strong_ordering operator<=>(const Version& a, const Version& b);
  friend bool operator==(const Version& a, const Version& b);

 private:
  std::string text_;
  std::vector<int> parts_;
};

}  // namespace launchgap::doctor
