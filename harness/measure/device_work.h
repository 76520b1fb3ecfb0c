// A benchmark in a dozen lines: work that is enqueued on a stream, and timed on the device.
//
//   const Registration fill = benchmark("memory/fill")
//       .asks("How long does the device take to write 16 MiB over?")
//       .times([](const CaseContext& context) -> DeviceWork { … });
//
// See docs/add-a-benchmark.md. A benchmark that times anything else has a Case of its own.
#pragma once

#include <functional>
#include <string>

#include "harness/device/device.h"

namespace launchgap {

struct DeviceWork {
  /// Enqueues the work once. It owns what it works on, and may return before the work is done.
  std::function<void(Stream&)> enqueue;
  /// When the work is done: throws WrongResult unless it did what it should. Asked before anything
  /// is timed, and of what was timed.
  std::function<void()> check;
  /// Enqueues what makes `check` fail, before the work is done for the first time.
  std::function<void(Stream&)> spoil = {};
  /// What one does, in the unit of the rate that the benchmark brings and per nanosecond: bytes for
  /// GB/s, thousands of operations for TFLOP/s.
  double amount = 0;
  /// Library, call or algorithm, for the reader of a ratio.
  std::string method = "the device's own call";
};

/// Throws WrongResult unless the first, the middle and the last byte of a buffer have this value.
void expect_bytes(Device& device, const Buffer& buffer, unsigned char value);

}  // namespace launchgap
