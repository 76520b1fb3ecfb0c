#include "harness/summary/ceiling.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/summary/generations.h"

namespace launchgap {
namespace {

constexpr std::array<std::string_view, 3> kProvenances = {"published", "formula", "recalled"};

Provenance provenance_of(const CsvTable& table, std::size_t row) {
  const std::string& text = table.at(row, "provenance");
  const auto found = std::ranges::find(kProvenances, text);
  if (found == kProvenances.end())
    throw Error(
        "{}: provenance '{}' is none of {}", table.where(row), text, fmt::join(kProvenances, ", "));
  return static_cast<Provenance>(found - kProvenances.begin());
}

/// What stands behind the type of work that uses the vector units alone.
constexpr std::string_view kVector = "_vector";

/// The types of the tables that a value of the axis `type` is held against.
std::vector<std::string_view> table_types(std::string_view type) {
  if (type == "fp64") return {"fp64", "fp64_tensor"};
  if (type == "fp32_pedantic") return {"fp32"};
  if (type.starts_with("fp8")) return {"fp8"};
  if (type.ends_with(kVector)) return {type.substr(0, type.size() - kVector.size())};
  return {type};
}

constexpr double kTeraPerMega = 1e-6;  // MHz times operations, in TFLOP/s

std::optional<double> read_multiprocessors(const DeviceFacts& gpu) {
  if (!gpu.multiprocessors || *gpu.multiprocessors <= 0) return std::nullopt;
  return static_cast<double>(*gpu.multiprocessors);
}

/// The rows of generations.csv that a GPU may be. Of one name there may be several, with more or
/// fewer multiprocessors; a part of a GPU has fewer than each.
std::vector<const Generation*> rows_of(const DeviceFacts& gpu) {
  const BoardName asked = parse_board_name(gpu.name);
  const auto read = read_multiprocessors(gpu);
  std::vector<const Generation*> rows;
  for (const Generation& known : generations()) {
    if (is_board(asked, known.board) && (!read || *read == known.multiprocessors) &&
        (!gpu.compute_capability || *gpu.compute_capability == known.capability))
      rows.push_back(&known);
  }
  return rows;
}

/// Of one that may be another, of which less is known, nothing follows.
std::optional<SheetRange> range_of(const std::vector<const Generation*>& rows, const auto& value) {
  std::optional<SheetRange> range;
  for (const Generation* const known : rows) {
    const std::optional<double> own = value(*known);
    if (!own) return std::nullopt;
    if (!range) range = SheetRange{*own, *own};
    range->low = std::min(range->low, *own);
    range->high = std::max(range->high, *own);
  }
  return range;
}

/// As the GPU said; of one that others have measured, the largest that its name may mean.
std::optional<double> cache_of(const DeviceFacts& gpu) {
  if (gpu.last_level_cache_bytes) return static_cast<double>(*gpu.last_level_cache_bytes);
  const auto range = range_of(rows_of(gpu), [](const Generation& known) {
    return known.has_source("l2_mb") ? std::optional(known.cache_bytes) : std::nullopt;
  });
  return range ? std::optional(range->high) : std::nullopt;
}

std::optional<Ceiling> table_ceiling(const std::vector<const Generation*>& rows,
                                     std::string_view type) {
  std::optional<Ceiling> highest;
  for (const Generation* const known : rows) {
    for (const CeilingRow& row : ceiling_rows()) {
      if (row.gpu != known->gpu || row.type != type) continue;
      if (highest && *highest->published >= row.tflops) continue;
      highest = {row.type,
                 row.tflops,
                 row.clock_mhz,
                 row.flop_per_sm_clock * known->multiprocessors * kTeraPerMega,
                 row.provenance};
    }
  }
  return highest;
}

std::optional<Ceiling> capability_ceiling(const DeviceFacts& gpu, std::string_view type) {
  const auto multiprocessors = read_multiprocessors(gpu);
  if (!multiprocessors || !gpu.compute_capability) return std::nullopt;
  for (const UnitRate& rate : unit_rates()) {
    if (rate.capability != *gpu.compute_capability || rate.type != type) continue;
    return Ceiling{
        rate.type,
        std::nullopt,
        0,
        rate.flop_per_sm_clock * *multiprocessors * kTeraPerMega,
        rate.provenance == Provenance::published ? Provenance::formula : rate.provenance};
  }
  return std::nullopt;
}

/// What a rate cannot exceed: at the clock that was read, or at the highest that the GPU may have.
std::optional<double> limit_of(const DeviceFacts& gpu,
                               const Ceiling& ceiling,
                               std::optional<double> clock_mhz) {
  if (clock_mhz) return ceiling.at(clock_mhz);
  std::optional<double> highest = ceiling.published;
  if (gpu.clock_mhz) highest = std::max(highest, ceiling.at(*gpu.clock_mhz));
  return highest;
}

/// The types of which such a rate could be, the slowest first; of equally fast ones the first here.
std::vector<std::string> types_that_fit(const DeviceFacts& gpu, const Rate& rate) {
  constexpr std::array<std::string_view, 8> kOthers = {
      "fp64", "fp32", "tf32", "fp16", "bf16", "fp16_acc16", "int8", "fp8_e4m3"};
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<double, std::string>> fitting;
  for (const std::string_view other : kOthers) {
    const auto ceiling = ceiling_of(gpu, other);
    if (other == rate.type || !ceiling) continue;
    const auto limit = limit_of(gpu, *ceiling, rate.clock_mhz);
    const bool known =
        std::ranges::any_of(fitting, [&](const auto& one) { return limit && one.first == *limit; });
    if (limit && rate.tflops <= kAboveCeiling * *limit && !known)
      fitting.emplace_back(
          *limit, fmt::format("{} ({})", spelled_type(ceiling->type), quantity(limit, "TFLOP/s")));
  }
  std::ranges::sort(fitting);
  fitting.resize(std::min(fitting.size(), kShown));
  std::vector<std::string> words;
  for (auto& [limit, text] : fitting) words.push_back(std::move(text));
  return words;
}

std::string causes_of(const DeviceFacts& gpu, const Rate& rate, const Ceiling& ceiling) {
  std::vector<std::string> causes;
  const std::vector<std::string> types = types_that_fit(gpu, rate);
  if (!types.empty())
    causes.push_back(fmt::format("It would be possible in {}.", list_text(types, "or")));
  if (rate.clock_mhz && ceiling.per_mhz) {
    const double highest =
        std::max(ceiling.clock_mhz, static_cast<double>(gpu.clock_mhz.value_or(0)));
    const double needed = rate.tflops / *ceiling.per_mhz;
    if (needed <= kAboveCeiling * highest)
      causes.push_back(fmt::format(
          "It would be possible at {:.0f} MHz; {:.0f} MHz was read.", needed, *rate.clock_mhz));
  }
  if (causes.empty())
    return "It is possible in no type and at no clock of this GPU: less was computed than is "
           "counted, or the "
           "time "
           "is too short.";
  return fmt::format("{}", fmt::join(causes, " "));
}

}  // namespace

std::string_view name_of(Provenance provenance) {
  return kProvenances.at(static_cast<std::size_t>(provenance));
}

const std::vector<RateVerdictInfo>& rate_verdicts() {
  static const std::vector<RateVerdictInfo> verdicts = {
      {"possible", "not above the ceiling, or by an algorithm that does fewer operations"},
      {"impossible", "more than 2 % above the ceiling: something else was measured than is said"},
      {"algorithm unknown", "above the ceiling, and which algorithm convolved is not recorded"},
      {"no ceiling",
       "no ceiling is known, or only a recalled one; of a copy also: the cache may hold a part of "
       "it"}};
  return verdicts;
}

std::string_view name_of(RateVerdict verdict) {
  return rate_verdicts().at(static_cast<std::size_t>(verdict)).name;
}

const std::vector<CeilingRow>& ceiling_rows() {
  static const std::vector<CeilingRow> rows = [] {
    const CsvTable table = CsvTable::parse(embedded_table("ceilings.csv"), "data/ceilings.csv");
    std::vector<CeilingRow> read;
    for (std::size_t i = 0; i < table.size(); ++i)
      read.push_back({table.at(i, "gpu"),
                      table.at(i, "type"),
                      positive(table, i, "tflops"),
                      positive(table, i, "clock_mhz"),
                      positive(table, i, "flop_per_sm_clock"),
                      provenance_of(table, i),
                      table.at(i, "source")});
    return read;
  }();
  return rows;
}

const std::vector<UnitRate>& unit_rates() {
  static const std::vector<UnitRate> rates = [] {
    const CsvTable table = CsvTable::parse(embedded_table("unit_rates.csv"), "data/unit_rates.csv");
    std::vector<UnitRate> read;
    for (std::size_t i = 0; i < table.size(); ++i)
      read.push_back({table.at(i, "compute_capability"),
                      table.at(i, "type"),
                      positive(table, i, "flop_per_sm_clock"),
                      provenance_of(table, i),
                      table.at(i, "source")});
    return read;
  }();
  return rates;
}

std::optional<double> Ceiling::at(std::optional<double> clock) const {
  if (!clock || !per_mhz) return std::nullopt;
  return *clock * *per_mhz;
}

std::optional<Ceiling> ceiling_of(const DeviceFacts& gpu, std::string_view type) {
  if (!is_gpu(gpu)) return std::nullopt;
  const std::vector<const Generation*> rows = rows_of(gpu);
  std::optional<Ceiling> highest;
  for (const std::string_view table_type : table_types(type)) {
    // What a known GPU has no row of, it does not have.
    const auto ceiling =
        rows.empty() ? capability_ceiling(gpu, table_type) : table_ceiling(rows, table_type);
    if (ceiling && (!highest || ceiling->per_mhz > highest->per_mhz)) highest = ceiling;
  }
  return highest;
}

std::string spelled_type(std::string_view type) {
  if (type == "fp64_tensor") return "FP64 in tensor cores";
  if (type == "fp16_acc16") return "FP16 with FP16 sums";
  if (type == "fp32_pedantic") return "pedantic FP32";
  if (type.starts_with("fp8_"))
    return fmt::format("FP8 {}{}",
                       type.substr(4, 4) == "e4m3" ? "E4M3" : "E5M2",
                       type.ends_with("_fast") ? " with fast sums" : "");
  std::string capitals(type);
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return capitals;
}

std::optional<double> multiprocessors_of(const DeviceFacts& gpu) {
  if (const auto read = read_multiprocessors(gpu)) return read;
  std::optional<double> known;
  for (const Generation* const row : rows_of(gpu)) {
    if (known && *known != row->multiprocessors) return std::nullopt;
    known = row->multiprocessors;
  }
  return known;
}

bool does_fewer_operations(std::string_view algorithm) {
  std::string lower(algorithm);
  std::ranges::transform(
      lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(std::array<std::string_view, 3>{"winograd", "fft", "3m"},
                             [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

JudgedRate judge_rate(const DeviceFacts& gpu, const Rate& rate) {
  JudgedRate judged;
  const auto ceiling = ceiling_of(gpu, rate.type);
  if (!ceiling) return judged;
  judged.ceiling = ceiling->at(rate.clock_mhz);
  judged.published = ceiling->published;
  if (judged.ceiling) judged.share = rate.tflops / *judged.ceiling;
  if (judged.published) judged.published_share = rate.tflops / *judged.published;
  judged.limit = limit_of(gpu, *ceiling, rate.clock_mhz);
  if (!judged.limit) return judged;
  if (ceiling->provenance == Provenance::recalled) {
    judged.causes = "The ceiling is only recalled.";
    return judged;
  }
  judged.verdict = RateVerdict::possible;
  if (rate.tflops <= kAboveCeiling * *judged.limit) return judged;
  if (does_fewer_operations(rate.algorithm)) {
    judged.causes =
        fmt::format("By {} fewer operations are done than are counted.", rate.algorithm);
  } else if (rate.convolution && rate.algorithm.empty()) {
    judged.verdict = RateVerdict::algorithm_unknown;
    judged.causes = "An algorithm such as Winograd does fewer operations than are counted.";
  } else {
    judged.verdict = RateVerdict::impossible;
    judged.causes = causes_of(gpu, rate, *ceiling);
  }
  return judged;
}

std::optional<SheetRange> sheet_rates(const DeviceFacts& gpu, std::string_view type) {
  if (!is_gpu(gpu)) return std::nullopt;
  const std::vector<const Generation*> rows = rows_of(gpu);
  if (rows.empty()) {
    const auto ceiling = ceiling_of(gpu, type);
    const auto rate = ceiling ? ceiling->at(gpu.clock_mhz) : std::nullopt;
    if (!rate || ceiling->provenance == Provenance::recalled) return std::nullopt;
    return SheetRange{*rate, *rate};
  }
  return range_of(rows, [&](const Generation& known) {
    std::optional<double> rate;
    for (const std::string_view table_type : table_types(type)) {
      const auto ceiling = table_ceiling({&known}, table_type);
      if (ceiling && ceiling->provenance != Provenance::recalled)
        rate = std::max(rate, ceiling->published);
    }
    return rate;
  });
}

std::optional<SheetRange> sheet_bandwidths(const DeviceFacts& gpu) {
  if (!is_gpu(gpu)) return std::nullopt;
  return range_of(rows_of(gpu), [](const Generation& known) {
    return known.has_source("bandwidth_gbs") ? std::optional(known.bandwidth_gbs) : std::nullopt;
  });
}

std::optional<double> published_bandwidth(const DeviceFacts& gpu) {
  const auto range = sheet_bandwidths(gpu);
  return range ? std::optional(range->high) : std::nullopt;
}

JudgedRate judge_copy(const DeviceFacts& gpu, double gbs, double moved_bytes) {
  JudgedRate judged;
  judged.published = judged.limit = published_bandwidth(gpu);
  if (!judged.published) return judged;
  judged.published_share = gbs / *judged.published;
  const std::optional<double> cache = cache_of(gpu);
  if (!cache || moved_bytes < kPastCache * *cache) {
    judged.causes =
        cache
            ? fmt::format("The copy moves less than {:.0f} times what the cache holds.", kPastCache)
            : "How much the cache holds is not known.";
    return judged;
  }
  judged.verdict = RateVerdict::possible;
  if (gbs <= kAboveCeiling * *judged.limit) return judged;
  judged.verdict = RateVerdict::impossible;
  judged.causes = "Less was copied than is counted, or the time is too short.";
  return judged;
}

}  // namespace launchgap
