#include "harness/device/convolution.h"

#include "harness/core/errors.h"

namespace launchgap {

std::string_view name_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::forward:
      return "forward";
    case ConvolutionDirection::data:
      return "data";
    case ConvolutionDirection::filter:
      return "filter";
  }
  return "";
}

std::string_view name_of(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::any:
      return "any";
    case TensorLayout::nchw:
      return "nchw";
    case TensorLayout::nhwc:
      return "nhwc";
  }
  return "";
}

std::size_t Convolution::select(Selection) {
  throw Unsupported("this library does not select its algorithms by a call");
}

void Convolution::choose(std::size_t) {
  throw Unsupported("this library has no candidates");
}

}  // namespace launchgap
