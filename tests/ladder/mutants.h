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

const std::vector<Mutant>& mutants_of_matmul_wmma();
const std::vector<Mutant>& mutants_of_matmul_mma();
const std::vector<Mutant>& mutants_of_matmul_wgmma();
const std::vector<Mutant>& mutants_of_matmul_tcgen05();
const std::vector<Mutant>& mutants_of_convolution_mma();

}  // namespace launchgap::kernels
