// Code that the host's libraries have for older CPUs, and how a process is made to run it.
//
// OpenBLAS and oneDNN choose code by the CPU when they are loaded. A variable of the environment
// makes them take that for an older one, which shows what such code gets out of a new CPU.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace launchgap {

/// What code needs of a CPU.
enum class Instructions { sse3, sse41, sse42, avx, avx_fma4, avx2, avx512 };
std::string_view name_of(Instructions instructions);  // "AVX2 and FMA"
/// Whether this CPU and its operating system have them.
bool cpu_has(Instructions instructions);
using CpuHas = std::function<bool(Instructions)>;

struct CodeLevel {
  std::string_view name;   // of the axis `code`, and no other library's: "skylakex"
  std::string_view owner;  // the library, as records name it: "OpenBLAS"
  std::string_view value;  // of the library's variable, and what it says of itself: "SkylakeX"
  int year = 0;            // of the first CPU that the code was written for
  std::string_view cpu;    // that CPU: "a Pentium 4 (Prescott)"
  Instructions needs = Instructions::sse3;
  bool in_every_profile = true;
};

/// By library, the oldest first.
std::span<const CodeLevel> code_levels();
/// Null if there is none of this name.
const CodeLevel* find_code_level(std::string_view name);
/// The level that a library says it runs; null where the table has no such one.
const CodeLevel* level_in_effect(std::string_view library, std::string_view in_effect);

/// The value of the axis with which a library chooses as it does in every other program.
inline constexpr std::string_view kOwnCode = "own";

/// The variable by which a library is told: "OPENBLAS_CORETYPE".
std::string_view code_variable(std::string_view library);
/// The variables by which a user may have told it, the one that counts first. One that is set here
/// as "OPENBLAS_CORETYPE=Haswell"; empty if none is.
std::string code_told_by(std::string_view library,
                         const std::function<const char*(const char*)>& variable);
std::string code_told_by(std::string_view library);

/// Sets the variables of this process for a level; what the CPU cannot execute is not asked for.
/// Nothing for kOwnCode. Before the library is loaded. Throws Error for what is no level.
void choose_code(std::string_view name, const CpuHas& has = cpu_has);

/// The newest code of a library that the CPU can execute, where what is in effect uses none of the
/// vector units that came with AVX: "SkylakeX". Else empty.
std::string newer_code(std::string_view library,
                       std::string_view in_effect,
                       const CpuHas& has = cpu_has);

/// "Prescott (2004)"; of code whose year the table does not have, its name.
std::string code_and_year(std::string_view library, std::string_view in_effect);

}  // namespace launchgap
