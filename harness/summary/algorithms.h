// What a library computed each case with, night after night: the algorithm where it tells, and else
// the kernels that it launched.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "harness/summary/session_data.h"

namespace launchgap {

/// Of each case the different ones in its processes. Where a library does not tell (cuBLAS), they
/// are the kernels of the same case in traced processes, by name and grid: "ampere_sgemm_128x64_tn
/// 16x8x1", several of one process joined by " + ". A case of which neither is known has none.
std::map<CaseKey, std::set<std::string>> algorithms_of_cases(const SessionData& session);

/// How many waves of blocks a case takes on its device, as its method says: 2.1 of "cuBLASLt 13.1
/// cublasLtMatmul, …, 2.10 waves, …". Absent where it names none, or where another library did the
/// work.
std::optional<double> waves_of(std::string_view method);

}  // namespace launchgap
