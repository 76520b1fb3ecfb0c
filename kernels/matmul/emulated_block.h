// A block of threads while it runs: its fibers, its shared memory, and who did what to it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <ucontext.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/matmul/emulated.h"

namespace launchgap::kernels::emulated {

inline constexpr std::size_t kSharedBytes = 227 << 10, kCellBytes = 2, kStackBytes = 64 << 10;
inline constexpr std::size_t kBanks = 32, kBankBytes = 4, kPhaseBytes = kBanks * kBankBytes;
inline constexpr int kNobody = -1, kSeveral = -2;

struct Copy {
  std::byte* to;
  const std::byte* from;
};
inline constexpr std::size_t kCopyBytes = 16;

/// Of two bytes of shared memory: who wrote and read them last, and before which barrier.
struct Cell {
  int writer = kNobody, reader = kNobody;
  unsigned written_at = 0, read_at = 0;
  bool in_flight = false;
};

struct Access {
  std::size_t offset, bytes;
  Place place;
};

struct Thread {
  enum class State { ready, at_barrier, in_warp, done };

  State state = State::ready;
  unsigned barriers = 0;  // that it has passed
  Place place;            // where it waits
  const char* instruction = nullptr;
  void* brought = nullptr;
  std::vector<Copy> uncommitted;
  std::deque<std::vector<Copy>> groups;
  std::vector<Access> accesses;  // since all lanes of its warp were at one instruction
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
};

inline std::string text_of(const Place& place) {
  const std::string file = place.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line());
}

class Block;
/// The one that runs.
inline Block* current = nullptr;

class Block {
 public:
  Block(unsigned index,
        unsigned threads,
        std::uint64_t seed,
        std::span<const Operand> operands,
        const std::function<void()>& kernel,
        BankConflicts& conflicts)
      : index_(index),
        operands_(operands),
        kernel_(kernel),
        conflicts_(conflicts),
        random_(seed),
        threads_(threads),
        ready_(threads / kWarpSize, ~0u),
        memory_(
            static_cast<std::byte*>(std::aligned_alloc(1024, (kSharedBytes + 1023) / 1024 * 1024)),
            &std::free),
        cells_(kSharedBytes / kCellBytes) {
    std::memset(memory_.get(), 0xFF, kSharedBytes);
  }

  void run() {
    current = this;
    for (unsigned i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      thread.stack = std::make_unique<std::byte[]>(kStackBytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = kStackBytes;
      thread.context.uc_link = &scheduler_;
      makecontext(&thread.context, &Block::begin, 0);
    }
    while (const std::optional<unsigned> next = choose()) {
      running_ = *next;
      swapcontext(&scheduler_, &threads_[running_].context);
      if (failure_) break;
    }
    current = nullptr;
    if (failure_) std::rethrow_exception(failure_);
    check_all_done();
    for (unsigned warp = 0; warp < ready_.size(); ++warp) compare_accesses(warp);
  }

  unsigned index() const { return index_; }
  unsigned size() const { return static_cast<unsigned>(threads_.size()); }
  unsigned thread() const { return running_; }

  void barrier(Place place) {
    wait(Thread::State::at_barrier, "a barrier", place);
    const bool all = std::ranges::all_of(
        threads_, [](const Thread& one) { return one.state == Thread::State::at_barrier; });
    if (all) {
      for (unsigned warp = 0; warp < ready_.size(); ++warp) {
        compare_accesses(warp);
        ready_[warp] = ~0u;
      }
      for (Thread& one : threads_) {
        one.state = Thread::State::ready;
        ++one.barriers;
      }
    }
    leave();
  }

  void together(const char* instruction,
                void* brought,
                Place place,
                const std::function<void(std::span<void* const>)>& execute) {
    const unsigned warp = running_ / kWarpSize;
    wait(Thread::State::in_warp, instruction, place);
    own().brought = brought;
    std::array<void*, kWarpSize> all{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const Thread& other = threads_[warp * kWarpSize + lane];
      if (other.state == Thread::State::ready) return leave();
      // Whose text it is does not tell which: the same text may be at two addresses.
      if (other.state != Thread::State::in_warp || other.place.line() != place.line() ||
          std::strcmp(other.instruction, instruction) != 0)
        fail("lane {} of warp {} is at {} ({}), and lane {} at {} ({})",
             running_ % kWarpSize,
             warp,
             instruction,
             text_of(place),
             lane,
             other.state == Thread::State::done ? "the end" : other.instruction,
             text_of(other.place));
      all[lane] = other.brought;
    }
    compare_accesses(warp);
    execute(all);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      threads_[warp * kWarpSize + lane].state = Thread::State::ready;
    ready_[warp] = ~0u;
    leave();
  }

  void check_global(const void* address, std::size_t bytes, std::size_t alignment, Place place) {
    const auto* const begin = static_cast<const std::byte*>(address);
    check_alignment(begin, alignment, place);
    for (const Operand& operand : operands_) {
      const auto* const first = static_cast<const std::byte*>(operand.begin);
      if (begin >= first && begin + bytes <= first + operand.bytes) return;
    }
    fail("{}: thread {} of block {} accesses what is no operand", text_of(place), running_, index_);
  }

  void* shared_memory(const void* variable, std::size_t bytes) {
    const auto [found, is_new] = variables_.try_emplace(variable, used_);
    if (is_new) {
      used_ += (bytes + kPhaseBytes - 1) / kPhaseBytes * kPhaseBytes;
      if (used_ > kSharedBytes) fail("{} bytes of shared memory are more than a block has", used_);
    }
    return memory_.get() + found->second;
  }

  /// By lane `reader` of the running one's block.
  void read(const void* address, std::size_t bytes, unsigned reader, Place place) {
    const unsigned now = threads_[reader].barriers;
    for (Cell& cell : cells(address, bytes, place)) {
      if (cell.in_flight)
        fail("{}: thread {} reads what a copy has not brought", text_of(place), reader);
      if (cell.writer == kNobody)
        fail("{}: thread {} reads shared memory that nobody wrote", text_of(place), reader);
      if (cell.writer != static_cast<int>(reader) && cell.written_at == now)
        fail("{}: thread {} reads what thread {} wrote, and no barrier is between them",
             text_of(place),
             reader,
             cell.writer);
      const bool alone =
          cell.read_at != now || cell.reader == kNobody || cell.reader == static_cast<int>(reader);
      cell.reader = alone ? static_cast<int>(reader) : kSeveral;
      cell.read_at = now;
    }
  }

  void write(const void* address, std::size_t bytes, Place place, bool in_flight = false) {
    check_alignment(address, std::bit_floor(std::min<std::size_t>(bytes, 16)), place);
    const int writer = static_cast<int>(running_);
    const unsigned now = own().barriers;
    for (Cell& cell : cells(address, bytes, place)) {
      if (cell.in_flight && !(in_flight && cell.writer == writer))
        fail("{}: thread {} writes where a copy is on its way to", text_of(place), writer);
      if (cell.writer != kNobody && cell.writer != writer && cell.written_at == now)
        fail("{}: threads {} and {} write the same, and no barrier is between them",
             text_of(place),
             writer,
             cell.writer);
      if (cell.reader != kNobody && cell.reader != writer && cell.read_at == now)
        fail("{}: thread {} writes what {} reads, and no barrier is between them",
             text_of(place),
             writer,
             cell.reader == kSeveral ? "another" : fmt::format("thread {}", cell.reader));
      cell.writer = writer;
      cell.written_at = now;
      cell.in_flight = in_flight;
    }
  }

  void note(const void* address, std::size_t bytes, Place place) {
    own().accesses.push_back({offset_of(address), bytes, place});
  }

  void copy_async(void* shared, const void* global, Place place) {
    check_alignment(shared, kCopyBytes, place);
    check_global(global, kCopyBytes, kCopyBytes, place);
    write(shared, kCopyBytes, place, true);
    std::memset(shared, 0xFF, kCopyBytes);
    own().uncommitted.push_back(
        {static_cast<std::byte*>(shared), static_cast<const std::byte*>(global)});
  }
  void commit_copies() { own().groups.push_back(std::exchange(own().uncommitted, {})); }
  void wait_for_copies(unsigned groups, Place place) {
    while (own().groups.size() > groups) {
      for (const Copy& copy : own().groups.front()) {
        for (Cell& cell : cells(copy.to, kCopyBytes, place)) {
          cell.in_flight = false;
          cell.written_at = own().barriers;
        }
        std::memcpy(copy.to, copy.from, kCopyBytes);
      }
      own().groups.pop_front();
    }
  }

  void read_rows(std::span<const void* const> rows, Place place) {
    constexpr std::size_t kRowBytes = 16, kAtOnce = 8;
    for (std::size_t lane = 0; lane < rows.size(); ++lane) {
      check_alignment(rows[lane], kRowBytes, place);
      read(rows[lane],
           kRowBytes,
           running_ / kWarpSize * kWarpSize + static_cast<unsigned>(lane),
           place);
    }
    for (std::size_t first = 0; first < rows.size(); first += kAtOnce) {
      std::vector<std::size_t> offsets;
      for (const void* row : rows.subspan(first, std::min(kAtOnce, rows.size() - first)))
        offsets.push_back(offset_of(row));
      note_conflict(offsets, kRowBytes, place);
    }
  }

  std::span<const unsigned> unspecified_order(unsigned count) {
    std::vector<unsigned>& order = orders_[count];
    if (order.empty()) {
      order.resize(count);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::shuffle(order, random_);
    }
    return order;
  }

  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) const {
    throw Fault(fmt::format(format, std::forward<Values>(values)...));
  }

 private:
  Thread& own() { return threads_[running_]; }

  static void begin() {
    Block& block = *current;
    try {
      block.kernel_();
      block.own().state = Thread::State::done;
      block.ready_[block.running_ / kWarpSize] &= ~(1u << block.running_ % kWarpSize);
    } catch (...) {
      block.failure_ = std::current_exception();
    }
  }

  void wait(Thread::State state, const char* instruction, Place place) {
    own().state = state;
    own().instruction = instruction;
    own().place = place;
    ready_[running_ / kWarpSize] &= ~(1u << running_ % kWarpSize);
  }
  /// Others have their turn, also where this thread could go on.
  void leave() { swapcontext(&own().context, &scheduler_); }

  std::optional<unsigned> choose() {
    std::vector<unsigned> warps;
    for (unsigned warp = 0; warp < ready_.size(); ++warp) {
      if (ready_[warp] != 0) warps.push_back(warp);
    }
    if (warps.empty()) return std::nullopt;
    // One warp well ahead, until it waits or another is.
    if (random_() % 256 == 0) favoured_ = static_cast<unsigned>(random_() % ready_.size());
    const unsigned warp =
        ready_[favoured_] != 0 && random_() % 8 != 0 ? favoured_ : warps[random_() % warps.size()];
    unsigned lanes = ready_[warp];
    for (auto skip = random_() % static_cast<unsigned>(std::popcount(lanes)); skip > 0; --skip)
      lanes &= lanes - 1;
    return warp * kWarpSize + static_cast<unsigned>(std::countr_zero(lanes));
  }

  void check_all_done() const {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const Thread& thread = threads_[i];
      if (thread.state != Thread::State::done)
        fail("thread {} waits for ever at {} ({})", i, thread.instruction, text_of(thread.place));
      if (!thread.uncommitted.empty() || !thread.groups.empty()) {
        const bool empty =
            thread.uncommitted.empty() &&
            std::ranges::all_of(thread.groups, [](const auto& group) { return group.empty(); });
        if (!empty) fail("thread {} ends with copies on their way", i);
      }
    }
  }

  std::size_t offset_of(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.get());
  }
  std::span<Cell> cells(const void* address, std::size_t bytes, Place place) {
    const std::size_t offset = offset_of(address);
    if (offset + bytes > used_)
      fail("{}: thread {} accesses what is not shared memory", text_of(place), running_);
    return std::span(cells_).subspan(offset / kCellBytes, (bytes + kCellBytes - 1) / kCellBytes);
  }
  void check_alignment(const void* address, std::size_t alignment, Place place) const {
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
      fail("{}: an address is not aligned to {} bytes", text_of(place), alignment);
  }

  /// The n-th accesses of a warp's lanes, if all are at one place, are one instruction.
  void compare_accesses(unsigned warp) {
    const std::span lanes = std::span(threads_).subspan(warp * kWarpSize, kWarpSize);
    const std::vector<Access>& first = lanes.front().accesses;
    const bool alike = std::ranges::all_of(
        lanes, [&](const Thread& lane) { return lane.accesses.size() == first.size(); });
    for (std::size_t i = 0; alike && i < first.size(); ++i) {
      std::vector<std::size_t> offsets;
      for (const Thread& lane : lanes) {
        if (lane.accesses[i].place.line() == first[i].place.line())
          offsets.push_back(lane.accesses[i].offset);
      }
      if (offsets.size() == lanes.size()) note_conflict(offsets, first[i].bytes, first[i].place);
    }
    for (Thread& lane : lanes) lane.accesses.clear();
  }

  /// How many words of one bank differ, of the accesses at once; wide ones come in parts.
  void note_conflict(const std::vector<std::size_t>& offsets, std::size_t bytes, Place place) {
    const std::size_t at_once = std::max<std::size_t>(1, kPhaseBytes / std::max(bytes, kBankBytes));
    std::size_t ways = 1;
    for (std::size_t first = 0; first < offsets.size(); first += at_once) {
      std::array<std::vector<std::size_t>, kBanks> words;
      for (std::size_t i = first; i < std::min(first + at_once, offsets.size()); ++i) {
        for (std::size_t at = offsets[i]; at < offsets[i] + bytes; at += kBankBytes) {
          const std::size_t word = at / kBankBytes;
          std::vector<std::size_t>& of_bank = words[word % kBanks];
          if (std::ranges::find(of_bank, word) == of_bank.end()) of_bank.push_back(word);
        }
      }
      for (const auto& of_bank : words) ways = std::max(ways, of_bank.size());
    }
    if (ways > 1) ++conflicts_[fmt::format("{}: {}-way", text_of(place), ways)];
  }

  unsigned index_, running_ = 0, favoured_ = 0;
  std::span<const Operand> operands_;
  const std::function<void()>& kernel_;
  BankConflicts& conflicts_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;  // of each warp the lanes that can go on
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
  std::size_t used_ = 0;
  std::map<const void*, std::size_t> variables_;
  std::map<unsigned, std::vector<unsigned>> orders_;
  std::vector<Cell> cells_;
  ucontext_t scheduler_{};
  std::exception_ptr failure_;
};

}  // namespace launchgap::kernels::emulated
