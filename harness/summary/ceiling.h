// How many operations per second a GPU can do at most, by the type of the elements, how fast its
// memory is, and whether a rate that was measured can be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/facts.h"

namespace launchgap {

/// Where a ceiling comes from. One that is only recalled marks nothing.
enum class Provenance { published, formula, recalled };
std::string_view name_of(Provenance provenance);

/// A row of data/ceilings.csv: of one GPU and type, dense.
struct CeilingRow {
  std::string gpu;  // a row of generations.csv
  std::string type;
  double tflops = 0;
  double clock_mhz = 0;  // at which it holds
  double flop_per_sm_clock = 0;
  Provenance provenance = Provenance::recalled;
  std::string source;
};

/// A row of data/unit_rates.csv: the most that a multiprocessor of a compute capability does.
struct UnitRate {
  std::string capability;
  std::string type;
  double flop_per_sm_clock = 0;
  Provenance provenance = Provenance::recalled;
  std::string source;
};

/// The embedded tables, read once. Throw Error if a row does not make sense.
const std::vector<CeilingRow>& ceiling_rows();
const std::vector<UnitRate>& unit_rates();

/// The ceiling of a type on a GPU.
struct Ceiling {
  std::string type;                 // "fp64_tensor" where products of FP64 are held against that
  std::optional<double> published;  // TFLOP/s at `clock_mhz`; absent for a GPU of no table
  double clock_mhz = 0;
  std::optional<double> per_mhz;  // TFLOP/s; absent where the multiprocessors are not known
  Provenance provenance = Provenance::recalled;

  std::optional<double> at(std::optional<double> clock_mhz) const;
};

/// Of a GPU as NVML or the driver names it, by its name and the multiprocessors that were read; of
/// a GPU of no table, and of a part of one, by its compute capability. `type` is a value of the
/// axis `type`. Absent where the hardware has no such type, or nothing is known.
std::optional<Ceiling> ceiling_of(const DeviceFacts& gpu, std::string_view type);

/// How people write a type: "FP16", "FP64 in tensor cores".
std::string spelled_type(std::string_view type);

/// The multiprocessors that were read; of a GPU of which none were, those of its table, where its
/// name leaves one number.
std::optional<double> multiprocessors_of(const DeviceFacts& gpu);

/// Whether an algorithm does fewer operations than are counted, so that no ceiling holds: Winograd,
/// FFT, complex products by three real ones ("3m").
bool does_fewer_operations(std::string_view algorithm);

enum class RateVerdict { possible, impossible, algorithm_unknown, no_ceiling };
struct RateVerdictInfo {
  std::string_view name, meaning;
};
/// All of them, in the order of the enumeration.
const std::vector<RateVerdictInfo>& rate_verdicts();
std::string_view name_of(RateVerdict verdict);

/// A rate may be so much above a ceiling: clocks are read in steps, and between blocks.
inline constexpr double kAboveCeiling = 1.02;

struct Rate {
  bool convolution = false;  // of which some algorithms do fewer operations than are counted
  std::string type;          // as on the axis `type`; "fp64_vector": of the vector units alone
  std::string algorithm;     // empty: not recorded
  double tflops = 0;
  std::optional<double> clock_mhz;  // of the multiprocessors, the highest that was read meanwhile
};

/// Of a product or a convolution in TFLOP/s, of a copy in GB/s.
struct JudgedRate {
  RateVerdict verdict = RateVerdict::no_ceiling;
  std::optional<double> ceiling;          // at the clock that was read
  std::optional<double> share;            // of it
  std::optional<double> published;        // at the published clock
  std::optional<double> published_share;  // of that
  std::optional<double> limit;            // what it was judged by
  std::string causes;  // what may have been, or why there is no verdict; else empty
};

JudgedRate judge_rate(const DeviceFacts& gpu, const Rate& rate);

/// What the data sheet says of the bandwidth of a GPU's memory, in GB/s of reads and writes
/// together; of several GPUs that it may be, the highest. Absent of a GPU of no table, of a part of
/// one, and where the table has it from memory alone.
std::optional<double> published_bandwidth(const DeviceFacts& gpu);

/// The least and the most of what a name may mean: an "A100" has 1555 or 2039 GB/s.
struct SheetRange {
  double low = 0, high = 0;
  bool one() const { return low == high; }
};
/// What data sheets say of a type, in TFLOP/s; of a GPU of no table, what its compute capability
/// and clock give. Absent where a GPU that it may be has no such type, or it is only recalled.
std::optional<SheetRange> sheet_rates(const DeviceFacts& gpu, std::string_view type);
/// Of the memory's bandwidth, in GB/s.
std::optional<SheetRange> sheet_bandwidths(const DeviceFacts& gpu);

/// What is moved must be so many times what the last-level cache holds for the memory to bound it.
inline constexpr double kPastCache = 4;

/// A copy within a GPU's memory that moves `moved_bytes`, what is read and what is written, at
/// `gbs`. There is no verdict where the cache may hold a part of it.
JudgedRate judge_copy(const DeviceFacts& gpu, double gbs, double moved_bytes);

}  // namespace launchgap
