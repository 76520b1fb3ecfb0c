#include "harness/allocation/patterns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMany = 10'000'000;

/// Writes a trace as a program would make it: one microsecond from event to event.
class Program {
 public:
  std::uint64_t alloc(std::uint64_t bytes) {
    add(Op::alloc, next_id_, bytes);
    bytes_.push_back(bytes);
    return next_id_++;
  }
  void free(std::uint64_t id) { add(Op::free, id, bytes_[id]); }
  void sync() { add(Op::sync, 0, 0); }
  void step() { add(Op::step, 0, 0); }
  std::unique_ptr<Trace> trace() {
    return std::make_unique<TraceInMemory>(TraceHead{}, std::move(events_));
  }

 private:
  void add(Op op, std::uint64_t id, std::uint64_t bytes) {
    TraceEvent event;
    event.t_ns = static_cast<std::int64_t>(events_.size()) * 1000;
    event.op = op;
    event.id = id;
    event.bytes = bytes;
    events_.push_back(event);
  }

  std::vector<TraceEvent> events_;
  std::vector<std::uint64_t> bytes_;
  std::uint64_t next_id_ = 0;
};

/// Values of a pattern's parameters.
using Values = std::map<std::string_view, std::uint64_t>;

constexpr auto kCheckerboard = std::to_array<PatternParameter>(
    {{"blocks", 64, 2, kMany, "how many blocks fill the memory"},
     {"bytes", kMiB, 1, kMostBytes / kMany, "size of a block"},
     {"request", 0, 0, kMany, "then one block is asked for, so many times as large; 0: none"}});

/// Blocks side by side, of which every other one is freed.
void checkerboard(Program& program, const Values& values) {
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t i = 0; i < values.at("blocks"); ++i)
    blocks.push_back(program.alloc(values.at("bytes")));
  for (std::size_t i = 1; i < blocks.size(); i += 2) program.free(blocks[i]);
  if (values.at("request") > 0) program.alloc(values.at("request") * values.at("bytes"));
}

constexpr auto kComb = std::to_array<PatternParameter>(
    {{"pairs", 64, 1, kMany, "how many large blocks, each with a pin behind it"},
     {"bytes", 4 * kMiB, 1, kMostBytes / kMany, "size of a large block"},
     {"pin", 256, 1, kMostBytes / kMany, "size of a pin"}});

/// Large blocks, each with a small one behind it that stays.
void comb(Program& program, const Values& values) {
  std::vector<std::uint64_t> large;
  for (std::uint64_t i = 0; i < values.at("pairs"); ++i) {
    large.push_back(program.alloc(values.at("bytes")));
    program.alloc(values.at("pin"));
  }
  for (const std::uint64_t id : large) program.free(id);
}

constexpr auto kBatches = std::to_array<PatternParameter>(
    {{"first", 16, 1, 1 << 20, "the first batch"},
     {"last", 32, 1, 1 << 20, "the last"},
     {"layers", 50, 1, 100'000, "layers, each with two blocks"},
     {"bytes", kMiB, 1, kMiB * 1024, "bytes for each of a batch in a layer's smaller block"}});

/// A model's activations, with a batch that grows by one from step to step: each layer has a block
/// of batch × bytes and one of four times that; all are freed, last first, at the end of a step.
void batches(Program& program, const Values& values) {
  for (std::uint64_t batch = values.at("first"); batch <= values.at("last"); ++batch) {
    program.step();
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t layer = 0; layer < values.at("layers"); ++layer) {
      blocks.push_back(program.alloc(batch * values.at("bytes")));
      blocks.push_back(program.alloc(4 * batch * values.at("bytes")));
    }
    std::ranges::reverse(blocks);
    for (const std::uint64_t id : blocks) program.free(id);
  }
}

constexpr auto kPins = std::to_array<PatternParameter>(
    {{"cycles", 100, 1, kMany, "how often"},
     {"first", 91 * kMiB, 1, kMostBytes / kMany, "size of the first block of a cycle"},
     {"second", 91 * kMiB / 2, 1, kMostBytes / kMany, "of the second"},
     {"pin", 2 * kMiB, 1, kMostBytes / kMany, "of the one that stays"}});

/// Two blocks and a small one that stays, again and again.
void pins(Program& program, const Values& values) {
  for (std::uint64_t i = 0; i < values.at("cycles"); ++i) {
    program.step();
    const std::uint64_t first = program.alloc(values.at("first"));
    const std::uint64_t second = program.alloc(values.at("second"));
    program.alloc(values.at("pin"));
    program.free(first);
    program.free(second);
  }
}

constexpr auto kAttack =
    std::to_array<PatternParameter>({{"largest", 64, 3, 5000, "the largest block, in units"},
                                     {"bytes", 2 * kMiB, 1, kMiB * 1024, "a unit"}});

/// Against best fit: for each size, a hole of that size with a pin of one unit behind it, which no
/// later request can use. Where a block can be cut anywhere, `largest` - 2 units that stay need
/// (`largest` - 2) × (`largest` + 3) / 2.
void best_fit_attack(Program& program, const Values& values) {
  const std::uint64_t unit = values.at("bytes");
  for (std::uint64_t size = 2; size < values.at("largest"); ++size) {
    const std::uint64_t room = program.alloc((size + 1) * unit);   // fits into no hole
    const std::uint64_t guard = program.alloc((size + 1) * unit);  // keeps what follows apart
    program.free(room);
    const std::uint64_t hole = program.alloc(size * unit);  // leaves one unit of the room
    program.alloc(unit);                                    // which fits it exactly
    program.free(hole);
    program.free(guard);
  }
}

constexpr auto kThrash =
    std::to_array<PatternParameter>({{"cycles", 1000, 1, kMany, "how often"},
                                     {"bytes", 64 * kMiB, 1, kMostBytes, "size of the block"}});

/// A block that is freed and then waited for, again and again: a pool that keeps nothing at a wait
/// gets it from the driver each time.
void thrash(Program& program, const Values& values) {
  for (std::uint64_t i = 0; i < values.at("cycles"); ++i) {
    program.free(program.alloc(values.at("bytes")));
    program.sync();
  }
}

constexpr auto kTraining = std::to_array<PatternParameter>(
    {{"allocations", 13'385, 1, 1'000'000'000, "how many"},
     {"steps", 5, 1, 1'000'000, "in how many steps of the program"}});

struct Pattern {
  PatternInfo info;
  void (*write)(Program&, const Values&);  // none of `training`, which may be too long for memory
};

constexpr std::array<Pattern, 7> kPatterns = {{
    {{"checkerboard",
      "blocks side by side, of which every other one is freed: 1 - 2 / blocks of the free bytes "
      "lie "
      "outside the largest free block",
      kCheckerboard},
     checkerboard},
    {{"comb", "large blocks with a small one behind each that stays", kComb}, comb},
    {{"batches",
      "a model whose batch grows by one from step to step, which makes slivers",
      kBatches},
     batches},
    {{"pins", "two large blocks and a small one that stays, again and again", kPins}, pins},
    {{"best_fit_attack", "holes that no later request of best fit can use", kAttack},
     best_fit_attack},
    {{"thrash", "a block that is freed and waited for, again and again", kThrash}, thrash},
    {{"training",
      "sizes, lifetimes and threads as in a recorded training job of a V100",
      kTraining},
     nullptr},
}};

constexpr auto kInfos = [] {
  std::array<PatternInfo, kPatterns.size()> infos;
  std::ranges::transform(kPatterns, infos.begin(), &Pattern::info);
  return infos;
}();

const Pattern& pattern_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(kPatterns, [&](const Pattern& one) { return one.info.name == name; });
  if (found != kPatterns.end()) return *found;
  std::vector<std::string> names;
  for (const Pattern& one : kPatterns) names.emplace_back(one.info.name);
  const std::string near = did_you_mean(name, names);
  throw UsageError("there is no pattern '{}'{}",
                   printable(name, 60),
                   near.empty() ? fmt::format(": there are {}", fmt::join(names, ", ")) : near);
}

Values values_of(const PatternInfo& info, const CaseName& name) {
  Values values;
  for (const PatternParameter& parameter : info.parameters)
    values[parameter.name] = parameter.usual;
  for (const auto& [key, text] : name.params) {
    const auto parameter = std::ranges::find(info.parameters, key, &PatternParameter::name);
    if (parameter == info.parameters.end()) {
      std::vector<std::string_view> names;
      for (const PatternParameter& one : info.parameters) names.push_back(one.name);
      throw UsageError(
          "{} has no parameter '{}': it has {}", info.name, key, fmt::join(names, ", "));
    }
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || at != end || value < parameter->least || value > parameter->most)
      throw UsageError("{} of {} is a number from {} to {}, and not '{}'",
                       key,
                       info.name,
                       parameter->least,
                       parameter->most,
                       text);
    values[parameter->name] = value;
  }
  return values;
}

struct Quantile {
  double share, value;
};

constexpr double kKiB = 1024;

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

std::span<const PatternInfo> patterns() {
  return kInfos;
}

std::unique_ptr<Trace> make_pattern(const CaseName& name, std::uint64_t seed) {
  const Pattern& pattern = pattern_named(name.benchmark);
  const Values values = values_of(pattern.info, name);
  if (!pattern.write) return synthetic_training(values.at("allocations"), values.at("steps"), seed);
  Program program;
  pattern.write(program, values);
  return program.trace();
}

std::unique_ptr<Trace> synthetic_training(std::uint64_t allocations,
                                          std::uint64_t steps,
                                          std::uint64_t seed) {
  return std::make_unique<SyntheticTraining>(allocations, steps, seed);
}

}  // namespace launchgap::allocation
