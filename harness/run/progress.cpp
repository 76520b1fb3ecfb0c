#include "harness/run/progress.h"

#include <algorithm>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"

namespace launchgap {

std::string duration_text(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

Progress::Progress(double seconds, std::size_t runs)
    : terminal_(isatty(STDERR_FILENO) == 1),
      planned_s_(seconds),
      runs_(runs),
      begin_ns_(now_ns()),
      shown_ns_(begin_ns_) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (std::exchange(visible_, false)) say_raw("\r\x1b[K");
}

void Progress::advance(double seconds) {
  done_s_ = std::min(planned_s_, done_s_ + seconds);
}

void Progress::show(const std::string& what) {
  constexpr std::int64_t kOnTerminalNs = 100'000'000, kInLogNs = 25'000'000'000;
  const std::int64_t now = now_ns();
  if (now - shown_ns_ < (terminal_ ? kOnTerminalNs : kInLogNs)) return;
  shown_ns_ = now;
  // The plan's estimate, corrected by how fast it went so far; at first there is little to correct
  // by.
  const double elapsed = static_cast<double>(now - begin_ns_) * 1e-9;
  const double pace = (elapsed + 5) / (done_s_ + 5);
  const std::string left = duration_text((planned_s_ - done_s_) * pace);
  std::string line = fmt::format(
      "[{}/{}] about {} left  {}", std::min(runs_done_ + 1, runs_), runs_, left, printable(what));
  if (!terminal_) return say_line(line);
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 4 &&
      line.size() >= size.ws_col) {
    line.resize(size.ws_col - 1u);
  }
  say_raw("\r\x1b[K" + line);
  visible_ = true;
}

void Progress::message(const std::string& line) {
  clear();
  say_line(line);
}

}  // namespace launchgap
