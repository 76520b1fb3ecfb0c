#include <optional>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/code_levels.h"
#include "harness/device/host/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::host {
namespace {

// From cblas.h, the Basic Linear Algebra Subprograms Technical Forum's C interface.
enum Order : int { kRowMajor = 101 };
enum Transpose : int { kNoTrans = 111, kTrans = 112 };

/// OpenBLAS falls back to its oldest kernels on a CPU that is newer than itself, without a word. So
/// does every program on this machine that uses it, so it is measured as it is, and said.
std::string remark(const LoadedLibrary& facts) {
  if (facts.newer_code.empty()) return "";
  const std::string told = code_told_by(facts.name);
  if (!told.empty()) return fmt::format(" ({})", told);
  return fmt::format(" (it does not know this CPU; {}={} would use its vector units)",
                     code_variable(facts.name),
                     facts.newer_code);
}

template <class T>
using Gemm = void (*)(Order,
                      Transpose,
                      Transpose,
                      int m,
                      int n,
                      int k,
                      T alpha,
                      const T* a,
                      int lda,
                      const T* b,
                      int ldb,
                      T beta,
                      T* c,
                      int ldc);

struct OpenBlas {
  Gemm<float> sgemm;
  Gemm<double> dgemm;
  void (*set_num_threads)(int);
  std::string version;
  std::string method;

  static OpenBlas& get(int threads) {
    static std::optional<OpenBlas> library;
    if (!library) {
      try {
        library = load();
      } catch (const Error& error) {
        throw Unsupported("{}. Install libopenblas0 (scripts/setup does)", error.what());
      }
    }
    library->set_num_threads(threads);
    return *library;
  }

 private:
  static OpenBlas load() {
    const SharedLibrary file = SharedLibrary::open(
        {"OpenBLAS", "LAUNCHGAP_OPENBLAS", {"libopenblas.so.0", "libopenblas.so"}, {}});
    OpenBlas library;
    file.take(library.sgemm, "cblas_sgemm", true);
    file.take(library.dgemm, "cblas_dgemm", true);
    file.take(library.set_num_threads, "openblas_set_num_threads", true);
    const auto config = reinterpret_cast<const char* (*)()>(file.require("openblas_get_config"));
    const auto core = reinterpret_cast<const char* (*)()>(file.require("openblas_get_corename"));
    LoadedLibrary facts = file.facts();
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
    const std::string text = config();
    const std::size_t begin = text.find(' ') + 1;
    facts.version = text.substr(begin, text.find(' ', begin) - begin);
    facts.code = core();
    facts.newer_code = newer_code(facts.name, facts.code);
    library.method = fmt::format("{} kernels{}", facts.code, remark(facts));
    library.version = facts.version;
    note_loaded(facts);
    return library;
  }
};

class OpenBlasMatmul : public Matmul {
 public:
  OpenBlasMatmul(Queue& queue, OpenBlas& library, const MatmulShape& shape, int threads)
      : queue_(queue), library_(library), shape_(shape), threads_(threads) {}

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    if (shape_.type.compute == Compute::fp64) {
      enqueue<double>(library_.dgemm, a, b, c);
    } else {
      enqueue<float>(library_.sgemm, a, b, c);
    }
  }

  std::string method() const override {
    return fmt::format("OpenBLAS {} {}{}, {}, {} threads",
                       library_.version,
                       name(),
                       shape_.batch > 1 ? fmt::format(", {} calls", shape_.batch) : "",
                       library_.method,
                       threads_);
  }

 private:
  const char* name() const {
    return shape_.type.compute == Compute::fp64 ? "cblas_dgemm" : "cblas_sgemm";
  }

  template <class T>
  void enqueue(Gemm<T> gemm, const Buffer& a, const Buffer& b, Buffer& c) {
    queue_.run(
        [this,
         gemm,
         a = static_cast<const T*>(a.address()),
         b = static_cast<const T*>(b.address()),
         c = static_cast<T*>(c.address())] {
          for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.batch); ++i) {
            gemm(kRowMajor,
                 shape_.transpose_a ? kTrans : kNoTrans,
                 shape_.transpose_b ? kTrans : kNoTrans,
                 shape_.m,
                 shape_.n,
                 shape_.k,
                 T{1},
                 a + i * shape_.a_size(),
                 shape_.transpose_a ? shape_.m : shape_.k,
                 b + i * shape_.b_size(),
                 shape_.transpose_b ? shape_.k : shape_.n,
                 T{0},
                 c + i * shape_.c_size(),
                 shape_.n);
          }
        },
        name());
  }

  Queue& queue_;
  OpenBlas& library_;
  MatmulShape shape_;
  int threads_;
};

}  // namespace

std::unique_ptr<Matmul> openblas_matmul(Queue& queue, const MatmulShape& shape, int threads) {
  if (shape.type.name != "fp32" && shape.type.name != "fp64")
    throw Unsupported("OpenBLAS multiplies no {} matrices", shape.type.name);
  // Loaded by the queue's worker: OpenBLAS starts its threads at load, and they inherit the
  // loader's CPUs.
  OpenBlas* library = nullptr;
  queue.run([&] { library = &OpenBlas::get(threads); });
  queue.wait();
  return std::make_unique<OpenBlasMatmul>(queue, *library, shape, threads);
}

}  // namespace launchgap::host
