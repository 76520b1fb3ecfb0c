// How far a session is, on standard error: a line that changes on a terminal, and one now and then
// in a log.
#pragma once

#include <cstdint>
#include <string>

namespace launchgap {

class Progress {
 public:
  /// `seconds`: estimate of the whole.
  explicit Progress(double seconds, std::size_t runs);
  ~Progress();

  /// Shows what is going on, with the time left: at most ten times a second on a terminal, every 25
  /// seconds elsewhere.
  void show(const std::string& what);
  /// `seconds` of the estimate are done.
  void advance(double seconds);
  void run_done() { ++runs_done_; }
  bool on_terminal() const { return terminal_; }
  /// Prints a line above the progress line, on a terminal or not.
  void message(const std::string& line);

 private:
  void clear();

  bool terminal_;
  double planned_s_;
  double done_s_ = 0;
  std::size_t runs_;
  std::size_t runs_done_ = 0;
  std::int64_t begin_ns_;
  std::int64_t shown_ns_ = 0;
  bool visible_ = false;
};

/// "1 min 05 s".
std::string duration_text(double seconds);

}  // namespace launchgap
