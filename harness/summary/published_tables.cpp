#include <algorithm>

#include "harness/summary/published.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

std::optional<double> smallest(const std::vector<double>& medians) {
  if (medians.empty()) return std::nullopt;
  return *std::ranges::min_element(medians);
}

std::optional<double> largest(const std::vector<double>& medians) {
  if (medians.empty()) return std::nullopt;
  return *std::ranges::max_element(medians);
}

}  // namespace

Table published_table() {
  using Row = const Published&;
  return make_table<Published>(
      "published.csv",
      "published value and device on which a case repeated its method",
      TableUse::details,
      [](const TableInputs& from) { return published(from.session, from.rows); },
      {{"device_id", [](Row row) { return row.ours->key.device; }},
       {"quantity", "What was published.", [](Row row) { return row.theirs->quantity; }},
       {"case", [](Row row) { return row.ours->key.name.text(); }},
       {"metric", [](Row row) { return row.ours->metric; }},
       {"runs", "Runs of ours.", [](Row row) { return row.ours->run_medians.size(); }},
       {"p50_ns", "Our median.", [](Row row) { return row.ours->p50; }},
       {"p50_ci_lo",
        "Lower end of its 95 % interval.",
        [](Row row) { return row.ours->p50_ci_lo; },
        "ns"},
       {"p50_ci_hi",
        "Upper end of its 95 % interval.",
        [](Row row) { return row.ours->p50_ci_hi; },
        "ns"},
       {"run_min",
        "The smallest median of a run.",
        [](Row row) { return smallest(row.ours->run_medians); },
        "ns"},
       {"run_max",
        "The largest median of a run.",
        [](Row row) { return largest(row.ours->run_medians); },
        "ns"},
       {"published_gpu", "The GPU of theirs.", [](Row row) { return row.theirs->gpu; }},
       {"published_ns", "Their value.", [](Row row) { return row.theirs->ns; }},
       {"method", "How they measured.", [](Row row) { return row.theirs->method; }},
       {"host", "Their machine.", [](Row row) { return row.theirs->host; }},
       {"source", "Where it was published.", [](Row row) { return row.theirs->source; }},
       {"ratio", "Our median to their value.", &Published::ratio},
       {"same_model", "Whether both GPUs are of one model, by name.", &Published::same_model}});
}

Table fit_table() {
  return make_table<SmallKernelFit>(
      "fit.csv",
      "device and way of running small kernels",
      TableUse::details,
      [](const TableInputs& from) { return small_kernel_fits(from.rows); },
      {{"device_id", &SmallKernelFit::device},
       {"method", "The way.", &SmallKernelFit::method},
       {"sizes", "Sizes that the line was fitted to.", &SmallKernelFit::sizes},
       {"runs", "Runs.", &SmallKernelFit::runs},
       {"overhead_ns", "What a kernel without data would take.", &SmallKernelFit::overhead_ns},
       {"overhead_min", "The smallest of single runs.", &SmallKernelFit::overhead_min, "ns"},
       {"overhead_max", "The largest of single runs.", &SmallKernelFit::overhead_max, "ns"},
       {"bytes_per_ns",
        "Throughput; missing where the time does not grow with the size.",
        &SmallKernelFit::bytes_per_ns,
        "B/ns"}});
}

}  // namespace launchgap
