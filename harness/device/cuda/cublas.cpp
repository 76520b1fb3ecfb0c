#include "harness/device/cuda/abi/cublas.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "harness/core/errors.h"
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
    if (status == abi::kCublasSuccess) return;
    const std::string text(call);
    const std::string name = text.substr(0, text.find('('));
    const std::string words = cublasGetStatusString ? cublasGetStatusString(status) : "";
    if (status == abi::kCublasNotSupported || status == abi::kCublasArchMismatch) {
      throw Unsupported(
          fmt::format("cuBLAS {}: {} answers {} ({})", facts.version, name, words, status));
    }
    // The context may be lost with it; only a call into the driver tells, and the next case makes
    // one.
    throw LibraryError("cuBLAS", name, status, words, status == abi::kCublasExecutionFailed);
  }

 private:
  static Cublas load(int compute_capability) {
    const SharedLibrary file = [&] {
      try {
        return SharedLibrary::open(
            by_version({"cuBLAS", "LAUNCHGAP_CUBLAS", {}, {}},
                       {{11, "libcublas.so.11"}, {12, "libcublas.so.12"}, {13, "libcublas.so.13"}},
                       newest_cublas(compute_capability),
                       "libcublas.so"));
      } catch (const Error& error) {
        throw Unsupported(fmt::format(
            "{}. Without it nothing is multiplied on this GPU; scripts/setup --with-cuda brings it",
            error.what()));
      }
    }();
    Cublas library;
#define LAUNCHGAP_LOAD(name, required, ...)                                                \
  library.name = reinterpret_cast<decltype(library.name)>((required) ? file.require(#name) \
                                                                     : file.find(#name));
    LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
    library.facts = file.facts();
    return library;
  }
};

#define CHECK_CUBLAS(library, call) (library).check((library).call, #call)

class CublasMatmul : public Matmul {
 public:
  CublasMatmul(Device& device, abi::Stream stream, const MatmulShape& shape, bool autotune)
      : library_(Cublas::get(capability(device.facts()))),
        shape_(shape),
        computation_(computation(shape.type.compute)),
        one_(computation_.scalar, 1),
        zero_(computation_.scalar, 0),
        algorithm_(autotune ? abi::kGemmAutotune : abi::kGemmDefault) {
    const int compute_capability = capability(device.facts());
    // An older GPU computes in FP32 without a word.
    if (shape.type.compute == Compute::tf32 && compute_capability < 80) {
      throw Unsupported(fmt::format("TF32 needs compute capability 8.0; this device has {}",
                                    device.facts().compute_capability.value_or("an unknown one")));
    }
    if (shape.type.is_fp8()) throw Unsupported("cuBLAS multiplies no FP8 matrices; cuBLASLt does");
    if (autotune && shape.batch == 1 && (shape.type.name == "fp32" || shape.type.name == "fp64") &&
        compute_capability < 50)
      throw Unsupported("cublasGemmEx, which can tune itself, needs compute capability 5.0");
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
        workspace_ = device.allocate(compute_capability >= 90 ? 32u << 20 : 4u << 20);
        CHECK_CUBLAS(library_,
                     cublasSetWorkspace_v2(handle_, workspace_->address(), workspace_->bytes()));
      }
    } catch (...) {
      library_.cublasDestroy_v2(handle_);
      throw;
    }
  }
  ~CublasMatmul() override { library_.cublasDestroy_v2(handle_); }

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    // Row-major C = A B is column-major C' = B' A', and row-major memory is the transposed
    // column-major one.
    const int op_a = shape_.transpose_a ? abi::kCublasOpT : abi::kCublasOpN;
    const int op_b = shape_.transpose_b ? abi::kCublasOpT : abi::kCublasOpN;
    const int lda = shape_.transpose_a ? shape_.m : shape_.k;
    const int ldb = shape_.transpose_b ? shape_.k : shape_.n;
    const int m = shape_.m, n = shape_.n, k = shape_.k;
    switch (call()) {
      case Call::sgemm:
        CHECK_CUBLAS(library_,
                     cublasSgemm_v2(handle_,
                                    op_b,
                                    op_a,
                                    n,
                                    m,
                                    k,
                                    one_.as<float>(),
                                    static_cast<const float*>(b.address()),
                                    ldb,
                                    static_cast<const float*>(a.address()),
                                    lda,
                                    zero_.as<float>(),
                                    static_cast<float*>(c.address()),
                                    n));
        return;
      case Call::dgemm:
        CHECK_CUBLAS(library_,
                     cublasDgemm_v2(handle_,
                                    op_b,
                                    op_a,
                                    n,
                                    m,
                                    k,
                                    one_.as<double>(),
                                    static_cast<const double*>(b.address()),
                                    ldb,
                                    static_cast<const double*>(a.address()),
                                    lda,
                                    zero_.as<double>(),
                                    static_cast<double*>(c.address()),
                                    n));
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

  std::string method() const override {
    const Call used = call();
    const std::string name = used == Call::sgemm   ? "cublasSgemm"
                             : used == Call::dgemm ? "cublasDgemm"
                             : used == Call::gemm_ex
                                 ? fmt::format("cublasGemmEx, {}", computation_.name)
                                 : fmt::format("cublasGemmStridedBatchedEx, {}", computation_.name);
    return fmt::format("cuBLAS {} {}{}, workspace {} MiB{}",
                       library_.facts.version,
                       name,
                       algorithm_ == abi::kGemmAutotune ? ", tuned by itself" : "",
                       workspace_ ? workspace_->bytes() >> 20 : 0,
                       library_.cublasSetMathMode ? "" : ", sums perhaps in 16 bits");
  }

 private:
  enum class Call { sgemm, dgemm, gemm_ex, batched };

  /// cublasSgemm and cublasDgemm serve every generation; the others none before Maxwell.
  Call call() const {
    if (shape_.batch > 1) return Call::batched;
    if (algorithm_ != abi::kGemmDefault) return Call::gemm_ex;
    if (shape_.type.name == "fp32") return Call::sgemm;
    if (shape_.type.name == "fp64") return Call::dgemm;
    return Call::gemm_ex;
  }

  Cublas& library_;
  MatmulShape shape_;
  Computation computation_;
  Scalar one_, zero_;
  int algorithm_;
  abi::CublasHandle handle_ = nullptr;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace

std::unique_ptr<Matmul> cublas_matmul(Device& device,
                                      abi::Stream stream,
                                      const MatmulShape& shape,
                                      bool autotune) {
  return std::make_unique<CublasMatmul>(device, stream, shape, autotune);
}

}  // namespace launchgap::cuda
