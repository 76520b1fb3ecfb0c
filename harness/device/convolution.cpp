#include "harness/device/convolution.h"

#include <array>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

// A longer name before one that it holds.
constexpr std::array<std::string_view, 12> kNames = {"non-fused Winograd",
                                                     "Winograd",
                                                     "tiled FFT",
                                                     "FFT",
                                                     "implicit precomputed GEMM",
                                                     "implicit GEMM",
                                                     "direct",
                                                     "GEMM",
                                                     "algorithm 0",
                                                     "algorithm 1",
                                                     "algorithm 3",
                                                     "3m"};

/// Behind it a source may be called anything.
constexpr std::string_view kPublishedBy = "published by ";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string_view name_of(ConvolutionDirection direction) {
  constexpr std::string_view kDirections[] = {"forward", "data", "filter"};
  return kDirections[static_cast<std::size_t>(direction)];
}

std::string_view name_of(TensorLayout layout) {
  constexpr std::string_view kLayouts[] = {"any", "nchw", "nhwc"};
  return kLayouts[static_cast<std::size_t>(layout)];
}

std::size_t Convolution::select(Selection) {
  throw Unsupported("this library does not select its algorithms by a call");
}

void Convolution::choose(std::size_t) {
  throw Unsupported("this library has no candidates");
}

std::span<const std::string_view> algorithm_names() {
  return kNames;
}

std::string algorithm_of(std::string_view method) {
  method = method.substr(0, method.find(kPublishedBy));
  for (const std::string_view name : kNames) {
    for (std::size_t at = method.find(name); at != method.npos; at = method.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool whole = (at == 0 || !is_letter(method[at - 1])) &&
                         (end == method.size() || !is_letter(method[end]));
      if (whole) return std::string(name);
    }
  }
  // Three real products in place of the four of a complex one have their name from cuBLAS.
  return method.find("gemm3m") != method.npos ? "3m" : "";
}

std::string published_method(std::string_view algorithm,
                             std::string_view source,
                             std::string_view software) {
  return fmt::format("{}{}{}{}{}{}",
                     algorithm,
                     algorithm.empty() ? "" : ", ",
                     kPublishedBy,
                     source,
                     software.empty() ? "" : ": ",
                     software);
}

}  // namespace launchgap
