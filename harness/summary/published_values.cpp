#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/device/convolution.h"
#include "harness/device/shape_text.h"
#include "harness/summary/published.h"

namespace launchgap {
namespace {

constexpr std::size_t kLongestFile = std::size_t{1} << 30;  // bytes

template <class Number>
Number number_in(const CsvReader& row, std::string_view column, const std::string& cell) {
  Number value = 0;
  const char* const end = cell.data() + cell.size();
  const auto [read, failed] = std::from_chars(cell.data(), end, value);
  if (failed != std::errc() || read != end || !(value >= 0))
    throw Error("{}: {} '{}' is no number from 0 on", row.where(), column, cell);
  return value;
}

bool before(const PublishedValue& a, const PublishedValue& b) {
  const auto order = a.name <=> b.name;
  return order == 0 ? a.metric->key < b.metric->key : order < 0;
}

/// By case and metric.
std::vector<PublishedValue> values_in(const std::filesystem::path& file, std::size_t origins) {
  const std::string text = InputFile(file).text(kLongestFile);
  CsvReader row(text, file.string());
  const std::size_t name = row.column("case"), metric = row.column("metric"),
                    value = row.column("value"), origin = row.column("origin");
  std::vector<PublishedValue> values;
  values.reserve(static_cast<std::size_t>(std::ranges::count(text, '\n')));
  while (row.next()) {
    const std::vector<std::string>& cells = row.cells();
    const Metric* const known = find_metric(cells[metric]);
    if (!known) throw Error("{}: there is no metric '{}'", row.where(), cells[metric]);
    const PublishedValue& read =
        values.emplace_back(PublishedValue{CaseName::parse(cells[name]),
                                           known,
                                           number_in<double>(row, "value", cells[value]),
                                           number_in<std::uint32_t>(row, "origin", cells[origin])});
    if (!(read.value > 0) || !std::isfinite(read.value) || read.origin >= origins)
      throw Error("{}: its value or its origin cannot be", row.where());
  }
  if (!std::ranges::is_sorted(values, before)) std::ranges::sort(values, before);
  const auto twice = std::ranges::adjacent_find(
      values, [](const PublishedValue& a, const PublishedValue& b) { return !before(a, b); });
  if (twice != values.end())
    throw Error("{}: {} has {} twice", file.string(), twice->name.text(), twice->metric->key);
  return values;
}

/// Of a time the rate, and of a rate the time; nothing of another value.
std::optional<PublishedValue> counterpart(const PublishedValue& value) {
  constexpr double kTeraTimesNano = 1e3;
  static const Metric *const rate = find_metric("tflops"), *const time = find_metric("device_ns");
  if (value.metric != rate && value.metric != time) return std::nullopt;
  const std::optional<double> operations = operations_of(value.name);
  if (!operations) return std::nullopt;
  return PublishedValue{value.name,
                        value.metric == rate ? time : rate,
                        *operations / value.value / kTeraTimesNano,
                        value.origin};
}

/// The values of one case.
using OfCase = std::span<const PublishedValue>;

/// The values with what can be computed of them.
std::vector<PublishedValue> completed(OfCase values) {
  std::vector<PublishedValue> all(values.begin(), values.end());
  for (const PublishedValue& value : values) {
    std::optional<PublishedValue> other = counterpart(value);
    if (other && std::ranges::find(values, other->metric, &PublishedValue::metric) == values.end())
      all.push_back(*std::move(other));
  }
  return all;
}

auto end_of_case(auto begin, auto end) {
  return std::find_if(
      begin, end, [&](const PublishedValue& value) { return value.name != begin->name; });
}

void each_case(const std::vector<PublishedValue>& values, const auto& put) {
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = end_of_case(begin, values.end());
    put(OfCase(begin, end));
    begin = end;
  }
}

void add_case(SessionData& session, const std::string& device, OfCase values) {
  const CaseName& name = values.front().name;
  const PublishedOrigin& origin = session.origins[values.front().origin];
  CaseData& data =
      session.cases[{device, std::string(kPublished), ProcessConfig(name.family()), name}];
  data.method = published_method(origin.algorithm, origin.source, origin.software);
  data.outcomes[0].status = Status::ok;
  for (const PublishedValue& value : completed(values)) {
    const std::string metric(value.metric->key);
    data.metric_order.push_back(metric);
    data.samples[metric][0] = {value.value};
  }
  // In the order in which all tables of a session of one value each had them.
  std::ranges::sort(data.metric_order);
}

/// One for each family.
void add_runs(SessionData& session, const PublishedFile& file, const PublishedValues& values) {
  struct Family {
    int cases = 0;
    std::set<std::string> software;  // "cuBLAS 7.5"
  };
  std::map<std::string, Family> families;
  each_case(values.values, [&](OfCase of_case) {
    Family& family = families[of_case.front().name.family()];
    ++family.cases;
    family.software.insert(session.origins[of_case.front().origin].software);
  });
  for (const auto& [family, own] : families) {
    RunInfo& run = session.runs.emplace_back();
    run.file = file.file;
    run.node = kPublished;
    run.device = file.device;
    run.arm = kPublished;
    run.process_config = ProcessConfig(family);
    run.status = "ok";
    run.trace_state = "off";
    run.cases_ok = own.cases;
    for (const std::string& software : own.software) {
      const std::size_t space = software.rfind(' ');
      if (space == software.npos) continue;
      LoadedLibrary& library = run.libraries.emplace_back();
      library.name = software.substr(0, space);
      library.version = software.substr(space + 1);
    }
    const DeviceFacts* const device = session.device(file.device);
    run.fingerprint = Json{{"device", device ? device->name : ""},
                           {"cuda", file.cuda},
                           {"driver_version", file.driver}};
  }
}

/// Of times that a rate tells too only the rate stays.
void keep_rates(std::vector<PublishedValue>& values) {
  auto kept = values.begin();
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = end_of_case(begin, values.end());
    const bool has_rate = std::any_of(
        begin, end, [](const PublishedValue& value) { return value.metric->key == "tflops"; });
    for (; begin != end; ++begin) {
      if (begin->metric->key == "device_ns") {
        std::optional<PublishedValue> rate = counterpart(*begin);
        if (rate && has_rate) continue;
        if (rate) *begin = *std::move(rate);
      }
      if (kept != begin) *kept = std::move(*begin);
      ++kept;
    }
  }
  values.erase(kept, values.end());
}

}  // namespace

void read_published(SessionData& session, const PublishedSheets& sheets) {
  session.origins = sheets.origins;
  std::vector<PublishedValues> all;
  std::size_t count = 0;
  for (const PublishedFile& file : sheets.files) {
    try {
      const auto path = session.folder / "published" / std::filesystem::path(file.file).filename();
      all.push_back({file.device, values_in(path, sheets.origins.size())});
      count += all.back().values.size();
      add_runs(session, file, all.back());
    } catch (const Error& error) {
      session.problems.emplace_back(error.what());
    }
  }
  if (count > kMostPublishedCases) {
    for (PublishedValues& one : all) keep_rates(one.values);
    session.published = std::move(all);
    return;
  }
  for (const PublishedValues& one : all)
    each_case(one.values, [&](OfCase values) { add_case(session, one.device, values); });
}

}  // namespace launchgap
