// Rungs with a slip each, which make_mutants.py writes.
#pragma once

#include <string>
#include <vector>

#include "tests/ladder/rungs.h"

namespace launchgap::kernels {

struct Mutant {
  std::string what;
  RungKernel kernel;
};

const std::vector<Mutant>& mutants_of_wmma();
const std::vector<Mutant>& mutants_of_mma();
const std::vector<Mutant>& mutants_of_wgmma();

}  // namespace launchgap::kernels
