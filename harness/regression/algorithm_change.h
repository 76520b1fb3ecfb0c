// Whether a case was computed by another algorithm than before: the first thing to ask of a product
// that became slower, and worth a line where it did not.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// Of one session's processes, as far as they are known.
using Algorithms = std::set<std::string>;

/// What earlier sessions computed a case with.
class EarlierAlgorithms {
 public:
  void add(const Algorithms& of_session);
  bool empty() const { return count_ == 0; }

  /// The change to `now` if that has an algorithm which fewer than a tenth of the earlier sessions
  /// had: one that a library selects every third time is not new each time. From the most frequent,
  /// several of one session joined by " or ". Absent where either side knows of none.
  ///
  /// Blind: a library that selected two in turns and keeps to one of them; kernels of the same name
  /// and grid that differ all the same.
  std::optional<KeyChange> change_to(const Algorithms& now) const;

 private:
  std::map<Algorithms, std::size_t> sessions_;  // how many had these
  std::size_t count_ = 0;
};

/// Adds the first change of those that are no slower, as a note: "Another algorithm at the same
/// speed: matmul/library/… (A → B), and 3 cases more."; none where there is none.
void note_algorithms(Report& report);

}  // namespace launchgap::regression
