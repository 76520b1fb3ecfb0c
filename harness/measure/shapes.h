// The shapes that are measured: those of data/matmul_shapes.csv and data/convolution_shapes.csv, or
// a user's (`--shapes`).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/plan.h"
#include "harness/device/convolution.h"
#include "harness/device/facts.h"
#include "harness/device/matmul.h"

namespace launchgap {

template <class Shape>
struct NamedShape {
  std::string name;                  // "prefill_2048_qkv"
  std::string set;                   // "prefill", "resnet50"
  Profile profile = Profile::quick;  // the least that has it
  int count = 1;                     // how often the network has such a layer
  Shape shape;
};

/// All that are in the tables, in their order.
const std::vector<NamedShape<MatmulShape>>& matmul_shapes();
const std::vector<NamedShape<ConvolutionShape>>& convolution_shapes();
/// The layers of a set, "resnet50".
std::vector<NamedShape<ConvolutionShape>> convolution_set(std::string_view set);

/// Reads a table of shapes as the files of data/ are: with the columns m, n, k of products, or n,
/// c, h, w, k, r, s of convolutions; all others may be left out, and are the usual then. Throws
/// UsageError that names file, line and column: of what is no table, no shape, there twice, not
/// UTF-8, or longer than kLongestShapes.
struct ShapeTables {
  std::vector<NamedShape<MatmulShape>> matmul;
  std::vector<NamedShape<ConvolutionShape>> convolution;
};
ShapeTables read_shapes(const std::filesystem::path& file);
inline constexpr std::size_t kLongestShapes = std::size_t{1} << 20;  // bytes

/// From now on this process plans these and none of the tables'. Of a kind of which the files have
/// none, nothing is planned.
void use_shapes(ShapeTables shapes);
bool has_users_shapes();

/// The axis `shape`: what a profile has on a device, as text (shape_text.h). On a CPU, which takes
/// seconds for what a GPU does in milliseconds, without the large ones. All of a user's.
std::vector<std::string> matmul_shape_axis(Profile profile, const DeviceFacts& facts);
std::vector<std::string> convolution_shape_axis(Profile profile, const DeviceFacts& facts);

}  // namespace launchgap
