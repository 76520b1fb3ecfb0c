#include <deque>
#include <memory>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/host/libraries.h"

#if LAUNCHGAP_HAVE_ONEDNN
#include "harness/device/host/onednn_library.h"
#endif

namespace launchgap::host {

#if LAUNCHGAP_HAVE_ONEDNN
namespace {

/// By the queue's worker, which made it.
void destroy(Queue& queue, Primitive& primitive) {
  try {
    queue.run([&] { primitive.destroy(); });
    queue.wait();
  } catch (...) {  // of work before it, which nobody waits for any more
  }
}

/// One of a convolution's three tensors: as it lies outside, and by which names oneDNN asks for it.
struct Part {
  dnnl_dims_t dims;
  int dimensions;
  dnnl_format_tag_t outside, inside;
  dnnl_data_type_t type;
  std::size_t bytes;
  dnnl_query_t query;
  int argument;
};

class OneDnnConvolution : public Convolution {
 public:
  OneDnnConvolution(Queue& queue, OneDnn& library, const ConvolutionShape& shape, int threads)
      : queue_(queue), library_(library), threads_(threads), shape_(shape), primitive_(library) {
    const bool to_data = shape.direction == ConvolutionDirection::data;
    const bool to_filter = shape.direction == ConvolutionDirection::filter;
    const Part input = tensor(shape.input(),
                              to_data ? shape.type.c : shape.type.a,
                              to_data ? dnnl_query_diff_src_md : dnnl_query_src_md,
                              to_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC);
    const Part output = tensor(shape.output(),
                               to_filter ? shape.type.b
                               : to_data ? shape.type.a
                                         : shape.type.c,
                               to_data || to_filter ? dnnl_query_diff_dst_md : dnnl_query_dst_md,
                               to_data || to_filter ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST);
    const Part filters = filters_part(to_filter ? shape.type.c : shape.type.b, to_filter);
    first_ = to_data ? output : input;
    second_ = to_filter ? output : filters;
    result_ = to_data ? input : to_filter ? filters : output;
    describe(input, filters, output);
    primitive_.make();
  }

  ~OneDnnConvolution() override { destroy(queue_, primitive_); }

  void add_tensors(const Buffer& first, const Buffer& second) override {
    const auto own_memory = [&](const Part& part) {
      return std::make_unique<Memory>(
          library_, primitive_.memory_description(part.query), DNNL_MEMORY_ALLOCATE);
    };
    sets_.push_back({first.address(),
                     second.address(),
                     own_memory(first_),
                     own_memory(second_),
                     own_memory(result_)});
    update_tensors(sets_.size() - 1);
    spoil_result(sets_.back());
  }

  void update_tensors(std::size_t set) override {
    queue_.run([this, &tensors = sets_.at(set)] {
      reorder(first_, tensors.outside_first, *tensors.first, true);
      reorder(second_, tensors.outside_second, *tensors.second, true);
    });
    queue_.wait();
  }

  void enqueue(std::size_t set) override {
    queue_.run(
        [this, &tensors = sets_[set]] {
          primitive_.execute({{first_.argument, tensors.first->get()},
                              {second_.argument, tensors.second->get()},
                              {result_.argument, tensors.result->get()}});
        },
        "dnnl_primitive_execute");
  }

  void read_output(std::size_t set, void* output) override {
    queue_.run([this, &tensors = sets_.at(set), output] {
      reorder(result_, output, *tensors.result, false);
    });
    queue_.wait();
  }

  std::string method() const override {
    return fmt::format(
        "oneDNN {} {} convolution, direct, {}, {}, {} threads",
        library_.version,
        name_of(shape_.direction),
        primitive_.implementation(),
        shape_.layout == TensorLayout::any ? "its own layout" : name_of(shape_.layout),
        threads_);
  }
  std::string algorithm() const override { return primitive_.implementation(); }

  bool rounds_integers() const override { return false; }

 private:
  struct Tensors {
    void* outside_first;
    void* outside_second;
    std::unique_ptr<Memory> first, second, result;
  };

  Part tensor(const Tensor4& t, ElementType type, dnnl_query_t query, int argument) const {
    const dnnl_format_tag_t plain = shape_.layout == TensorLayout::nhwc ? dnnl_nhwc : dnnl_nchw;
    return {{t.n, t.c, t.h, t.w},
            4,
            plain,
            shape_.layout == TensorLayout::any ? dnnl_format_tag_any : plain,
            data_type(type),
            t.count() * kernels::element_bytes(type),
            query,
            argument};
  }

  /// Filters are brought into the library's order in every layout, as frameworks do once.
  Part filters_part(ElementType type, bool to_filter) const {
    const Tensor4 t = shape_.filters();
    Part part{{t.n, t.c, t.h, t.w},
              4,
              shape_.layout == TensorLayout::nhwc ? dnnl_ohwi : dnnl_oihw,
              dnnl_format_tag_any,
              data_type(type),
              t.count() * kernels::element_bytes(type),
              to_filter ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
              to_filter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS};
    if (shape_.groups > 1) {
      const dnnl_dims_t dims = {shape_.groups, t.n / shape_.groups, t.c, t.h, t.w};
      std::copy(std::begin(dims), std::begin(dims) + 5, part.dims);
      part.dimensions = 5;
      part.outside = shape_.layout == TensorLayout::nhwc ? dnnl_gohwi : dnnl_goihw;
    }
    return part;
  }

  Layout inside(const Part& part) const {
    return {library_, part.dimensions, part.dims, part.type, part.inside};
  }

  void describe(const Part& input, const Part& filters, const Part& output) {
    const Layout src = inside(input), weights = inside(filters), dst = inside(output);
    const dnnl_dims_t strides = {shape_.stride_h, shape_.stride_w};
    const dnnl_dims_t dilations = {shape_.dilation_h - 1, shape_.dilation_w - 1};
    const dnnl_dims_t padding = {shape_.pad_h, shape_.pad_w};
    const bool is_forward = shape_.direction == ConvolutionDirection::forward;
    // The other directions are described by what they are the gradients of.
    Primitive hint(library_);
    Primitive& forward = is_forward ? primitive_ : hint;
    const dnnl_prop_kind_t kind = is_forward ? dnnl_forward_inference : dnnl_forward_training;
#if DNNL_VERSION_MAJOR >= 3
    CHECK_ONEDNN(library_,
                 dnnl_convolution_forward_primitive_desc_create(forward.description(),
                                                                library_.engine,
                                                                kind,
                                                                dnnl_convolution_direct,
                                                                src.get(),
                                                                weights.get(),
                                                                nullptr,
                                                                dst.get(),
                                                                strides,
                                                                dilations,
                                                                padding,
                                                                padding,
                                                                nullptr));
    if (shape_.direction == ConvolutionDirection::data) {
      CHECK_ONEDNN(library_,
                   dnnl_convolution_backward_data_primitive_desc_create(primitive_.description(),
                                                                        library_.engine,
                                                                        dnnl_convolution_direct,
                                                                        src.get(),
                                                                        weights.get(),
                                                                        dst.get(),
                                                                        strides,
                                                                        dilations,
                                                                        padding,
                                                                        padding,
                                                                        hint.described(),
                                                                        nullptr));
    } else if (shape_.direction == ConvolutionDirection::filter) {
      CHECK_ONEDNN(library_,
                   dnnl_convolution_backward_weights_primitive_desc_create(primitive_.description(),
                                                                           library_.engine,
                                                                           dnnl_convolution_direct,
                                                                           src.get(),
                                                                           weights.get(),
                                                                           nullptr,
                                                                           dst.get(),
                                                                           strides,
                                                                           dilations,
                                                                           padding,
                                                                           padding,
                                                                           hint.described(),
                                                                           nullptr));
    }
#else
    dnnl_convolution_desc_t operation;
    CHECK_ONEDNN(library_,
                 dnnl_dilated_convolution_forward_desc_init(&operation,
                                                            kind,
                                                            dnnl_convolution_direct,
                                                            src.get(),
                                                            weights.get(),
                                                            nullptr,
                                                            dst.get(),
                                                            strides,
                                                            dilations,
                                                            padding,
                                                            padding));
    forward.describe(&operation, nullptr);
    if (shape_.direction == ConvolutionDirection::data) {
      CHECK_ONEDNN(library_,
                   dnnl_dilated_convolution_backward_data_desc_init(&operation,
                                                                    dnnl_convolution_direct,
                                                                    src.get(),
                                                                    weights.get(),
                                                                    dst.get(),
                                                                    strides,
                                                                    dilations,
                                                                    padding,
                                                                    padding));
      primitive_.describe(&operation, &hint);
    } else if (shape_.direction == ConvolutionDirection::filter) {
      CHECK_ONEDNN(library_,
                   dnnl_dilated_convolution_backward_weights_desc_init(&operation,
                                                                       dnnl_convolution_direct,
                                                                       src.get(),
                                                                       weights.get(),
                                                                       nullptr,
                                                                       dst.get(),
                                                                       strides,
                                                                       dilations,
                                                                       padding,
                                                                       padding));
      primitive_.describe(&operation, &hint);
    }
#endif
  }

  void spoil_result(const Tensors& tensors) {
    std::vector<unsigned char> no_numbers(result_.bytes, kernels::unwritten_byte(shape_.type.c));
    queue_.run([&] { reorder(result_, no_numbers.data(), *tensors.result, true); });
    queue_.wait();
  }

  /// Copies between a tensor as it lies outside and the library's own, `in` telling the direction.
  void reorder(const Part& part, void* outside, const Memory& own, bool in) {
    const Layout outside_layout(library_, part.dimensions, part.dims, part.type, part.outside);
    const Memory outside_memory(library_, outside_layout.get(), outside);
    const auto own_layout = primitive_.memory_description(part.query);
    Primitive copy(library_);
    CHECK_ONEDNN(library_,
                 dnnl_reorder_primitive_desc_create(copy.description(),
                                                    in ? outside_layout.get() : own_layout,
                                                    library_.engine,
                                                    in ? own_layout : outside_layout.get(),
                                                    library_.engine,
                                                    nullptr));
    copy.make();
    copy.execute({{DNNL_ARG_FROM, in ? outside_memory.get() : own.get()},
                  {DNNL_ARG_TO, in ? own.get() : outside_memory.get()}});
  }

  Queue& queue_;
  OneDnn& library_;
  int threads_;
  ConvolutionShape shape_;
  Part first_{}, second_{}, result_{};
  Primitive primitive_;
  std::deque<Tensors> sets_;  // queued work holds references
};

class OneDnnMatmul : public Matmul {
 public:
  OneDnnMatmul(Queue& queue, OneDnn& library, const MatmulShape& shape, int threads)
      : queue_(queue),
        library_(library),
        threads_(threads),
        primitive_(library),
        a_layout_(library,
                  3,
                  {shape.batch, shape.m, shape.k},
                  data_type(shape.type.a),
                  shape.transpose_a ? dnnl_acb : dnnl_abc),
        b_layout_(library,
                  3,
                  {shape.batch, shape.k, shape.n},
                  data_type(shape.type.b),
                  shape.transpose_b ? dnnl_acb : dnnl_abc),
        c_layout_(library, 3, {shape.batch, shape.m, shape.n}, data_type(shape.type.c), dnnl_abc),
        a_(library, a_layout_.get(), DNNL_MEMORY_NONE),
        b_(library, b_layout_.get(), DNNL_MEMORY_NONE),
        c_(library, c_layout_.get(), DNNL_MEMORY_NONE) {
#if DNNL_VERSION_MAJOR >= 3
    CHECK_ONEDNN(library_,
                 dnnl_matmul_primitive_desc_create(primitive_.description(),
                                                   library_.engine,
                                                   a_layout_.get(),
                                                   b_layout_.get(),
                                                   nullptr,
                                                   c_layout_.get(),
                                                   nullptr));
#else
    dnnl_matmul_desc_t operation;
    CHECK_ONEDNN(library_,
                 dnnl_matmul_desc_init(
                     &operation, a_layout_.get(), b_layout_.get(), nullptr, c_layout_.get()));
    primitive_.describe(&operation, nullptr);
#endif
    primitive_.make();
  }

  ~OneDnnMatmul() override {
    destroy(queue_, primitive_);
  }

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    queue_.run(
        [this, a = a.address(), b = b.address(), c = c.address()] {
          CHECK_ONEDNN(library_, dnnl_memory_set_data_handle(a_.get(), a));
          CHECK_ONEDNN(library_, dnnl_memory_set_data_handle(b_.get(), b));
          CHECK_ONEDNN(library_, dnnl_memory_set_data_handle(c_.get(), c));
          primitive_.execute(
              {{DNNL_ARG_SRC, a_.get()}, {DNNL_ARG_WEIGHTS, b_.get()}, {DNNL_ARG_DST, c_.get()}});
        },
        "dnnl_primitive_execute");
  }

  std::string method() const override {
    return fmt::format("oneDNN {} matmul, {}, {} threads",
                       library_.version,
                       primitive_.implementation(),
                       threads_);
  }
  std::string algorithm() const override {
    return primitive_.implementation();
  }

 private:
  Queue& queue_;
  OneDnn& library_;
  int threads_;
  Primitive primitive_;
  Layout a_layout_, b_layout_, c_layout_;
  Memory a_, b_, c_;
};

/// Made by the queue's worker: the library's threads inherit its CPUs when it is loaded, and its
/// working memory belongs to the thread that makes a primitive, which must then execute and destroy
/// it ("Primitive attributes: scratchpad" in its documentation).
template <class Made, class Shape>
std::unique_ptr<Made> made_by_worker(Queue& queue, const Shape& shape, int threads) {
  std::unique_ptr<Made> made;
  queue.run([&] { made = std::make_unique<Made>(queue, OneDnn::get(threads), shape, threads); });
  queue.wait();
  return made;
}

}  // namespace

std::unique_ptr<Convolution> onednn_convolution(Queue& queue,
                                                const ConvolutionShape& shape,
                                                int threads) {
  if (shape.type.name != "fp32" && shape.type.name != "bf16")
    throw Unsupported("the host convolves no {} tensors", shape.type.name);
  return made_by_worker<OneDnnConvolution>(queue, shape, threads);
}

std::unique_ptr<Matmul> onednn_matmul(Queue& queue, const MatmulShape& shape, int threads) {
  if (shape.type.name != "fp32" && shape.type.name != "bf16" && shape.type.name != "int8")
    throw Unsupported("oneDNN multiplies no {} matrices on the host", shape.type.name);
  return made_by_worker<OneDnnMatmul>(queue, shape, threads);
}

#else

namespace {
[[noreturn]] void refuse() {
  throw Unsupported(
      "this build has no oneDNN: install libdnnl-dev and build again (scripts/setup, "
      "scripts/build)");
}
}  // namespace

std::unique_ptr<Convolution> onednn_convolution(Queue&, const ConvolutionShape&, int) {
  refuse();
}
std::unique_ptr<Matmul> onednn_matmul(Queue&, const MatmulShape&, int) {
  refuse();
}

#endif

}  // namespace launchgap::host
