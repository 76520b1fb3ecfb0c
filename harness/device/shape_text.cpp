#include "harness/device/shape_text.h"

#include <initializer_list>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"

namespace launchgap {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<int> numbers(std::string_view text, std::size_t count, int least) {
  std::vector<int> values;
  for (const std::string_view part : split(text, 'x')) values.push_back(shape_number(part, least));
  if (values.size() != count) {
    throw Error("'{}' has {} numbers and must have {}", printable(text, 100), values.size(), count);
  }
  return values;
}

/// "s2" or "s2x1", without its letter, for height and width.
void take_pair(std::string_view text, int least, int& height, int& width) {
  const std::size_t count = text.find('x') == std::string_view::npos ? 1 : 2;
  const std::vector<int> values = numbers(text, count, least);
  height = values.front();
  width = values.back();
}

std::string pair_text(char letter, int height, int width, int usual) {
  if (height == usual && width == usual) return "";
  return height == width ? fmt::format("-{}{}", letter, height)
                         : fmt::format("-{}{}x{}", letter, height, width);
}

/// Of a matrix or tensor; more than any machine addresses is an error.
void check_size(const char* what, std::initializer_list<long long> extents) {
  constexpr double kMost = 0x1p47;
  double bytes = 8;
  for (const long long extent : extents) bytes *= static_cast<double>(extent);
  if (bytes > kMost) throw Error("{} would have more bytes than any memory: {:.3g}", what, bytes);
}

}  // namespace

int shape_number(std::string_view text, int least) {
  const std::optional<int> value = number_of_text<int>(text);
  if (!value || *value < least) {
    throw Error("'{}' is not a whole number from {} to {}",
                printable(text, 100),
                least,
                std::numeric_limits<int>::max());
  }
  return *value;
}

void check_shape(const MatmulShape& shape) {
  for (const int value : {shape.m, shape.n, shape.k, shape.batch}) {
    if (value < 1) throw Error("a size of {} is none", value);
  }
  check_size("A", {shape.m, shape.k, shape.batch});
  check_size("B", {shape.k, shape.n, shape.batch});
  check_size("C", {shape.m, shape.n, shape.batch});
}

void check_shape(const ConvolutionShape& shape) {
  for (const int value : {shape.n,
                          shape.c,
                          shape.h,
                          shape.w,
                          shape.k,
                          shape.r,
                          shape.s,
                          shape.stride_h,
                          shape.stride_w,
                          shape.dilation_h,
                          shape.dilation_w,
                          shape.groups}) {
    if (value < 1) throw Error("a size of {} is none", value);
  }
  if (shape.pad_h < 0 || shape.pad_w < 0) throw Error("a padding is below 0");
  const auto reach = [](int filter, int dilation) { return (filter - 1ll) * dilation + 1; };
  const auto padded = [](int extent, int pad) { return extent + 2ll * pad; };
  if (reach(shape.r, shape.dilation_h) > padded(shape.h, shape.pad_h) ||
      reach(shape.s, shape.dilation_w) > padded(shape.w, shape.pad_w))
    throw Error("the filters are larger than the input with its padding");
  check_size("the padded input",
             {shape.n, shape.c, padded(shape.h, shape.pad_h), padded(shape.w, shape.pad_w)});
  if (shape.c % shape.groups != 0 || shape.k % shape.groups != 0) {
    throw Error(
        "{} groups do not divide {} channels and {} filters", shape.groups, shape.c, shape.k);
  }
  check_size("the filters", {shape.k, shape.c / shape.groups, shape.r, shape.s});
  check_size("the output", {shape.n, shape.k, shape.out_h(), shape.out_w()});
}

std::string shape_text(const MatmulShape& shape) {
  std::string text = fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
  if (shape.transpose_a || shape.transpose_b)
    text += fmt::format("-{}{}", shape.transpose_a ? 't' : 'n', shape.transpose_b ? 't' : 'n');
  if (shape.batch > 1) text += fmt::format("-b{}", shape.batch);
  return text;
}

std::string shape_text(const ConvolutionShape& shape) {
  return fmt::format("{}x{}x{}x{}-{}x{}x{}",
                     shape.n,
                     shape.c,
                     shape.h,
                     shape.w,
                     shape.k,
                     shape.r,
                     shape.s) +
         pair_text('s', shape.stride_h, shape.stride_w, 1) +
         pair_text('p', shape.pad_h, shape.pad_w, 0) +
         pair_text('d', shape.dilation_h, shape.dilation_w, 1) +
         pair_text('g', shape.groups, shape.groups, 1);
}

MatmulShape matmul_shape(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '-');
  const std::vector<int> sizes = numbers(parts[0], 3, 1);
  MatmulShape shape{sizes[0], sizes[1], sizes[2]};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part == "nt" || part == "tn" || part == "tt") {
      shape.transpose_a = part[0] == 't';
      shape.transpose_b = part[1] == 't';
    } else if (part.starts_with('b')) {
      shape.batch = shape_number(part.substr(1), 1);
    } else {
      throw Error("'{}' says nothing of a product: nt, tn, tt, or b and a number do",
                  printable(part, 100));
    }
  }
  check_shape(shape);
  return shape;
}

ConvolutionShape convolution_shape(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '-');
  if (parts.size() < 2) {
    throw Error("'{}' is not n x c x h x w of an input, '-', k x r x s of filters",
                printable(text, 100));
  }
  const std::vector<int> input = numbers(parts[0], 4, 1), filters = numbers(parts[1], 3, 1);
  ConvolutionShape shape;
  shape.n = input[0], shape.c = input[1], shape.h = input[2], shape.w = input[3];
  shape.k = filters[0], shape.r = filters[1], shape.s = filters[2];
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::string_view value = part.substr(std::min<std::size_t>(1, part.size()));
    if (part.starts_with('s')) {
      take_pair(value, 1, shape.stride_h, shape.stride_w);
    } else if (part.starts_with('p')) {
      take_pair(value, 0, shape.pad_h, shape.pad_w);
    } else if (part.starts_with('d')) {
      take_pair(value, 1, shape.dilation_h, shape.dilation_w);
    } else if (part.starts_with('g')) {
      shape.groups = shape_number(value, 1);
    } else {
      throw Error("'{}' says nothing of a convolution: s, p, d or g and a number do",
                  printable(part, 100));
    }
  }
  check_shape(shape);
  return shape;
}

std::optional<double> operations_of(const CaseName& name) {
  try {
    const std::string* const shape = name.find("shape");
    if (name.family() == "matmul" && shape) return matmul_shape(*shape).operations();
    if (name.family() == "convolution" && shape) return convolution_shape(*shape).operations();
    if (name.family() == "matmul" && name.find("size")) {
      constexpr double kLargest = 1e6;
      const auto size = static_cast<double>(name.number("size"));
      if (size >= 1 && size <= kLargest) return 2 * size * size * size;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace launchgap
