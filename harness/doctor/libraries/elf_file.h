// What a library's file is, read with libelf and without loading it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/errors.h"
#include "harness/core/finding.h"
#include "harness/doctor/version.h"

namespace launchgap::doctor {

/// A file that is not what it should be. The message names the file and says what it is instead.
class BadFile : public Error {
 public:
  using Error::Error;
};

struct ElfFacts {
  int bits = 0;                    // 32 or 64
  unsigned machine = 0;            // EM_…
  std::string machine_name;        // "x86-64", "aarch64", "machine 190"
  bool shared_object = false;      // ET_DYN, as libraries and most programs are
  bool statically_linked = false;  // a program without an interpreter: no loader, no LD_DEBUG
  std::string soname;
  std::vector<std::string> needed;
  std::string rpath, runpath;           // as written, with $ORIGIN
  std::optional<Version> newest_glibc;  // of the GLIBC_… symbol versions that it needs
};

/// An ELF file that is open for reading.
class ElfFile {
 public:
  struct Section {
    std::string name;
    std::uint64_t offset = 0, size = 0;
  };

  /// Throws BadFile for what is missing, unreadable, no regular file, no ELF file or cut off. Never
  /// waits for the other end of a pipe.
  explicit ElfFile(const std::filesystem::path& path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  const ElfFacts& facts() const { return facts_; }
  /// Whether the dynamic symbol table defines it; nothing for a file without such a table.
  std::optional<bool> exports(std::string_view symbol) const;
  /// The sections with bytes in the file; none where the section table is stripped.
  std::vector<Section> sections() const;
  /// Size in bytes.
  std::uint64_t size() const { return size_; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::uint64_t size_ = 0;
  ElfFacts facts_;
};

/// Opens a regular file for reading without ever blocking. Throws BadFile with the one reason why
/// it cannot be had ("… is a folder"). The caller closes the descriptor. `size` is in bytes.
int open_regular_file(const std::filesystem::path& path, std::uint64_t& size);

/// Why a process of this machine cannot load the file as a library; nothing if its headers are
/// fine, which is no proof that loading works.
std::optional<std::string> why_not_loadable(const std::filesystem::path& path);

/// The finding `library-broken`: `reason` as why_not_loadable tells it, or what a probe saw.
Finding library_broken(const std::string& path, const std::string& reason);

}  // namespace launchgap::doctor
