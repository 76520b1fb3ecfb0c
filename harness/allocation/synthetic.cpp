#include "harness/allocation/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <span>
#include <vector>

namespace launchgap::allocation {
namespace {

struct Quantile {
  double share, value;
};

constexpr double kKiB = 1024, kMiB = 1024 * kKiB;

/// Of the recorded job: sizes as its allocator had rounded them, lifetimes in events. Between what
/// is known, logarithms are interpolated.
constexpr auto kSizes = std::to_array<Quantile>({{0, 512},
                                                 {0.1, kKiB},
                                                 {0.5, 512 * kKiB},
                                                 {0.59, kMiB},
                                                 {0.9, 14 * kMiB},
                                                 {0.99, 24 * kMiB},
                                                 {1, 94 * kMiB}});
constexpr auto kLifetimes =
    std::to_array<Quantile>({{0, 1}, {0.1, 2}, {0.5, 12}, {0.9, 3644}, {1, 5000}});
constexpr double kFreedByOther = 0.12;
constexpr double kNsPerEvent = 1e9 / 7800 / 2;  // 7,800 allocations a second, each with a free

double value_at(std::span<const Quantile> quantiles, double share) {
  const auto above = std::ranges::upper_bound(quantiles, share, {}, &Quantile::share);
  if (above == quantiles.end()) return quantiles.back().value;
  const Quantile &a = *std::prev(above), &b = *above;
  const double part = (share - a.share) / (b.share - a.share);
  return std::exp(std::log(a.value) * (1 - part) + std::log(b.value) * part);
}

class SyntheticTraining : public Trace {
 public:
  SyntheticTraining(std::uint64_t allocations, std::uint64_t steps, std::uint64_t seed)
      : allocations_(allocations),
        per_step_(std::max<std::uint64_t>(1, allocations / steps)),
        seed_(seed) {
    rewind();
  }
  const TraceHead& head() const override { return head_; }
  const TraceFaults& counts() const override { return counts_; }

  void rewind() override {
    random_.seed(seed_);
    ends_ = {};
    made_ = number_ = 0;
    in_step_ = false;
  }

  bool next(TraceEvent& event) override {
    event = {};
    event.t_ns = static_cast<std::int64_t>(static_cast<double>(number_) * kNsPerEvent);
    if (!ends_.empty() && (made_ == allocations_ || ends_.top().at <= number_)) {
      end(event);
    } else if (made_ == allocations_) {
      return false;
    } else if (made_ % per_step_ == 0 && !in_step_) {
      event.op = Op::step;
      in_step_ = true;
    } else {
      begin(event);
    }
    ++number_;
    return true;
  }

 private:
  struct End {
    std::uint64_t at, id, bytes;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : id > other.id;
    }
  };

  /// From 0 to 1; the standard's own distributions differ from library to library.
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  void begin(TraceEvent& event) {
    constexpr std::uint64_t kUnit = 512;
    const double bytes = value_at(kSizes, uniform());
    event.id = made_++;
    event.bytes = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes / kUnit))) * kUnit;
    in_step_ = false;
    const auto lifetime = static_cast<std::uint64_t>(value_at(kLifetimes, uniform()));
    ends_.push({number_ + std::max<std::uint64_t>(1, lifetime), event.id, event.bytes});
  }

  void end(TraceEvent& event) {
    event.op = Op::free;
    event.id = ends_.top().id;
    event.bytes = ends_.top().bytes;
    event.thread = uniform() < kFreedByOther ? 1 : 0;
    ends_.pop();
  }

  std::uint64_t allocations_, per_step_, seed_;
  TraceHead head_{"synthetic", Sizes::granted, false, 1};
  TraceFaults counts_;
  std::mt19937_64 random_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::uint64_t made_ = 0, number_ = 0;
  bool in_step_ = false;  // it has begun, and has no allocation yet
};

}  // namespace

std::unique_ptr<Trace> synthetic_training(std::uint64_t allocations,
                                          std::uint64_t steps,
                                          std::uint64_t seed) {
  return std::make_unique<SyntheticTraining>(allocations, steps, seed);
}

}  // namespace launchgap::allocation
