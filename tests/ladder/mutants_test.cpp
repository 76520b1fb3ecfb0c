// What the tests of a rung would notice: each slip of its list.
#include "tests/ladder/mutants.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace launchgap::kernels {
namespace {

/// Whether the result differs, a fault is found, or there are bank conflicts, for some shape and
/// order; also if it ends the process, or takes for ever.
bool is_noticed(const EmulatedRung& own, const RungKernel& mutant) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(signal, SIG_DFL);
    for (const Problem& problem : own.problems) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        emulated::BankConflicts conflicts;
        if (!wrong(own, mutant, problem, seed, &conflicts).empty() || !conflicts.empty()) _exit(1);
      }
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

void expect_all_noticed(const std::string& name, const std::vector<Mutant>& mutants) {
  EXPECT_GE(mutants.size(), 25u);
  const EmulatedRung& own = emulated_rung(name);
  EXPECT_FALSE(is_noticed(own, own.kernel)) << "without a slip";
  for (const Mutant& mutant : mutants) EXPECT_TRUE(is_noticed(own, mutant.kernel)) << mutant.what;
}

TEST(Mutants, OfWmmaAreNoticed) {
  expect_all_noticed("matmul_wmma", mutants_of_matmul_wmma());
}
TEST(Mutants, OfMmaAreNoticed) {
  expect_all_noticed("matmul_mma", mutants_of_matmul_mma());
}
TEST(Mutants, OfWgmmaAreNoticed) {
  expect_all_noticed("matmul_wgmma", mutants_of_matmul_wgmma());
}
TEST(Mutants, OfTcgen05AreNoticed) {
  expect_all_noticed("matmul_tcgen05", mutants_of_matmul_tcgen05());
}
TEST(Mutants, OfAConvolutionByMmaAreNoticed) {
  expect_all_noticed("convolution_mma", mutants_of_convolution_mma());
}

}  // namespace
}  // namespace launchgap::kernels
