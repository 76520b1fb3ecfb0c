#include "harness/device/cuda/abi/cublas.h"

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/cuda/cublas_types.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

struct Cublas : abi::CublasFunctions {
  LoadedLibrary facts;

  /// For the process's one GPU: the newest library that driver and GPU can use comes first.
  static Cublas& get(int compute_capability) {
    static Cublas library = load(compute_capability);
    return library;
  }

  void check(abi::CublasStatus status, const char* call) const {
    check_cublas(facts, status, call, cublasGetStatusString);
  }

 private:
  static Cublas load(int compute_capability) {
    const SharedLibrary file = SharedLibrary::open(
        by_version({"cuBLAS", "LAUNCHGAP_CUBLAS", {}, {}},
                   {{11, "libcublas.so.11"}, {12, "libcublas.so.12"}, {13, "libcublas.so.13"}},
                   newest_cublas(compute_capability),
                   "libcublas.so"),
        "Without it nothing is multiplied on this GPU; scripts/setup --with-cuda brings it");
    Cublas library;
    LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    return library;
  }
};

#define CHECK_CUBLAS(library, call) (library).check((library).call, #call)

class CublasMatmul : public Matmul {
 public:
  CublasMatmul(Device& device, abi::Stream stream, const MatmulShape& shape, bool autotune)
      : device_(device),
        library_(Cublas::get(capability(device.facts()))),
        shape_(shape),
        computation_(computation(shape.type.compute)),
        one_(computation_.scalar, 1),
        zero_(computation_.scalar, 0),
        algorithm_(autotune ? abi::kGemmAutotune : abi::kGemmDefault) {
    const int compute_capability = capability(device.facts());
    need_tf32(device.facts(), shape.type);
    if (shape.type.is_fp8()) throw Unsupported("cuBLAS multiplies no FP8 matrices; cuBLASLt does");
    CHECK_CUBLAS(library_, cublasCreate_v2(&handle_));
    try {
      int version = 0;
      CHECK_CUBLAS(library_, cublasGetVersion_v2(handle_, &version));
      if (library_.facts.version.empty()) {
        library_.facts.version = cublas_version_text(version);
        note_loaded(library_.facts);
      }
      CHECK_CUBLAS(library_, cublasSetStream_v2(handle_, stream));
      // By default sums of 16-bit products may be rounded to 16 bits where k is split between
      // blocks; here products are summed in FP32.
      if (library_.cublasSetMathMode) {
        CHECK_CUBLAS(library_, cublasSetMathMode(handle_, abi::kDisallowReducedPrecisionReduction));
      }
      // NVIDIA's recommended sizes. An own workspace keeps the choice of algorithm, and so the
      // result, the same whatever else the process does (cuBLAS documentation, "Results
      // reproducibility").
      if (library_.cublasSetWorkspace_v2) {
        CublasMatmul::set_workspace(compute_capability >= 90 ? 32u << 20 : 4u << 20);
      }
    } catch (...) {
      library_.cublasDestroy_v2(handle_);
      throw;
    }
  }
  ~CublasMatmul() override { library_.cublasDestroy_v2(handle_); }

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    const auto [op_a, op_b, lda, ldb] = order();
    const int m = shape_.m, n = shape_.n, k = shape_.k;
    switch (call()) {
      case Call::sgemm:
        library_.check(gemm<float>(library_.cublasSgemm_v2, a, b, c), "cublasSgemm_v2");
        return;
      case Call::dgemm:
        library_.check(gemm<double>(library_.cublasDgemm_v2, a, b, c), "cublasDgemm_v2");
        return;
      case Call::gemm_ex:
        CHECK_CUBLAS(library_,
                     cublasGemmEx(handle_,
                                  op_b,
                                  op_a,
                                  n,
                                  m,
                                  k,
                                  one_.get(),
                                  b.address(),
                                  data_type(shape_.type.b),
                                  ldb,
                                  a.address(),
                                  data_type(shape_.type.a),
                                  lda,
                                  zero_.get(),
                                  c.address(),
                                  data_type(shape_.type.c),
                                  n,
                                  computation_.type,
                                  algorithm_));
        return;
      case Call::batched:
        CHECK_CUBLAS(library_,
                     cublasGemmStridedBatchedEx(handle_,
                                                op_b,
                                                op_a,
                                                n,
                                                m,
                                                k,
                                                one_.get(),
                                                b.address(),
                                                data_type(shape_.type.b),
                                                ldb,
                                                static_cast<long long>(shape_.b_size()),
                                                a.address(),
                                                data_type(shape_.type.a),
                                                lda,
                                                static_cast<long long>(shape_.a_size()),
                                                zero_.get(),
                                                c.address(),
                                                data_type(shape_.type.c),
                                                n,
                                                static_cast<long long>(shape_.c_size()),
                                                shape_.batch,
                                                computation_.type,
                                                algorithm_));
        return;
    }
  }

  /// cublasSetStream gives the handle the library's own workspace (cuBLAS documentation).
  void move_to(Stream& stream) override {
    CHECK_CUBLAS(library_, cublasSetStream_v2(handle_, static_cast<CudaStream&>(stream).handle));
    own_workspace_ = false;
  }

  void set_workspace(std::size_t bytes) override {
    if (!library_.cublasSetWorkspace_v2)
      throw Unsupported("this cuBLAS takes no workspace from who calls it");
    std::unique_ptr<Buffer> workspace = device_.allocate(bytes);
    CHECK_CUBLAS(library_, cublasSetWorkspace_v2(handle_, workspace->address(), bytes));
    workspace_ = std::move(workspace);
    own_workspace_ = true;
  }

  std::string method() const override {
    const Call used = call();
    const std::string name = used == Call::sgemm   ? "cublasSgemm"
                             : used == Call::dgemm ? "cublasDgemm"
                             : used == Call::gemm_ex
                                 ? fmt::format("cublasGemmEx, {}", computation_.name)
                                 : fmt::format("cublasGemmStridedBatchedEx, {}", computation_.name);
    return fmt::format("cuBLAS {} {}{}, workspace {}{}",
                       library_.facts.version,
                       name,
                       algorithm_ == abi::kGemmAutotune ? ", tuned by itself" : "",
                       !workspace_      ? "0 MiB"
                       : own_workspace_ ? bytes_text(static_cast<double>(workspace_->bytes()))
                                        : "the library's",
                       library_.cublasSetMathMode ? "" : ", sums perhaps in 16 bits");
  }

 private:
  enum class Call { sgemm, dgemm, gemm_ex, batched };

  /// How A and B lie. Row-major C = A B is column-major C' = B' A', and row-major memory is the
  /// transposed column-major one.
  struct Order {
    int op_a, op_b, lda, ldb;
  };
  Order order() const {
    return {shape_.transpose_a ? abi::kCublasOpT : abi::kCublasOpN,
            shape_.transpose_b ? abi::kCublasOpT : abi::kCublasOpN,
            shape_.transpose_a ? shape_.m : shape_.k,
            shape_.transpose_b ? shape_.k : shape_.n};
  }

  /// By a call that has its type in its name.
  template <class T, class Function>
  abi::CublasStatus gemm(Function* call, const Buffer& a, const Buffer& b, Buffer& c) const {
    const auto [op_a, op_b, lda, ldb] = order();
    return call(handle_,
                op_b,
                op_a,
                shape_.n,
                shape_.m,
                shape_.k,
                one_.as<T>(),
                static_cast<const T*>(b.address()),
                ldb,
                static_cast<const T*>(a.address()),
                lda,
                zero_.as<T>(),
                static_cast<T*>(c.address()),
                shape_.n);
  }

  /// cublasSgemm and cublasDgemm serve every generation; the others none before Maxwell.
  Call call() const {
    if (shape_.batch > 1) return Call::batched;
    if (algorithm_ != abi::kGemmDefault) return Call::gemm_ex;
    if (shape_.type.name == "fp32") return Call::sgemm;
    if (shape_.type.name == "fp64") return Call::dgemm;
    return Call::gemm_ex;
  }

  Device& device_;
  Cublas& library_;
  MatmulShape shape_;
  Computation computation_;
  Scalar one_, zero_;
  int algorithm_;
  abi::CublasHandle handle_ = nullptr;
  std::unique_ptr<Buffer> workspace_;
  bool own_workspace_ = false;  // the handle has it now
};

}  // namespace

std::unique_ptr<Matmul> cublas_matmul(Device& device,
                                      abi::Stream stream,
                                      const MatmulShape& shape,
                                      bool autotune) {
  return std::make_unique<CublasMatmul>(device, stream, shape, autotune);
}

}  // namespace launchgap::cuda
