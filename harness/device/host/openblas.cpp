#include <optional>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/host/libraries.h"
#include "harness/device/host/registry.h"
#include "harness/device/shared_library.h"

namespace launchgap::host {
namespace {

// From cblas.h, the Basic Linear Algebra Subprograms Technical Forum's C interface.
enum Order : int { kRowMajor = 101 };
enum Transpose : int { kNoTrans = 111, kTrans = 112 };

/// OpenBLAS falls back to its oldest kernels on a CPU that is newer than itself, without a word. So
/// does every program on this machine that uses it, so it is measured as it is, and said.
std::string remark(const std::string& core) {
  if ((core != "Prescott" && core != "generic" && core != "Generic") ||
      !__builtin_cpu_supports("avx2"))
    return "";
  return fmt::format(
      " (it does not know this CPU; OPENBLAS_CORETYPE={} would use its vector units)",
      __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell");
}

struct OpenBlas {
  void (*sgemm)(Order,
                Transpose,
                Transpose,
                int m,
                int n,
                int k,
                float alpha,
                const float* a,
                int lda,
                const float* b,
                int ldb,
                float beta,
                float* c,
                int ldc);
  void (*set_num_threads)(int);
  std::string method;

  static OpenBlas& get(int threads) {
    static std::optional<OpenBlas> library;
    if (!library) {
      try {
        library = load();
      } catch (const Error& error) {
        throw Unsupported(
            fmt::format("{}. Install libopenblas0 (scripts/setup does)", error.what()));
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
    library.sgemm = reinterpret_cast<decltype(sgemm)>(file.require("cblas_sgemm"));
    library.set_num_threads =
        reinterpret_cast<decltype(set_num_threads)>(file.require("openblas_set_num_threads"));
    const auto config = reinterpret_cast<const char* (*)()>(file.require("openblas_get_config"));
    const auto core = reinterpret_cast<const char* (*)()>(file.require("openblas_get_corename"));
    LoadedLibrary facts = file.facts();
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
    const std::string text = config();
    const std::size_t begin = text.find(' ') + 1;
    facts.version = text.substr(begin, text.find(' ', begin) - begin);
    library.method =
        fmt::format("OpenBLAS {} cblas_sgemm, {} kernels{}", facts.version, core(), remark(core()));
    note_loaded(facts);
    return library;
  }
};

class OpenBlasMatmul : public Matmul {
 public:
  OpenBlasMatmul(Queue& queue, OpenBlas& library, const MatmulShape& shape, int threads)
      : queue_(queue), library_(library), shape_(shape), threads_(threads) {}

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    queue_.run(
        [this,
         a = static_cast<const float*>(a.address()),
         b = static_cast<const float*>(b.address()),
         c = static_cast<float*>(c.address())] {
          library_.sgemm(kRowMajor,
                         shape_.transpose_a ? kTrans : kNoTrans,
                         shape_.transpose_b ? kTrans : kNoTrans,
                         shape_.m,
                         shape_.n,
                         shape_.k,
                         1.0f,
                         a,
                         shape_.transpose_a ? shape_.m : shape_.k,
                         b,
                         shape_.transpose_b ? shape_.k : shape_.n,
                         0.0f,
                         c,
                         shape_.n);
        },
        "cblas_sgemm");
  }

  std::string method() const override {
    return fmt::format("{}, {} threads", library_.method, threads_);
  }

 private:
  Queue& queue_;
  OpenBlas& library_;
  MatmulShape shape_;
  int threads_;
};

}  // namespace

std::unique_ptr<Matmul> openblas_matmul(Queue& queue, const MatmulShape& shape, int threads) {
  if (shape.type != ElementType::fp32 || shape.allow_tf32) {
    throw Unsupported("OpenBLAS multiplies FP32 matrices only, of the types measured here");
  }
  // Loaded by the queue's worker: OpenBLAS starts its threads at load, and they inherit the
  // loader's CPUs.
  OpenBlas* library = nullptr;
  queue.run([&] { library = &OpenBlas::get(threads); });
  queue.wait();
  return std::make_unique<OpenBlasMatmul>(queue, *library, shape, threads);
}

}  // namespace launchgap::host
