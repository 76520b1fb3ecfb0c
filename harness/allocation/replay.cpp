#include "harness/allocation/replay.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "harness/allocation/script.h"
#include "harness/core/clock.h"
#include "harness/core/stop.h"

namespace launchgap::allocation {
namespace {

constexpr std::array<std::string_view, 7> kRecoverySteps =
    {"stream_wait", "device_wait", "trim", "destroy", "none", "rounding", "taken"};

/// Requests for which the unusable index is told, in bytes: 1 MiB to 512 MiB.
constexpr std::array<std::uint64_t, 6> kUnusableFor = {std::uint64_t{1} << 20,
                                                       std::uint64_t{2} << 20,
                                                       std::uint64_t{8} << 20,
                                                       std::uint64_t{32} << 20,
                                                       std::uint64_t{128} << 20,
                                                       std::uint64_t{512} << 20};

class Playing {
 public:
  Playing(const TraceFacts& facts, Player& player, const ReplayOptions& options)
      : facts_(facts), player_(player), options_(options) {
    moment_every_ =
        std::max<std::uint64_t>(1, facts.events / std::max<std::size_t>(1, options.most_moments));
    picture_every_ = moment_every_ *
                     std::max<std::uint64_t>(
                         1, options.most_moments / std::max<std::size_t>(1, options.most_pictures));
  }

  Replay play(Trace& trace) {
    trace.rewind();
    result_.completed = true;
    for (TraceEvent event; trace.next(event); ++number_) {
      if (number_ % 65536 == 0) stop_if_asked();
      if (event.device != facts_.device) continue;
      Step step;
      if (!step_of(event, places_, step)) continue;
      if (options_.paced) wait_until(event.t_ns);
      take(event, step);
      if (!result_.completed) break;
      if (options_.after_each) options_.after_each(number_, event, step.place());
      note_moment(event.t_ns);
      last_.emplace(number_, event.t_ns);
    }
    note_end();
    return std::move(result_);
  }

 private:
  void take(const TraceEvent& event, const Step& step) {
    switch (step.kind()) {
      case Step::Kind::allocate:
        player_.prepare(places_.most(), step.stream());
        if (!allocate(step)) {
          result_.completed = false;
          return;
        }
        if (options_.touch) player_.touch(step.place(), step.bytes());
        live_.add(step.bytes());
        granted_ += player_.granted_bytes(step.bytes()).value_or(0);
        ++result_.allocations;
        break;
      case Step::Kind::release: {
        std::int64_t spent_ns = 0;
        timed(spent_ns, [&] { player_.release(step.place(), step.bytes()); });
        keep(result_.release_times, spent_ns);
        live_.remove(step.bytes());
        granted_ -= player_.granted_bytes(step.bytes()).value_or(0);
        ++result_.releases;
        break;
      }
      case Step::Kind::wait:
        if (event.stream == kAllStreams)
          player_.wait_for_device();
        else
          player_.wait_for_stream(event.stream);
        break;
    }
  }

  /// Whether it was had, at once or at last. Only the first failure is told.
  bool allocate(const Step& step) {
    std::int64_t spent_ns = 0;
    if (!attempt(step, spent_ns)) {
      ++result_.recoveries;
      AllocationFailure failure;
      failure.event = number_;
      failure.bytes = step.bytes();
      failure.cured_by = name_of(RecoveryStep::none);
      failure.then = moment_at(number_, 0);
      if (player_.granted_bytes(step.bytes())) failure.then.granted_bytes = granted_;
      const bool cured = recover(step, failure, spent_ns);
      if (!result_.failure) result_.failure = failure;
      if (!cured) return false;
    }
    keep(result_.allocate_times, spent_ns);
    return true;
  }

  bool attempt(const Step& step, std::int64_t& spent_ns) {
    bool had = false;
    timed(spent_ns,
          [&] { had = player_.allocate(step.place(), step.bytes(), step.stream(), step.align()); });
    return had;
  }

  /// Adds the time of `call` to `spent_ns`, and to that of all calls.
  void timed(std::int64_t& spent_ns, const auto& call) {
    const std::int64_t begin = now_ns();
    call();
    const std::int64_t time = now_ns() - begin;
    spent_ns += time;
    if (!options_.after_each) result_.calls_s += static_cast<double>(time) * 1e-9;
  }

  void keep(TimeCounts& times, std::int64_t spent_ns) {
    if (!options_.after_each) times.add(spent_ns);
  }

  /// Takes the recovery steps in turn, and notes the one that cured it in `failure`. Whether the
  /// trace can go on.
  bool recover(const Step& step, AllocationFailure& failure, std::int64_t& spent_ns) {
    const auto cured = [&](RecoveryStep tried, auto&& cure) {
      timed(spent_ns, cure);
      if (!attempt(step, spent_ns)) return false;
      failure.cured_by = name_of(tried);
      return true;
    };
    if (cured(RecoveryStep::stream_wait, [&] { player_.wait_for_stream(step.stream()); }) ||
        cured(RecoveryStep::device_wait, [&] { player_.wait_for_device(); }) ||
        cured(RecoveryStep::trim, [&] { player_.trim(); }))
      return true;
    // What was live is lost then, so this is the end in any case.
    note_end();
    failure.device_free_bytes = player_.free_bytes();
    if (const auto why = why_too_little(step, failure.device_free_bytes))
      failure.cured_by = name_of(*why);
    else
      cured(RecoveryStep::destroy, [&] { player_.begin_anew(); });
    return false;
  }

  /// Why there is too little for an allocation, however what is live lies; nothing if there is
  /// enough.
  std::optional<RecoveryStep> why_too_little(const Step& step,
                                             std::optional<std::uint64_t> free_bytes) const {
    const std::uint64_t limit = player_.limit_bytes();
    if (step.bytes() > limit || live_.now > limit - step.bytes()) return RecoveryStep::none;
    const std::uint64_t takes = player_.granted_bytes(step.bytes()).value_or(step.bytes());
    if (takes > limit || granted_ > limit - takes) return RecoveryStep::rounding;
    const std::uint64_t reserved = player_.reserved_bytes();
    const std::uint64_t kept = reserved - std::min(live_.now, reserved);
    if (free_bytes && *free_bytes + kept < takes) return RecoveryStep::taken;
    return std::nullopt;
  }

  /// How it stands after an event; of a player that does not tell what it holds only what is live.
  MemoryMoment moment_at(std::uint64_t event, std::int64_t t_ns) const {
    MemoryMoment moment;
    if (const BlockAllocator* const holder = player_.holder())
      moment = moment_of(*holder, live_.now);
    moment.event = event;
    moment.t_ns = t_ns;
    moment.live_bytes = live_.now;
    return moment;
  }

  void note_moment(std::int64_t t_ns) {
    const BlockAllocator* const holder = player_.holder();
    if (holder) {
      result_.peak_reserved_bytes =
          std::max(result_.peak_reserved_bytes.value_or(0), holder->reserved_bytes());
    }
    const bool is_peak = number_ == facts_.peak_event;
    const bool is_moment = number_ >= next_moment_;
    if (!is_peak && !is_moment) return;
    MemoryMoment moment = moment_at(number_, t_ns);
    if (holder && (is_peak || number_ >= next_picture_)) moment.occupancy = occupancy(*holder);
    if (is_peak) result_.at_peak = moment;
    if (!is_moment) return;
    next_moment_ = number_ / moment_every_ * moment_every_ + moment_every_;
    if (number_ >= next_picture_) {
      next_picture_ = number_ / picture_every_ * picture_every_ + picture_every_;
    } else {
      moment.occupancy.reset();
    }
    result_.moments.push_back(std::move(moment));
  }

  /// How it ends is always a moment, with its picture.
  void note_end() {
    if (!last_) return;
    const auto [event, t_ns] = *std::exchange(last_, std::nullopt);
    if (!result_.moments.empty() && result_.moments.back().event == event)
      result_.moments.pop_back();
    MemoryMoment& end = result_.moments.emplace_back(moment_at(event, t_ns));
    if (player_.holder()) end.occupancy = occupancy(*player_.holder());
  }

  void wait_until(std::int64_t t_ns) {
    if (!first_t_ns_) {
      first_t_ns_ = t_ns;
      began_ns_ = now_ns();
    }
    constexpr std::int64_t kSpin = 100'000;  // a sleep may take this much longer
    const std::int64_t due = began_ns_ + (t_ns - *first_t_ns_);
    for (std::int64_t left = due - now_ns(); left > 0; left = due - now_ns()) {
      stop_if_asked();
      constexpr std::int64_t kLongest = 100'000'000;  // so that a signal is seen
      if (left > kSpin)
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left - kSpin, kLongest)));
    }
  }

  const TraceFacts& facts_;
  Player& player_;
  const ReplayOptions& options_;
  Replay result_;
  Places places_;
  LiveBytes live_;
  std::uint64_t granted_ = 0;  // that what is live takes, where the player tells
  std::uint64_t number_ = 0;
  std::uint64_t moment_every_ = 1, picture_every_ = 1, next_moment_ = 0, next_picture_ = 0;
  std::optional<std::pair<std::uint64_t, std::int64_t>> last_;  // event, and its time
  std::optional<std::int64_t> first_t_ns_;
  std::int64_t began_ns_ = 0;
};

/// What is being counted of one device.
struct Counting {
  TraceFacts facts;
  LiveBytes live;
};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string_view name_of(RecoveryStep step) {
  return kRecoverySteps[static_cast<std::size_t>(step)];
}

TraceFacts facts_of(Trace& trace, std::optional<std::uint32_t> device) {
  std::map<std::uint32_t, Counting> devices;
  std::uint64_t events = 0, allocations = 0;
  trace.rewind();
  Counting* last = nullptr;
  for (TraceEvent event; trace.next(event); ++events) {
    if (events % 65536 == 0) stop_if_asked();
    if (!last || last->facts.device != event.device) {
      last = &devices[event.device];
      last->facts.device = event.device;
    }
    TraceFacts& facts = last->facts;
    LiveBytes& live = last->live;
    if (event.op == Op::fail) ++facts.failed;
    if (event.bytes == 0) continue;
    if (event.op == Op::alloc) {
      ++allocations;
      ++facts.allocations;
      facts.largest_align = std::max(facts.largest_align, event.align);
      const std::uint64_t before = live.most;
      live.add(event.bytes);
      if (live.most > before) facts.peak_event = events;
    } else if (event.op == Op::free) {
      ++facts.releases;
      live.remove(event.bytes);
    }
  }
  const Counting none{};
  const Counting* chosen = &none;
  for (const auto& [number, one] : devices) {
    if (device ? number == *device : one.facts.allocations > chosen->facts.allocations)
      chosen = &one;
  }
  TraceFacts result = chosen->facts;
  if (device) result.device = *device;
  result.live_bytes_at_end = chosen->live.now;
  result.peak_live_bytes = chosen->live.most;
  result.live_at_end = result.allocations - result.releases;
  result.events = events;
  result.other_allocations = allocations - result.allocations;
  return result;
}

Replay replay(Trace& trace, const TraceFacts& facts, Player& player, const ReplayOptions& options) {
  return Playing(facts, player, options).play(trace);
}

BlockPlayer::BlockPlayer(Memory& memory, const BlockAllocatorInfo& info, std::uint64_t limit_bytes)
    : memory_(memory),
      info_(info),
      limit_(limit_bytes),
      allocator_(info.make(memory, limit_bytes)) {}

void BlockPlayer::prepare(std::uint32_t places, std::uint32_t) {
  if (places > blocks_.size()) blocks_.resize(std::max<std::size_t>(places, 2 * blocks_.size()));
}

bool BlockPlayer::allocate(std::uint32_t place,
                           std::uint64_t bytes,
                           std::uint32_t stream,
                           std::uint64_t align) {
  const auto block = allocator_->allocate(bytes, stream, align);
  if (block) blocks_[place] = *block;
  return block.has_value();
}

void BlockPlayer::release(std::uint32_t place, std::uint64_t) {
  allocator_->release(blocks_[place]);
}

void BlockPlayer::begin_anew() {
  allocator_.reset();
  allocator_ = info_.make(memory_, limit_);
}

MemoryMoment moment_of(const BlockAllocator& allocator, std::uint64_t live_bytes) {
  const Holding holding = allocator.holding();
  MemoryMoment result;
  result.live_bytes = live_bytes;
  result.granted_bytes = holding.granted;
  result.reserved_bytes = holding.reserved;
  result.free_bytes = holding.free;
  result.largest_free_bytes = holding.largest_free;
  result.internal_waste = share(holding.granted - live_bytes, holding.granted);
  result.largest_block_index = share(holding.free - holding.largest_free, holding.free);
  result.reserve_slack = share(holding.reserved - live_bytes, holding.reserved);
  std::array<std::uint64_t, kUnusableFor.size()> unusable{};
  allocator.for_each_part([&](const Part& part) {
    if (part.requested != 0) return;
    for (std::size_t i = 0; i < kUnusableFor.size(); ++i) {
      if (part.bytes < kUnusableFor[i]) unusable[i] += part.bytes;
    }
  });
  for (std::size_t i = 0; i < kUnusableFor.size(); ++i)
    result.unusable.push_back(
        {kUnusableFor[i], holding.free == 0 ? 1 : share(unusable[i], holding.free)});
  return result;
}

std::optional<std::string> occupancy(const BlockAllocator& allocator, std::size_t columns) {
  struct Column {
    double used = 0, wasted = 0, free = 0;
  };
  const std::uint64_t reserved = allocator.holding().reserved;
  if (reserved == 0) return {};
  std::vector<Column> all(columns);
  const double width = static_cast<double>(reserved) / static_cast<double>(columns);
  double at = 0;
  const auto paint = [&](std::uint64_t bytes, double Column::*kind) {
    const double end = at + static_cast<double>(bytes);
    for (auto i = static_cast<std::size_t>(at / width); i < columns; ++i) {
      const double from = std::max(at, static_cast<double>(i) * width);
      const double to = std::min(end, static_cast<double>(i + 1) * width);
      if (to <= from) break;
      all[i].*kind += to - from;
    }
    at = end;
  };
  allocator.for_each_part([&](const Part& part) {
    if (part.requested == 0) return paint(part.bytes, &Column::free);
    paint(part.requested, &Column::used);
    paint(part.bytes - part.requested, &Column::wasted);
  });
  std::string text(columns, '_');
  for (std::size_t i = 0; i < columns; ++i) {
    const Column& column = all[i];
    if (column.used >= column.wasted && column.used >= column.free)
      text[i] = '*';
    else if (column.wasted > column.free)
      text[i] = 'x';
  }
  return text;
}

}  // namespace launchgap::allocation
