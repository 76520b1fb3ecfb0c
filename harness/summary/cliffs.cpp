#include "harness/summary/cliffs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/metric.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/case_rates.h"
#include "harness/summary/selections.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::size_t kLongestNumber = 12;  // digits: more are no size
constexpr std::size_t kMostNumbers = 16;    // of a value: a shape has seven at most

struct Number {
  std::size_t begin, length;
  double value;
};

constexpr std::string_view kDigits = "0123456789";

/// The size that a text is; nothing where it is none.
std::optional<double> size_of(std::string_view text) {
  if (text.empty() || text.front() == '0' || text.size() > kLongestNumber ||
      text.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  return std::stod(std::string(text));
}

/// The sizes of a part that is nothing but sizes joined by "x"; none where it is not.
std::vector<Number> joined_numbers(std::string_view part) {
  std::vector<Number> numbers;
  for (std::size_t at = 0; at <= part.size();) {
    const std::size_t end = std::min(part.find('x', at), part.size());
    const std::optional<double> size = size_of(part.substr(at, end - at));
    if (!size) return {};
    numbers.push_back({at, end - at, *size});
    at = end + 1;
  }
  return numbers;
}

/// Those of a value that are sizes.
std::vector<Number> numbers_in(std::string_view value) {
  std::vector<Number> numbers;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find('-', at), value.size());
    const std::string_view part = value.substr(at, end - at);
    std::vector<Number> more = joined_numbers(part);
    if (more.size() == 1 && part.size() < value.size()) more.clear();  // as of a date
    if (at > 0 && part.starts_with('b')) {
      if (const auto batch = size_of(part.substr(1))) more.push_back({1, part.size() - 1, *batch});
    }
    for (Number& number : more) number.begin += at;
    numbers.insert(numbers.end(), more.begin(), more.end());
    if (numbers.size() > kMostNumbers) return {};
    at = end + 1;
  }
  return numbers;
}

/// The value with these numbers written as "*".
std::string without(std::string value, std::vector<Number> numbers) {
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    value.replace(number->begin, number->length, "*");
  return value;
}

/// The times by which a case is judged: the first that its benchmark reports, and the others that
/// are neither computed from another nor a mean over operations, of which a larger case has more.
std::vector<std::string> times_of(const CaseData& data) {
  std::vector<std::string> times;
  for (const std::string& key : data.metric_order) {
    const Metric* const metric = find_metric(key);
    if (!metric || metric->unit != "ns" || !metric->function_of.empty()) continue;
    if (times.empty() || key.find("per_") == key.npos) times.push_back(key);
  }
  return times;
}

struct SeriesKey {
  std::string device;
  ProcessConfig process_config;
  std::string name, metric;
  auto operator<=>(const SeriesKey&) const = default;
};

/// One measured size.
struct Measured {
  const CaseKey* key = nullptr;
  const std::map<int, std::vector<double>>* samples = nullptr;  // by replicate
};

using Series = std::map<double, Measured>;

std::map<SeriesKey, Series> series_in(const SessionData& session) {
  const std::map<CaseKey, std::string> cannot_be = impossible_cases(session);
  std::map<SeriesKey, Series> all;
  for (const auto& [key, data] : session.cases) {
    if (cannot_be.contains(key)) continue;  // none would be padded to it
    if (key.arm != name_of(Arm::plain) && key.arm != kPublished) continue;
    const std::vector<SizedName> series = series_of(key.name);
    for (const std::string& metric : times_of(data)) {
      const auto samples = data.samples.find(metric);
      if (samples == data.samples.end()) continue;
      for (const SizedName& sized : series)
        all[{key.device, key.process_config, sized.name, metric}][sized.size] = {&key,
                                                                                 &samples->second};
    }
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.size() < kLeastSizes; });
  return all;
}

/// The medians of the processes, in the same order for each size; NaN where one has none.
std::vector<stats::SizeTimes> times_of(const Series& series) {
  std::set<int> replicates;
  for (const auto& [size, measured] : series) {
    for (const auto& [replicate, samples] : *measured.samples) replicates.insert(replicate);
  }
  std::vector<stats::SizeTimes> all;
  for (const auto& [size, measured] : series) {
    stats::SizeTimes& times = all.emplace_back(stats::SizeTimes{size, {}});
    for (const int replicate : replicates) {
      const auto samples = measured.samples->find(replicate);
      const bool any = samples != measured.samples->end();
      times.times.push_back((any ? stats::median(samples->second) : std::nullopt)
                                .value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  }
  return all;
}

std::vector<CliffRow> rows_of(const SeriesKey& key, const Series& series, bool random_order) {
  const std::vector<stats::SizeTimes> times = times_of(series);
  const std::vector<stats::PaddingGain> gains = stats::padding_gains(times);
  std::vector<CliffRow> rows;
  for (const stats::PaddingGain& gain : gains) {
    const double size = times[gain.size].size, pad_to = times[gain.pad_to].size;
    const auto larger = series.upper_bound(size);
    if (larger == series.end() || larger->first > stats::kMostPadding * size) continue;
    const auto processes = std::ranges::count_if(times[gain.size].times,
                                                 [](double time) { return std::isfinite(time); });
    rows.push_back({.key = *series.at(size).key,
                    .padded = series.at(pad_to).key->name,
                    .name = key.name,
                    .metric = key.metric,
                    .size = size,
                    .pad_to = pad_to,
                    .gain = gain.gain,
                    .interval = random_order ? gain.interval : std::nullopt,
                    .judged = gain.judged,
                    .random_order = random_order,
                    .cliff = random_order && gain.cliff,
                    .processes = static_cast<std::size_t>(processes),
                    .sizes = gains.size()});
  }
  return rows;
}

/// "another kernel (a 16x8x1, and b 9x9x1)"; empty where it is the same, or not known.
std::string other_algorithm(const CliffRow& row,
                            const std::map<CaseKey, std::set<std::string>>& algorithms) {
  const auto of = [&](const CaseName& name) -> std::string {
    const auto found = algorithms.find({row.key.device, row.key.arm, row.key.process_config, name});
    return found == algorithms.end() ? "" : fmt::to_string(fmt::join(found->second, " or "));
  };
  const std::string own = of(row.key.name), padded = of(row.padded);
  if (own.empty() || padded.empty() || own == padded) return "";
  return fmt::format(", by another algorithm: {} in place of {}", own, padded);
}

/// ", 2.1 waves against 1.9"; empty where it is not known of both.
std::string waves_text(const CliffRow& row, const SessionData& session) {
  const auto of = [&](const CaseName& name) -> std::optional<double> {
    const auto found =
        session.cases.find({row.key.device, row.key.arm, row.key.process_config, name});
    return found == session.cases.end() ? std::nullopt : waves_of(found->second.method);
  };
  const std::optional<double> own = of(row.key.name), padded = of(row.padded);
  if (!own || !padded) return "";
  return fmt::format(", {:.1f} waves against {:.1f}", *own, *padded);
}

/// " (free_ns)"; nothing for the time of work, which is what a size is expected to change.
std::string by_metric(const CliffRow& row) {
  return row.metric == "device_ns" ? "" : fmt::format(" ({})", row.metric);
}

std::string gain_text(const CliffRow& row) {
  return fmt::format(
      "{:.2f} (99 % {:.2f} to {:.2f})", row.gain, row.interval->low, row.interval->high);
}

}  // namespace

std::vector<SizedName> series_of(const CaseName& name) {
  std::vector<SizedName> series;
  for (std::size_t param = 0; param < name.params.size(); ++param) {
    const std::vector<Number> numbers = numbers_in(name.params[param].second);
    const auto add = [&](const std::vector<Number>& which) {
      CaseName of_series = name;
      std::string& value = of_series.params[param].second;
      value = without(std::move(value), which);
      series.push_back({of_series.text(), which.front().value});
    };
    std::map<double, std::vector<Number>> equal;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      add({numbers[i]});
      if (i > 0 && numbers[i].value == numbers[i - 1].value) add({numbers[i - 1], numbers[i]});
      equal[numbers[i].value].push_back(numbers[i]);
    }
    for (const auto& [number, places] : equal) {
      const bool pair =
          places.size() == 2 && places[0].begin + places[0].length + 1 == places[1].begin;
      if (places.size() > 1 && !pair) add(places);
    }
  }
  return series;
}

std::string_view CliffRow::verdict() const {
  if (!judged) return "too few processes";
  if (!random_order) return "order not random";
  return cliff ? "cliff" : "none";
}

/// One series after the other, since all rows at once may be many.
static void each_cliff_row(const SessionData& session, const auto& put) {
  for (const auto& [key, series] : series_in(session)) {
    for (CliffRow& row : rows_of(key, series, session.random_order)) put(std::move(row));
  }
}

std::vector<CliffRow> cliff_rows(const SessionData& session) {
  std::vector<CliffRow> all;
  each_cliff_row(session, [&](CliffRow&& row) { all.push_back(std::move(row)); });
  return all;
}

std::vector<Finding> cliff_findings(const SessionData& session) {
  std::map<SeriesKey, std::vector<CliffRow>> cliffs;
  each_cliff_row(session, [&](CliffRow&& row) {
    if (!row.cliff) return;
    const SeriesKey series{row.key.device, row.key.process_config, row.name, row.metric};
    cliffs[series].push_back(std::move(row));
  });
  if (cliffs.empty()) return {};
  const DeviceLabels labels(session);
  const auto algorithms = algorithms_of_cases(session);
  std::vector<Finding> findings;
  for (auto& [series, rows] : cliffs) {
    std::ranges::sort(rows, std::ranges::greater(), &CliffRow::gain);
    const CliffRow& worst = rows.front();
    Finding finding = new_finding(FindingSource::session,
                                  "cliff",
                                  Severity::act,
                                  labels.of(worst.key.device),
                                  worst.key.device);
    finding.cases = worst.key.name.text() + " " + worst.padded.text();
    finding.sentence = fmt::format("{:.0f} takes {:.2f} times as long as {:.0f} in {}{}{}{}.",
                                   worst.size,
                                   worst.gain,
                                   worst.pad_to,
                                   worst.name,
                                   by_metric(worst),
                                   other_algorithm(worst, algorithms),
                                   waves_text(worst, session));
    if (rows.size() > 1)
      finding.sentence +=
          fmt::format(" Of {} sizes, {} take longer than a larger one.", worst.sizes, rows.size());
    finding.remedy =
        fmt::format("Pad {:.0f} to {:.0f} where the program may.", worst.size, worst.pad_to);
    for (const CliffRow& row : rows)
      finding.evidence.emplace_back(fmt::format("{:.0f} against {:.0f}: {}{}",
                                                row.size,
                                                row.pad_to,
                                                gain_text(row),
                                                waves_text(row, session)));
    findings.push_back(std::move(finding));
  }
  return findings;
}

Table cliffs_table() {
  using Row = const CliffRow&;
  return make_table<CliffRow>(
      "cliffs.csv",
      "device, series, metric and size: sizes of one series differ in one number alone, and one "
      "larger by "
      "at "
      "most a quarter was measured too",
      TableUse::session,
      [](const TableInputs& from, const auto& put) { each_cliff_row(from.session, put); },
      {{"device_id", [](Row row) { return row.key.device; }},
       {"benchmark", "The benchmark.", [](Row row) { return row.key.name.benchmark; }},
       {"case", "The case, with * for the size.", &CliffRow::name},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"metric", "The time that is compared.", &CliffRow::metric},
       {"size", "The size.", &CliffRow::size},
       {"pad_to",
        "The nearest size up to a quarter larger that is as fast as the fastest of these, but for "
        "1 "
        "% and for noise; of one process the fastest. The size itself where none takes less.",
        &CliffRow::pad_to},
       {"gain",
        "The time at the size divided by that at `pad_to`: the mean over the processes, without "
        "the "
        "tenth with the least and the tenth with the largest ratio; of fewer than 10 that of the "
        "medians.",
        &CliffRow::gain,
        "1"},
       {"gain_lower",
        "The lower end of its interval: 99 % of this size alone, or of all sizes of the series at "
        "once where that is wider. Empty where `pad_to` is the size itself, or there is no "
        "verdict.",
        if_any(&CliffRow::interval, &stats::Interval::low),
        "1"},
       {"gain_upper", "The upper end.", if_any(&CliffRow::interval, &stats::Interval::high), "1"},
       {"verdict",
        "`cliff`: the gain is above 1.05, and not by chance; `none`; `too few processes`: fewer "
        "than "
        "10, or one lacks the size; `order not random`: the cases were not measured in a random "
        "order "
        "(`--shapes`, `--sweep`), so that drift may look like a gain.",
        &CliffRow::verdict},
       {"runs", "Processes that have a time of the size.", &CliffRow::processes}});
}

}  // namespace launchgap
