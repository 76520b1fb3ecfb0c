#include "harness/allocation/creep.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/stats/stats.h"

namespace launchgap::allocation {
namespace {

constexpr std::size_t kFewestEpochs = 20;
constexpr double kLargestP = 0.001;
constexpr int kFewestHeights = 2;  // that are new: one step alone is an event, and no trend
constexpr std::uint64_t kPage = 4096;

struct Trend {
  bool rises = false;
  double slope = 0, p = 1;
};

/// How often a series reaches what it never had before.
int new_heights(std::span<const double> values) {
  int count = 0;
  double highest = values.front();
  for (const double value : values) {
    count += value > highest;
    highest = std::max(highest, value);
  }
  return count;
}

/// Whether it rises as no random walk does: in the number of its steps up, or in their sum.
bool beats_random_walk(std::span<const double> values) {
  int up = 0, down = 0;
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double step = values[i] - values[i - 1];
    up += step > 0;
    down += step < 0;
    sum += step;
    squares += step * step;
  }
  if (up == 0) return false;
  // P(as many steps up, or more), each being up or down by a throw of a coin.
  double more = 0, ways = 1;
  for (int k = 0; k <= down; ++k) {  // as few down
    more += ways;
    ways = ways * (up + down - k) / (k + 1);
  }
  if (more * std::exp2(-(up + down)) < kLargestP) return true;
  const auto n = static_cast<double>(values.size() - 1);
  const double variance = (squares - sum * sum / n) / (n - 1);
  constexpr double kFar = 3.5;  // Student's t for p < 0.001 of 20 epochs or more
  return variance <= 0 || sum / n > kFar * std::sqrt(variance / n);
}

bool rises(std::span<const double> values, double p) {
  const std::size_t last_third = values.size() - values.size() / 3;
  return p < kLargestP && new_heights(values) >= kFewestHeights &&
         values.back() >= values.front() + static_cast<double>(kPage) &&
         values.back() > values[last_third];
}

Trend trend_of(std::span<const double> values) {
  Trend trend;
  trend.slope = stats::theil_sen_slope(values);
  trend.p = stats::mann_kendall_rise_p(values);
  trend.rises = rises(values, trend.p);
  return trend;
}

constexpr std::uint64_t kCrumb = std::uint64_t{64} * 1024;  // of what a pin is paid with

struct WhatName {
  Injection::What what;
  std::string_view name;
};
constexpr auto kWhats = std::to_array<WhatName>({{Injection::What::leak, "leak"},
                                                 {Injection::What::pin, "pin"},
                                                 {Injection::What::cache, "cache"},
                                                 {Injection::What::context, "context"}});

/// The allocations of epochs, and those that are injected, which have places behind the script's.
class Epochs {
 public:
  Epochs(const Script& script, Player& player, std::size_t epochs, const Injection& injection)
      : script_(script),
        player_(player),
        epochs_(epochs),
        injection_(injection),
        next_place_(script.places) {}

  /// What pins are paid with: blocks of which every other one is given back, so that what they
  /// leave is of no use to a pin.
  void prepare() {
    if (injection_.what != Injection::What::pin) return;
    const std::uint64_t crumbs = epochs_ * ((injection_.bytes + kCrumb - 1) / kCrumb);
    for (std::uint64_t i = 0; i < crumbs; ++i) {
      crumbs_.push_back(take(kCrumb));
      take(kCrumb);
    }
  }

  void play(std::size_t number) {
    const std::size_t middle = script_.steps.size() / 2;
    live_places_.assign(script_.places, 0);
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      if (i % 65536 == 0) stop_if_asked();
      if (i == middle) inject(number);
      play(script_.steps[i]);
    }
    if (script_.steps.empty()) inject(number);
    for (std::uint32_t place = 0; place < script_.places; ++place) {
      if (live_places_[place] == 0) continue;
      player_.release(place, live_places_[place]);
      live_ -= live_places_[place];
    }
    player_.wait_for_device();
  }

  std::uint64_t live() const { return live_; }

 private:
  void play(const Step& step) {
    if (step.kind() == Step::Kind::allocate) {
      player_.prepare(next_place_, step.stream());
      if (!player_.allocate(step.place(), step.bytes(), step.stream(), step.align()))
        throw Error("an allocation of {} bytes failed", step.bytes());
      live_places_[step.place()] = step.bytes();
      live_ += step.bytes();
    } else if (step.kind() == Step::Kind::release) {
      player_.release(step.place(), step.bytes());
      live_places_[step.place()] = 0;
      live_ -= step.bytes();
    } else if (step.stream() == kAllStreams) {
      player_.wait_for_device();
    } else {
      player_.wait_for_stream(step.stream());
    }
  }

  std::uint32_t take(std::uint64_t bytes) {
    const std::uint32_t place = next_place_++;
    player_.prepare(next_place_, 0);
    if (!player_.allocate(place, bytes, 0, 0))
      throw Error("an injected allocation of {} bytes failed", bytes);
    live_ += bytes;
    return place;
  }
  void give_back(std::uint32_t place, std::uint64_t bytes) {
    player_.release(place, bytes);
    live_ -= bytes;
  }

  void inject(std::size_t number) {
    switch (injection_.what) {
      case Injection::What::leak:
        take(injection_.bytes);
        break;
      case Injection::What::pin:
        take(injection_.bytes);
        for (std::uint64_t paid = 0; paid < injection_.bytes; paid += kCrumb) {
          give_back(crumbs_.back(), kCrumb);
          crumbs_.pop_back();
        }
        break;
      case Injection::What::cache: {
        const std::uint64_t bytes =
            script_.peak_live_bytes + (std::min(number, epochs_ / 4) + 1) * injection_.bytes;
        give_back(take(bytes), bytes);
        --next_place_;
        break;
      }
      case Injection::What::nothing:
      case Injection::What::context:
        break;
    }
  }

  const Script& script_;
  Player& player_;
  std::size_t epochs_;
  const Injection& injection_;
  std::uint32_t next_place_;
  std::vector<std::uint64_t> live_places_;  // bytes
  std::vector<std::uint32_t> crumbs_;
  std::uint64_t live_ = 0;
};

}  // namespace

std::string_view name_of(CreepKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {
      "none", "leak", "fragmentation", "cache_plateau", "context_growth"};
  return kNames[static_cast<std::size_t>(kind)];
}

Creep classify_creep(std::span<const EpochRecord> epochs) {
  if (epochs.size() < kFewestEpochs) return {};
  struct Candidate {
    CreepKind kind;
    std::uint64_t EpochRecord::*bytes;
  };
  static constexpr auto kCandidates =
      std::to_array<Candidate>({{CreepKind::leak, &EpochRecord::live_bytes},
                                {CreepKind::fragmentation, &EpochRecord::reserved_bytes},
                                {CreepKind::context_growth, &EpochRecord::used_bytes}});
  for (const Candidate& candidate : kCandidates) {
    std::vector<double> values;
    for (const EpochRecord& epoch : epochs.subspan(kBurnIn))
      values.push_back(static_cast<double>(epoch.*candidate.bytes));
    const Trend trend = trend_of(values);
    if (!trend.rises) continue;
    if (candidate.kind == CreepKind::context_growth && !beats_random_walk(values)) continue;
    // Of rare steps most pairs do not differ.
    const double mean = (values.back() - values.front()) / static_cast<double>(values.size() - 1);
    return {candidate.kind, trend.slope > 0 ? trend.slope : mean, trend.p};
  }
  if (epochs.back().reserved_bytes >= epochs.front().reserved_bytes + kPage)
    return {CreepKind::cache_plateau, 0, 1};
  return {};
}

std::size_t rarest_step_shown(std::size_t epochs) {
  if (epochs < kFewestEpochs) return 0;
  constexpr std::size_t kMostJudged = 150;  // of more, the same share of them
  const std::size_t all = epochs - kBurnIn;
  const std::size_t judged = std::min(all, kMostJudged);
  const auto shown = [&](std::size_t apart) {
    for (std::size_t first = 0; first < apart; ++first) {
      std::vector<double> values;
      for (std::size_t i = 0; i < judged; ++i) {
        const std::size_t pages = (i + first) / apart;
        values.push_back(static_cast<double>(pages * kPage));
      }
      if (!rises(values, stats::mann_kendall_rise_p(values))) return false;
    }
    return true;
  };
  std::size_t apart = 0;
  while (apart < judged && shown(apart + 1)) ++apart;
  return apart * all / judged;
}

Injection parse_injection(std::string_view text) {
  const auto refuse = [&]() -> Injection {
    throw UsageError(
        "'{}' is nothing to inject: there are leak=64KiB/epoch, "
        "pin=2MiB/epoch, cache=2MiB/epoch and context=1MiB/epoch",
        printable(text, 60));
  };
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) return refuse();
  const auto what = std::ranges::find(kWhats, text.substr(0, sign), &WhatName::name);
  std::string_view amount = text.substr(sign + 1);
  constexpr std::string_view kPerEpoch = "/epoch";
  if (amount.ends_with(kPerEpoch)) amount.remove_suffix(kPerEpoch.size());
  const std::optional<std::uint64_t> bytes = bytes_of_text(amount);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (what == kWhats.end() || !bytes || *bytes == 0 || *bytes > kMost) return refuse();
  return {what->what, *bytes};
}

std::vector<EpochRecord> play_epochs(const Script& script,
                                     Player& player,
                                     std::size_t epochs,
                                     const Injection& injection,
                                     const std::function<std::uint64_t()>& used_bytes,
                                     const std::function<void(std::uint64_t bytes)>& take_beside) {
  std::vector<EpochRecord> result;
  Epochs playing(script, player, epochs, injection);
  playing.prepare();
  for (std::size_t i = 0; i < epochs; ++i) {
    playing.play(i);
    if (injection.what == Injection::What::context) take_beside(injection.bytes);
    result.push_back({playing.live(), player.reserved_bytes(), used_bytes()});
  }
  return result;
}

}  // namespace launchgap::allocation
