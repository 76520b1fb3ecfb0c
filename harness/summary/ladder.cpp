#include "harness/summary/ladder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/device/shape_text.h"
#include "harness/rules/ratio.h"
#include "harness/summary/adviser.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::string_view kLibrary = "library";
constexpr double kApart = 0.05;

/// In the order of the rungs: what work lacks that stays on the one below.
struct Step {
  std::string_view rung, without, without_on_host;
};
constexpr Step kOfProducts[] = {
    {"naive", "", ""},
    {"tiles", "without tiles in shared memory", "without blocks that caches hold"},
    {"wmma", "without tensor cores", ""},
    {"mma", "by WMMA in place of mma.sync and copies that run ahead", ""},
    {"wgmma", "by mma.sync in place of wgmma and TMA", ""},
    {"tcgen05", "by wgmma in place of tcgen05 and tensor memory", ""}};
constexpr Step kOfConvolutions[] = {
    {"naive", "", ""},
    {"tiles", "without tiles in shared memory", "without rows of pixels that stay in caches"},
    {"mma", "without tensor cores and copies that run ahead", ""}};

struct Ladder {
  std::string_view benchmark, work;
  double least_operations;  // on a GPU: whose larger tiles make fewer blocks than it has units
  std::span<const Step> steps;

  /// Behind the last for what is no rung here.
  std::size_t place_of(std::string_view rung) const {
    return static_cast<std::size_t>(std::ranges::find(steps, rung, &Step::rung) - steps.begin());
  }
};
constexpr Ladder kLadders[] = {{"matmul/ladder", "product", 16e9, kOfProducts},
                               {"convolution/ladder", "convolution", 3e9, kOfConvolutions}};

/// Null for a benchmark that is none.
const Ladder* ladder_of(std::string_view benchmark) {
  const auto* const found = std::ranges::find(kLadders, benchmark, &Ladder::benchmark);
  return found == std::end(kLadders) ? nullptr : found;
}

/// As the axis `shape` has it, of square products too.
std::string shape_of(const CaseName& name) {
  if (const std::string* const shape = name.find("shape")) return *shape;
  const std::string* const size = name.find("size");
  return size ? fmt::format("{0}x{0}x{0}", *size) : "";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

using OfShape = std::vector<const LadderRow*>;

/// "6.1 times as long without tiles in shared memory"; of rungs that have one between them that
/// gave no result, only which they are.
std::string cost_text(const Ladder& ladder,
                      const LadderRow& below,
                      const LadderRow& above,
                      bool on_host) {
  const rules::Ratio of_runs = rules::ratio_of(below.run_ns, above.run_ns);
  const double ratio = *below.device_ns / *above.device_ns;
  const std::size_t place = ladder.place_of(above.rung);
  const Step& step = ladder.steps[place];
  const bool neighbours = ladder.place_of(below.rung) + 1 == place;
  const std::string types = below.type == above.type
                                ? ""
                                : fmt::format(" ({} for {})", upper(below.type), upper(above.type));
  const std::string without = !neighbours
                                  ? fmt::format("by rung {} in place of {}", below.rung, above.rung)
                                  : std::string(on_host ? step.without_on_host : step.without);
  switch (of_runs.verdict) {
    case RatioVerdict::unclear:
      return fmt::format("{} times as long {}{}: these runs tell no more",
                         interval_text(*of_runs.interval),
                         without,
                         types);
    case RatioVerdict::more:
      return fmt::format("{} times as long {}{}", sure_times_text(of_runs), without, types);
    case RatioVerdict::same:
      return fmt::format("as long {}{}", without, types);
    default:
      return std::abs(ratio - 1) <= kApart
                 ? fmt::format("as long {}{}", without, types)
                 : fmt::format("{} times as long {}{}", times_text(ratio), without, types);
  }
}

/// " The fastest of them reaches 80 % of the library in BF16."; where the runs leave more than a
/// half open, between what. Empty where the library was not measured in its type.
std::string share_of_library(const LadderRow& best, const OfShape& rows) {
  if (!best.of_library) return "";
  const auto library = std::ranges::find_if(
      rows, [&](const LadderRow* row) { return row->rung == kLibrary && row->type == best.type; });
  const auto of_runs = rules::ratio(best.run_tflops, (*library)->run_tflops);
  const bool open = of_runs && of_runs->interval.high > 1.5 * of_runs->interval.low;
  return fmt::format(" The fastest of them reaches {} of the library in {}{}.",
                     open ? fmt::format("{} to {}",
                                        percent_text(of_runs->interval.low),
                                        percent_text(of_runs->interval.high))
                          : percent_text(*best.of_library),
                     upper(best.type),
                     open ? ": these runs tell no more" : "");
}

/// What this shape says of a device; nothing where fewer than two rungs have a result, or where a
/// GPU's idle multiprocessors would be compared.
std::optional<Finding> finding_of(const Ladder& ladder, const OfShape& rows, bool on_host) {
  OfShape measured;
  const LadderRow* best = nullptr;
  for (const LadderRow* row : rows) {
    if (!row->device_ns || ladder.place_of(row->rung) == ladder.steps.size()) continue;
    measured.push_back(row);
    if (!best || row->tflops > best->tflops) best = row;
  }
  if (measured.size() < 2) return std::nullopt;
  if (!on_host && best->operations < ladder.least_operations) return std::nullopt;
  std::vector<std::string> costs;
  for (std::size_t i = 1; i < measured.size(); ++i)
    costs.push_back(cost_text(ladder, *measured[i - 1], *measured[i], on_host));
  Finding finding =
      new_finding(FindingSource::session, "ladder", Severity::note, "", rows.front()->device);
  finding.cases = fmt::format("{}, {}", ladder.benchmark, rows.front()->shape);
  finding.sentence = fmt::format("The {} {} takes launchgap's own kernels {}.",
                                 ladder.work,
                                 rows.front()->shape,
                                 fmt::join(costs, ". It takes them "));
  finding.sentence += share_of_library(*best, rows);
  for (const LadderRow* row : rows) {
    if (row->tflops) {
      finding.evidence.emplace_back(fmt::format(
          "{}, {}: {}", row->rung, upper(row->type), quantity(*row->tflops, "TFLOP/s")));
    } else if (row->rung != kLibrary) {
      finding.unknown += fmt::format("{}rung {}: {}",
                                     finding.unknown.empty() ? "" : "; ",
                                     row->rung,
                                     row->reason.empty() ? name_of(row->status) : row->reason);
    }
  }
  return finding;
}

}  // namespace

std::vector<LadderRow> ladder_rows(const std::vector<SummaryRow>& rows) {
  using Place =
      std::tuple<std::string, const Ladder*, double, std::string, std::size_t, std::string>;
  std::map<Place, LadderRow> found;
  for (const SummaryRow& row : rows) {
    const CaseKey& key = row.key;
    const Ladder* const ladder = ladder_of(key.name.benchmark);
    if (!ladder || key.arm != name_of(Arm::plain) || !key.process_config.usual()) continue;
    const std::string* const rung = key.name.find("rung");
    const std::string* const type = key.name.find("type");
    const std::string shape = shape_of(key.name);
    if (!rung || !type || shape.empty()) continue;
    const std::size_t place =
        *rung == kLibrary ? ladder->steps.size() + 1 : ladder->place_of(*rung);
    const double operations = operations_of(key.name).value_or(0);
    LadderRow& own = found[{key.device, ladder, operations, shape, place, *rung + *type}];
    own.device = key.device;
    own.benchmark = ladder->benchmark;
    own.shape = shape;
    own.operations = operations;
    own.rung = *rung;
    own.type = *type;
    own.status = row.status;
    own.reason = row.reason;
    if (row.status != Status::ok || !row.p50 || row.impossible) continue;
    own.runs = row.runs;
    if (row.metric == "device_ns") own.device_ns = row.p50, own.run_ns = row.run_medians;
    if (row.metric == "tflops") own.tflops = row.p50, own.run_tflops = row.run_medians;
  }
  std::vector<LadderRow> all;
  std::map<std::tuple<std::string, std::string, std::string>, double> best;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, double> library;
  for (auto& [place, row] : found) {
    if (row.tflops) {
      double& highest = best[{row.device, row.benchmark, row.shape}];
      highest = std::max(highest, *row.tflops);
      if (row.rung == kLibrary)
        library[{row.device, row.benchmark, row.shape, row.type}] = *row.tflops;
    }
    all.push_back(std::move(row));
  }
  for (LadderRow& row : all) {
    if (!row.tflops) continue;
    if (const double highest = best[{row.device, row.benchmark, row.shape}]; highest > 0)
      row.of_best = *row.tflops / highest;
    const auto of_library = library.find({row.device, row.benchmark, row.shape, row.type});
    if (of_library != library.end() && of_library->second > 0)
      row.of_library = *row.tflops / of_library->second;
  }
  return all;
}

std::vector<Finding> ladder_findings(const SessionData& session,
                                     const std::vector<SummaryRow>& rows) {
  const DeviceLabels labels(session);
  const std::vector<LadderRow> all = ladder_rows(rows);
  std::vector<Finding> findings;
  // From the largest shape of a device's ladder on, until one says something.
  for (auto end = all.rbegin(); end != all.rend();) {
    const auto is_of = [&](const LadderRow& one, bool shape_too) {
      return one.device == end->device && one.benchmark == end->benchmark &&
             (!shape_too || one.shape == end->shape);
    };
    OfShape of_shape;
    auto row = end;
    for (; row != all.rend() && is_of(*row, true); ++row) of_shape.insert(of_shape.begin(), &*row);
    const DeviceFacts* const facts = session.device(end->device);
    std::optional<Finding> finding =
        finding_of(*ladder_of(end->benchmark), of_shape, facts && !is_gpu(*facts));
    if (finding) {
      finding->subject = labels.of(end->device);
      findings.insert(findings.begin(), std::move(*finding));
      while (row != all.rend() && is_of(*row, false)) ++row;
    }
    end = row;
  }
  return findings;
}

Table ladder_table() {
  using Row = const LadderRow&;
  return make_table<LadderRow>(
      "ladder.csv",
      "device, shape and rung of the product and the convolution that are written for each "
      "generation",
      TableUse::session,
      [](const TableInputs& from) { return ladder_rows(from.rows); },
      {{"device_id", &LadderRow::device},
       {"benchmark", "matmul/ladder or convolution/ladder.", &LadderRow::benchmark},
       {"shape",
        "m x n x k of the product, or the convolution's (docs/shapes.md).",
        &LadderRow::shape},
       {"rung",
        "In which idiom it is written, from the oldest on; library: the device's own.",
        &LadderRow::rung},
       {"type", "Of the elements; sums are FP32.", &LadderRow::type},
       {"status",
        "ok, failed, skipped, invalid or unsupported.",
        [](Row row) { return name_of(row.status); }},
       {"reason", "Why the status is not ok.", &LadderRow::reason},
       {"runs", "Runs with a result.", &LadderRow::runs},
       {"device_ns", "Median time of one.", &LadderRow::device_ns},
       {"tflops", "Median rate.", &LadderRow::tflops},
       {"of_library", "The rate, by that of the library in the same type.", &LadderRow::of_library},
       {"of_best",
        "The rate, by the highest of this shape in any type, the library's too.",
        &LadderRow::of_best}});
}

}  // namespace launchgap
