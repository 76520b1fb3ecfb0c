// What a launch does on the device, as it goes into a stream or into a graph.
#pragma once

#include <optional>

#include "tests/fake_cuda/meeting.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

struct Work {
  // What a trace calls it: one of the two.
  std::optional<KernelShape> kernel;
  std::optional<TransferEvent> transfer;
  double share = 1;       // of the time of an empty kernel
  double work_ns = 0;     // beside that
  double clocked_ns = 0;  // and whatever the device's speed is
  double overlap_ns = 0;  // it may begin so much before the end of what is ahead of it
  bool polled = false;    // a host may see its effect without calling the driver
  std::optional<Attendance> attendance;  // it waits for kernels of other devices
  Operation operation;
};

}  // namespace launchgap::fake
