// A framework's package with a version or a range, as --for takes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/version.h"

namespace launchgap::doctor {

/// "tensorflow==2.4.0", "torch>=2.0,<2.4", "torch==2.3+cu121", "pytorch".
struct Requirement {
  struct Clause {
    enum class Op { equal, not_equal, at_least, at_most, above, below, compatible };
    Op op = Op::equal;
    Version version;
    bool series = false;  // "==2.4.*"
  };

  std::string text;       // as it was asked
  std::string package;    // "tensorflow-gpu", as it was asked, without extras
  std::string framework;  // "tensorflow" or "torch"
  std::string extra;      // "and-cuda"
  std::vector<Clause> clauses;
  std::optional<Version> cuda;  // of a tag: 12.1 of "+cu121"
  bool cpu_only = false;        // "+cpu", "tensorflow-cpu"

  /// With PEP 440's operators ==, !=, >=, <=, >, <, ~=. Throws UsageError that says what is wrong
  /// and gives an example: an unknown framework, a pre-release, a ROCm build, what does not parse,
  /// conditions that no version can meet.
  static Requirement parse(std::string_view text);
  /// The version that it pins, "2.4.0" of "==2.4.0"; nothing for ranges.
  std::optional<Version> pinned() const;
  /// Whether a version is allowed. "2.4" stands for its first release.
  bool allows(const Version& version) const;
  /// Whether it leaves a choice of versions: ">=2.0", not "==2.4.0" and not a name alone.
  bool is_range() const { return !clauses.empty() && !pinned(); }
};

}  // namespace launchgap::doctor
