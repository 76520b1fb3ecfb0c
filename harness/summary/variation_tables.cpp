#include <algorithm>

#include "harness/core/plan.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/fallback.h"
#include "harness/summary/findings.h"
#include "harness/summary/headlines.h"
#include "harness/summary/table_makers.h"

namespace launchgap {

std::vector<NamedHeadline> all_headlines() {
  std::vector<NamedHeadline> all;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const Headline& headline : benchmark.headlines) all.push_back({&benchmark, &headline});
  }
  std::ranges::stable_sort(
      all, {}, [](const NamedHeadline& named) { return place_of(*named.headline); });
  return all;
}

HeadlineValue headline_value(const std::vector<const SummaryRow*>& of_device,
                             const NamedHeadline& named) {
  const Headline& headline = *named.headline;
  HeadlineValue found;
  for (const SummaryRow* one : of_device) {
    const SummaryRow& row = *one;
    if (row.key.arm != name_of(Arm::plain) || !row.key.process_config.usual() ||
        row.key.name.benchmark != named.benchmark->name || row.metric != headline.metric ||
        !row.key.name.has(headline.params)) {
      continue;
    }
    const auto& value = headline.of == Headline::Of::one_in_1000 ? row.p999 : row.p50;
    const bool better = headline.of == Headline::Of::best_median && found.value < value;
    if (!found.row || better) found = {&row, value, unit_of(row.metric)};
  }
  return found;
}

namespace {

struct HeadlineRow {
  const Headline* headline;
  HeadlineValue found;
  std::string device;
};

std::vector<HeadlineRow> headline_rows(const TableInputs& from) {
  std::vector<HeadlineRow> rows;
  const RowsByDevice by_device(from.rows);
  const std::vector<NamedHeadline> headlines = all_headlines();
  for (const DeviceFacts& device : from.session.devices) {
    for (const NamedHeadline& named : headlines) {
      const HeadlineValue found = headline_value(by_device.of(device.uuid), named);
      if (found.value) rows.push_back({named.headline, found, device.uuid});
    }
  }
  return rows;
}

}  // namespace

Table headlines_table() {
  using Row = const HeadlineRow&;
  return make_table<HeadlineRow>(
      "headlines.csv",
      "device and number that a person looks for first",
      TableUse::details,
      headline_rows,
      {{"device_id", &HeadlineRow::device},
       {"place", "Of the column, from the left.", [](Row row) { return place_of(*row.headline); }},
       {"heading", "Of the column.", [](Row row) { return row.headline->heading; }},
       {"case", [](Row row) { return row.found.row->key.name.text(); }},
       {"metric", [](Row row) { return row.found.row->metric; }},
       {"unit", [](Row row) { return row.found.unit; }},
       {"value", "The number.", [](Row row) { return row.found.value; }, kUnitOfMetric}});
}

Table variation_table() {
  using Row = const Variation&;
  return make_table<Variation>(
      "variation.csv",
      "case, metric and level",
      TableUse::details,
      [](const TableInputs& from) { return variations(from.session, from.rows); },
      {{"scope", "The device's UUID; of `devices` the name that they share.", &Variation::scope},
       {"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"metric", &Variation::metric},
       {"level",
        "What varies: samples within a run, runs of a device, or devices of a kind; of a recorded "
        "run also launches within a step, and steps.",
        [](Row row) { return name_of(row.level); }},
       {"groups",
        "Runs; of `devices`, devices; of `launches` and `steps`, steps.",
        &Variation::groups},
       {"cv", "Coefficient of variation.", [](Row row) { return row.cv.value; }},
       {"cv_lo", "Lower end of its 95 % interval.", [](Row row) { return row.cv.interval.low; }},
       {"cv_hi", "Upper end of its 95 % interval.", [](Row row) { return row.cv.interval.high; }},
       {"replicate",
        "Of `launches` and `steps`, the recorded process; else empty.",
        &Variation::replicate},
       {"variance_share",
        "Of the variance of the logarithms over the levels: `launches` and `steps`, or where there "
        "are no steps `samples`, with `runs` and `devices`.",
        &Variation::share}});
}

Table outlier_devices_table() {
  using Row = const OutlierDevice&;
  return make_table<OutlierDevice>(
      "outlier_devices.csv",
      "device that differs from its kind, case and metric",
      TableUse::details,
      [](const TableInputs& from) { return outlier_devices(from.session, from.rows); },
      {{"device_id", &OutlierDevice::device},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"metric", &OutlierDevice::metric},
       {"ratio", "Its run medians to those of the others of its name.", &OutlierDevice::ratio},
       {"ratio_lo", "Lower end of its 95 % interval.", [](Row row) { return row.interval.low; }},
       {"ratio_hi", "Upper end of its 95 % interval.", [](Row row) { return row.interval.high; }}});
}

Table fallback_table() {
  using Row = const FallbackCost&;
  return make_table<FallbackCost>(
      "fallback.csv",
      "case that the host and a GPU computed; times per operation",
      TableUse::details,
      [](const TableInputs& from) { return fallback_costs(from.session, from.rows); },
      {{"device_id", "The GPU's UUID.", &FallbackCost::device},
       {"case", [](Row row) { return row.name.text(); }},
       {"gpu_ns", "Median on the GPU.", &FallbackCost::gpu_ns},
       {"host_ns", "Median on the host.", &FallbackCost::host_ns},
       {"ratio", "How many times as long the host takes.", &FallbackCost::ratio}});
}

Table observer_table() {
  using Row = const ObserverEffect&;
  return make_table<ObserverEffect>(
      "observer.csv",
      "case, metric and level of tracing",
      TableUse::details,
      [](const TableInputs& from) { return observer_effects(from.rows); },
      {{"device_id", &ObserverEffect::device},
       {"case", [](Row row) { return row.name.text(); }},
       {"metric", &ObserverEffect::metric},
       {"unit", [](Row row) { return unit_of(row.metric); }},
       {"level", "What was recorded.", [](Row row) { return name_of(row.level); }},
       {"plain_runs", "Runs that nothing traced.", &ObserverEffect::plain_runs},
       {"traced_runs", "Runs that were traced at this level.", &ObserverEffect::traced_runs},
       {"plain", "Mean of the medians of the plain runs.", &ObserverEffect::plain, kUnitOfMetric},
       {"traced",
        "Mean of the medians of the traced runs.",
        &ObserverEffect::traced,
        kUnitOfMetric},
       {"effect",
        "What tracing adds: the difference of the two.",
        if_any(&ObserverEffect::effect, &stats::Estimate::value),
        kUnitOfMetric},
       {"effect_lo",
        "Lower end of its 95 % interval.",
        if_any(&ObserverEffect::effect, &stats::Estimate::low),
        kUnitOfMetric},
       {"effect_hi",
        "Upper end of its 95 % interval.",
        if_any(&ObserverEffect::effect, &stats::Estimate::high),
        kUnitOfMetric}});
}

}  // namespace launchgap
