#include "harness/doctor/libraries/elf_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/printable.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

// Tables larger than these are no library's; libelf reads them into memory whole.
constexpr std::uint64_t kMaxTableBytes = 256u << 20;
constexpr std::size_t kMaxEntries = 4096;

std::string shown(const fs::path& path) {
  return printable(path.string());
}

[[noreturn]] void fail_to_open(const fs::path& path, int error) {
  std::error_code none;
  if (error == ENOENT && fs::is_symlink(fs::symlink_status(path, none))) {
    throw BadFile(fmt::format("{} is a link to {}, which does not exist",
                              shown(path),
                              shown(fs::read_symlink(path, none))));
  }
  throw BadFile(fmt::format("{} cannot be read: {}", shown(path), std::strerror(error)));
}

std::string machine_name(unsigned machine) {
  constexpr std::pair<unsigned, const char*> kNames[] = {{EM_X86_64, "x86-64"},
                                                         {EM_386, "x86 (32 bits)"},
                                                         {EM_AARCH64, "aarch64"},
                                                         {EM_ARM, "arm (32 bits)"},
                                                         {EM_PPC64, "ppc64"},
                                                         {EM_RISCV, "riscv"},
                                                         {EM_S390, "s390"},
                                                         {EM_CUDA, "NVIDIA GPU"}};
  for (const auto& [number, name] : kNames) {
    if (number == machine) return name;
  }
  return fmt::format("machine {}", machine);
}

constexpr unsigned kOwnMachine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__aarch64__)
    EM_AARCH64;
#else
    EM_NONE;
#endif

/// What a file without an ELF header is, by its first bytes.
std::string what_it_is(std::string_view head) {
  if (head.empty()) return "it is empty";
  if (head.starts_with("!<arch>")) return "it is a static library (ar archive)";
  if (head.starts_with("#!")) return "it is a script";
  if (head.starts_with("version https://git-lfs")) return "it is a Git LFS pointer, not the file";
  const bool text = std::ranges::all_of(head, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t' || c == '\r';
  });
  if (!text) return "its first bytes are those of no format that is known here";
  for (const char* word :
       {"GNU ld script", "INPUT(", "INPUT (", "GROUP(", "GROUP (", "OUTPUT_FORMAT"}) {
    if (head.find(word) != std::string_view::npos) return "it is a linker script";
  }
  return "it is a text file";
}

std::string text_at(Elf* elf, std::size_t strings, std::size_t offset) {
  const char* const text = elf_strptr(elf, strings, offset);
  return text ? std::string(text, strnlen(text, 4096)) : "";
}

/// The data of a table that is of a sane size and inside the file.
Elf_Data* table_of(Elf_Scn* section, const GElf_Shdr& header, std::uint64_t file_size) {
  if (header.sh_type == SHT_NOBITS || header.sh_size > kMaxTableBytes ||
      header.sh_offset > file_size || header.sh_size > file_size - header.sh_offset) {
    return nullptr;
  }
  return elf_getdata(section, nullptr);
}

void read_dynamic(Elf* elf, Elf_Data* data, const GElf_Shdr& header, ElfFacts& facts) {
  for (int i = 0;; ++i) {
    GElf_Dyn entry;
    if (!gelf_getdyn(data, i, &entry) || entry.d_tag == DT_NULL) return;
    const auto text = [&] { return text_at(elf, header.sh_link, entry.d_un.d_val); };
    if (entry.d_tag == DT_SONAME) facts.soname = text();
    if (entry.d_tag == DT_RPATH) facts.rpath = text();
    if (entry.d_tag == DT_RUNPATH) facts.runpath = text();
    if (entry.d_tag == DT_NEEDED && facts.needed.size() < kMaxEntries)
      facts.needed.push_back(text());
  }
}

/// The newest "GLIBC_2.34" among the versions that are needed of other libraries.
void read_needed_versions(Elf* elf, Elf_Data* data, const GElf_Shdr& header, ElfFacts& facts) {
  GElf_Verneed need;
  std::size_t seen = 0;
  for (int at = 0; gelf_getverneed(data, at, &need); at += static_cast<int>(need.vn_next)) {
    GElf_Vernaux version;
    for (int aux_at = at + static_cast<int>(need.vn_aux); gelf_getvernaux(data, aux_at, &version);
         aux_at += static_cast<int>(version.vna_next)) {
      const std::string name = text_at(elf, header.sh_link, version.vna_name);
      if (name.starts_with("GLIBC_")) {
        const auto parsed = Version::parse(std::string_view(name).substr(6));
        if (parsed && (!facts.newest_glibc || *facts.newest_glibc < *parsed))
          facts.newest_glibc = parsed;
      }
      if (version.vna_next == 0 || version.vna_next > kMaxTableBytes || ++seen > kMaxEntries) break;
    }
    if (need.vn_next == 0 || need.vn_next > kMaxTableBytes || ++seen > kMaxEntries) return;
  }
}

}  // namespace

int open_regular_file(const fs::path& path, std::uint64_t& size) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) fail_to_open(path, errno);
  struct stat status {};
  const char* other = nullptr;
  if (fstat(file, &status) != 0) other = "of an unknown kind";
  if (S_ISDIR(status.st_mode)) other = "a folder";
  if (S_ISFIFO(status.st_mode)) other = "a pipe";
  if (S_ISSOCK(status.st_mode)) other = "a socket";
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) other = "a device";
  if (other) {
    close(file);
    throw BadFile(fmt::format("{} is no regular file: it is {}", shown(path), other));
  }
  size = static_cast<std::uint64_t>(status.st_size);
  return file;
}

struct ElfFile::Handle {
  int file = -1;
  Elf* elf = nullptr;
  ~Handle() {
    if (elf) elf_end(elf);
    if (file >= 0) close(file);
  }
};

ElfFile::ElfFile(const fs::path& path) : handle_(std::make_unique<Handle>()) {
  handle_->file = open_regular_file(path, size_);
  std::array<char, 512> head{};
  const ssize_t n = pread(handle_->file, head.data(), head.size(), 0);
  if (n < 0) fail_to_open(path, errno);
  const std::string_view text(head.data(), static_cast<std::size_t>(n));
  if (!text.starts_with(ELFMAG)) {
    throw BadFile(fmt::format("{} is not an ELF file: {}", shown(path), what_it_is(text)));
  }
  const auto broken = [&](std::string_view why) {
    return BadFile(fmt::format("{} is a damaged ELF file: {}", shown(path), why));
  };

  // Not mapped into memory: a file that is cut off while it is read would end this process.
  elf_version(EV_CURRENT);
  handle_->elf = elf_begin(handle_->file, ELF_C_READ, nullptr);
  GElf_Ehdr header;
  if (!handle_->elf || elf_kind(handle_->elf) != ELF_K_ELF || !gelf_getehdr(handle_->elf, &header))
    throw broken("its header cannot be read");
  facts_.bits = gelf_getclass(handle_->elf) == ELFCLASS64 ? 64 : 32;
  facts_.machine = header.e_machine;
  facts_.machine_name = machine_name(header.e_machine);
  facts_.shared_object = header.e_type == ET_DYN;

  std::size_t segments = 0;
  bool dynamic = false, interpreter = false;
  if (elf_getphdrnum(handle_->elf, &segments) != 0) segments = 0;
  for (std::size_t i = 0; i < std::min(segments, kMaxEntries); ++i) {
    GElf_Phdr segment;
    if (!gelf_getphdr(handle_->elf, static_cast<int>(i), &segment)) {
      throw broken("it ends within its program headers");
    }
    dynamic = dynamic || segment.p_type == PT_DYNAMIC;
    interpreter = interpreter || segment.p_type == PT_INTERP;
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > size_ || segment.p_filesz > size_ - segment.p_offset)) {
      throw broken(fmt::format("it is cut off: it has {} bytes and its headers speak of {}",
                               size_,
                               segment.p_offset + segment.p_filesz));
    }
  }
  // A static position-independent program has PT_DYNAMIC and nobody to interpret it, as libraries.
  facts_.statically_linked =
      !interpreter && (header.e_type == ET_EXEC || (header.e_type == ET_DYN && !dynamic));

  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(handle_->elf, section)) != nullptr) {
    GElf_Shdr table;
    if (!gelf_getshdr(section, &table)) continue;
    if (table.sh_type != SHT_DYNAMIC && table.sh_type != SHT_GNU_verneed) continue;
    Elf_Data* const data = table_of(section, table, size_);
    if (!data) continue;
    if (table.sh_type == SHT_DYNAMIC) read_dynamic(handle_->elf, data, table, facts_);
    if (table.sh_type == SHT_GNU_verneed) read_needed_versions(handle_->elf, data, table, facts_);
  }
  // -static-pie: dynamic, without an interpreter, a name or anything needed, and with an entry.
  if (header.e_type == ET_DYN && !interpreter && facts_.soname.empty() && facts_.needed.empty() &&
      header.e_entry != 0) {
    facts_.statically_linked = true;
  }
}

ElfFile::~ElfFile() = default;

std::optional<bool> ElfFile::exports(std::string_view symbol) const {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(handle_->elf, section)) != nullptr) {
    GElf_Shdr table;
    if (!gelf_getshdr(section, &table) || table.sh_type != SHT_DYNSYM || table.sh_entsize == 0)
      continue;
    Elf_Data* const data = table_of(section, table, size_);
    if (!data) return std::nullopt;
    const auto count = static_cast<int>(data->d_size / table.sh_entsize);
    for (int i = 0; i < count; ++i) {
      GElf_Sym entry;
      if (!gelf_getsym(data, i, &entry)) break;
      if (entry.st_shndx == SHN_UNDEF) continue;
      const char* const name = elf_strptr(handle_->elf, table.sh_link, entry.st_name);
      if (name && symbol == name) return true;
    }
    return false;
  }
  return std::nullopt;
}

std::vector<ElfFile::Section> ElfFile::sections() const {
  std::vector<Section> sections;
  std::size_t names = 0;
  if (elf_getshdrstrndx(handle_->elf, &names) != 0) return sections;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(handle_->elf, section)) != nullptr && sections.size() < 65536) {
    GElf_Shdr table;
    if (!gelf_getshdr(section, &table) || table.sh_type == SHT_NOBITS) continue;
    if (table.sh_offset > size_ || table.sh_size > size_ - table.sh_offset) continue;
    sections.push_back(
        {text_at(handle_->elf, names, table.sh_name), table.sh_offset, table.sh_size});
  }
  return sections;
}

std::optional<std::string> why_not_loadable(const fs::path& path) {
  try {
    const ElfFacts facts = ElfFile(path).facts();
    if (facts.machine != kOwnMachine || facts.bits != 8 * static_cast<int>(sizeof(void*))) {
      return fmt::format("{} is made for {}, and this machine's programs are {}",
                         shown(path),
                         facts.machine_name,
                         machine_name(kOwnMachine));
    }
    if (!facts.shared_object)
      return fmt::format("{} is an ELF file, and no shared library", shown(path));
    return std::nullopt;
  } catch (const BadFile& bad) {
    return bad.what();
  }
}

Finding library_broken(const std::string& path, const std::string& reason) {
  return {
      .code = "library-broken",
      .severity = Severity::prevents,
      .subject = printable(path),
      .sentence = fmt::format("The library {} cannot be used.", printable(path)),
      .evidence = {printable(reason)},
      .remedy =
          "Reinstall the file's package (`dpkg -S FILE`, `rpm -qf FILE` or `pip show -f` tell "
          "which), or remove the file if no package has it.",
      .symptoms = {},
  };
}

}  // namespace launchgap::doctor
