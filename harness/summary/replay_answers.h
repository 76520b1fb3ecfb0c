// What a replay of allocations says, in sentences: the same on the screen and on the page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/record/replay_record.h"

namespace launchgap {

/// "2.639 GiB": four digits, since allocators differ in the third.
std::string memory_text(std::uint64_t bytes);

/// Which allocator needs least, whether growth helps, which fail and why, and which creep; what was
/// not asked is not answered.
std::vector<std::string> replay_answers(const ReplayRecord& record);

}  // namespace launchgap
