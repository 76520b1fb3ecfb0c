#include "harness/summary/ladder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::string_view kLibrary = "library";
constexpr double kApart = 0.05;
constexpr long long kLeastSizeOnGpus = 2048;

/// The order of the rungs, and what a product lacks that stays on the one below.
struct Step {
  std::string_view rung, without, without_on_host;
};
constexpr std::array<Step, 5> kSteps = {
    {{"naive", "", ""},
     {"tiles", "without tiles in shared memory", "without blocks that caches hold"},
     {"wmma", "without tensor cores", ""},
     {"mma", "by WMMA in place of mma.sync and copies that run ahead", ""},
     {"wgmma", "by mma.sync in place of wgmma and TMA", ""}}};

std::size_t place_of(std::string_view rung) {
  return static_cast<std::size_t>(std::ranges::find(kSteps, rung, &Step::rung) - kSteps.begin());
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

using OfSize = std::vector<const LadderRow*>;

/// "6.1 times as long without tiles in shared memory"; of rungs that have one between them that
/// gave no result, only which they are.
std::string cost_text(const LadderRow& below, const LadderRow& above, bool on_host) {
  const double ratio = *below.device_ns / *above.device_ns;
  const Step& step = kSteps[place_of(above.rung)];
  const bool neighbours = place_of(below.rung) + 1 == place_of(above.rung);
  const std::string types = below.type == above.type
                                ? ""
                                : fmt::format(" ({} for {})", upper(below.type), upper(above.type));
  const std::string without = !neighbours
                                  ? fmt::format("by rung {} in place of {}", below.rung, above.rung)
                                  : std::string(on_host ? step.without_on_host : step.without);
  if (std::abs(ratio - 1) <= kApart) return fmt::format("as long {}{}", without, types);
  return fmt::format("{} times as long {}{}", times_text(ratio), without, types);
}

/// What this size says of a device; nothing where fewer than two rungs have a result, or where a
/// GPU has more multiprocessors than the larger tiles make blocks: there its idle ones would be
/// compared.
std::optional<Finding> finding_of(const OfSize& rows, bool on_host) {
  if (!on_host && rows.front()->size < kLeastSizeOnGpus) return std::nullopt;
  OfSize measured;
  const LadderRow* best = nullptr;
  for (const LadderRow* row : rows) {
    if (!row->device_ns || row->rung == kLibrary) continue;
    measured.push_back(row);
    if (!best || row->tflops > best->tflops) best = row;
  }
  if (measured.size() < 2) return std::nullopt;
  std::vector<std::string> costs;
  for (std::size_t i = 1; i < measured.size(); ++i)
    costs.push_back(cost_text(*measured[i - 1], *measured[i], on_host));
  Finding finding;
  finding.source = FindingSource::session;
  finding.code = "ladder";
  finding.severity = Severity::note;
  finding.device = rows.front()->device;
  finding.cases = fmt::format("matmul/ladder, {0} x {0} x {0}", rows.front()->size);
  finding.sentence =
      fmt::format("A product of {0} x {0} matrices takes launchgap's own kernels {1}.",
                  rows.front()->size,
                  fmt::join(costs, ". It takes them "));
  if (best->of_library)
    finding.sentence += fmt::format(" The fastest of them reaches {} of the library in {}.",
                                    percent_text(*best->of_library),
                                    upper(best->type));
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
  std::map<std::tuple<std::string, long long, std::size_t, std::string>, LadderRow> found;
  for (const SummaryRow& row : rows) {
    const CaseKey& key = row.key;
    if (key.name.benchmark != "matmul/ladder" || key.arm != name_of(Arm::plain) ||
        !key.process_config.usual())
      continue;
    const std::string* const rung = key.name.find("rung");
    const std::string* const type = key.name.find("type");
    const std::string* const size = key.name.find("size");
    if (!rung || !type || !size) continue;
    const long long side = std::atoll(size->c_str());
    const std::size_t place = *rung == kLibrary ? kSteps.size() + 1 : place_of(*rung);
    LadderRow& own = found[{key.device, side, place, *rung + *type}];
    own.device = key.device;
    own.size = side;
    own.rung = *rung;
    own.type = *type;
    own.status = row.status;
    own.reason = row.reason;
    if (row.status != Status::ok || !row.p50 || row.impossible) continue;
    own.runs = row.runs;
    if (row.metric == "device_ns") own.device_ns = row.p50;
    if (row.metric == "tflops") own.tflops = row.p50;
  }
  std::vector<LadderRow> ladder;
  std::map<std::pair<std::string, long long>, double> best;
  std::map<std::tuple<std::string, long long, std::string>, double> library;
  for (auto& [place, row] : found) {
    if (row.tflops) {
      double& highest = best[{row.device, row.size}];
      highest = std::max(highest, *row.tflops);
      if (row.rung == kLibrary) library[{row.device, row.size, row.type}] = *row.tflops;
    }
    ladder.push_back(std::move(row));
  }
  for (LadderRow& row : ladder) {
    if (!row.tflops) continue;
    if (const double highest = best[{row.device, row.size}]; highest > 0)
      row.of_best = *row.tflops / highest;
    const auto of_library = library.find({row.device, row.size, row.type});
    if (of_library != library.end() && of_library->second > 0)
      row.of_library = *row.tflops / of_library->second;
  }
  return ladder;
}

std::vector<Finding> ladder_findings(const SessionData& session,
                                     const std::vector<SummaryRow>& rows) {
  const DeviceLabels labels(session);
  const std::vector<LadderRow> ladder = ladder_rows(rows);
  std::map<std::string, std::map<long long, OfSize>> by_size;
  for (const LadderRow& row : ladder) by_size[row.device][row.size].push_back(&row);
  std::vector<Finding> findings;
  for (const auto& [device, sizes] : by_size) {
    const DeviceFacts* const facts = session.device(device);
    const bool on_host = facts && !is_gpu(*facts);
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      std::optional<Finding> finding = finding_of(size->second, on_host);
      if (!finding) continue;
      finding->subject = labels.of(device);
      findings.push_back(std::move(*finding));
      break;
    }
  }
  return findings;
}

Table ladder_table() {
  using Row = const LadderRow&;
  return make_table<LadderRow>(
      "ladder.csv",
      "device, size and rung of the product that is written for each generation",
      TableUse::session,
      [](const TableInputs& from) { return ladder_rows(from.rows); },
      {{"device_id", &LadderRow::device},
       {"size", "Rows and columns of the matrices.", &LadderRow::size},
       {"rung",
        "In which idiom it is written, from the oldest on; library: the device's own.",
        &LadderRow::rung},
       {"type", "Of the elements; sums are FP32.", &LadderRow::type},
       {"status",
        "ok, failed, skipped, invalid or unsupported.",
        [](Row row) { return name_of(row.status); }},
       {"reason", "Why the status is not ok.", &LadderRow::reason},
       {"runs", "Runs with a result.", &LadderRow::runs},
       {"device_ns", "Median time of a product.", &LadderRow::device_ns},
       {"tflops", "Median rate.", &LadderRow::tflops},
       {"of_library", "The rate, by that of the library in the same type.", &LadderRow::of_library},
       {"of_best",
        "The rate, by the highest of this size in any type, the library's too.",
        &LadderRow::of_best}});
}

}  // namespace launchgap
