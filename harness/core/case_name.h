// The name of a case: a benchmark and one value per axis, `launch/null/api:driver/mode:idle`.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace launchgap {

struct CaseName {
  std::string benchmark;                                    // "launch/null"
  std::vector<std::pair<std::string, std::string>> params;  // in the order of the benchmark's axes

  std::string family() const;       // "launch"
  std::string params_text() const;  // "api:driver/mode:idle"
  std::string text() const;         // "launch/null/api:driver/mode:idle"

  /// The value of an axis; null if the case has no such axis.
  const std::string* find(std::string_view axis) const;
  /// The same; throws Error if there is none.
  const std::string& at(std::string_view axis) const;
  long long number(std::string_view axis) const;
  /// Whether it has each of these values: "allocator:direct/bytes:1048576", in any order; empty:
  /// any case has. Whole values: "bytes:1048576" is not had by "bytes:10485760".
  bool has(std::string_view values) const;

  /// Splits a case's text at its '/' signs: parts with ':' are axes, those before them the
  /// benchmark. Throws Error for text that has no benchmark or an axis before the end of it.
  static CaseName parse(std::string_view text);

  bool operator==(const CaseName&) const = default;
  /// By benchmark, then axis by axis; numbers within a value by how large they are, so that 256
  /// comes before 4096 and "fp8" before "fp16".
  std::strong_ordering operator<=>(const CaseName& other) const;
};

}  // namespace launchgap
