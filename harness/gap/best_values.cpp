#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/doctor/doctor.h"
#include "harness/gap/gap.h"
#include "harness/gap/shared_cases.h"
#include "harness/summary/ceiling.h"

namespace launchgap::gap {
namespace {

/// A quantity of the table and how it is read from a device's rows.
struct Quantity {
  std::string name;
  std::string family;  // of the benchmark; empty: of the device itself
  std::string params;  // that the case has
  std::string metric;
  enum class Of { highest_rate, median, tail, within_run, between_runs, memory, power };
  Of of = Of::median;
};

using Of = Quantity::Of;

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all = [] {
    std::vector<Quantity> list;
    for (const char* type : {"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8_e4m3"})
      list.push_back({spelled_type(type) + " products",
                      "matmul",
                      fmt::format("type:{}", type),
                      "tflops",
                      Of::highest_rate});
    for (const char* type : {"fp32", "fp16"})
      list.push_back({spelled_type(type) + " convolutions",
                      "convolution",
                      fmt::format("type:{}", type),
                      "tflops",
                      Of::highest_rate});
    list.push_back({"copies within memory",
                    "ceiling",
                    "direction:device_to_device",
                    "copy_gbs",
                    Of::highest_rate});
    list.push_back({"memory", "", "", "", Of::memory});
    struct OfLaunch {
      const char *name, *mode, *metric;
      Of of;
    };
    for (const auto& [name, mode, metric, of] :
         {OfLaunch{"launch call", "idle", "api_ns", Of::median},
          {"launch call, p99.9", "idle", "api_ns", Of::tail},
          {"call to kernel", "idle", "launch_ns", Of::median},
          {"launch and wait", "idle", "roundtrip_ns", Of::median},
          {"launch and wait, as SuperBench times it", "wall", "wall_per_launch_ns", Of::median},
          {"launch call varies within a run", "idle", "api_ns", Of::within_run},
          {"launch call varies between runs", "idle", "api_ns", Of::between_runs}})
      list.push_back({name, "launch", fmt::format("mode:{}", mode), metric, of});
    list.push_back({"power", "", "", "", Of::power});
    return list;
  }();
  return all;
}

/// In which the launch is the device's own, as in the headlines. Of SuperBench's large products
/// nobody knows the shapes, so they are no cases of launchgap's, but they are products.
bool is_of(const CaseName& name, const Quantity& quantity) {
  const std::string_view benchmark = name.benchmark;
  const std::string_view family =
      benchmark == "superbench/gemm_flops" ? "matmul" : benchmark.substr(0, benchmark.find('/'));
  if (family != quantity.family || !name.has(quantity.params) || is_complex(name) || is_rung(name))
    return false;
  if (quantity.family != "launch") return true;
  const std::string* const api = name.find("api");
  return (benchmark == "launch/null" && api && (*api == "driver" || *api == "queue")) ||
         benchmark == "launch/superbench";
}

void take_rates(const std::vector<const CaseValue*>& values, GapValueRow& out) {
  const auto [worst, best] =
      std::ranges::minmax_element(values, {}, [](const CaseValue* value) { return value->value; });
  out.value = (*best)->value;
  out.case_name = (*best)->name->text();
  if (values.size() > 1) {
    out.worst = (*worst)->value;
    out.worst_of = (*worst)->name->text();
  }
}

void take_launch(const CaseValue& value, Of of, GapValueRow& out) {
  out.case_name = value.name->text();
  if (!value.row) {  // which has no course
    if (of == Of::median) out.value = value.value;
    return;
  }
  const SummaryRow& row = *value.row;
  const bool rare = row.n >= 1000;
  switch (of) {
    case Of::tail:
      if (rare) out.value = row.p999;
      if (row.max) out.worst = row.max, out.worst_of = "the longest";
      return;
    case Of::within_run:
    case Of::between_runs: {
      const auto& cv = of == Of::within_run ? row.within_run_cv : row.between_run_cv;
      out.unit = "share";
      if (!cv) return;
      out.value = cv->value;
      out.worst = cv->interval.high;
      out.worst_of = "upper end of its 95 % interval";
      return;
    }
    default:
      out.value = row.p50;
      if (row.run_medians.size() > 1)
        out.worst = std::ranges::max(row.run_medians), out.worst_of = "the slowest run";
  }
}

void take_of_device(const GpuColumn& column, Of of, GapValueRow& out) {
  if (of == Of::memory) {
    out.unit = "B";
    if (column.device->memory_bytes) out.value = static_cast<double>(*column.device->memory_bytes);
    return;
  }
  out.unit = "W";
  for (const auto& [name, watts] : column.power_w) {
    if (!out.value || watts > *out.value) out.value = watts, out.case_name = name;
  }
}

/// Why a device has none of it: what its library said, or that nobody looked.
std::string why_not(const GpuColumn& column, const Quantity& quantity) {
  for (const SummaryRow* row : column.rows) {
    if (row->status == Status::ok || quantity.family.empty() || !is_of(row->key.name, quantity))
      continue;
    return row->status == Status::unsupported
               ? fmt::format("not available: {}", row->reason)
               : fmt::format("{}: {}", name_of(row->status), row->reason);
  }
  return column.origin == Origin::published ? "not published" : "not measured";
}

GapValueRow value_of(const GpuColumn& column, const Quantity& quantity, int place) {
  GapValueRow out;
  out.device = column.title;
  out.origin = name_of(column.origin);
  out.place = place;
  out.quantity = quantity.name;
  out.unit = unit_of(quantity.metric);
  if (quantity.family.empty()) {
    take_of_device(column, quantity.of, out);
  } else {
    std::vector<const CaseValue*> values;
    for (const CaseValue& value : column.values) {
      if (value.metric->key == quantity.metric && is_of(*value.name, quantity))
        values.push_back(&value);
    }
    if (!values.empty()) {
      if (quantity.of == Of::highest_rate) {
        take_rates(values, out);
      } else {
        take_launch(*values.front(), quantity.of, out);
      }
    }
  }
  if (!out.value) out.words = why_not(column, quantity);
  return out;
}

}  // namespace

std::vector<GapValueRow> best_values(const std::vector<GpuColumn>& columns) {
  std::vector<GapValueRow> rows;
  int place = 0;
  for (const Quantity& quantity : quantities()) {
    ++place;
    std::vector<GapValueRow> line;
    for (const GpuColumn& column : columns) line.push_back(value_of(column, quantity, place));
    const bool said = std::ranges::any_of(line, [](const GapValueRow& row) {
      return row.value.has_value() || !row.words.starts_with("not ") ||
             row.words.starts_with("not available");
    });
    if (said) std::ranges::move(line, std::back_inserter(rows));
  }
  return rows;
}

std::vector<GapLimitRow> limits_of(const std::vector<const GpuColumn*>& gpus) {
  std::vector<GapLimitRow> rows;
  for (const GpuColumn* gpu : gpus) {
    std::set<std::string> measured;
    std::map<std::string, std::string> refused;  // by type: why
    for (const SummaryRow* row : gpu->rows) {
      const std::string* const type = row->key.name.find("type");
      if (!type) continue;
      const std::string what =
          fmt::format("{} {}",
                      spelled_type(*type),
                      row->key.name.family() == "convolution" ? "convolutions" : "products");
      if (row->status == Status::ok) measured.insert(what);
      if (row->status == Status::unsupported) refused.try_emplace(what, row->reason);
    }
    for (const auto& [what, reason] : refused) {
      if (!measured.contains(what)) rows.push_back({gpu->title, what, reason, "measured here"});
    }
    for (doctor::LastSupport& last :
         doctor::last_support(gpu->device->name, gpu->device->compute_capability.value_or(""))) {
      rows.push_back({gpu->title,
                      std::move(last.what),
                      last.limit == "current" ? "supported by the newest"
                                              : fmt::format("last: {}", last.limit),
                      std::move(last.source)});
    }
  }
  return rows;
}

}  // namespace launchgap::gap
