#include <algorithm>
#include <limits>
#include <set>

#include "harness/core/clock.h"
#include "harness/core/csv_writer.h"
#include "harness/core/metric.h"
#include "harness/core/stop.h"
#include "harness/regression/history.h"

namespace launchgap::regression {
namespace {

constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();

std::set<std::int64_t> all_fingerprints(const History& history) {
  std::set<std::int64_t> numbers;
  for (const auto& [number, fingerprint] : history.fingerprints()) numbers.insert(number);
  return numbers;
}

}  // namespace

std::vector<KeptPoint> last_points(const History& history,
                                   const SeriesKey& key,
                                   std::size_t count) {
  std::size_t found = 0;
  std::int64_t fingerprint = -1;
  const auto enough = [&](const KeptPoint& point) {
    if (point.fingerprint != fingerprint) found = 0;
    fingerprint = point.fingerprint;
    return ++found >= count;
  };
  auto points = history.before(key, all_fingerprints(history), kAnyTime, enough);
  if (points.size() > count) points.resize(count);
  std::ranges::reverse(points);
  return points;
}

void export_csv(const History& history, const std::filesystem::path& file) {
  CsvWriter out(
      file, {"session_id",     "node",           "begin_utc", "device_id", "device_name", "arm",
             "process_config", "case",           "metric",    "unit",      "value",       "runs",
             "within_run_cv",  "between_run_cv", "tail",      "modes",     "p99",         "verdict",
             "invalid",        "fingerprint"});
  std::map<std::string, std::string> nodes;
  for (const KeptSession& session : history.sessions()) nodes[session.session_id] = session.node;
  for (const auto& [key, device_name] : history.series()) {
    stop_if_asked();
    for (const KeptPoint& point :
         last_points(history, key, std::numeric_limits<std::size_t>::max())) {
      const rules::Spread& spread = point.night.spread;
      out.row({point.session_id,
               nodes[point.session_id],
               utc_text(point.night.begin_s),
               key.where.device,
               device_name,
               key.where.arm,
               key.where.process_config.text(),
               key.where.name.text(),
               key.metric,
               std::string(unit_of(key.metric)),
               cell(point.night.value),
               std::to_string(point.runs),
               cell(spread[0]),
               cell(spread[1]),
               cell(spread[2]),
               cell(spread[3]),
               cell(point.night.p99),
               std::string(name_of(point.verdict)),
               point.invalid,
               canonical_text(history.fingerprint(point.fingerprint))});
    }
  }
  out.commit();
}

}  // namespace launchgap::regression
