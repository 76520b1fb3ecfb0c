// The proof that tracing works in this process, before anything is measured with it.
#pragma once

#include <cstdint>
#include <string>

#include "harness/device/device.h"
#include "harness/trace/join.h"
#include "harness/trace/tracer.h"

namespace launchgap {

/// What a traced process has shown before it measures.
struct Canary {
  JoinCounts counts;  // of the last try
  int tries = 0;      // how often it was asked; more than one where tracing began with a burst of
                      // corrupt records (pytorch/pytorch issue 192021)
  std::string burst;  // what was wrong with the first try, where there were more
  std::int64_t scatter_ns = 0;  // of its launches, see scatter_of_launches()
};

/// The proof that tracing works here, before anything is measured with it: 100 launches of an empty
/// kernel, each waited for, must all be there, joined, with possible times. Where they are not, the
/// device is kept busy for 50 ms and asked again, three times in all. Throws TraceUnavailable
/// (no_records, dropped, bad_timestamps, unjoined);
/// `canary` has what was seen in any case.
void check_with_canary(Tracer& tracer, Device& device, Canary& canary);

}  // namespace launchgap
