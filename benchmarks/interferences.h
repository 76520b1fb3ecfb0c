// What may happen beside launches, or between them, and make them slower.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// Made idle: nothing happens until `begin`, and nothing after `end`.
class Interference {
 public:
  virtual ~Interference() = default;
  /// Returns when what goes on beside launches has begun.
  virtual void begin() {}
  /// What happens between two launches: done when this returns, unless it is of the device alone.
  virtual void before_launch() {}
  /// Returns when it is over, on the device too. Throws what went wrong with it meanwhile.
  virtual void end() {}
  /// Throws WrongResult unless it has done what it should.
  virtual void verify() {}
  /// Processes that it has on the device, beside this one.
  virtual int processes() const { return 0; }
};

struct InterferenceKind {
  std::string_view name;      // of the axis `beside`
  std::string_view meaning;   // for list, page and docs
  std::string_view in_words;  // in a sentence, behind "Launches are slower": "after a sleep"
  /// `stream` is the one that is launched into.
  std::unique_ptr<Interference> (*make)(const CaseContext& context, Stream& stream) = nullptr;
  int launches = 400;                 // in each phase of a block, with a wait each
  double seconds = 0.01;              // that a block takes beyond its launches
  bool needs_default_stream = false;  // launches go to a stream that takes turns with it
  bool quick = true;                  // is part of profile quick
  bool between = false;               // happens between launches, and not beside them
};

/// All of them, in the order in which docs and page have them.
std::span<const InterferenceKind> interference_kinds();
/// Throws Error if there is none such.
const InterferenceKind& interference_named(std::string_view name);

}  // namespace launchgap
