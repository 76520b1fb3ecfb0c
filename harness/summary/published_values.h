// What others have published, as an import keeps it in a session's folder `published`.
#pragma once

#include "harness/summary/session_data.h"

namespace launchgap {

/// Reads the files of a session of published tables: into its cases, with a run for each GPU and
/// family and the arm `published`, or, of more than
/// kMostPublishedCases values, into `published`. A product or convolution whose shape is in
/// its case has both `tflops` and `device_ns`, of which one may be computed from the other; among
/// very many only the rate. What cannot be read is a line of the session's `problems`.
void read_published(SessionData& session, const PublishedSheets& sheets);

}  // namespace launchgap
