// The smallest work that the device's libraries take, so that the library's call is what costs.
#pragma once

#include <memory>
#include <string>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// A product or a convolution. Its result was verified when it was made.
class SmallLibraryWork {
 public:
  virtual ~SmallLibraryWork() = default;
  /// On the stream that it was made for.
  virtual void enqueue() = 0;
  virtual std::string method() const = 0;
  virtual std::string algorithm() const = 0;
};

/// Of matrices of 64 x 64, FP32. Throws Unsupported where the device has no library for it, and
/// WrongResult.
std::unique_ptr<SmallLibraryWork> small_product(const CaseContext& context, Stream& stream);

/// Of an image of 8 channels of 8 x 8 with filters of 3 x 3, FP32. Throws likewise.
std::unique_ptr<SmallLibraryWork> small_convolution(const CaseContext& context, Stream& stream);

}  // namespace launchgap
