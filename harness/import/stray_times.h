// Times that cannot be, since nothing else of their process was within a day of them.
#pragma once

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Takes the times of calls, and of what GPUs did, that lie a day or more from all others: of a
/// hundred such records one at most, of ten one. One such time would make the recording as long as
/// it is away, and the GPU idle in all of that. Such a record then has no time, as others that are
/// impossible, and the recording says how many there were.
void forget_stray_times(Recording& recording);

}  // namespace launchgap::recording
