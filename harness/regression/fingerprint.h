// What must be equal for two results to be comparable, and which of it differs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/record/json.h"
#include "harness/regression/report.h"

namespace launchgap::regression {

/// Values by key; what a record nests has a dot: "environment.OMP_NUM_THREADS".
using Fingerprint = std::map<std::string, std::string>;

/// Of the object that records have.
Fingerprint fingerprint_from_json(const Json& json);
/// The same text for the same fingerprint: an object of strings, its keys in order.
std::string canonical_text(const Fingerprint& fingerprint);
/// Throws Error for what is no such text.
Fingerprint parse_canonical(const std::string& text);

/// Keys that may differ, of those that `--across` names. `driver_version` stands for everything
/// that comes with a driver.
class Across {
 public:
  /// Comma-separated keys. Throws UsageError for an empty one.
  static Across parse(const std::string& keys);
  bool empty() const { return keys_.empty(); }
  bool covers(const std::string& key) const { return keys_.contains(key); }
  /// As they were named.
  const std::set<std::string>& asked() const { return asked_; }

 private:
  std::set<std::string> asked_;
  std::set<std::string> keys_;  // and those that come with them
};

/// All keys whose values differ, in order.
std::vector<KeyChange> differences(const Fingerprint& from, const Fingerprint& to);
/// The same for people: of several keys that change with one thing (the driver) one is left.
std::vector<KeyChange> told_once(std::vector<KeyChange> changes);
/// Whether only keys differ that may.
bool comparable(const std::vector<KeyChange>& changes, const Across& across);

// --- Whether a case was computed by another algorithm than before ---

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
