#include "harness/regression/fingerprint.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

/// Keys that change with the driver, the one that tells most first.
constexpr std::array<std::string_view, 4> kOfDriver = {"driver",
                                                       "NVML",
                                                       "driver_version",
                                                       "CUDA driver"};

bool of_driver(std::string_view key) {
  return std::ranges::find(kOfDriver, key) != kOfDriver.end();
}

void flatten(const std::string& prefix, const Json& value, Fingerprint& fingerprint) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      flatten(prefix.empty() ? key : prefix + "." + key, inner, fingerprint);
  } else {
    fingerprint[prefix] = value.is_string() ? value.get<std::string>() : text_of_json(value);
  }
}

}  // namespace

Fingerprint fingerprint_from_json(const Json& json) {
  Fingerprint fingerprint;
  if (json.is_object()) flatten("", json, fingerprint);
  return fingerprint;
}

std::string canonical_text(const Fingerprint& fingerprint) {
  Json json = Json::object();
  for (const auto& [key, value] : fingerprint) json[key] = value;
  return text_of_json(json);
}

Fingerprint parse_canonical(const std::string& text) {
  const Json json = parse_json(text);
  if (!json.is_object()) throw Error("a fingerprint is no object");
  return fingerprint_from_json(json);
}

Across Across::parse(const std::string& keys) {
  Across across;
  if (keys.empty()) return across;
  for (std::size_t begin = 0; begin <= keys.size();) {
    const std::size_t end = std::min(keys.find(',', begin), keys.size());
    std::string key = keys.substr(begin, end - begin);
    if (key.empty()) throw UsageError("--across: there is an empty key in '{}'", keys);
    if (of_driver(key)) across.keys_.insert(kOfDriver.begin(), kOfDriver.end());
    across.asked_.insert(key);
    across.keys_.insert(std::move(key));
    begin = end + 1;
  }
  return across;
}

std::vector<KeyChange> differences(const Fingerprint& from, const Fingerprint& to) {
  std::vector<KeyChange> changes;
  for (const auto& [key, value] : from) {
    const auto found = to.find(key);
    if (found == to.end()) {
      changes.push_back({key, value, ""});
    } else if (found->second != value) {
      changes.push_back({key, value, found->second});
    }
  }
  for (const auto& [key, value] : to) {
    if (!from.contains(key)) changes.push_back({key, "", value});
  }
  std::ranges::sort(changes, {}, &KeyChange::key);
  return changes;
}

std::vector<KeyChange> told_once(std::vector<KeyChange> changes) {
  const auto rank = [](const KeyChange& change) {
    return std::ranges::find(kOfDriver, change.key) - kOfDriver.begin();
  };
  const auto telling = std::ranges::min_element(changes, {}, rank);
  if (telling == changes.end() || !of_driver(telling->key)) return changes;
  const std::string kept = telling->key;
  std::erase_if(changes, [&](const KeyChange& change) {
    return of_driver(change.key) && change.key != kept;
  });
  return changes;
}

bool comparable(const std::vector<KeyChange>& changes, const Across& across) {
  return std::ranges::all_of(changes,
                             [&](const KeyChange& change) { return across.covers(change.key); });
}

namespace {

constexpr std::size_t kUsualShare = 10;  // one session of so many

std::string names_of(const Algorithms& algorithms) {
  return fmt::to_string(fmt::join(algorithms, " or "));
}

}  // namespace

void EarlierAlgorithms::add(const Algorithms& of_session) {
  if (of_session.empty()) return;
  ++sessions_[of_session];
  ++count_;
}

std::optional<KeyChange> EarlierAlgorithms::change_to(const Algorithms& now) const {
  if (now.empty() || count_ == 0) return std::nullopt;
  const auto is_usual = [&](const std::string& algorithm) {
    std::size_t had = 0;
    for (const auto& [algorithms, sessions] : sessions_) {
      if (algorithms.contains(algorithm)) had += sessions;
    }
    return had > 0 && had * kUsualShare >= count_;
  };
  if (std::ranges::all_of(now, is_usual)) return std::nullopt;
  const auto most =
      std::ranges::max_element(sessions_, {}, [](const auto& entry) { return entry.second; });
  return KeyChange{"algorithm", names_of(most->first), names_of(now)};
}

void note_algorithms(Report& report) {
  std::set<CaseKey> cases;
  const Result* first = nullptr;
  for (const Result& result : report.results) {
    if (!result.algorithm || result.verdict != Verdict::same || result.hits != 0) continue;
    if (!first) first = &result;
    cases.insert(result.key.where);
  }
  if (!first) return;
  report.notes.push_back(fmt::format(
      "Another algorithm at the same speed: {} ({}){}.",
      case_text(*first),
      printable(algorithm_text(*first), 300),
      cases.size() == 1 ? "" : fmt::format(", and {} more", counted(cases.size() - 1, "case"))));
}

}  // namespace launchgap::regression
