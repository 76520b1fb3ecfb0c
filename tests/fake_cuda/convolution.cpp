#include "tests/fake_cuda/convolution.h"

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/kept_results.h"
#include "tests/fake_cuda/product.h"

namespace launchgap::fake {
namespace {

std::string text_of(const Tensor& tensor) {
  const auto& [n, c, h, w] = tensor.extents;
  return signature_of(n, c, h, w, int(tensor.layout), int(tensor.type));
}

/// All of it but where the tensors are.
std::string text_of(const ConvolutionWork& v) {
  return signature_of("convolution",
                      int(v.direction),
                      text_of(v.x) + text_of(v.w) + text_of(v.y),
                      signature_of(v.pad_h, v.pad_w, v.stride_h, v.stride_w),
                      signature_of(v.dilation_h, v.dilation_w, v.groups, v.alpha, v.tf32));
}

/// 0 when the filter exceeds the padded input.
std::size_t output_extent(std::size_t in,
                          std::size_t filter,
                          std::size_t pad,
                          std::size_t stride,
                          std::size_t dilation) {
  const std::size_t padded = in + 2 * pad;
  const std::size_t reach = (filter - 1) * dilation + 1;
  return padded < reach ? 0 : 1 + (padded - reach) / stride;
}

/// A place in three dimensions of which the last runs fastest, such as channel, row and column of a
/// filter, counted on from any of them.
struct Place {
  Place(std::size_t index, std::size_t second_extent, std::size_t third_extent)
      : first(index / third_extent / second_extent),
        second(index / third_extent % second_extent),
        third(index % third_extent),
        second_extent_(second_extent),
        third_extent_(third_extent) {}
  void next() {
    if (++third < third_extent_) return;
    third = 0;
    if (++second < second_extent_) return;
    second = 0;
    ++first;
  }
  std::size_t first, second, third;

 private:
  std::size_t second_extent_, third_extent_;
};

/// One group of a convolution as a product:
///
///              rows                   columns    inner index
///   forward    output pixels          filters    channel, row and column of the filter
///   data       input pixels           channels   filter, its row and column
///   filter     channel, row, column   filters    output pixels
template <class Scalar>
class GroupProduct {
 public:
  GroupProduct(const ConvolutionWork& work, std::size_t group)
      : v_(work),
        channels_(work.w.extents.c),
        filters_(work.w.extents.n / work.groups),
        first_channel_(group * channels_),
        first_filter_(group * filters_) {}

  Product<Scalar> product() const {
    const std::size_t taps = v_.w.extents.h * v_.w.extents.w;
    Product<Scalar> product{};
    if (v_.direction == Direction::forward)
      product.m = pixels(v_.y), product.n = filters_, product.k = channels_ * taps;
    if (v_.direction == Direction::data)
      product.m = pixels(v_.x), product.n = channels_, product.k = filters_ * taps;
    if (v_.direction == Direction::filter)
      product.m = channels_ * taps, product.n = filters_, product.k = pixels(v_.y);
    product.load_a_row = [self = *this](std::size_t row, const Slice<Scalar>& slice) {
      const Place at_row = self.row_place(row);
      Place inner = self.inner_place(slice.first);
      for (std::size_t i = 0; i < slice.count; ++i, inner.next())
        slice.to[i * slice.stride] = self.operand_a(at_row, inner);
    };
    product.load_b_column = [self = *this](std::size_t column, const Slice<Scalar>& slice) {
      Place inner = self.inner_place(slice.first);
      for (std::size_t i = 0; i < slice.count; ++i, inner.next())
        slice.to[i * slice.stride] = self.operand_b(column, inner);
    };
    product.store = [self = *this](std::size_t row, std::size_t column, Scalar sum) {
      const ConvolutionWork& v = self.v_;
      const std::size_t index = self.result_index(self.row_place(row), column);
      const Tensor& result = v.result();
      double value = v.alpha * static_cast<double>(sum);
      if (v.beta != 0) value += v.beta * kernels::load_element(result.memory, index, result.type);
      kernels::store_element(const_cast<void*>(result.memory), index, result.type, value);
    };
    return product;
  }

 private:
  static std::size_t pixels(const Tensor& tensor) {
    return tensor.extents.n * tensor.extents.h * tensor.extents.w;
  }
  static Place place_in(const Tensor& tensor, std::size_t index) {
    return {index, tensor.extents.h, tensor.extents.w};
  }
  Place row_place(std::size_t row) const { return place_in(v_.result(), row); }
  Place inner_place(std::size_t index) const {
    return place_in(v_.direction == Direction::filter ? v_.y : v_.w, index);
  }

  static std::size_t index_in(const Tensor& tensor,
                              std::size_t n,
                              std::size_t c,
                              std::size_t h,
                              std::size_t w) {
    return tensor.extents.index(tensor.layout, n, c, h, w);
  }
  Scalar load(const Tensor& tensor,
              std::size_t n,
              std::size_t c,
              std::size_t h,
              std::size_t w) const {
    return static_cast<Scalar>(
        load_operand(tensor.memory, index_in(tensor, n, c, h, w), tensor.type, v_.tf32));
  }

  /// The input at an output's row and column by a tap; 0 outside of the image.
  Scalar input(std::size_t image,
               std::size_t channel,
               const Place& output,
               std::size_t r,
               std::size_t s) const {
    // Above or left of the input the differences wrap around and are out of bounds, too.
    const std::size_t h = output.second * v_.stride_h + r * v_.dilation_h - v_.pad_h;
    const std::size_t w = output.third * v_.stride_w + s * v_.dilation_w - v_.pad_w;
    if (h >= v_.x.extents.h || w >= v_.x.extents.w) return 0;
    return load(v_.x, image, channel, h, w);
  }

  Scalar operand_a(const Place& row, const Place& inner) const {
    if (v_.direction == Direction::forward)
      return input(row.first, first_channel_ + inner.first, row, inner.second, inner.third);
    if (v_.direction == Direction::filter)
      return input(inner.first, first_channel_ + row.first, inner, row.second, row.third);
    // The output to which this input belongs by this tap, if there is one.
    const std::size_t above = row.second + v_.pad_h - inner.second * v_.dilation_h;
    const std::size_t left = row.third + v_.pad_w - inner.third * v_.dilation_w;
    if (above % v_.stride_h != 0 || left % v_.stride_w != 0) return 0;
    const std::size_t h = above / v_.stride_h, w = left / v_.stride_w;
    // What lies above or left has wrapped around, and is beyond, unless a stride has brought it
    // back.
    if (row.second + v_.pad_h < inner.second * v_.dilation_h ||
        row.third + v_.pad_w < inner.third * v_.dilation_w || h >= v_.y.extents.h ||
        w >= v_.y.extents.w)
      return 0;
    return load(v_.y, row.first, first_filter_ + inner.first, h, w);
  }

  Scalar operand_b(std::size_t column, const Place& inner) const {
    const std::size_t filter = first_filter_ + column;
    if (v_.direction == Direction::forward)
      return load(v_.w, filter, inner.first, inner.second, inner.third);
    if (v_.direction == Direction::data)
      return load(v_.w, first_filter_ + inner.first, column, inner.second, inner.third);
    return load(v_.y, inner.first, filter, inner.second, inner.third);
  }

  std::size_t result_index(const Place& row, std::size_t column) const {
    if (v_.direction == Direction::filter)
      return index_in(v_.w, first_filter_ + column, row.first, row.second, row.third);
    const std::size_t first = v_.direction == Direction::data ? first_channel_ : first_filter_;
    return index_in(v_.result(), row.first, first + column, row.second, row.third);
  }

  ConvolutionWork v_;
  std::size_t channels_, filters_;  // of a group
  std::size_t first_channel_, first_filter_;
};

/// Elements [first, last) of the result, as they lie in memory.
template <class Scalar>
void compute_elements(const ConvolutionWork& v, std::size_t first, std::size_t last) {
  const Extents& e = v.result().extents;
  const bool nchw = v.result().layout == Layout::nchw;
  for (std::size_t index = first; index < last; ++index) {
    const std::size_t w = nchw ? index % e.w : index / e.c % e.w;
    const std::size_t h = nchw ? index / e.w % e.h : index / e.c / e.w % e.h;
    const std::size_t c = nchw ? index / e.w / e.h % e.c : index % e.c;
    const std::size_t n = index / e.w / e.h / e.c;
    // Of a filter the columns of the product are n, else c.
    const std::size_t column = v.direction == Direction::filter ? n : c;
    const std::size_t row = ((v.direction == Direction::filter ? c : n) * e.h + h) * e.w + w;
    const std::size_t columns =
        v.direction == Direction::data ? v.w.extents.c : v.w.extents.n / v.groups;
    compute_element(GroupProduct<Scalar>(v, column / columns).product(), row, column % columns);
  }
}

template <class Scalar>
void compute(const ConvolutionWork& v, std::size_t begin, std::size_t end, std::size_t total) {
  const std::size_t size = kernels::element_bytes(v.result().type);
  if (begin != 0 || end != total)
    return compute_elements<Scalar>(v, begin / size, (end + size - 1) / size);
  for (std::size_t group = 0; group < v.groups; ++group) {
    compute_product(GroupProduct<Scalar>(v, group).product());
  }
}

}  // namespace

std::optional<Extents> output_extents(const Extents& input,
                                      const Extents& filter,
                                      const ConvolutionWork& settings) {
  if (input.c != filter.c * settings.groups || filter.n % settings.groups != 0) return std::nullopt;
  const Extents output{
      input.n,
      filter.n,
      output_extent(input.h, filter.h, settings.pad_h, settings.stride_h, settings.dilation_h),
      output_extent(input.w, filter.w, settings.pad_w, settings.stride_w, settings.dilation_w)};
  if (output.h == 0 || output.w == 0) return std::nullopt;
  return output;
}

std::vector<LibraryKernel> convolution_kernels(const ConvolutionWork& convolution,
                                               const Arithmetic& how) {
  constexpr unsigned kThreads = 256;
  constexpr std::size_t kElements = 1024;  // per block of the first
  constexpr std::size_t kTile = 128;
  constexpr double kShareOfFirst = 0.15;
  const std::string type = rate_name(convolution.operand().type, how);
  const Extents& result = convolution.result().extents;
  const Extents& operand = convolution.operand().extents;
  const char* const name = convolution.direction == Direction::forward ? "fake_convolution_"
                           : convolution.direction == Direction::data  ? "fake_convolution_data_"
                                                                       : "fake_convolution_filter_";
  const std::size_t pixels = result.n * result.h * result.w;
  // Mangled, as CUPTI has the names of C++.
  const std::string element = "fake_" + type;
  const KernelShape transform{kernel_name("_ZN5cudnn3ops16nchwToNhwcKernelI" +
                                          std::to_string(element.size()) + element + "EEvv"),
                              {blocks_for(operand.count(), kElements), 1, 1},
                              {kThreads, 1, 1},
                              0};
  const KernelShape convolve{kernel_name(name + type),
                             {blocks_for(pixels, kTile), blocks_for(result.c, kTile), 1},
                             {kThreads, 1, 1},
                             0};
  if (convolution.x.layout == Layout::nhwc) return {{convolve, 1}};
  return {{transform, kShareOfFirst}, {convolve, 1 - kShareOfFirst}};
}

Operation convolution_operation(const ConvolutionWork& v) {
  const auto range = [](const Tensor& tensor) { return range_of(tensor.memory, tensor.bytes()); };
  const Tensor& result = v.result();
  Operation operation;
  for (const Tensor* tensor : {&v.x, &v.w, &v.y}) {
    if (tensor != &result || v.beta != 0) operation.reads.push_back(range(*tensor));
  }
  operation.writes = {range(result)};
  if (v.beta == 0)
    operation.signature = signature_of(text_of(v), v.x.memory, v.w.memory, v.y.memory);
  operation.compute = [v, total = result.bytes()](std::size_t begin, std::size_t end) {
    if (needs_double(v.operand().type)) {
      compute<double>(v, begin, end, total);
    } else {
      compute<float>(v, begin, end, total);
    }
  };
  keep_result(operation, text_of(v), v.flops());
  return operation;
}

}  // namespace launchgap::fake
