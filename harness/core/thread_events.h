// What the system did to the thread that launches, while it took samples.
#pragma once

#include <cstdint>

namespace launchgap {

/// In one sample, from the end of the one before it on; or counted over some samples: in how many
/// of them.
struct ThreadEvents {
  std::uint64_t samples = 0;
  std::uint64_t voluntary = 0;    // times that it waited for something, off its CPU
  std::uint64_t involuntary = 0;  // times that it was taken off its CPU
  std::uint64_t faults = 0;       // page faults, with and without the disk
  std::uint64_t moves = 0;        // to another CPU, one at most for each sample
  std::uint64_t pauses = 0;       // samples that began long after the one before had ended

  /// Counts one more sample, by what happened in it: how often does not matter.
  void count(const ThreadEvents& sample) {
    samples += sample.samples;
    voluntary += sample.voluntary > 0;
    involuntary += sample.involuntary > 0;
    faults += sample.faults > 0;
    moves += sample.moves > 0;
    pauses += sample.pauses > 0;
  }

  /// What was counted over others.
  void add(const ThreadEvents& counted) {
    samples += counted.samples;
    voluntary += counted.voluntary;
    involuntary += counted.involuntary;
    faults += counted.faults;
    moves += counted.moves;
    pauses += counted.pauses;
  }

  static void fields(auto& self, auto&& field) {
    field.natural("samples", self.samples);
    field.natural("voluntary", self.voluntary);
    field.natural("involuntary", self.involuntary);
    field.natural("faults", self.faults);
    field.natural("moves", self.moves);
    field.natural("pauses", self.pauses);
  }
};

/// A sample that took longer than usual.
struct WatchedSample {
  std::uint64_t sample = 0;   // of the block, from 0
  std::int64_t pause_ns = 0;  // from the end of the sample before it to its start
  ThreadEvents events;        // from the end of the sample before it to its own

  static void fields(auto& self, auto&& field) {
    field.natural("sample", self.sample);
    field.optional("pause_ns", self.pause_ns);
    ThreadEvents::fields(self.events, field);
  }
};

}  // namespace launchgap
