// The replays of allocations that a session has kept.
#pragma once

#include "harness/summary/session_data.h"

namespace launchgap {

/// Reads replays/*.json of the session's folder, by name. A file that cannot be read becomes a
/// problem of the session.
void read_replays(SessionData& session);

}  // namespace launchgap
