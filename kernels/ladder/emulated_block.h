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

#include "kernels/ladder/emulated_thread.h"

namespace launchgap::kernels::emulated {

class Block;
/// The one that runs.
inline Block* current = nullptr;

class Block {
 public:
  Block(unsigned index,
        LaunchShape shape,
        std::uint64_t seed,
        std::span<const Operand> operands,
        const std::function<void()>& kernel,
        BankConflicts& conflicts)
      : index_(index),
        operands_(operands),
        kernel_(kernel),
        conflicts_(conflicts),
        random_(seed),
        launched_bytes_(shape.shared_bytes),
        threads_(shape.threads),
        ready_(shape.threads / kWarpSize, ~0u),
        memory_(shape.threads) {}

  void run() {
    current = this;
    for (unsigned i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      thread.clock.assign(clocks(), 0);
      thread.clock[i] = 1;
      thread.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = kStackBytes;
      thread.context.uc_link = &scheduler_;
      makecontext(&thread.context, &Block::begin, 0);
    }
    while (const std::optional<unsigned> next = choose_or_deliver()) {
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
      Clock all_seen = threads_.front().clock;
      for (const Thread& one : threads_) join(all_seen, one.clock);
      for (unsigned i = 0; i < threads_.size(); ++i) {
        threads_[i].state = Thread::State::ready;
        threads_[i].clock = all_seen;
        threads_[i].columns.fenced = false;
        ++threads_[i].clock[i];
      }
    }
    leave();
  }

  /// `gathers`: it is there to bring lanes together that wait elsewhere.
  void together(const char* instruction,
                void* brought,
                Place place,
                const std::function<void(std::span<void* const>)>& execute,
                bool gathers = false) {
    const unsigned warp = running_ / kWarpSize;
    wait(Thread::State::in_warp, instruction, place);
    own().brought = brought;
    std::array<void*, kWarpSize> all{};
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const Thread& other = threads_[warp * kWarpSize + lane];
      const bool comes = gathers && other.state == Thread::State::at_mbarrier;
      if (other.state == Thread::State::ready || comes) return leave();
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

  SharedMemory& memory() { return memory_; }
  void* launched_memory(std::size_t bytes) {
    if (bytes > launched_bytes_)
      fail("the kernel uses {} bytes of shared memory, and its launch asks for {}",
           bytes,
           launched_bytes_);
    return memory_.variable(&launched_bytes_, bytes);
  }
  void read(const void* address, std::size_t bytes, unsigned reader, Place place) {
    memory_.read(address, bytes, reader, threads_[reader].clock, place);
  }
  void write(const void* address, std::size_t bytes, Place place) {
    memory_.write(address, bytes, running_, own().clock, place);
  }

  void note(const void* address, std::size_t bytes, Place place) {
    own().accesses.push_back({memory_.offset_of(address), bytes, place});
  }

  void copy_async(void* shared, const void* global, Place place) {
    check_alignment(shared, kAsyncBytes, place);
    if (global) check_global(global, kAsyncBytes, kAsyncBytes, place);
    memory_.expect_copy(shared, kAsyncBytes, running_, own().clock, place);
    own().uncommitted.push_back(
        {static_cast<std::byte*>(shared), static_cast<const std::byte*>(global)});
  }
  void commit_copies() { own().groups.push_back(std::exchange(own().uncommitted, {})); }
  void wait_for_copies(unsigned groups) {
    while (own().groups.size() > groups) {
      for (const Copy& copy : own().groups.front()) {
        memory_.arrived(copy.to, kAsyncBytes, running_, own().clock[running_]);
        if (copy.from) {
          std::memcpy(copy.to, copy.from, kAsyncBytes);
        } else {
          std::memset(copy.to, 0, kAsyncBytes);
        }
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
        offsets.push_back(memory_.offset_of(row));
      note_conflict(offsets, kRowBytes, place);
    }
  }

  unsigned any_number() { return static_cast<unsigned>(random_() >> 32); }
  std::span<const unsigned> unspecified_order(unsigned count) {
    std::vector<unsigned>& order = orders_[count];
    if (order.empty()) {
      order.resize(count);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::shuffle(order, random_);
    }
    return order;
  }

  // --- mbarriers, and copies of boxes that they count ---

  void init_mbarrier(void* at, unsigned count, Place place) {
    write(at, sizeof(std::uint64_t), place);
    Mbarrier& made = mbarriers_[at];
    made = Mbarrier();
    made.count = made.missing = count;
    made.arrived = made.over = Clock(clocks(), 0);
    made.who = static_cast<unsigned>(threads_.size() + mbarriers_.size() - 1);
    if (mbarriers_.size() > kMostMbarriers) fail("{}: too many mbarriers", text_of(place));
  }
  void fence_mbarriers() {
    for (auto& [at, mbarrier] : mbarriers_) mbarrier.fenced = true;
  }
  void arrive(void* at, std::size_t bytes, Place place) {
    Mbarrier& mbarrier = mbarrier_at(at, place);
    if (mbarrier.missing == 0)
      fail("{}: thread {} arrives at an mbarrier where all have", text_of(place), running_);
    join(mbarrier.arrived, own().clock);
    ++own().clock[running_];
    mbarrier.missing_bytes += static_cast<long long>(bytes);
    --mbarrier.missing;
    end_phase_if_over(mbarrier);
    leave();
  }
  void wait_for_mbarrier(void* at, unsigned parity, Place place) {
    Mbarrier& mbarrier = mbarrier_at(at, place);
    while (mbarrier.phases % 2 == parity) {
      wait(Thread::State::at_mbarrier, "an mbarrier", place);
      own().brought = &mbarrier;
      leave();
    }
    join(own().clock, mbarrier.over);
    own().columns.fenced = false;
    leave();
  }
  /// It arrives when nobody can go on without it, or earlier by chance.
  void copy_box(void* to, const Box& from, void* at, Place place) {
    constexpr std::size_t kBoxAlignment = 128;
    Mbarrier& mbarrier = mbarrier_at(at, place);
    if (!mbarrier.fenced)
      fail("{}: a copy is to arrive at an mbarrier that it cannot see yet", text_of(place));
    check_alignment(to, kBoxAlignment, place);
    memory_.expect_copy(to, from.bytes(), running_, own().clock, place);
    boxes_.push_back({static_cast<std::byte*>(to), from, &mbarrier});
  }

  // --- tcgen05 ---

  TensorMemory& columns() { return columns_; }
  TensorMemoryUse& columns_use() { return own().columns; }
  /// How far the thread has seen the products.
  unsigned seen_products() { return own().clock[products()]; }
  /// A product will read these elements: what comes later to there has to wait for it.
  void read_by_product(std::span<const std::size_t> offsets, unsigned number, Place place) {
    Clock seen = own().clock;
    seen[products()] = number;
    for (const std::size_t offset : offsets)
      memory_.read(memory_.begin() + offset, 2, products(), seen, place);
  }
  void arrive_when_done(void* at, Place place) {
    Mbarrier& mbarrier = mbarrier_at(at, place);
    if (!mbarrier.fenced)
      fail("{}: products are to arrive at an mbarrier that they cannot see yet", text_of(place));
    done_.push_back({&mbarrier, columns_.asked_for(), own().clock});
    ++own().clock[running_];
  }
  /// Everything a thread has loaded is before this one's next step, and it said so.
  void check_loads_are_over(Place place) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const TensorMemoryUse& use = threads_[i].columns;
      if (!use.loading.empty() || use.unfenced_load || own().clock[i] < use.loaded_at)
        fail("{}: columns are given back that thread {} may still read", text_of(place), i);
    }
  }
  unsigned own_time() { return own().clock[running_]; }

  // --- wgmma ---

  WarpGroupWork& warp_group_work() { return work_[running_ / kWarpSize]; }
  /// What the warps of a group name must be the same; the first to come says what.
  void expect_same_in_group(std::size_t number, std::uint64_t named, Place place) {
    const auto [found, is_new] = named_.try_emplace({running_ / (4 * kWarpSize), number}, named);
    if (found->second != named)
      fail("{}: the warps of a group name different operands", text_of(place));
  }
  /// What a lane has seen, all of its warp have.
  void join_lanes() {
    const unsigned first = running_ / kWarpSize * kWarpSize;
    Clock all = threads_[first].clock;
    for (unsigned lane = 1; lane < kWarpSize; ++lane) join(all, threads_[first + lane].clock);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) threads_[first + lane].clock = all;
  }

 private:
  Thread& own() { return threads_[running_]; }
  /// In clocks, the products of tcgen05 are behind threads and mbarriers.
  unsigned products() const { return static_cast<unsigned>(threads_.size()) + kMostMbarriers; }
  std::size_t clocks() const { return products() + 1; }

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
  void leave() {
    const unsigned left = running_;
    const std::optional<unsigned> next = choose_or_deliver();
    if (next == left) return;
    running_ = next.value_or(left);
    swapcontext(&threads_[left].context, next ? &threads_[*next].context : &scheduler_);
  }

  Mbarrier& mbarrier_at(void* at, Place place) {
    const auto found = mbarriers_.find(at);
    if (found == mbarriers_.end())
      fail("{}: thread {} uses an mbarrier that is none", text_of(place), running_);
    read(at, sizeof(std::uint64_t), running_, place);
    return found->second;
  }
  void end_phase_if_over(Mbarrier& mbarrier) {
    if (mbarrier.missing > 0 || mbarrier.missing_bytes != 0) return;
    ++mbarrier.phases;
    mbarrier.missing = mbarrier.count;
    join(mbarrier.over, mbarrier.arrived);
    for (unsigned i = 0; i < threads_.size(); ++i) {
      Thread& one = threads_[i];
      if (one.state != Thread::State::at_mbarrier || one.brought != &mbarrier) continue;
      one.state = Thread::State::ready;
      ready_[i / kWarpSize] |= 1u << i % kWarpSize;
    }
  }
  void deliver(std::size_t which) {
    const BoxCopy copy = boxes_[which];
    boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(which));
    Mbarrier& mbarrier = *copy.mbarrier;
    const unsigned now = ++mbarrier.arrived[mbarrier.who];
    copy.from.bring(memory_.begin(), memory_.offset_of(copy.to));
    memory_.arrived(copy.to, copy.from.bytes(), mbarrier.who, now);
    mbarrier.missing_bytes -= static_cast<long long>(copy.from.bytes());
    end_phase_if_over(mbarrier);
  }
  /// Products are done in their order.
  void finish_products() {
    const ProductsDone done = done_.front();
    done_.pop_front();
    columns_.compute(done.last, memory_.begin());
    join(done.mbarrier->arrived, done.asked);
    unsigned& seen = done.mbarrier->arrived[products()];
    seen = std::max(seen, done.last);
    if (done.mbarrier->missing == 0) fail("products arrive at an mbarrier where all have");
    --done.mbarrier->missing;
    end_phase_if_over(*done.mbarrier);
  }
  /// One of what is on its way, if anything is.
  bool bring_one() {
    const std::size_t ways = boxes_.size() + !done_.empty();
    if (ways == 0) return false;
    const std::size_t which = random_() % ways;
    if (which < boxes_.size()) {
      deliver(which);
    } else {
      finish_products();
    }
    return true;
  }
  std::optional<unsigned> choose_or_deliver() {
    constexpr unsigned kEarly = 512;
    if (random_() % kEarly == 0) bring_one();
    std::optional<unsigned> next = choose();
    while (!next && bring_one()) next = choose();
    return next;
  }

  std::optional<unsigned> choose() {
    std::array<unsigned, kMostWarps> warps;
    std::size_t count = 0;
    for (unsigned warp = 0; warp < ready_.size(); ++warp) {
      if (ready_[warp] != 0) warps[count++] = warp;
    }
    if (count == 0) return std::nullopt;
    // One warp well ahead, until it waits or another is.
    if (random_() % 256 == 0) favoured_ = static_cast<unsigned>(random_() % ready_.size());
    const unsigned warp =
        ready_[favoured_] != 0 && random_() % 8 != 0 ? favoured_ : warps[random_() % count];
    unsigned lanes = ready_[warp];
    for (auto skip = random_() % static_cast<unsigned>(std::popcount(lanes)); skip > 0; --skip)
      lanes &= lanes - 1;
    return warp * kWarpSize + static_cast<unsigned>(std::countr_zero(lanes));
  }

  void check_all_done() const {
    columns_.check_all_given_back();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const Thread& thread = threads_[i];
      if (thread.state != Thread::State::done)
        fail("thread {} waits for ever at {} ({})", i, thread.instruction, text_of(thread.place));
      const WarpGroupWork& work = work_[i / kWarpSize];
      if (!work.uncommitted.empty() || !work.groups.empty())
        fail("warp {} ends with wgmma that it has not waited for", i / kWarpSize);
      if (!thread.uncommitted.empty() || !thread.groups.empty()) {
        const bool empty =
            thread.uncommitted.empty() &&
            std::ranges::all_of(thread.groups, [](const auto& group) { return group.empty(); });
        if (!empty) fail("thread {} ends with copies on their way", i);
      }
    }
  }

  /// The n-th accesses of a warp's lanes, if all are at one place, are one instruction.
  void compare_accesses(unsigned warp) {
    const std::span lanes = std::span(threads_).subspan(std::size_t{warp} * kWarpSize, kWarpSize);
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

  void note_conflict(const std::vector<std::size_t>& offsets, std::size_t bytes, Place place) {
    const std::size_t ways = ways_of(offsets, bytes);
    if (ways > 1) ++conflicts_[fmt::format("{}: {}-way", text_of(place), ways)];
  }

  unsigned index_, running_ = 0, favoured_ = 0;
  std::span<const Operand> operands_;
  const std::function<void()>& kernel_;
  BankConflicts& conflicts_;
  std::mt19937_64 random_;
  std::size_t launched_bytes_;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;  // of each warp the lanes that can go on
  SharedMemory memory_;
  std::map<unsigned, std::vector<unsigned>> orders_;
  std::map<const void*, Mbarrier> mbarriers_;
  std::vector<BoxCopy> boxes_;
  TensorMemory columns_;
  std::deque<ProductsDone> done_;
  std::array<WarpGroupWork, kMostWarps> work_;
  std::map<std::pair<unsigned, std::size_t>, std::uint64_t> named_;
  ucontext_t scheduler_{};
  std::exception_ptr failure_;
};

}  // namespace launchgap::kernels::emulated
