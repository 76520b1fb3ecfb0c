#include <fnmatch.h>
#include <sstream>
#include <utility>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/regression/history.h"

namespace launchgap::regression {
namespace {

constexpr std::size_t kLongestFile = std::size_t{1} << 24;

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

bool AcceptedLevel::covers(const SeriesKey& key) const {
  return fits(device_id, key.where.device) && fits(case_name, key.where.name.text()) &&
         fits(metric, key.metric);
}

void AcceptedLevel::apply_to(rules::Night& night) const {
  if (night.begin_s > accepted_s) return;
  night.hit = 0;
  night.spread_hits = {};
  night.level_since_s = 0;
  night.anchor.reset();
  night.confirmed = false;
}

const AcceptedLevel* accepted_level(std::span<const AcceptedLevel> levels,
                                    const SeriesKey& key,
                                    std::int64_t begin_s) {
  const AcceptedLevel* latest = nullptr;
  for (const AcceptedLevel& level : levels) {
    if (level.since_s > begin_s || !level.covers(key)) continue;
    const auto order = [](const AcceptedLevel& one) {
      return std::pair(one.accepted_s, one.since_s);
    };
    if (!latest || order(level) >= order(*latest)) latest = &level;
  }
  return latest;
}

std::vector<AcceptedLevel> read_accepted_levels(const std::filesystem::path& file) {
  std::istringstream lines(InputFile(file).text(kLongestFile));
  std::vector<AcceptedLevel> levels;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    AcceptedLevel level;
    std::string since, accepted;
    if (!(words >> level.device_id)) continue;
    try {
      if (!(words >> level.case_name >> level.metric >> since >> accepted))
        throw UsageError("a line is DEVICE CASE METRIC SINCE ACCEPTED REASON…");
      level.since_s = parse_time(since);
      level.accepted_s = parse_time(accepted, Day::end);
      if (level.accepted_s < level.since_s) throw UsageError("it was accepted before it began");
    } catch (const UsageError& error) {
      throw UsageError("{}:{}: {}", file.string(), number, error.what());
    }
    std::getline(words >> std::ws, level.reason);
    levels.push_back(std::move(level));
  }
  return levels;
}

std::int64_t parse_time(const std::string& text, Day day) {
  if (const auto time = parse_utc(text)) return *time;
  constexpr std::int64_t kDayS = std::int64_t{24} * 3600;
  if (const auto begin = parse_utc(text + "T00:00:00Z"))
    return day == Day::begin ? *begin : *begin + kDayS - 1;
  throw UsageError("'{}' is no time: 2026-11-22 or 2026-11-22T03:00:00Z", text);
}

}  // namespace launchgap::regression
