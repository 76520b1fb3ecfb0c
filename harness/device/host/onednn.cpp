#include <cstdlib>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/host/libraries.h"
#include "harness/device/host/registry.h"
#include "harness/device/shared_library.h"

#if LAUNCHGAP_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace launchgap::host {

#if LAUNCHGAP_HAVE_ONEDNN
namespace {

// The C interface changed between majors: 2 describes memory by value, 3 by handle.
#define LAUNCHGAP_ONEDNN_FUNCTIONS(X)   \
  X(dnnl_version)                       \
  X(dnnl_engine_create)                 \
  X(dnnl_stream_create)                 \
  X(dnnl_stream_wait)                   \
  X(dnnl_memory_create)                 \
  X(dnnl_memory_destroy)                \
  X(dnnl_reorder_primitive_desc_create) \
  X(dnnl_primitive_desc_query_md)       \
  X(dnnl_primitive_desc_query)          \
  X(dnnl_primitive_desc_destroy)        \
  X(dnnl_primitive_create)              \
  X(dnnl_primitive_execute)             \
  X(dnnl_primitive_destroy)
#if DNNL_VERSION_MAJOR >= 3
#define LAUNCHGAP_ONEDNN_VERSIONED(X) \
  X(dnnl_memory_desc_create_with_tag) \
  X(dnnl_memory_desc_destroy)         \
  X(dnnl_convolution_forward_primitive_desc_create)
#else
#define LAUNCHGAP_ONEDNN_VERSIONED(X)   \
  X(dnnl_memory_desc_init_by_tag)       \
  X(dnnl_convolution_forward_desc_init) \
  X(dnnl_primitive_desc_create)
#endif

struct OneDnn {
#define LAUNCHGAP_DECLARE(name) decltype(&::name) name;
  LAUNCHGAP_ONEDNN_FUNCTIONS(LAUNCHGAP_DECLARE)
  LAUNCHGAP_ONEDNN_VERSIONED(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
  std::string version;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;

  static OneDnn& get(int threads) {
    static std::optional<OneDnn> library;
    if (!library) {
      // oneDNN takes its number of threads from OpenMP, which reads the environment when it is
      // loaded.
      setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
      try {
        library = load();
      } catch (const Error& error) {
        throw Unsupported(
            fmt::format("{}. Install libdnnl-dev (scripts/setup does)", error.what()));
      }
    }
    return *library;
  }

  void check(dnnl_status_t status, const char* call) const {
    if (status == dnnl_success) return;
    const std::string text = status == dnnl_unimplemented       ? "unimplemented"
                             : status == dnnl_out_of_memory     ? "out of memory"
                             : status == dnnl_invalid_arguments ? "invalid arguments"
                                                                : "an error";
    throw LibraryError("oneDNN", call, status, text, false);
  }

 private:
  static OneDnn load() {
    // Upstream's name has the major version; Debian 13's has the minor one too.
    const std::string soname = fmt::format("libdnnl.so.{}", DNNL_VERSION_MAJOR);
    const SharedLibrary file =
        SharedLibrary::open({"oneDNN",
                             "LAUNCHGAP_ONEDNN",
                             {soname, fmt::format("{}.{}", soname, DNNL_VERSION_MINOR)},
                             {}});
    OneDnn library;
#define LAUNCHGAP_LOAD(name) \
  library.name = reinterpret_cast<decltype(&::name)>(file.require(#name));
    LAUNCHGAP_ONEDNN_FUNCTIONS(LAUNCHGAP_LOAD)
    LAUNCHGAP_ONEDNN_VERSIONED(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
    const dnnl_version_t* const version = library.dnnl_version();
    library.version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
    library.check(library.dnnl_engine_create(&library.engine, dnnl_cpu, 0), "dnnl_engine_create");
    library.check(
        library.dnnl_stream_create(&library.stream, library.engine, dnnl_stream_default_flags),
        "dnnl_stream_create");
    LoadedLibrary facts = file.facts();
    facts.version = library.version;
    note_loaded(facts);
    return library;
  }
};

#define CHECK_ONEDNN(library, call) (library).check((library).call, #call)

/// Description of a tensor: by value before oneDNN 3, an owned handle since.
class Layout {
 public:
  Layout(OneDnn& library, const dnnl_dims_t& dims, dnnl_format_tag_t tag) : library_(library) {
#if DNNL_VERSION_MAJOR >= 3
    CHECK_ONEDNN(library_, dnnl_memory_desc_create_with_tag(&handle_, 4, dims, dnnl_f32, tag));
#else
    CHECK_ONEDNN(library_, dnnl_memory_desc_init_by_tag(&value_, 4, dims, dnnl_f32, tag));
#endif
  }
  Layout(const Layout&) = delete;
  ~Layout() {
#if DNNL_VERSION_MAJOR >= 3
    library_.dnnl_memory_desc_destroy(handle_);
#endif
  }
#if DNNL_VERSION_MAJOR >= 3
  const_dnnl_memory_desc_t get() const {
    return handle_;
  }
#else
  const dnnl_memory_desc_t* get() const {
    return &value_;
  }
#endif

 private:
  OneDnn& library_;
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t handle_ = nullptr;
#else
  dnnl_memory_desc_t value_;
#endif
};

/// Memory in some layout; the library's own unless an address is given.
class Memory {
 public:
  template <class Description>
  Memory(OneDnn& library, Description description, void* address) : library_(library) {
    CHECK_ONEDNN(library_, dnnl_memory_create(&handle_, description, library_.engine, address));
  }
  Memory(const Memory&) = delete;
  ~Memory() { library_.dnnl_memory_destroy(handle_); }
  dnnl_memory_t get() const { return handle_; }

 private:
  OneDnn& library_;
  dnnl_memory_t handle_ = nullptr;
};

class OneDnnConvolution : public Convolution {
 public:
  OneDnnConvolution(Queue& queue, OneDnn& library, const ConvolutionShape& shape, int threads)
      : queue_(queue),
        library_(library),
        threads_(threads),
        input_dims_{shape.n, shape.c, shape.h, shape.w},
        filter_dims_{shape.k, shape.c, shape.r, shape.s},
        output_dims_{shape.n, shape.k, shape.out_h(), shape.out_w()} {
    const Layout input(library_, input_dims_, dnnl_format_tag_any);
    const Layout filter(library_, filter_dims_, dnnl_format_tag_any);
    const Layout output(library_, output_dims_, dnnl_format_tag_any);
    const dnnl_dims_t strides = {shape.stride, shape.stride};
    const dnnl_dims_t padding = {shape.pad, shape.pad};
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_dims_t dilations = {0, 0};
    CHECK_ONEDNN(library_,
                 dnnl_convolution_forward_primitive_desc_create(&description_,
                                                                library_.engine,
                                                                dnnl_forward_inference,
                                                                dnnl_convolution_direct,
                                                                input.get(),
                                                                filter.get(),
                                                                nullptr,
                                                                output.get(),
                                                                strides,
                                                                dilations,
                                                                padding,
                                                                padding,
                                                                nullptr));
#else
    dnnl_convolution_desc_t convolution;
    CHECK_ONEDNN(library_,
                 dnnl_convolution_forward_desc_init(&convolution,
                                                    dnnl_forward_inference,
                                                    dnnl_convolution_direct,
                                                    input.get(),
                                                    filter.get(),
                                                    nullptr,
                                                    output.get(),
                                                    strides,
                                                    padding,
                                                    padding));
    CHECK_ONEDNN(
        library_,
        dnnl_primitive_desc_create(&description_, &convolution, nullptr, library_.engine, nullptr));
#endif
    CHECK_ONEDNN(library_, dnnl_primitive_create(&primitive_, description_));
  }

  ~OneDnnConvolution() override {
    if (primitive_) library_.dnnl_primitive_destroy(primitive_);
    if (description_) library_.dnnl_primitive_desc_destroy(description_);
  }

  void add_tensors(const Buffer& input, const Buffer& filter) override {
    const auto own_memory = [&](dnnl_query_t what) {
      return std::make_unique<Memory>(library_,
                                      library_.dnnl_primitive_desc_query_md(description_, what, 0),
                                      DNNL_MEMORY_ALLOCATE);
    };
    sets_.push_back({input.address(),
                     filter.address(),
                     own_memory(dnnl_query_src_md),
                     own_memory(dnnl_query_weights_md),
                     own_memory(dnnl_query_dst_md)});
    update_tensors(sets_.size() - 1);
    spoil_output(sets_.back());
  }

  void update_tensors(std::size_t set) override {
    queue_.run([this, &tensors = sets_.at(set)] {
      reorder(plain(input_dims_, dnnl_nchw, tensors.plain_input),
              *tensors.input,
              dnnl_query_src_md,
              input_dims_,
              dnnl_nchw,
              true);
      reorder(plain(filter_dims_, dnnl_oihw, tensors.plain_filter),
              *tensors.filter,
              dnnl_query_weights_md,
              filter_dims_,
              dnnl_oihw,
              true);
    });
    queue_.wait();
  }

  void enqueue(std::size_t set) override {
    queue_.run(
        [this, &tensors = sets_[set]] {
          const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, tensors.input->get()},
                                               {DNNL_ARG_WEIGHTS, tensors.filter->get()},
                                               {DNNL_ARG_DST, tensors.output->get()}};
          CHECK_ONEDNN(library_, dnnl_primitive_execute(primitive_, library_.stream, 3, arguments));
          CHECK_ONEDNN(library_, dnnl_stream_wait(library_.stream));
        },
        "dnnl_primitive_execute");
  }

  void read_output(std::size_t set, void* output) override {
    queue_.run([this, &tensors = sets_.at(set), output] {
      reorder(plain(output_dims_, dnnl_nchw, output),
              *tensors.output,
              dnnl_query_dst_md,
              output_dims_,
              dnnl_nchw,
              false);
    });
    queue_.wait();
  }

  std::string method() const override {
    const char* implementation = "";
    library_.dnnl_primitive_desc_query(description_, dnnl_query_impl_info_str, 0, &implementation);
    return fmt::format(
        "oneDNN {} direct convolution, {}, {} threads", library_.version, implementation, threads_);
  }

  bool rounds_integers() const override {
    return false;
  }

 private:
  struct Tensors {
    void* plain_input;
    void* plain_filter;
    std::unique_ptr<Memory> input, filter, output;
  };

  std::unique_ptr<Memory> plain(const dnnl_dims_t& dims, dnnl_format_tag_t tag, void* address) {
    const Layout layout(library_, dims, tag);
    return std::make_unique<Memory>(library_, layout.get(), address);
  }

  void spoil_output(const Tensors& tensors) {
    std::size_t count = 1;
    for (int i = 0; i < 4; ++i) count *= static_cast<std::size_t>(output_dims_[i]);
    std::vector<float> no_numbers(count, std::numeric_limits<float>::quiet_NaN());
    queue_.run([&] {
      reorder(plain(output_dims_, dnnl_nchw, no_numbers.data()),
              *tensors.output,
              dnnl_query_dst_md,
              output_dims_,
              dnnl_nchw,
              true);
    });
    queue_.wait();
  }

  /// Copies between a plain tensor and the library's own layout, `in` telling the direction.
  void reorder(std::unique_ptr<Memory> plain,
               const Memory& own,
               dnnl_query_t own_layout,
               const dnnl_dims_t& dims,
               dnnl_format_tag_t tag,
               bool in) {
    const Layout plain_layout(library_, dims, tag);
    const auto own_description = library_.dnnl_primitive_desc_query_md(description_, own_layout, 0);
    const auto from = in ? plain_layout.get() : own_description;
    const auto to = in ? own_description : plain_layout.get();
    dnnl_primitive_desc_t description = nullptr;
    dnnl_primitive_t primitive = nullptr;
    CHECK_ONEDNN(library_,
                 dnnl_reorder_primitive_desc_create(
                     &description, from, library_.engine, to, library_.engine, nullptr));
    CHECK_ONEDNN(library_, dnnl_primitive_create(&primitive, description));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, in ? plain->get() : own.get()},
                                         {DNNL_ARG_TO, in ? own.get() : plain->get()}};
    CHECK_ONEDNN(library_, dnnl_primitive_execute(primitive, library_.stream, 2, arguments));
    CHECK_ONEDNN(library_, dnnl_stream_wait(library_.stream));
    library_.dnnl_primitive_destroy(primitive);
    library_.dnnl_primitive_desc_destroy(description);
  }

  Queue& queue_;
  OneDnn& library_;
  int threads_;
  dnnl_dims_t input_dims_, filter_dims_, output_dims_;
  dnnl_primitive_desc_t description_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::deque<Tensors> sets_;  // queued work holds references
};

}  // namespace

std::unique_ptr<Convolution> onednn_convolution(Queue& queue,
                                                const ConvolutionShape& shape,
                                                int threads) {
  if (shape.type != ElementType::fp32 || shape.allow_tf32)
    throw Unsupported("the host convolves FP32 tensors only");
  // Loaded by the queue's worker, whose CPUs its threads inherit.
  OneDnn* library = nullptr;
  queue.run([&] { library = &OneDnn::get(threads); });
  queue.wait();
  return std::make_unique<OneDnnConvolution>(queue, *library, shape, threads);
}

#else

std::unique_ptr<Convolution> onednn_convolution(Queue&, const ConvolutionShape&, int) {
  throw Unsupported(
      "this build has no oneDNN: install libdnnl-dev and build again (scripts/setup, "
      "scripts/build)");
}

#endif

}  // namespace launchgap::host
