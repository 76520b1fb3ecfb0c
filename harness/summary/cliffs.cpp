#include "harness/summary/cliffs.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/metric.h"
#include "harness/core/text.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/algorithms.h"
#include "harness/summary/case_rates.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::size_t kLongestNumber = 12;  // digits: more are no size

struct Number {
  std::size_t begin, length;
  double value;
};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Those of a value that are sizes.
std::vector<Number> numbers_in(std::string_view value) {
  std::vector<Number> numbers;
  for (std::size_t at = 0; at < value.size();) {
    if (!is_digit(value[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < value.size() && is_digit(value[end])) ++end;
    const bool behind_a_number = at > 0 && value[at - 1] == 'x' && !numbers.empty() &&
                                 numbers.back().begin + numbers.back().length == at - 1;
    const bool batch = at > 1 && value[at - 1] == 'b' && value[at - 2] == '-';
    const bool alone = at == 0 || value[at - 1] == '-';
    const bool ends = end == value.size() || value[end] == 'x' || value[end] == '-';
    if ((alone || behind_a_number || batch) && ends && end - at <= kLongestNumber) {
      const double number = std::stod(std::string(value.substr(at, end - at)));
      if (number > 0) numbers.push_back({at, end - at, number});
    }
    at = end;
  }
  return numbers;
}

/// The value with these numbers written as "*".
std::string without(std::string value, std::vector<Number> numbers) {
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    value.replace(number->begin, number->length, "*");
  return value;
}

/// The time by which a case is judged: the first that its benchmark reports.
std::string time_of(const CaseData& data) {
  for (const std::string& metric : data.metric_order) {
    if (unit_of(metric) == "ns") return metric;
  }
  return "";
}

struct SeriesKey {
  std::string device;
  ProcessConfig setup;
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
    const std::string metric = time_of(data);
    const auto samples = data.samples.find(metric);
    if (samples == data.samples.end()) continue;
    for (const SizedName& sized : series_of(key.name))
      all[{key.device, key.setup, sized.name, metric}][sized.size] = {&key, &samples->second};
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.size() < kLeastSizes; });
  return all;
}

/// The medians of the processes, in the same order for each size.
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
      std::vector<double> sorted;
      if (samples != measured.samples->end()) sorted = samples->second;
      std::ranges::sort(sorted);
      times.times.push_back(
          stats::quantile(sorted, 0.5).value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  }
  return all;
}

std::vector<CliffRow> rows_of(const SeriesKey& key, const Series& series) {
  const std::vector<stats::SizeTimes> times = times_of(series);
  std::vector<CliffRow> rows;
  for (const stats::PaddingGain& gain : stats::padding_gains(times)) {
    const double size = times[gain.size].size, pad_to = times[gain.pad_to].size;
    const auto larger = series.upper_bound(size);
    if (larger == series.end() || larger->first > stats::kMostPadding * size) continue;
    rows.push_back({.key = *series.at(size).key,
                    .padded = series.at(pad_to).key->name,
                    .name = key.name,
                    .metric = key.metric,
                    .size = size,
                    .pad_to = pad_to,
                    .gain = gain.gain,
                    .interval = gain.interval,
                    .cliff = gain.cliff,
                    .processes = times[gain.size].times.size()});
  }
  return rows;
}

/// "another kernel (a 16x8x1, and b 9x9x1)"; empty where it is the same, or not known.
std::string other_algorithm(const CliffRow& row,
                            const std::map<CaseKey, std::set<std::string>>& algorithms) {
  const auto of = [&](const CaseName& name) -> std::string {
    const auto found = algorithms.find({row.key.device, row.key.arm, row.key.setup, name});
    return found == algorithms.end() ? "" : fmt::to_string(fmt::join(found->second, " or "));
  };
  const std::string own = of(row.key.name), padded = of(row.padded);
  if (own.empty() || padded.empty() || own == padded) return "";
  return fmt::format(", by another algorithm: {} in place of {}", own, padded);
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
  return cliff ? "cliff" : interval ? "none" : "too few processes";
}

/// One series after the other, since all rows at once may be many.
static void each_cliff_row(const SessionData& session, const auto& put) {
  for (const auto& [key, series] : series_in(session)) {
    for (CliffRow& row : rows_of(key, series)) put(std::move(row));
  }
}

std::vector<CliffRow> cliff_rows(const SessionData& session) {
  std::vector<CliffRow> all;
  each_cliff_row(session, [&](CliffRow&& row) { all.push_back(std::move(row)); });
  return all;
}

std::vector<Finding> cliff_findings(const SessionData& session) {
  using OfSeries = std::tuple<std::string, ProcessConfig, std::string>;
  std::map<OfSeries, std::vector<CliffRow>> cliffs;
  std::map<OfSeries, std::size_t> sizes;
  each_cliff_row(session, [&](CliffRow&& row) {
    const OfSeries series{row.key.device, row.key.setup, row.name};
    ++sizes[series];
    if (row.cliff) cliffs[series].push_back(std::move(row));
  });
  if (cliffs.empty()) return {};
  const DeviceLabels labels(session);
  const auto algorithms = algorithms_of_cases(session);
  std::vector<Finding> findings;
  for (auto& [series, rows] : cliffs) {
    std::ranges::sort(rows, std::ranges::greater(), &CliffRow::gain);
    const CliffRow& worst = rows.front();
    Finding finding;
    finding.source = FindingSource::session;
    finding.code = "cliff";
    finding.severity = Severity::act;
    finding.device = worst.key.device;
    finding.subject = labels.of(worst.key.device);
    finding.cases = worst.key.name.text() + " " + worst.padded.text();
    finding.sentence = fmt::format("{:.0f} takes {:.2f} times as long as {:.0f} in {}{}.",
                                   worst.size,
                                   worst.gain,
                                   worst.pad_to,
                                   worst.name,
                                   other_algorithm(worst, algorithms));
    if (rows.size() > 1)
      finding.sentence += fmt::format(
          " Of {} sizes, {} take longer than a larger one.", sizes.at(series), rows.size());
    finding.remedy =
        fmt::format("Pad {:.0f} to {:.0f} where the program may.", worst.size, worst.pad_to);
    for (const CliffRow& row : rows)
      finding.evidence.emplace_back(
          fmt::format("{:.0f} against {:.0f}: {}", row.size, row.pad_to, gain_text(row)));
    findings.push_back(std::move(finding));
  }
  return findings;
}

Table cliffs_table() {
  using Row = const CliffRow&;
  return make_table<CliffRow>(
      "cliffs.csv",
      "device, series and size: sizes of one series differ in one number alone, and one larger by "
      "at "
      "most a quarter was measured too",
      TableUse::session,
      [](const Tabled& from, const auto& put) { each_cliff_row(from.session, put); },
      {{"device_id", meaning::kDevice, [](Row row) { return row.key.device; }},
       {"benchmark", "The benchmark.", [](Row row) { return row.key.name.benchmark; }},
       {"case", "The case, with * for the size.", &CliffRow::name},
       {"setup", meaning::kSetup, [](Row row) { return row.key.setup.text(); }},
       {"metric", "The time that is compared.", &CliffRow::metric},
       {"size", "The size.", &CliffRow::size},
       {"pad_to",
        "The size up to a quarter larger that takes least; the size itself where none takes less.",
        &CliffRow::pad_to},
       {"gain", "The time at the size divided by that at `pad_to`.", &CliffRow::gain, "1"},
       {"gain_lower",
        "The lower end of its interval: 99 %, for all sizes of the series at once.",
        [](Row row) { return row.interval ? std::optional(row.interval->low) : std::nullopt; },
        "1"},
       {"gain_upper",
        "The upper end.",
        [](Row row) { return row.interval ? std::optional(row.interval->high) : std::nullopt; },
        "1"},
       {"verdict",
        "`cliff`: the gain is above 1.05, and not by chance; `none`; `too few processes`: of fewer "
        "than 10, or not of each.",
        &CliffRow::verdict},
       {"runs", "Processes that measured the size.", &CliffRow::processes}});
}

}  // namespace launchgap
