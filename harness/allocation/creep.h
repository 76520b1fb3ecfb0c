// Whether memory creeps when the same work is done again and again, and which kind of creep it is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/allocation/replay.h"
#include "harness/allocation/script.h"
#include "harness/record/replay_record.h"

namespace launchgap::allocation {

enum class CreepKind : std::uint8_t {
  none,
  leak,            // what the program holds rises
  fragmentation,   // it does not, and the allocator takes more and more
  cache_plateau,   // the allocator took more at first, and no more since
  context_growth,  // less and less of the device is free, and the allocator does not take it
};
/// "cache_plateau", as tables have it.
std::string_view name_of(CreepKind kind);

struct Creep {
  CreepKind kind = CreepKind::none;
  double bytes_per_epoch = 0;  // of what rises behind the first epochs: Theil and Sen's slope, or
                               // the mean where most pairs of epochs do not differ
  double p = 1;                // of Mann and Kendall's test for it
};

/// How rare the steps of a rise may be for so many epochs to show it: the largest number of epochs
/// from one step to the next with which a series that else stands still is said to rise, wherever
/// its steps fall. 0 if not even a step in each epoch shows.
std::size_t rarest_step_shown(std::size_t epochs);

/// Epochs at the beginning that are not judged, for caches fill in them.
inline constexpr std::size_t kBurnIn = 5;

/// A series rises if that is improbable without a trend (p < 0.001), it reached a new height twice
/// or more, it ends above where it began by a page of 4 KiB or more, and it still rose in its last
/// third. Of what rises the first in this order is told: live, reserved, used. What others use of a
/// device goes up and down without a trend, which the test takes for one in 12 to 30 of 100 walks:
/// so `used` must also go up more often than down, or farther, than a random walk would (p <
/// 0.001). If nothing rises and `reserved` is above that of the first epoch, it is a plateau. Needs
/// 20 epochs, and says `none` of fewer.
Creep classify_creep(std::span<const EpochRecord> epochs);

/// Something that goes wrong on purpose, a little in each epoch, to see whether it is told.
struct Injection {
  enum class What : std::uint8_t { nothing, leak, pin, cache, context };
  What what = What::nothing;
  std::uint64_t bytes = 0;  // in each epoch
};

/// "leak=64KiB/epoch", "pin=2MiB/epoch", "cache=2MiB/epoch", "context=1MiB/epoch". Throws
/// UsageError that says so.
Injection parse_injection(std::string_view text);

/// Plays all of `script` so many times, and gives back what is held at each end: live, what the
/// program did not give back; reserved, by the allocator, as far as it tells, and what is live at
/// least; used, of the device, by whomever. Injected are: of `leak`, a block that stays; of `pin`,
/// one that stays in the middle of the work, while as many bytes of small blocks, which were there
/// from the beginning, are given back; of `cache`, in the first quarter of the epochs a block that
/// is larger each time; of `context`, memory that is taken from the device beside the allocator, by
/// `take_beside`. Throws Error if an allocation fails.
std::vector<EpochRecord> play_epochs(const Script& script,
                                     Player& player,
                                     std::size_t epochs,
                                     const Injection& injection,
                                     const std::function<std::uint64_t()>& used_bytes,
                                     const std::function<void(std::uint64_t bytes)>& take_beside);

}  // namespace launchgap::allocation
