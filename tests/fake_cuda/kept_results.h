// Results of costly products and convolutions, kept in a folder from one process to the next: a
// session's processes compute the same from the same operands, and the fake is a slow computer.
#pragma once

#include <string>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// Has `operation` take its whole result from the folder that LAUNCHGAP_FAKE_RESULTS names, if one
/// was kept there that was computed from the same bytes, and keep it else. `what` says all of what
/// is computed but where operands and result are; `flops` how much that is: what takes no time is
/// not kept. Nothing is done without the variable.
void keep_result(Operation& operation, const std::string& what, double flops);

}  // namespace launchgap::fake
