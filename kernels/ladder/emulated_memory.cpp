#include "kernels/ladder/emulated_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/element.h"

namespace launchgap::kernels::emulated {
namespace {

constexpr std::size_t kSharedBytes = 227 << 10, kCellBytes = 2, kVariableAlignment = 1024;
constexpr std::size_t kBanks = 32, kBankBytes = 4;

std::byte* aligned_memory() {
  constexpr std::size_t kRounded =
      (kSharedBytes + kVariableAlignment - 1) / kVariableAlignment * kVariableAlignment;
  return static_cast<std::byte*>(std::aligned_alloc(kVariableAlignment, kRounded));
}

}  // namespace

std::string text_of(const Place& place) {
  const std::string file = place.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line());
}

void check_alignment(const void* address, std::size_t alignment, Place place) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    fail("{}: an address is not aligned to {} bytes", text_of(place), alignment);
}

void join(Clock& own, const Clock& other) {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(own[i], other[i]);
}

SharedMemory::SharedMemory(unsigned threads)
    : threads_(threads), memory_(aligned_memory(), &std::free) {}

void* SharedMemory::variable(const void* which, std::size_t bytes) {
  const auto [found, is_new] = variables_.try_emplace(which, used_);
  if (is_new) {
    used_ += (bytes + kVariableAlignment - 1) / kVariableAlignment * kVariableAlignment;
    if (used_ > kSharedBytes) fail("{} bytes of shared memory are more than a block has", used_);
    cells_.resize(used_ / kCellBytes);
    std::memset(memory_.get() + found->second, 0xFF, used_ - found->second);  // NaN
  }
  return memory_.get() + found->second;
}

std::span<SharedMemory::Cell> SharedMemory::cells(const void* address,
                                                  std::size_t bytes,
                                                  Place place) {
  const std::size_t offset = offset_of(address);
  if (offset > used_ || bytes > used_ - offset)
    fail("{}: what is accessed is not shared memory", text_of(place));
  return std::span(cells_).subspan(offset / kCellBytes, (bytes + kCellBytes - 1) / kCellBytes);
}

std::string SharedMemory::name_of(int who) const {
  return static_cast<unsigned>(who) < threads_ ? fmt::format("thread {}", who)
                                               : "a copy or a product";
}

void SharedMemory::read(const void* address,
                        std::size_t bytes,
                        unsigned who,
                        const Clock& seen,
                        Place place) {
  for (Cell& cell : cells(address, bytes, place)) {
    if (cell.in_flight)
      fail("{}: thread {} reads what a copy has not brought", text_of(place), who);
    if (cell.written.who < 0)
      fail("{}: thread {} reads shared memory that nobody wrote", text_of(place), who);
    if (seen[static_cast<unsigned>(cell.written.who)] < cell.written.at)
      fail("{}: thread {} reads what {} wrote, and has not waited for that",
           text_of(place),
           who,
           name_of(cell.written.who));
    cell.read[who < threads_ ? who / kWarpSize : kMostWarps] = {static_cast<int>(who), seen[who]};
  }
}

void SharedMemory::write(const void* address,
                         std::size_t bytes,
                         unsigned who,
                         const Clock& seen,
                         Place place,
                         bool in_flight) {
  constexpr std::size_t kWidest = 16;
  check_alignment(address, std::bit_floor(std::min(bytes, kWidest)), place);
  const auto waited_for = [&seen](const Cell::Mark& mark) {
    return mark.who < 0 || seen[static_cast<unsigned>(mark.who)] >= mark.at;
  };
  for (Cell& cell : cells(address, bytes, place)) {
    if (cell.in_flight && !(in_flight && cell.written.who == static_cast<int>(who)))
      fail("{}: thread {} writes where a copy is on its way to", text_of(place), who);
    if (!waited_for(cell.written))
      fail("{}: thread {} writes what {} wrote, and has not waited for that",
           text_of(place),
           who,
           name_of(cell.written.who));
    for (Cell::Mark& read : cell.read) {
      if (!waited_for(read))
        fail("{}: thread {} writes what {} reads, and has not waited for that",
             text_of(place),
             who,
             name_of(read.who));
      read = {};
    }
    cell.written = {static_cast<int>(who), seen[who]};
    cell.in_flight = in_flight;
  }
}

void SharedMemory::expect_copy(void* address,
                               std::size_t bytes,
                               unsigned who,
                               const Clock& seen,
                               Place place) {
  write(address, bytes, who, seen, place, true);
  std::memset(address, 0xFF, bytes);
}

void SharedMemory::arrived(const void* address, std::size_t bytes, unsigned who, unsigned at) {
  for (Cell& cell : cells(address, bytes, Place::current())) {
    cell.in_flight = false;
    cell.written = {static_cast<int>(who), at};
  }
}

float bfloat_at(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return Bf16::to(bits);
}

std::size_t ways_of(std::span<const std::size_t> offsets, std::size_t bytes) {
  const std::size_t at_once =
      std::max<std::size_t>(1, kBanks * kBankBytes / std::max(bytes, kBankBytes));
  std::size_t ways = 1;
  for (std::size_t first = 0; first < offsets.size(); first += at_once) {
    std::array<std::vector<std::size_t>, kBanks> words;
    for (const std::size_t offset :
         offsets.subspan(first, std::min(at_once, offsets.size() - first))) {
      for (std::size_t at = offset; at < offset + bytes; at += kBankBytes) {
        const std::size_t word = at / kBankBytes;
        std::vector<std::size_t>& of_bank = words[word % kBanks];
        if (std::ranges::find(of_bank, word) == of_bank.end()) of_bank.push_back(word);
      }
    }
    for (const auto& of_bank : words) ways = std::max(ways, of_bank.size());
  }
  return ways;
}

}  // namespace launchgap::kernels::emulated
