// What `compare` and `check` say of a metric: each verdict's name and meaning, in one table each.
#pragma once

#include <span>
#include <string_view>

namespace launchgap {

/// Of a metric's level. In the order of gravity, gravest first.
enum class Verdict {
  slower,
  suspect,
  invalid,
  no_baseline,
  cannot_tell,
  unstable,
  watch,
  faster,
  same,
};

/// Of its variation.
enum class Steadiness { erratic, same, steadier };

struct VerdictInfo {
  std::string_view name;  // "no-baseline"
  std::string_view meaning;
};

/// All of them, in the order of the enumeration.
std::span<const VerdictInfo> verdicts();
std::span<const VerdictInfo> steadiness_verdicts();

std::string_view name_of(Verdict verdict);
std::string_view name_of(Steadiness steadiness);
/// Throws Error for what is none.
Verdict parse_verdict(std::string_view name);

}  // namespace launchgap
