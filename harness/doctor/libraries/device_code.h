// Which GPUs a library really holds code for: the headers of the fatbins inside of it.
#pragma once

#include <compare>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

namespace launchgap::doctor {

/// What code was compiled for: a compute capability, and whether only for that one.
struct CodeTarget {
  int capability = 0;  // 10 * major + minor: 90
  /// 0: this and later ones, by the rules of SASS and PTX. 'a': this one alone. 'f': its family.
  char suffix = 0;

  std::string text() const;  // "9.0", "9.0a"
  friend auto operator<=>(const CodeTarget&, const CodeTarget&) = default;
};

struct DeviceCode {
  std::set<CodeTarget> sass;  // machine code
  std::set<CodeTarget> ptx;   // which a driver compiles for its GPU
  std::size_t containers = 0, images = 0;
  std::size_t link_time_images = 0;  // NVVM IR for linking (-dlto): no code that a driver can run
  /// Why there may be more than what is listed; empty if all of it was understood.
  std::string incomplete;

  /// Nothing was found or understood: what the file can do is unknown, not nothing.
  bool unknown() const { return sass.empty() && ptx.empty(); }
  /// "SASS 7.5, 8.0, 9.0a; PTX 12.0".
  std::string text() const;
};

/// Reads ELF files (libraries, programs, objects), cubins and bare fatbins. Hops from header to
/// header: of 500 MB some hundred KB are read, and never more than a fixed number of images. Throws
/// BadFile (elf_file.h) for what is none of these.
///
/// The container is not documented by NVIDIA; the layout is that of `fatBinaryHeader` in CUDA's
/// fatbinary.h of old, the image's header and flags as public tools read them, checked with what
/// nvcc 13.0 writes for each kind of target.
DeviceCode device_code_of(const std::filesystem::path& path);

}  // namespace launchgap::doctor
