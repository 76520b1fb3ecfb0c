// Whether a case's results have the same bits: what one process found.
#pragma once

#include <string>
#include <string_view>

namespace launchgap {

/// The record `bits`.
struct ResultBits {
  static constexpr std::string_view kName = "bits";

  std::string case_name;
  int results = 0;   // that were computed from the same operands, the first of them alone
  int distinct = 0;  // of these, by their bits
  std::string hash;  // of the first one: FNV-1a of its bytes, 64 bits, as 16 hexadecimal digits
  /// Between an element of two results, as a part of the largest magnitude of an element; 0 where
  /// all are equal.
  double largest_difference = 0;
  std::string different;  // which ones have other bits than the first: "stream 2, stream 3"

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("results", self.results);
    field("distinct", self.distinct);
    field("hash", self.hash);
    field("largest_difference", self.largest_difference);
    field.optional("different", self.different);
  }
};

}  // namespace launchgap
