#include "harness/device/code_levels.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/core/process_config.h"

namespace launchgap {
namespace {

/// A CPU with instructions up to these; FMA4 is AMD's alone.
CpuHas up_to(Instructions newest) {
  return
      [newest](Instructions asked) { return asked <= newest && asked != Instructions::avx_fma4; };
}

/// A variable of this process, which the test leaves as it was: unset.
struct CodeVariables : ::testing::Test {
  CodeVariables() { clear(); }
  ~CodeVariables() override { clear(); }
  static void clear() {
    for (const char* name : {"OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
      unsetenv(name);
  }
  static std::string value(const char* name) {
    const char* const found = std::getenv(name);
    return found ? found : "";
  }
};

TEST(CodeLevels, AreNamedOnceAndInOrderOfTheirYears) {
  std::set<std::string_view> names;
  std::map<std::string_view, const CodeLevel*> before;
  for (const CodeLevel& level : code_levels()) {
    EXPECT_TRUE(names.insert(level.name).second) << level.name;
    EXPECT_EQ(ProcessConfig("matmul").with("code", level.name).code(), level.name);
    EXPECT_EQ(find_code_level(level.name), &level);
    EXPECT_EQ(level_in_effect(level.owner, level.value), &level);
    EXPECT_NE(code_variable(level.owner), "");
    EXPECT_FALSE(level.cpu.empty());
    EXPECT_NE(name_of(level.needs), "");
    const CodeLevel*& older = before[level.owner];
    if (older) {
      EXPECT_LE(older->year, level.year) << level.name;
      EXPECT_LE(older->needs, level.needs) << level.name;
    }
    older = &level;
  }
  EXPECT_EQ(before.size(), 2U);
  EXPECT_EQ(find_code_level(kOwnCode), nullptr);
  EXPECT_EQ(level_in_effect("OpenBLAS", "AVX2"), nullptr) << "oneDNN's";
}

TEST(CodeLevels, WhatACpuHasIncludesWhatIsOlder) {
  EXPECT_TRUE(cpu_has(Instructions::sse3));
  if (cpu_has(Instructions::avx512)) {
    EXPECT_TRUE(cpu_has(Instructions::avx2));
  }
  if (cpu_has(Instructions::avx2)) {
    EXPECT_TRUE(cpu_has(Instructions::avx));
    EXPECT_TRUE(cpu_has(Instructions::sse42));
  }
}

TEST_F(CodeVariables, AreSetToTheLevel) {
  choose_code("haswell", up_to(Instructions::avx512));
  EXPECT_EQ(value("OPENBLAS_CORETYPE"), "Haswell");
  EXPECT_EQ(value("ONEDNN_MAX_CPU_ISA"), "");
  choose_code("avx512_core", up_to(Instructions::avx512));
  EXPECT_EQ(value("ONEDNN_MAX_CPU_ISA"), "AVX512_CORE");
}

TEST_F(CodeVariables, OfTheUserStayUnlessALevelIsAskedFor) {
  setenv("OPENBLAS_CORETYPE", "Nehalem", 1);
  choose_code(kOwnCode, up_to(Instructions::avx512));
  EXPECT_EQ(value("OPENBLAS_CORETYPE"), "Nehalem");
  choose_code("prescott", up_to(Instructions::avx512));
  EXPECT_EQ(value("OPENBLAS_CORETYPE"), "Prescott");
}

TEST_F(CodeVariables, NeverNameWhatTheCpuCannotExecute) {
  choose_code("skylakex", up_to(Instructions::avx2));
  choose_code("bulldozer", up_to(Instructions::avx512));
  choose_code("avx2", up_to(Instructions::avx));
  EXPECT_EQ(value("OPENBLAS_CORETYPE"), "");
  EXPECT_EQ(value("ONEDNN_MAX_CPU_ISA"), "");
  EXPECT_THROW(choose_code("z80", up_to(Instructions::avx512)), Error);
}

TEST_F(CodeVariables, ThatTheLibraryHeedsFirstAreToldFirst) {
  EXPECT_EQ(code_told_by("oneDNN"), "");
  setenv("DNNL_MAX_CPU_ISA", "SSE41", 1);
  EXPECT_EQ(code_told_by("oneDNN"), "DNNL_MAX_CPU_ISA=SSE41");
  setenv("ONEDNN_MAX_CPU_ISA", "AVX", 1);
  EXPECT_EQ(code_told_by("oneDNN"), "ONEDNN_MAX_CPU_ISA=AVX");
  EXPECT_EQ(code_told_by("OpenBLAS"), "");
  setenv("OPENBLAS_CORETYPE", "", 1);
  EXPECT_EQ(code_told_by("OpenBLAS"), "") << "empty tells nothing";
}

struct Fallback {
  const char *library, *in_effect;
  Instructions cpu;
  const char* newer;
};

TEST(CodeLevels, NewerCodeIsNamedWhereTheVectorUnitsOfAvxAreIdle) {
  using enum Instructions;
  const Fallback fallbacks[] = {
      {"OpenBLAS", "Prescott", avx512, "SkylakeX"},
      {"OpenBLAS", "Prescott", avx2, "Haswell"},
      {"OpenBLAS", "generic", avx2, "Haswell"},
      {"OpenBLAS", "Barcelona", avx2, "Haswell"},
      {"OpenBLAS", "Nehalem", avx, ""},        // Sandybridge: no FMA, and never a fallback
      {"OpenBLAS", "Prescott", sse42, ""},     // there is nothing better
      {"OpenBLAS", "Haswell", avx512, ""},     // what AVX-512 adds depends on the CPU
      {"OpenBLAS", "Cooperlake", avx512, ""},  // newer than the table
      {"OpenBLAS", "SomethingNew", avx512, ""},
      {"oneDNN", "SSE41", avx512, "AVX512_CORE"},
      {"oneDNN", "AVX512_CORE", avx512, ""},
  };
  for (const auto& [library, in_effect, cpu, newer] : fallbacks)
    EXPECT_EQ(newer_code(library, in_effect, up_to(cpu)), newer) << library << ", " << in_effect;
}

TEST(CodeLevels, TellTheYearWhereItIsKnown) {
  EXPECT_EQ(code_and_year("OpenBLAS", "Prescott"), "Prescott (2004)");
  EXPECT_EQ(code_and_year("OpenBLAS", "Cooperlake"), "Cooperlake");
}

}  // namespace
}  // namespace launchgap
