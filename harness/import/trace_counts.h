// What a join counted, as records have it: launchgap's own traces and those of others.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/import/recording.h"
#include "harness/record/trace_record.h"
#include "harness/trace/join.h"

namespace launchgap {

inline TraceCounts counts_of(const JoinCounts& counts) {
  const auto number = [](auto count) { return static_cast<std::int64_t>(count); };
  return {.launches = number(counts.launches),
          .kernels = number(counts.kernels),
          .joined = number(counts.joined),
          .kernels_without_launch = number(counts.kernels_without_launch),
          .launches_without_kernel = number(counts.launches_without_kernel),
          .dropped = number(counts.dropped),
          .unknown = number(counts.unknown),
          .zero = number(counts.zero),
          .inverted = number(counts.inverted),
          .early = number(counts.early),
          .duplicates = number(counts.duplicates),
          .overlap = number(counts.overlap),
          .nested = number(counts.nested)};
}

/// Of a recording. Without calls nothing is known of launches, and their counts are missing.
inline TraceCounts counts_of(const recording::Process& process, const JoinCounts& counts) {
  TraceCounts known = counts_of(counts);
  if (process.lacks_calls())
    known.launches = known.joined = known.kernels_without_launch = known.launches_without_kernel =
        known.early = known.overlap = known.nested = std::nullopt;
  return known;
}

}  // namespace launchgap
