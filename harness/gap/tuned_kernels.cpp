#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/text.h"
#include "harness/gap/gap.h"
#include "harness/stats/stats.h"
#include "harness/summary/generations.h"

namespace launchgap::gap {
namespace {

constexpr double kSameCost = 1.02;
constexpr std::size_t kLongestTuning = std::size_t{1} << 30;

struct Timed {
  double ns = 0;  // 0: it failed
  double log_sd = 0;
  int runs = 0;
  std::string failure;
};

/// A kernel's times on one GPU.
struct Tuning {
  std::string gpu, released;
  std::unordered_map<std::string, Timed> times;               // by configuration
  const std::pair<const std::string, Timed>* best = nullptr;  // one of them
};

using Kernel = std::tuple<std::string, std::string, std::vector<std::string>>;

double number_in(const CsvReader& row, const std::string& cell) {
  try {
    std::size_t end = 0;
    const double value = std::stod(cell, &end);
    if (end == cell.size() && std::isfinite(value) && value >= 0) return value;
  } catch (const std::exception&) {  // said below
  }
  throw Error("{}: '{}' is no number from 0 on", row.where(), cell);
}

void read_times(const std::filesystem::path& file, Tuning& tuning) {
  const std::string text = InputFile(file).text(kLongestTuning);
  CsvReader row(text, file.string());
  const std::size_t configuration = row.column("configuration"), ns = row.column("ns"),
                    runs = row.column("runs"), log_sd = row.column("log_sd"),
                    failure = row.column("failure");
  while (row.next()) {
    Timed timed;
    timed.failure = row.cells()[failure];
    if (timed.failure.empty()) timed.ns = number_in(row, row.cells()[ns]);
    timed.runs = static_cast<int>(std::min(1e6, number_in(row, row.cells()[runs])));
    timed.log_sd = number_in(row, row.cells()[log_sd]);
    tuning.times.emplace(row.cells()[configuration], std::move(timed));
  }
  for (const auto& entry : tuning.times) {
    if (!(entry.second.ns > 0)) continue;
    // Of equally fast ones the first by name, so that the answer is always the same.
    if (!tuning.best || std::pair(entry.second.ns, entry.first) <
                            std::pair(tuning.best->second.ns, tuning.best->first))
      tuning.best = &entry;
  }
}

GapTunedRow row_of(const Kernel& kernel, const Tuning& from, const Tuning& on) {
  GapTunedRow row;
  std::tie(row.kernel, row.problem, std::ignore) = kernel;
  row.parameters = fmt::format("{}", fmt::join(std::get<2>(kernel), ","));
  row.tuned_for = from.gpu;
  row.run_on = on.gpu;
  row.configuration = from.best->first;
  row.own_configuration = on.best->first;
  row.own_ns = on.best->second.ns;
  const auto found = on.times.find(from.best->first);
  if (found == on.times.end()) {
    row.verdict = "not tried there";
    return row;
  }
  const Timed &there = found->second, &best = on.best->second;
  if (!(there.ns > 0)) {
    row.verdict = "cannot run there: " + there.failure;
    return row;
  }
  row.ns = there.ns;
  row.times = there.ns / best.ns;
  row.verdict = &there == &best ? "the best there too" : "runs there";
  if (there.runs < 2 || best.runs < 2) return row;
  const double reach =
      stats::welch_reach({static_cast<double>(there.runs), there.log_sd * there.log_sd},
                         {static_cast<double>(best.runs), best.log_sd * best.log_sd});
  if (reach == 0 || &there == &best) return row;
  row.times_lower = *row.times * std::exp(-reach);
  row.times_upper = *row.times * std::exp(reach);
  return row;
}

}  // namespace

std::vector<GapTunedRow> tuned_rows(std::span<const ComparedSession> sessions) {
  std::map<Kernel, std::vector<Tuning>> kernels;
  for (const ComparedSession& from : sessions) {
    for (const TunedKernel& tuned : from.session->tuned) {
      const DeviceFacts* const gpu = from.session->device(tuned.device);
      if (!gpu) continue;
      Tuning& tuning = kernels[{tuned.kernel, tuned.problem, tuned.parameters}].emplace_back();
      tuning.gpu = short_name(gpu->name);
      tuning.released = release_of(*gpu).value_or(Release{"9999-99"}).month;
      read_times(from.session->folder / "tuning" / std::filesystem::path(tuned.file).filename(),
                 tuning);
    }
  }
  std::vector<GapTunedRow> rows;
  for (auto& [kernel, tunings] : kernels) {
    std::ranges::stable_sort(
        tunings, {}, [](const Tuning& tuning) { return std::tie(tuning.released, tuning.gpu); });
    for (const Tuning& on : tunings) {
      for (const Tuning& from : tunings) {
        if (&from != &on && from.best && on.best) rows.push_back(row_of(kernel, from, on));
      }
    }
  }
  return rows;
}

std::vector<GapAnswerRow> tuned_answers(const std::vector<GapTunedRow>& rows) {
  using Kernel = std::tuple<std::string, std::string, std::string>;
  std::map<Kernel, std::vector<const GapTunedRow*>> kernels;
  for (const GapTunedRow& row : rows)
    kernels[{row.kernel, row.problem, row.parameters}].push_back(&row);
  std::vector<GapAnswerRow> answers;
  for (const auto& [kernel, pairs] : kernels) {
    const auto cost = [](const GapTunedRow* row) {
      // What cannot run at all loses more than anything that can.
      return row->verdict.starts_with("cannot") ? 1e30 : row->times.value_or(0);
    };
    const GapTunedRow* const worst = *std::ranges::max_element(pairs, {}, cost);
    if (!worst->times && !worst->verdict.starts_with("cannot")) continue;
    std::vector<std::string> texts, evidence;
    bool timed = false;
    for (const GapTunedRow* row : pairs) {
      evidence.push_back(
          row->times
              ? fmt::format("tuned for {}, on {}: {} times as long{}, {} against {}",
                            row->tuned_for,
                            row->run_on,
                            times_text(*row->times),
                            row->times_lower ? fmt::format(" (95 % {} to {})",
                                                           times_text(*row->times_lower),
                                                           times_text(*row->times_upper))
                                             : "",
                            quantity(row->ns, "ns"),
                            quantity(row->own_ns, "ns"))
              : fmt::format("tuned for {}, on {}: {}", row->tuned_for, row->run_on, row->verdict));
      if (row->run_on != worst->run_on) continue;
      const std::string what =
          fmt::format("{} of the {}", texts.empty() ? "the best" : "that", row->tuned_for);
      if (row->times) {
        texts.push_back(fmt::format("{} takes {} times{}",
                                    what,
                                    times_text(*row->times),
                                    timed ? "" : " as long there as its own best"));
        timed = true;
      } else {
        texts.push_back(fmt::format(
            "{} {}",
            what,
            row->verdict.starts_with("cannot") ? "cannot run there" : "was not tried there"));
      }
    }
    answers.push_back({"tuned",
                       cost(worst) > kSameCost ? "warning" : "know",
                       fmt::format("Tuned for another GPU, {} loses most on the {}: {}.",
                                   worst->kernel,
                                   worst->run_on,
                                   list_text(texts)),
                       std::move(evidence)});
  }
  return answers;
}

}  // namespace launchgap::gap
