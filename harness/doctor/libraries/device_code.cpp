#include "harness/doctor/libraries/device_code.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <elf.h>
#include <optional>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/doctor/libraries/elf_file.h"

namespace launchgap::doctor {
namespace {

// Fields are little-endian, as all machines are that CUDA runs on.
struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of all images with their headers
};
static_assert(sizeof(ContainerHeader) == 16);

struct ImageHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // of what follows the header, with padding
  std::uint32_t compressed_bytes;
  std::uint32_t options_at;
  std::uint16_t minor, major;
  std::uint32_t capability;
  std::uint32_t name_at, name_bytes;
  std::uint64_t flags;
};
static_assert(sizeof(ImageHeader) == 48);

constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1, kElf = 2, kLinkTimeIr = 8, kElfToo = 16;
constexpr std::uint64_t kThisOneAlone = 0x100000, kFamily = 0x200000;

constexpr std::size_t kMaxImages = 200'000;
constexpr std::uint64_t kMaxPadding = 4 << 20;  // between containers, in all

/// Reads of a file, none of which throws.
class Bytes {
 public:
  Bytes(int file, std::uint64_t size) : file_(file), size_(size) {}

  std::uint64_t size() const { return size_; }

  template <class Value>
  std::optional<Value> at(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    if (offset > size_ || size_ - offset < sizeof(value)) return std::nullopt;
    ssize_t n = 0;
    do {
      n = pread(file_, &value, sizeof(value), static_cast<off_t>(offset));
    } while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof(value))) return std::nullopt;
    return value;
  }

 private:
  int file_;
  std::uint64_t size_;
};

class Walk {
 public:
  explicit Walk(const Bytes& bytes) : bytes_(bytes) {}

  /// All containers in a range of the file, one after the other.
  void range(std::uint64_t begin, std::uint64_t end) {
    end = std::min(end, bytes_.size());
    std::uint64_t at = begin, padding = 0;
    while (at + sizeof(ContainerHeader) <= end && found_.images < kMaxImages &&
           found_.containers < kMaxImages) {
      const auto header = bytes_.at<ContainerHeader>(at);
      if (!header) return note("the file ends within a container");
      if (header->magic != kContainerMagic) {
        at += 8;
        padding += 8;
        if (padding > kMaxPadding) return note("it holds what is no container of device code");
        continue;
      }
      if (header->header_bytes < sizeof(ContainerHeader) || header->bytes > end - at) {
        return note("a container is larger than its section");
      }
      ++found_.containers;
      const std::uint64_t first = at + header->header_bytes;
      at = (at + header->header_bytes + header->bytes + 7) & ~std::uint64_t{7};
      images(first, std::min(first + header->bytes, end));
    }
    if (found_.images >= kMaxImages || found_.containers >= kMaxImages)
      note("it has more images than are read");
  }

  /// A bare cubin: the ELF header's flags say what it is for.
  void cubin() {
    const auto header = bytes_.at<Elf64_Ehdr>(0);
    if (!header) return note("the file ends within its header");
    // Since ABI 8 the capability is in the second byte, before it was in the first.
    const bool new_abi = header->e_ident[EI_ABIVERSION] >= 8;
    const int capability =
        static_cast<int>(new_abi ? header->e_flags >> 8 : header->e_flags) & 0xFF;
    ++found_.images;
    add(found_.sass, capability, 0);
    note("whether its code is for this capability alone is not told");
  }

  DeviceCode result() && { return std::move(found_); }

 private:
  void images(std::uint64_t at, std::uint64_t end) {
    while (at + sizeof(ImageHeader) <= end && found_.images < kMaxImages) {
      const auto image = bytes_.at<ImageHeader>(at);
      if (!image) return note("the file ends within an image");
      if (image->header_bytes < sizeof(ImageHeader) || image->header_bytes > end - at ||
          image->bytes > end - at - image->header_bytes) {
        return note("an image is larger than its container");
      }
      ++found_.images;
      count(*image);
      at += image->header_bytes + image->bytes;
    }
  }

  void count(const ImageHeader& image) {
    const char suffix = image.flags & kThisOneAlone ? 'a' : image.flags & kFamily ? 'f' : '\0';
    if (image.kind == kPtx) {
      add(found_.ptx, static_cast<int>(std::min(image.capability, 100'000u)), suffix);
    } else if (image.kind == kElf || image.kind == kElfToo) {
      add(found_.sass, static_cast<int>(std::min(image.capability, 100'000u)), suffix);
    } else if (image.kind == kLinkTimeIr) {
      ++found_.link_time_images;
    } else {
      note(fmt::format("it has images of the unknown kind {}", image.kind));
    }
  }

  void add(std::set<CodeTarget>& targets, int capability, char suffix) {
    if (capability < 10 || capability > 999) {
      return note("it has images for capabilities that cannot be");
    }
    targets.insert({capability, suffix});
  }

  void note(std::string why) {
    if (found_.incomplete.empty()) found_.incomplete = std::move(why);
  }

  const Bytes& bytes_;
  DeviceCode found_;
};

std::string texts(const std::set<CodeTarget>& targets) {
  std::vector<std::string> all;
  for (const CodeTarget& target : targets) all.push_back(target.text());
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::string CodeTarget::text() const {
  return fmt::format(
      "{}.{}{}", capability / 10, capability % 10, suffix ? std::string(1, suffix) : "");
}

std::string DeviceCode::text() const {
  if (unknown()) return "no device code was found";
  std::string text = sass.empty() ? "" : "SASS " + texts(sass);
  if (!ptx.empty()) text += (text.empty() ? "PTX " : "; PTX ") + texts(ptx);
  return text;
}

DeviceCode device_code_of(const std::filesystem::path& path) {
  struct OpenFile {
    int descriptor = -1;
    ~OpenFile() {
      if (descriptor >= 0) close(descriptor);
    }
  } file;
  std::uint64_t size = 0;
  file.descriptor = open_regular_file(path, size);
  const Bytes bytes(file.descriptor, size);
  Walk walk(bytes);
  if (bytes.at<std::uint32_t>(0) == kContainerMagic) {
    walk.range(0, size);
    return std::move(walk).result();
  }

  const ElfFile elf(path);
  if (elf.facts().machine == EM_CUDA) {
    walk.cubin();
    return std::move(walk).result();
  }
  // Device code that is linked with other device code (-rdc) lies in a section of its own.
  for (const ElfFile::Section& section : elf.sections()) {
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin")
      walk.range(section.offset, section.offset + section.size);
  }
  return std::move(walk).result();
}

}  // namespace launchgap::doctor
