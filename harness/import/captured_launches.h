// Launches that are captured into a graph.
#pragma once

#include "harness/import/recording.h"

namespace launchgap::recording {

/// A launch into a stream that is captured starts nothing: it becomes a node of a graph. Such calls
/// stay calls and are launches no more: those without a kernel of their own that were made while
/// any stream of the process was captured, between cudaStreamBeginCapture and cudaStreamEndCapture,
/// or the driver's. Which stream a call was for, no record tells: a launch into another one
/// meanwhile has its kernel, unless that is lost. A capture without an end is none, and where the
/// process has no kernels at all, their absence tells nothing.
void forget_captured_launches(Process& process);

}  // namespace launchgap::recording
