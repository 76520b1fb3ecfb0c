#include "harness/summary/case_rates.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/device/convolution.h"
#include "harness/stats/stats.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// The highest clock that was read after a block of a case: what was computed cannot have had a
/// lower ceiling than that. Before the first block the GPU may have been idle.
std::map<std::tuple<std::string, std::string, ProcessConfig, std::string>, double> clocks_of_cases(
    const SessionData& session) {
  std::map<std::tuple<std::string, std::string, ProcessConfig, std::string>, double> clocks;
  for (const TelemetryInfo& reading : session.telemetry) {
    const auto found = reading.values.find("sm_clock_mhz");
    if (reading.block < 0 || found == reading.values.end() || !(found->second > 0)) continue;
    double& highest =
        clocks[{reading.device, reading.arm, reading.process_config, reading.case_name}];
    highest = std::max(highest, found->second);
  }
  return clocks;
}

/// Of a copy within a device's memory, which is read and written; none of other cases.
std::optional<CaseRate> rate_of_copy(const CaseKey& key,
                                     const DeviceFacts& device,
                                     std::optional<double> copy_gbs) {
  const std::string* const direction = key.name.find("direction");
  if (key.name.benchmark != "ceiling/copy" || !direction || *direction != "device_to_device" ||
      !copy_gbs || !(*copy_gbs > 0))
    return std::nullopt;
  const std::string* const bytes = key.name.find("bytes");
  const bool sized = bytes && !bytes->empty() && std::ranges::all_of(*bytes, [](unsigned char c) {
                       return std::isdigit(c) != 0;
                     });
  if (!sized) return std::nullopt;
  const double moved_bytes = 2 * static_cast<double>(key.name.number("bytes"));
  return CaseRate{key, {}, *copy_gbs, judge_copy(device, *copy_gbs, moved_bytes)};
}

}  // namespace

std::optional<CaseRate> case_rate(const CaseKey& key,
                                  const DeviceFacts& device,
                                  const RatedCase& rated) {
  if (auto copy = rate_of_copy(key, device, rated.copy_gbs)) return copy;
  const std::string family = key.name.family();
  const std::string* const type = key.name.find("type");
  const bool measures_ceiling = family == "ceiling";
  if ((family != "matmul" && family != "convolution" && !measures_ceiling) || !type ||
      !rated.tflops || !(*rated.tflops > 0))
    return std::nullopt;
  Rate rate{family == "convolution", *type, rated.algorithm, *rated.tflops, rated.clock_mhz};
  // Of a product each algorithm but this does all operations.
  if (!rate.convolution && rate.algorithm != "3m") rate.algorithm.clear();
  if (measures_ceiling) rate.type += "_vector";  // multiply_add.cu uses no tensor cores
  const JudgedRate judged = judge_rate(device, rate);
  return CaseRate{key, std::move(rate), {}, judged};
}

/// One after the other, since all at once may be many.
static void each_case_rate(const SessionData& session, const auto& put) {
  const auto clocks = clocks_of_cases(session);
  for (const auto& [key, data] : session.cases) {
    const DeviceFacts* const device = session.device(key.device);
    if (!device) continue;
    RatedCase rated{stats::median(data.of_all_runs("tflops")),
                    stats::median(data.of_all_runs("copy_gbs")),
                    {},
                    {}};
    if (!rated.tflops && !rated.copy_gbs) continue;
    rated.algorithm = algorithm_of(data.method);
    const auto clock = clocks.find({key.device, key.arm, key.process_config, key.name.text()});
    if (clock != clocks.end()) rated.clock_mhz = clock->second;
    if (const auto rate = case_rate(key, *device, rated)) put(*rate);
  }
}

std::vector<CaseRate> case_rates(const SessionData& session) {
  std::vector<CaseRate> rates;
  each_case_rate(session, [&](const CaseRate& rate) { rates.push_back(rate); });
  return rates;
}

std::string above_ceiling_text(const CaseRate& rate) {
  if (rate.copy_gbs)
    return fmt::format("{} is {} times the published bandwidth of the memory, {}.",
                       quantity(*rate.copy_gbs, "GB/s"),
                       times_text(*rate.copy_gbs / *rate.judged.limit),
                       quantity(rate.judged.limit, "GB/s"));
  return fmt::format(
      "{} is {} times the ceiling of {}, {}{}.",
      quantity(rate.rate.tflops, "TFLOP/s"),
      times_text(rate.rate.tflops / *rate.judged.limit),
      rate.rate.type,
      quantity(rate.judged.limit, "TFLOP/s"),
      rate.rate.clock_mhz ? fmt::format(" at {:.0f} MHz", *rate.rate.clock_mhz) : "");
}

std::map<CaseKey, std::string> impossible_cases(const SessionData& session) {
  std::map<CaseKey, std::string> impossible;
  each_case_rate(session, [&](const CaseRate& rate) {
    if (rate.judged.verdict == RateVerdict::impossible)
      impossible[rate.key] =
          fmt::format("impossible: {} {}", above_ceiling_text(rate), rate.judged.causes);
  });
  return impossible;
}

/// Nothing of a copy, whose values have another unit.
static std::optional<double> of_work(const CaseRate& rate, std::optional<double> value) {
  return rate.copy_gbs ? std::nullopt : value;
}

Table ceilings_table() {
  using Row = const CaseRate&;
  return make_table<CaseRate>(
      "ceilings.csv",
      "device, arm, process configuration and case of a matrix product, a convolution or a "
      "measured ceiling",
      TableUse::session,
      [](const TableInputs& from, const auto& put) { each_case_rate(from.session, put); },
      {{"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"type",
        "Of the elements; empty of a copy within the device's memory.",
        [](Row row) { return row.rate.type; }},
       {"algorithm",
        "Of a convolution, as its method names it; empty: it is not recorded.",
        [](Row row) { return row.rate.algorithm; }},
       {"tflops",
        "The rate: median of all samples.",
        [](Row row) { return of_work(row, row.rate.tflops); },
        "TFLOP/s"},
       {"clock_mhz",
        "The highest clock of the multiprocessors that was read after a block; empty: none was.",
        [](Row row) { return row.rate.clock_mhz; }},
       {"ceiling_tflops",
        "What the GPU can do at most of that type at that clock.",
        [](Row row) { return row.judged.ceiling; },
        "TFLOP/s"},
       {"share", "The rate's share of it.", [](Row row) { return row.judged.share; }, kShare},
       {"published_tflops",
        "What the GPU's data sheet says of that type, dense.",
        [](Row row) { return of_work(row, row.judged.published); },
        "TFLOP/s"},
       {"published_share",
        "The rate's share of that; of a copy that of `published_gbs`.",
        [](Row row) { return row.judged.published_share; }},
       {"verdict",
        "possible; impossible: more than 2 % above the ceiling, so it counts in no headline, "
        "digest "
        "or comparison; algorithm unknown: above it, and the algorithm may do fewer operations; no "
        "ceiling: none is known.",
        [](Row row) { return name_of(row.judged.verdict); }},
       {"causes",
        "What may have been measured, or why there is no verdict; else empty.",
        [](Row row) { return row.judged.causes; }},
       {"copy_gbs",
        "The rate of a copy within the device's memory, what is read and what is written: median "
        "of "
        "all samples.",
        [](Row row) { return row.copy_gbs; },
        "GB/s"},
       {"published_gbs",
        "What the GPU's data sheet says of the bandwidth of its memory, of such a copy.",
        [](Row row) { return row.copy_gbs ? row.judged.published : std::nullopt; },
        "GB/s"}});
}

}  // namespace launchgap
