// What must be equal for two results to be comparable, and which of it differs.
#pragma once

#include <map>
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

}  // namespace launchgap::regression
