#include "harness/device/code_levels.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

using enum Instructions;

// Years are those in which the first CPU was sold. OpenBLAS names code by a CPU's core, oneDNN by
// instructions.
constexpr CodeLevel kLevels[] = {
    {"prescott", "OpenBLAS", "Prescott", 2004, "a Pentium 4 (Prescott)", sse3},
    {"nehalem", "OpenBLAS", "Nehalem", 2008, "a Core i7 (Nehalem)", sse42},
    {"sandybridge", "OpenBLAS", "Sandybridge", 2011, "a Core i7 (Sandy Bridge)", avx},
    {"bulldozer", "OpenBLAS", "Bulldozer", 2011, "an AMD FX (Bulldozer)", avx_fma4, false},
    {"haswell", "OpenBLAS", "Haswell", 2013, "a Core i7 (Haswell)", avx2},
    {"zen", "OpenBLAS", "Zen", 2017, "an AMD Ryzen (Zen)", avx2, false},
    {"skylakex", "OpenBLAS", "SkylakeX", 2017, "a Xeon Scalable (Skylake)", avx512},
    {"sse41", "oneDNN", "SSE41", 2008, "a Core 2 (Penryn)", sse41},
    {"avx", "oneDNN", "AVX", 2011, "a Core i7 (Sandy Bridge)", avx},
    {"avx2", "oneDNN", "AVX2", 2013, "a Core i7 (Haswell)", avx2},
    {"avx512_core", "oneDNN", "AVX512_CORE", 2017, "a Xeon Scalable (Skylake)", avx512},
};

/// Further code of OpenBLAS without AVX: what it falls back to, or what it had before.
constexpr std::string_view kWithoutAvx[] = {"generic",
                                            "Generic",
                                            "Core2",
                                            "Penryn",
                                            "Dunnington",
                                            "Atom",
                                            "Nano",
                                            "Opteron",
                                            "Opteron_SSE3",
                                            "Barcelona",
                                            "Bobcat"};

struct Variable {
  std::string_view library;
  const char* name;
};
// Of a library the one that it heeds first.
constexpr Variable kVariables[] = {{"OpenBLAS", "OPENBLAS_CORETYPE"},
                                   {"oneDNN", "ONEDNN_MAX_CPU_ISA"},
                                   {"oneDNN", "DNNL_MAX_CPU_ISA"}};

bool uses_avx(std::string_view library, std::string_view in_effect) {
  if (const CodeLevel* const level = level_in_effect(library, in_effect))
    return level->needs >= avx;
  return std::ranges::find(kWithoutAvx, in_effect) == std::end(kWithoutAvx);
}

}  // namespace

std::string_view name_of(Instructions instructions) {
  constexpr std::string_view kNames[] = {"SSE3",
                                         "SSE4.1",
                                         "SSE4.2",
                                         "AVX",
                                         "AVX and FMA4",
                                         "AVX2 and FMA",
                                         "AVX-512 (F, CD, BW, DQ and VL)"};
  return kNames[static_cast<std::size_t>(instructions)];
}

bool cpu_has(Instructions instructions) {
  // The compiler takes literals only.
  switch (instructions) {
    case sse3:
      return __builtin_cpu_supports("sse3");
    case sse41:
      return __builtin_cpu_supports("sse4.1");
    case sse42:
      return __builtin_cpu_supports("sse4.2");
    case avx:
      return __builtin_cpu_supports("avx");
    case avx_fma4:
      return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma4");
    case avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
  }
  return false;
}

std::span<const CodeLevel> code_levels() {
  return kLevels;
}

const CodeLevel* find_code_level(std::string_view name) {
  const auto* const found = std::ranges::find(kLevels, name, &CodeLevel::name);
  return found == std::end(kLevels) ? nullptr : found;
}

const CodeLevel* level_in_effect(std::string_view library, std::string_view in_effect) {
  const auto* const found = std::ranges::find_if(kLevels, [&](const CodeLevel& level) {
    return level.owner == library && level.value == in_effect;
  });
  return found == std::end(kLevels) ? nullptr : found;
}

std::string_view code_variable(std::string_view library) {
  const auto* const found = std::ranges::find(kVariables, library, &Variable::library);
  return found == std::end(kVariables) ? std::string_view() : found->name;
}

std::string code_told_by(std::string_view library,
                         const std::function<const char*(const char*)>& variable) {
  for (const auto& [of, name] : kVariables) {
    if (of != library) continue;
    const char* const value = variable(name);
    if (value && *value) return fmt::format("{}={}", name, value);
  }
  return "";
}

std::string code_told_by(std::string_view library) {
  return code_told_by(library, [](const char* name) { return std::getenv(name); });
}

void choose_code(std::string_view name, const CpuHas& has) {
  if (name == kOwnCode) return;
  const CodeLevel* const level = find_code_level(name);
  if (!level) throw Error("no library has code that is called '{}'", name);
  if (!has(level->needs)) return;
  setenv(std::string(code_variable(level->owner)).c_str(), std::string(level->value).c_str(), 1);
}

std::string newer_code(std::string_view library, std::string_view in_effect, const CpuHas& has) {
  if (uses_avx(library, in_effect)) return "";
  std::string_view newest;
  for (const CodeLevel& level : kLevels) {
    if (level.owner == library && level.in_every_profile && level.needs > avx && has(level.needs))
      newest = level.value;
  }
  return std::string(newest);
}

std::string code_and_year(std::string_view library, std::string_view in_effect) {
  const CodeLevel* const level = level_in_effect(library, in_effect);
  return level ? fmt::format("{} ({})", in_effect, level->year) : std::string(in_effect);
}

}  // namespace launchgap
