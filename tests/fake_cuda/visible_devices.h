// CUDA_VISIBLE_DEVICES as the driver reads it.
#pragma once

#include <string>
#include <vector>

namespace launchgap::fake {

/// The devices that a process sees, as indices into `uuids`, in the order of its ordinals.
///
/// `mask` is the variable's value, null when it is unset. Indices or UUIDs, decided by the first
/// entry; UUIDs may be abbreviated as far as they stay unique; the first invalid entry ends the
/// list; an entry that repeats makes it empty. Source: CUDA C++ Programming Guide, "CUDA
/// Environment Variables"; torch.cuda._parse_visible_devices for repeated entries and for numbers
/// being read as strtoul does.
std::vector<int> visible_devices(const std::vector<std::string>& uuids, const char* mask);

}  // namespace launchgap::fake
