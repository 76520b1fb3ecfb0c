// oneDNN, loaded at run time: its functions, and what products and convolutions need of them.
// Included only where its headers are installed.
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <string>

#include "harness/core/errors.h"
#include "harness/device/product_type.h"

namespace launchgap::host {

// The C interface changed between majors: 2 describes memory by value, 3 by handle.
#define LAUNCHGAP_ONEDNN_FUNCTIONS(X)   \
  X(dnnl_version)                       \
  X(dnnl_get_effective_cpu_isa)         \
  X(dnnl_engine_create)                 \
  X(dnnl_stream_create)                 \
  X(dnnl_stream_wait)                   \
  X(dnnl_memory_create)                 \
  X(dnnl_memory_destroy)                \
  X(dnnl_memory_set_data_handle)        \
  X(dnnl_reorder_primitive_desc_create) \
  X(dnnl_primitive_desc_query_md)       \
  X(dnnl_primitive_desc_query)          \
  X(dnnl_primitive_desc_destroy)        \
  X(dnnl_primitive_create)              \
  X(dnnl_primitive_execute)             \
  X(dnnl_primitive_destroy)
#if DNNL_VERSION_MAJOR >= 3
#define LAUNCHGAP_ONEDNN_VERSIONED(X)                     \
  X(dnnl_memory_desc_create_with_tag)                     \
  X(dnnl_memory_desc_destroy)                             \
  X(dnnl_matmul_primitive_desc_create)                    \
  X(dnnl_convolution_forward_primitive_desc_create)       \
  X(dnnl_convolution_backward_data_primitive_desc_create) \
  X(dnnl_convolution_backward_weights_primitive_desc_create)
#else
#define LAUNCHGAP_ONEDNN_VERSIONED(X)                    \
  X(dnnl_memory_desc_init_by_tag)                        \
  X(dnnl_matmul_desc_init)                               \
  X(dnnl_dilated_convolution_forward_desc_init)          \
  X(dnnl_dilated_convolution_backward_data_desc_init)    \
  X(dnnl_dilated_convolution_backward_weights_desc_init) \
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

  /// Loaded on first use, with this many threads. Throws Unsupported where it is not installed.
  static OneDnn& get(int threads);

  /// Throws Unsupported for what the library does not implement, LibraryError for all else.
  void check(dnnl_status_t status, const char* call) const;

 private:
  static OneDnn load();
};

#define CHECK_ONEDNN(library, call) (library).check((library).call, #call)

/// Throws Unsupported for an element that this CPU computes only by other means than its vector
/// units, which is slower than FP32.
dnnl_data_type_t data_type(ElementType type);

/// Description of a tensor: by value before oneDNN 3, an owned handle since.
class Layout {
 public:
  Layout(OneDnn& library,
         int dimensions,
         const dnnl_dims_t& dims,
         dnnl_data_type_t type,
         dnnl_format_tag_t tag);
  Layout(const Layout&) = delete;
  ~Layout();
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

/// Of an operation, what is described and made once.
class Primitive {
 public:
  explicit Primitive(OneDnn& library) : library_(library) {}
  Primitive(const Primitive&) = delete;
  ~Primitive() { destroy(); }
  void destroy();
  /// Where a description is put before `make`.
  dnnl_primitive_desc_t* description() { return &description_; }
  dnnl_primitive_desc_t described() const { return description_; }
#if DNNL_VERSION_MAJOR < 3
  /// From an operation's descriptor; `hint` is that of the forward direction, where there is one.
  void describe(const void* operation, const Primitive* hint);
#endif
  void make();
  /// Waits.
  template <std::size_t kCount>
  void execute(const dnnl_exec_arg_t (&arguments)[kCount]) const {
    CHECK_ONEDNN(
        library_,
        dnnl_primitive_execute(primitive_, library_.stream, static_cast<int>(kCount), arguments));
    CHECK_ONEDNN(library_, dnnl_stream_wait(library_.stream));
  }
  auto memory_description(dnnl_query_t what) const {
    return library_.dnnl_primitive_desc_query_md(description_, what, 0);
  }
  /// "brgconv:avx512_core_bf16"
  std::string implementation() const;

 private:
  OneDnn& library_;
  dnnl_primitive_desc_t description_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
};

}  // namespace launchgap::host
