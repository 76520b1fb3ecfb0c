#include "harness/summary/launch_cost_tables.h"

#include <algorithm>

#include "harness/summary/advice.h"
#include "harness/summary/published.h"
#include "harness/summary/table_writer.h"

namespace launchgap {
namespace {

std::string smallest(const std::vector<double>& medians) {
  return medians.empty() ? "" : cell(*std::ranges::min_element(medians));
}

std::string largest(const std::vector<double>& medians) {
  return medians.empty() ? "" : cell(*std::ranges::max_element(medians));
}

}  // namespace

void write_launch_cost_tables(const SessionData& session,
                              const std::vector<SummaryRow>& rows,
                              const std::filesystem::path& folder) {
  using Line = const Advice&;
  write_table<Advice>(folder / "advice.csv",
                      session,
                      advice(session, rows),
                      {{"device_id", [](Line line) { return line.device; }},
                       {"axis", [](Line line) { return line.axis; }},
                       {"severity", [](Line line) { return std::string(name_of(line.severity)); }},
                       {"advice", [](Line line) { return line.advice; }},
                       {"evidence", [](Line line) { return line.evidence; }},
                       {"cases", [](Line line) { return line.cases; }}});
  using Row = const Published&;
  write_table<Published>(folder / "published.csv",
                         session,
                         published(session, rows),
                         {{"device_id", [](Row row) { return row.ours->key.device; }},
                          {"quantity", [](Row row) { return row.theirs->quantity; }},
                          {"case", [](Row row) { return row.ours->key.name.text(); }},
                          {"metric", [](Row row) { return row.ours->metric; }},
                          {"runs", [](Row row) { return number(row.ours->run_medians.size()); }},
                          {"p50_ns", [](Row row) { return cell(row.ours->p50); }},
                          {"p50_ci_lo", [](Row row) { return cell(row.ours->p50_ci_lo); }},
                          {"p50_ci_hi", [](Row row) { return cell(row.ours->p50_ci_hi); }},
                          {"run_min", [](Row row) { return smallest(row.ours->run_medians); }},
                          {"run_max", [](Row row) { return largest(row.ours->run_medians); }},
                          {"published_gpu", [](Row row) { return row.theirs->gpu; }},
                          {"published_ns", [](Row row) { return cell(row.theirs->ns); }},
                          {"method", [](Row row) { return row.theirs->method; }},
                          {"host", [](Row row) { return row.theirs->host; }},
                          {"source", [](Row row) { return row.theirs->source; }},
                          {"ratio", [](Row row) { return cell(row.ratio()); }},
                          {"same_model", [](Row row) { return cell(row.same_model); }}});
  using Fit = const SmallKernelFit&;
  write_table<SmallKernelFit>(folder / "fit.csv",
                              session,
                              small_kernel_fits(rows),
                              {{"device_id", [](Fit fit) { return fit.device; }},
                               {"method", [](Fit fit) { return fit.method; }},
                               {"sizes", [](Fit fit) { return number(fit.sizes); }},
                               {"runs", [](Fit fit) { return number(fit.runs); }},
                               {"overhead_ns", [](Fit fit) { return cell(fit.overhead_ns); }},
                               {"overhead_min", [](Fit fit) { return cell(fit.overhead_min); }},
                               {"overhead_max", [](Fit fit) { return cell(fit.overhead_max); }},
                               {"bytes_per_ns", [](Fit fit) { return cell(fit.bytes_per_ns); }}});
}

}  // namespace launchgap
