// Which of several devices that do the same step at once keeps the others waiting, and whether the
// device or the host is the cause.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace launchgap::rules {

enum class Lateness {
  none,
  one,       // always the same
  some,      // always the same few, or many
  at_times,  // steps in which one is far beyond its own median: the same one, or another each time
  unclear    // the processes of a session do not agree
};
std::string_view name_of(Lateness lateness);

/// Of one device in one process: its time in each step, in ns, apart in the host's part and its
/// own.
struct StepTimes {
  std::vector<double> host, work;
};

struct WhoIsLate {
  Lateness lateness = Lateness::none;
  std::vector<std::size_t> who;   // none where it is another each time
  bool by_host = false;           // the host's part is the larger one of what they are late by
  double late_ns = 0;             // by so much, the median
  double late_share = 0;          // of steps in which somebody is late
  std::vector<std::size_t> last;  // of each device, in how many steps it was the last
  std::size_t otherwise = 0;      // of several processes where nobody is late: in how many one was
};

/// A lateness below this share of a step is none, of one device always, and of a step at times.
inline constexpr double kLeastLateAlways = 0.02, kLeastLateAtTimes = 0.05;
/// At times: in this share of the steps at least, and in so many.
inline constexpr double kLeastLateSteps = 0.05;
inline constexpr std::size_t kLeastLateCount = 10;

/// Of one process; every device has the same steps. With t a device's host + work, and the quick
/// ones the quarter of the devices with the smallest median t, the one of these that makes the
/// average step longer:
///
/// - one, some: devices whose median t is beyond the quick ones' by more than `uncertainty` and
///   kLeastLateAlways of it, one of which is the last in half of the steps or more; one alone also
///   more often than chance would have it: binomial, 1/n each, 1 % for all n.
/// - at_times: steps in which a device is beyond its own median by more than `uncertainty`,
///   kLeastLateAtTimes of the step, and five robust standard deviations (1.4826 times the median of
///   all |t - own median|), where these are kLeastLateSteps of all and kLeastLateCount. `who` is a
///   device that has half of these steps, and more than chance would have it.
///
/// Blind to: the lesser of two kinds; what all devices share, or more than three quarters of them;
/// lateness that is spread over more than half of a device's steps evenly; fewer than two devices.
WhoIsLate who_is_late(std::span<const StepTimes> devices, double uncertainty);

/// What holds in each process of a session: nobody is late if that is so in more than half of them;
/// else one is that is always late in each, and in more than half of them alone; else one that is
/// late alone in each, at times in some of them, is so at times; else `unclear` where they do not
/// agree on kind, devices and cause.
WhoIsLate in_each(std::span<const WhoIsLate> processes);

}  // namespace launchgap::rules
