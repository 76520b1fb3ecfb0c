#include "harness/summary/google_benchmark.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/core/plan.h"
#include "harness/core/stop.h"
#include "harness/stats/stats.h"

namespace launchgap {
namespace {

struct Repetition {
  std::size_t samples;
  double median;
};

bool is_exported(const CaseKey& key) {
  return !key.process_config.is_observer() &&
         (key.arm == name_of(Arm::plain) || key.arm == kRecorded);
}

std::vector<Repetition> repetitions_of(const std::map<int, std::vector<double>>& by_replicate) {
  std::vector<Repetition> repetitions;
  for (const auto& [replicate, samples] : by_replicate) {
    const auto median = stats::median(samples);
    if (median && std::isfinite(*median)) repetitions.push_back({samples.size(), *median});
  }
  return repetitions;
}

/// Devices with a time to export.
std::set<std::string> exported_devices(const SessionData& session) {
  std::set<std::string> devices;
  for (const auto& [key, data] : session.cases) {
    if (is_exported(key)) devices.insert(key.device);
  }
  return devices;
}

Json context_of(const SessionData& session) {
  Json context = Json::object();
  std::string begin;
  for (const RunInfo& run : session.runs) {
    if (begin.empty() || run.begin_utc < begin) begin = run.begin_utc;
  }
  context["date"] = begin;
  context["host_name"] = session.host.node;
  context["executable"] = "launchgap";
  context["num_cpus"] = session.host.cores;
  context["caches"] = Json::array();
  context["library_build_type"] = "release";
  context["launchgap_version"] = kVersion;
  context["launchgap_session"] = session.id;
  Json& devices = context["launchgap_devices"] = Json::array();
  for (const DeviceFacts& device : session.devices) {
    Json facts = {{"uuid", device.uuid}, {"name", device.name}};
    if (device.driver_version) facts["driver_version"] = *device.driver_version;
    if (device.simulated) facts["simulated"] = true;
    devices.push_back(std::move(facts));
  }
  return context;
}

class Writer {
 public:
  explicit Writer(const std::filesystem::path& path) : file_(path) {}

  void begin(const Json& context) {
    file_.write(fmt::format("{{\n\"context\": {},\n\"benchmarks\": [", text_of_json(context)));
  }

  /// All repetitions of a benchmark, and what they have in common.
  void add(const std::string& name, const std::vector<Repetition>& repetitions) {
    stop_if_asked();
    std::vector<double> medians;
    for (std::size_t i = 0; i < repetitions.size(); ++i) {
      Json entry = new_entry(name, "", repetitions.size());
      entry["repetition_index"] = i;
      put_times(entry, repetitions[i].samples, repetitions[i].median);
      medians.push_back(repetitions[i].median);
    }
    if (medians.size() > 1) add_aggregates(name, std::move(medians));
    ++families_;
  }

  void commit() {
    file_.write("\n]\n}\n");
    file_.commit();
  }

  std::size_t families() const { return families_; }

 private:
  Json new_entry(const std::string& name, const std::string& aggregate, std::size_t repetitions) {
    return {{"name", name + (aggregate.empty() ? "" : "_" + aggregate)},
            {"family_index", families_},
            {"per_family_instance_index", 0},
            {"run_name", name},
            {"run_type", aggregate.empty() ? "iteration" : "aggregate"},
            {"repetitions", repetitions},
            {"threads", 1}};
  }

  void put_times(Json& entry, std::size_t iterations, double time) {
    entry["iterations"] = iterations;
    entry["real_time"] = time;
    entry["cpu_time"] = time;
    entry["time_unit"] = "ns";
    file_.write((first_ ? "\n" : ",\n") + text_of_json(entry));
    first_ = false;
  }

  void add_aggregates(const std::string& name, std::vector<double> medians) {
    const auto mean = stats::mean(medians), sd = stats::standard_deviation(medians);
    std::ranges::sort(medians);
    add_aggregate(name, "mean", "time", medians.size(), mean);
    add_aggregate(name, "median", "time", medians.size(), stats::quantile(medians, 0.5));
    add_aggregate(name, "stddev", "time", medians.size(), sd);
    if (*mean != 0) add_aggregate(name, "cv", "percentage", medians.size(), *sd / *mean);
  }

  void add_aggregate(const std::string& name,
                     const std::string& aggregate,
                     const char* unit,
                     std::size_t repetitions,
                     const std::optional<double>& value) {
    if (!value || !std::isfinite(*value)) return;
    Json entry = new_entry(name, aggregate, repetitions);
    entry["aggregate_name"] = aggregate;
    entry["aggregate_unit"] = unit;
    put_times(entry, repetitions, *value);
  }

  OutputFile file_;
  std::size_t families_ = 0;
  bool first_ = true;
};

}  // namespace

std::size_t write_google_benchmark(const SessionData& session,
                                   const std::filesystem::path& output) {
  const bool several = exported_devices(session).size() > 1;
  Writer writer(output);
  writer.begin(context_of(session));
  for (const auto& [key, data] : session.cases) {
    if (!is_exported(key)) continue;
    for (const std::string& metric : data.metric_order) {
      const auto samples = data.samples.find(metric);
      if (samples == data.samples.end() || unit_of(metric) != "ns") continue;
      const std::vector<Repetition> repetitions = repetitions_of(samples->second);
      if (repetitions.empty()) continue;
      writer.add(fmt::format("{}/{}{}",
                             key.name.text(),
                             metric,
                             several ? fmt::format("/device:{}", key.device) : ""),
                 repetitions);
    }
  }
  if (writer.families() > 0) writer.commit();
  return writer.families();
}

}  // namespace launchgap
