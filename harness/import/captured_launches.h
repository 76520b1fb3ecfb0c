// Launches that are captured into a graph.
#pragma once

#include "harness/import/recording.h"

namespace launchgap::recording {

/// A launch into a stream that is captured starts nothing: it becomes a node of a graph. Such calls
/// stay calls and are launches no more: those without a kernel of their own that a thread made
/// between its cudaStreamBeginCapture and cudaStreamEndCapture, or the driver's.
void forget_captured_launches(Process& process);

}  // namespace launchgap::recording
