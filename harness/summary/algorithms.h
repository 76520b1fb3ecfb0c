// What a library computed each case with, night after night: the algorithm where it tells, and else
// the kernels that it launched.
#pragma once

#include <map>
#include <set>
#include <string>

#include "harness/summary/session_data.h"

namespace launchgap {

/// Of each case the different ones in its processes. Where a library does not tell (cuBLAS), they
/// are the kernels of the same case in traced processes, by name and grid: "ampere_sgemm_128x64_tn
/// 16x8x1", several of one process joined by " + ". A case of which neither is known has none.
std::map<CaseKey, std::set<std::string>> algorithms_of_cases(const SessionData& session);

}  // namespace launchgap
