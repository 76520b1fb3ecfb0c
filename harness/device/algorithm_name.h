// The names of algorithms, as methods of cases have them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace launchgap {

/// All that algorithm_of() finds: "Winograd", "algorithm 1" as cuDNN numbers those without a name,
/// and "3m", three real products in place of the four of a complex one.
std::span<const std::string_view> algorithm_names();

/// The algorithm that a case's method names: "implicit GEMM" of "cuDNN 9.19
/// cudnnConvolutionForward, implicit GEMM, NCHW, …", "direct" of "oneDNN 3.5 direct convolution,
/// …"; of what others have published what stands before "published by"; empty where it names none.
std::string algorithm_of(std::string_view method);

/// The method of a case that others have published. `algorithm` is one of algorithm_names(), or
/// empty.
std::string published_method(std::string_view algorithm,
                             std::string_view source,
                             std::string_view software);

}  // namespace launchgap
