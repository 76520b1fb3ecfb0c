// What files are, told from outside.
#include <algorithm>
#include <cstring>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/printable.h"
#include "harness/doctor/libraries/elf_file.h"
#include "tests/doctor/folder.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

namespace fs = std::filesystem;

const fs::path kPrograms = LAUNCHGAP_DOCTOR_PROGRAMS;
const fs::path kFakeCuda = LAUNCHGAP_FAKE_CUDA_FOLDER;

std::string why_bad(const fs::path& path) {
  try {
    const ElfFile file(path);
    return "";
  } catch (const BadFile& bad) {
    return bad.what();
  }
}

TEST(ElfFile, TellsWhatALibraryIs) {
  const ElfFile file(kFakeCuda / "libcuda.so.1");
  EXPECT_EQ(file.facts().bits, 64);
  EXPECT_EQ(file.facts().soname, "libcuda.so.1");
  EXPECT_TRUE(file.facts().shared_object);
  EXPECT_FALSE(file.facts().statically_linked);
  EXPECT_THAT(file.facts().needed, Contains("libc.so.6"));
  ASSERT_TRUE(file.facts().newest_glibc);
  EXPECT_GE(*file.facts().newest_glibc, *Version::parse("2.2.5"));
  EXPECT_EQ(file.exports("launchgap_fake_library"), true);
  EXPECT_EQ(file.exports("launchgap_fake_librar"), false);
  EXPECT_EQ(file.exports("malloc"), false);  // needed, not given
  EXPECT_EQ(why_not_loadable(kFakeCuda / "libcuda.so.1"), std::nullopt);
}

TEST(ElfFile, TellsRunpathAndStaticPrograms) {
  EXPECT_THAT(ElfFile(kFakeCuda / "libcublas.so.13").facts().runpath, HasSubstr("$ORIGIN"));
  EXPECT_TRUE(ElfFile(kPrograms / "doctor_still_static").facts().statically_linked);
  EXPECT_FALSE(ElfFile(kPrograms / "doctor_acts").facts().statically_linked);
}

/// How much of a file the loader maps: behind it, each linker puts what it likes.
std::size_t loaded_bytes(const std::string& elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  std::size_t end = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, elf.data() + header.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type == PT_LOAD) end = std::max(end, part.p_offset + part.p_filesz);
  }
  return end;
}

TEST(ElfFile, SaysWhatAFileIsInstead) {
  const Folder folder;
  const std::string elf = folder.copy_of(kPrograms / "stubs/libcuda.so.1");
  const struct {
    const char* name;
    std::string bytes, why;
  } cases[] = {
      {"empty", "", "is not an ELF file: it is empty"},
      {"script.so", "/* GNU ld script */\nINPUT(libx.so.1)", "it is a linker script"},
      {"input.so", "INPUT(/usr/lib/libx.so.1)\n", "it is a linker script"},
      {"text.so", "hello\n", "is not an ELF file: it is a text file"},
      {"shell", "#!/bin/sh\n", "it is a script"},
      {"archive.a", "!<arch>\n", "it is a static library"},
      {"lfs", "version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer"},
      {"random", std::string("\x8f\x02\x00\xff\x13\x37", 6), "no format that is known"},
      {"magic",
       "\x7f"
       "ELF",
       "is a damaged ELF file: its header cannot be read"},
      {"header", elf.substr(0, 60), "is a damaged ELF file"},
      {"half", elf.substr(0, loaded_bytes(elf) / 2), "is a damaged ELF file"},
      {"last", elf.substr(0, loaded_bytes(elf) - 1), "cut off"},
  };
  for (const auto& c : cases) {
    const fs::path path = folder.write(c.name, c.bytes);
    EXPECT_THAT(why_bad(path), HasSubstr(c.why)) << c.name;
    EXPECT_THAT(why_bad(path), HasSubstr(path.string())) << c.name;
    EXPECT_TRUE(why_not_loadable(path)) << c.name;
  }
}

TEST(ElfFile, SaysWhyAPathIsNoFile) {
  const Folder folder;
  mkfifo((folder.path() / "pipe").c_str(), 0600);
  fs::create_symlink("gone", folder.path() / "dangling");
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_THAT(why_bad(folder.path()), HasSubstr("it is a folder"));
  EXPECT_THAT(why_bad(folder.path() / "pipe"), HasSubstr("it is a pipe"));
  EXPECT_THAT(why_bad("/dev/zero"), HasSubstr("it is a device"));
  EXPECT_THAT(why_bad(folder.path() / "none"), HasSubstr("No such file"));
  EXPECT_THAT(why_bad(folder.path() / "dangling"),
              HasSubstr("is a link to gone, which does not exist"));
  EXPECT_THAT(why_bad(folder.path() / "loop"), HasSubstr("cannot be read"));
  if (geteuid() != 0) {
    const fs::path secret = folder.write("secret", "x");
    fs::permissions(secret, fs::perms::none);
    EXPECT_THAT(why_bad(secret), HasSubstr("Permission denied"));
  }
}

TEST(ElfFile, KnowsOtherMachines) {
  const Folder folder;
  std::string elf = folder.copy_of(kPrograms / "stubs/libcuda.so.1");
  elf[EI_NIDENT + 2] = static_cast<char>(EM_AARCH64);
  const fs::path arm = folder.write("libcuda.so.1", elf);
  EXPECT_EQ(ElfFile(arm).facts().machine_name, "aarch64");
  EXPECT_THAT(why_not_loadable(arm).value_or(""), HasSubstr("is made for aarch64"));

  Elf32_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_386;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(header);
  const fs::path old =
      folder.write("old.so", {reinterpret_cast<const char*>(&header), sizeof(header)});
  EXPECT_EQ(ElfFile(old).facts().bits, 32);
  EXPECT_THAT(why_not_loadable(old).value_or(""), HasSubstr("32 bits"));
  EXPECT_EQ(ElfFile(old).exports("cuInit"), std::nullopt);
}

TEST(ElfFile, SurvivesEveryDamagedByte) {
  const Folder folder;
  const std::string elf = folder.copy_of(kPrograms / "stubs/libcuda.so.1");
  std::uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = elf;
    for (int byte = 0; byte < 8; ++byte) {
      state = state * 1664525 + 1013904223;
      // Mostly headers and tables, which lie at both ends.
      const std::size_t at = (state >> 8) % 2048;
      damaged[at % 2 ? at : damaged.size() - 1 - at] = static_cast<char>(state >> 24);
    }
    const fs::path path = folder.write("damaged.so", damaged);
    try {
      const ElfFile file(path);
      (void)file.exports("cuInit");
      (void)file.sections();
    } catch (const BadFile&) {
    }
  }
}

TEST(Printable, ShowsTextOnOneHarmlessLine) {
  const struct {
    std::string text, shown;
  } cases[] = {
      {"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"},
      {"Größe µs –", "Größe µs –"},
      {"a\nb\tc\r", "a\\nb\\tc\\r"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {std::string("nul\0!", 5), "nul\\x00!"},
      {"bad \xff\xc0\x80 bytes", "bad \\xff\\xc0\\x80 bytes"},
      {"cut \xe2\x82", "cut \\xe2\\x82"},
      {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
      // NOLINTNEXTLINE(misc-misleading-bidirectional): meant
      {"back\xe2\x80\xaewards", "back\\u202ewards"},
      {"c1 \xc2\x9b", "c1 \\u009b"},
      {"\xf0\x9f\x9a\x80", "\xf0\x9f\x9a\x80"},
      {"back\\slash", "back\\slash"},
  };
  for (const auto& c : cases) EXPECT_EQ(printable(c.text), c.shown);
  EXPECT_EQ(printable("aaaaaa", 4), "aaaa…");
  EXPECT_EQ(printable("aaa\n", 4), "aaa…");
  EXPECT_EQ(printable(std::string(5000, 'x')).size(), 400 + std::string("…").size());
}

}  // namespace
}  // namespace launchgap::doctor
