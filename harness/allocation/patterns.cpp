#include "harness/allocation/patterns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/synthetic.h"
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
  throw UsageError(
      fmt::format("there is no pattern '{}'{}",
                  printable(name, 60),
                  near.empty() ? fmt::format(": there are {}", fmt::join(names, ", ")) : near));
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
      throw UsageError(fmt::format(
          "{} has no parameter '{}': it has {}", info.name, key, fmt::join(names, ", ")));
    }
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, value);
    if (failed != std::errc() || at != end || value < parameter->least || value > parameter->most)
      throw UsageError(fmt::format("{} of {} is a number from {} to {}, and not '{}'",
                                   key,
                                   info.name,
                                   parameter->least,
                                   parameter->most,
                                   text));
    values[parameter->name] = value;
  }
  return values;
}

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

}  // namespace launchgap::allocation
