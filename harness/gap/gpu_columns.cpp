#include "harness/gap/gpu_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/device/backend.h"
#include "harness/summary/case_rates.h"

namespace launchgap::gap {
namespace {

bool counts(const SummaryRow& row) {
  return row.key.process_config.usual() &&
         (row.key.arm == name_of(Arm::plain) || row.key.arm == kPublished);
}

/// Of the first run of a device that has it.
std::string fingerprint_of(const GpuColumn& column, const char* key) {
  for (const RunInfo& run : column.from.session->runs) {
    if (run.device != column.device->uuid) continue;
    std::string value = maybe<std::string>(run.fingerprint, key).value_or("");
    if (!value.empty()) return value;
  }
  return "";
}

/// "CUDA 10.1".
std::string cuda_of(const GpuColumn& column) {
  const std::string version = fingerprint_of(column, "cuda");
  return version.empty() ? "" : "CUDA " + version;
}

/// "driver 450.80".
std::string driver_of(const GpuColumn& column) {
  const std::string version = fingerprint_of(column, "driver_version");
  return version.empty() ? "" : "driver " + version;
}

/// What tells devices of one name apart, tried one after the other.
std::vector<std::string (*)(const GpuColumn&)> distinctions() {
  return {cuda_of,
          driver_of,
          [](const GpuColumn& column) {
            return column.device->clock_mhz ? fmt::format("{} MHz", *column.device->clock_mhz) : "";
          },
          [](const GpuColumn& column) { return column.from.session->folder.filename().string(); },
          [](const GpuColumn& column) { return fmt::format("{}", column.device->index); },
          [](const GpuColumn& column) { return column.from.session->id; }};
}

void tell_apart(const std::vector<GpuColumn*>& alike) {
  for (const auto distinction : distinctions()) {
    if (alike.size() < 2) return;
    std::set<std::string> kinds;
    for (const GpuColumn* column : alike) kinds.insert(distinction(*column));
    if (kinds.size() < 2) continue;
    std::map<std::string, std::vector<GpuColumn*>> by_title;
    for (GpuColumn* column : alike) {
      if (const std::string more = distinction(*column); !more.empty())
        column->title += fmt::format(" ({})", more);
      by_title[column->title].push_back(column);
    }
    for (const auto& [title, group] : by_title) tell_apart(group);
    return;
  }
}

/// By device and case, in W.
std::map<std::string, std::map<std::string, double>> median_powers(const SessionData& session) {
  std::map<std::string, std::map<std::string, std::vector<double>>> read;
  for (const TelemetryInfo& reading : session.telemetry) {
    const auto power = reading.values.find("power_w");
    if (reading.block >= 0 && reading.arm == name_of(Arm::plain) && power != reading.values.end() &&
        power->second > 0)
      read[reading.device][reading.case_name].push_back(power->second);
  }
  std::map<std::string, std::map<std::string, double>> medians;
  for (auto& [device, cases] : read) {
    for (auto& [name, watts] : cases) medians[device][name] = *stats::median(std::move(watts));
  }
  return medians;
}

void take_rows(GpuColumn& column, const std::vector<const SummaryRow*>& rows) {
  column.rows = rows;
  for (const SummaryRow* row : rows) {
    const Metric* const metric = find_metric(row->metric);
    if (metric && row->status == Status::ok && row->p50 && std::isfinite(*row->p50) &&
        *row->p50 > 0)
      column.values.push_back(
          {row->key.process_config.family(), &row->key.name, metric, *row->p50, row});
  }
  for (const SummaryRow& row : *column.from.impossible) {
    if (row.key.device == column.device->uuid) column.too_fast.push_back(&row.key.name);
  }
}

std::string_view family_of(const CaseName& name) {
  return std::string_view(name.benchmark).substr(0, name.benchmark.find('/'));
}

/// Whether a published rate is above what the GPU can do.
bool cannot_be(const DeviceFacts& device, const PublishedValue& value, std::string_view algorithm) {
  RatedCase rated{{}, {}, std::string(algorithm), {}};
  if (value.metric->key == "tflops") {
    rated.tflops = value.value;
  } else if (value.metric->key == "copy_gbs") {
    rated.copy_gbs = value.value;
  } else {
    return false;
  }
  const auto rate = case_rate({device.uuid, {}, {}, value.name}, device, rated);
  return rate && rate->judged.verdict == RateVerdict::impossible;
}

/// Of a table of very many.
void take_published(GpuColumn& column) {
  for (const PublishedValues& of_device : column.from.session->published) {
    if (of_device.device != column.device->uuid) continue;
    column.values.reserve(of_device.values.size());
    for (const PublishedValue& value : of_device.values) {
      const PublishedOrigin& origin = column.from.session->origins[value.origin];
      if (cannot_be(*column.device, value, origin.algorithm)) {
        column.too_fast.push_back(&value.name);
      } else {
        column.values.push_back({family_of(value.name), &value.name, value.metric, value.value});
      }
    }
  }
}

/// In order, each once.
void sort_out(GpuColumn& column) {
  if (!std::ranges::is_sorted(column.values)) std::ranges::stable_sort(column.values);
  column.values.erase(std::unique(column.values.begin(), column.values.end()), column.values.end());
  const auto by_name = [](const CaseName* name) -> const CaseName& { return *name; };
  std::ranges::sort(column.too_fast, {}, by_name);
  column.too_fast.erase(std::unique(column.too_fast.begin(),
                                    column.too_fast.end(),
                                    [](const CaseName* a, const CaseName* b) { return *a == *b; }),
                        column.too_fast.end());
}

}  // namespace

DeviceOrder order_of(const DeviceFacts& device) {
  const bool gpu = is_gpu(device);
  return {gpu,
          gpu ? release_of(device).value_or(Release{"9999-99"}).month : "",
          capability_numbers(device).value_or(CapabilityNumbers(9999, 0)),
          device.name};
}

std::string_view name_of(Origin origin) {
  constexpr std::array<std::string_view, 3> kNames = {"measured", "simulated", "published"};
  return kNames.at(static_cast<std::size_t>(origin));
}

std::string GpuColumn::title_and_origin() const {
  return origin == Origin::measured ? title : fmt::format("{} ({})", title, name_of(origin));
}

std::string short_name(std::string_view name) {
  constexpr std::array<std::string_view, 3> kMakers = {"NVIDIA ", "Tesla ", "GeForce "};
  for (const std::string_view maker : kMakers) {
    if (name.starts_with(maker) && name.size() > maker.size()) name.remove_prefix(maker.size());
  }
  return std::string(name);
}

std::vector<GpuColumn> gpu_columns(std::span<const ComparedSession> sessions) {
  std::vector<GpuColumn> columns;
  for (const ComparedSession& from : sessions) {
    std::map<std::string, std::vector<const SummaryRow*>> rows;
    std::set<std::string> published;
    for (const SummaryRow& row : *from.rows) {
      if (!counts(row)) continue;
      rows[row.key.device].push_back(&row);
      if (row.key.arm == kPublished) published.insert(row.key.device);
    }
    for (const PublishedValues& values : from.session->published) {
      rows.try_emplace(values.device);
      published.insert(values.device);
    }
    std::map<std::string, std::map<std::string, double>> powers = median_powers(*from.session);
    for (const DeviceFacts& device : from.session->devices) {
      const auto own = rows.find(device.uuid);
      if (!device.usable || own == rows.end()) continue;
      GpuColumn& column = columns.emplace_back();
      column.from = from;
      column.device = &device;
      column.order = order_of(device);
      column.host = !is_gpu(device);
      column.title = column.host ? device.name : short_name(device.name);
      if (!column.host) column.released = release_of(device).value_or(Release()).month;
      column.origin = published.contains(device.uuid) ? Origin::published
                      : device.simulated              ? Origin::simulated
                                                      : Origin::measured;
      column.power_w = std::move(powers[device.uuid]);
      take_rows(column, own->second);
      take_published(column);
      sort_out(column);
    }
  }
  std::ranges::stable_sort(columns, {}, &GpuColumn::order);
  std::map<std::string, std::vector<GpuColumn*>> alike;
  for (GpuColumn& column : columns) alike[column.title].push_back(&column);
  for (const auto& [title, group] : alike) tell_apart(group);
  return columns;
}

std::vector<const GpuColumn*> one_of_each(const std::vector<GpuColumn>& columns) {
  std::vector<const GpuColumn*> chosen;
  std::set<std::tuple<std::string, int, Origin, std::string>> seen;
  for (const GpuColumn& column : columns) {
    const std::string software =
        column.origin == Origin::published ? cuda_of(column) + driver_of(column) : "";
    if (!column.host && seen.insert({column.device->name,
                                     column.device->clock_mhz.value_or(0),
                                     column.origin,
                                     software})
                            .second)
      chosen.push_back(&column);
  }
  return chosen;
}

}  // namespace launchgap::gap
