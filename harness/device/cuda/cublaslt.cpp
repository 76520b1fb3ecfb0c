#include "harness/device/cuda/abi/cublaslt.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/cublas_types.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

struct CublasLt : abi::CublasLtFunctions {
  LoadedLibrary facts;

  /// For the process's one GPU: the newest library that driver and GPU can use comes first.
  static CublasLt& get(int compute_capability) {
    static CublasLt library = load(compute_capability);
    return library;
  }

  void check(abi::CublasStatus status, const char* call) const {
    check_cublas(facts, status, call, cublasLtGetStatusString);
  }

 private:
  static CublasLt load(int compute_capability) {
    const SharedLibrary file = SharedLibrary::open(
        by_version(
            {"cuBLASLt", "LAUNCHGAP_CUBLASLT", {}, {}},
            {{11, "libcublasLt.so.11"}, {12, "libcublasLt.so.12"}, {13, "libcublasLt.so.13"}},
            newest_cublas(compute_capability),
            "libcublasLt.so"),
        "It comes with cuBLAS; scripts/setup --with-cuda brings both");
    CublasLt library;
    LAUNCHGAP_CUBLASLT_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    library.facts.version = cublas_version_text(static_cast<int>(library.cublasLtGetVersion()));
    note_loaded(library.facts);
    return library;
  }
};

#define CHECK_LT(library, call) (library).check((library).call, #call)

class CublasLtMatmul : public Matmul {
 public:
  CublasLtMatmul(Device& device, abi::Stream stream, const MatmulShape& shape)
      : library_(CublasLt::get(capability(device.facts()))),
        stream_(stream),
        shape_(shape),
        computation_(computation(shape.type.compute)),
        one_(computation_.scalar, 1),
        zero_(computation_.scalar, 0) {
    need_tf32(device.facts(), shape.type);
    try {
      CHECK_LT(library_, cublasLtCreate(&handle_));
      // Its default allows none, and leaves out what needs one.
      workspace_ = device.allocate(capability(device.facts()) >= 90 ? 32u << 20 : 4u << 20);
      describe();
      find_candidates();
    } catch (...) {
      release();
      throw;
    }
  }
  ~CublasLtMatmul() override { release(); }

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    // Row-major C = A B is column-major C' = B' A', and row-major memory is the transposed
    // column-major one.
    CHECK_LT(library_,
             cublasLtMatmul(handle_,
                            description_,
                            one_.get(),
                            b.address(),
                            b_,
                            a.address(),
                            a_,
                            zero_.get(),
                            c.address(),
                            c_,
                            c.address(),
                            c_,
                            &found_[chosen_].algorithm,
                            workspace_->address(),
                            workspace_->bytes(),
                            stream_));
  }

  std::vector<MatmulCandidate> candidates() const override {
    std::vector<MatmulCandidate> all;
    for (const abi::CublasLtHeuristic& found : found_) {
      MatmulCandidate candidate;
      candidate.algorithm = fmt::format("{}", attribute(found, abi::kLtAlgorithmId));
      candidate.tile = attribute(found, abi::kLtTileId);
      candidate.stages = attribute(found, abi::kLtStagesId);
      candidate.split = attribute(found, abi::kLtSplitK);
      candidate.waves = static_cast<double>(found.waves);
      candidate.workspace_bytes = found.workspace_bytes;
      all.push_back(std::move(candidate));
    }
    return all;
  }
  void choose(std::size_t candidate) override { chosen_ = std::min(candidate, found_.size() - 1); }

  std::string method() const override {
    return fmt::format(
        "cuBLASLt {} cublasLtMatmul, {}{}, candidate {} of {}: {}, {:.2f} waves, workspace {} MiB",
        library_.facts.version,
        computation_.name,
        shape_.type.fast_accumulation ? ", fast accumulation" : "",
        chosen_ + 1,
        found_.size(),
        algorithm(),
        static_cast<double>(found_[chosen_].waves),
        workspace_->bytes() >> 20);
  }

  std::string algorithm() const override {
    const auto& chosen = found_[chosen_];
    return fmt::format("algorithm {}, tile {}, stages {}, split {}",
                       attribute(chosen, abi::kLtAlgorithmId),
                       attribute(chosen, abi::kLtTileId),
                       attribute(chosen, abi::kLtStagesId),
                       attribute(chosen, abi::kLtSplitK));
  }

 private:
  static constexpr int kMaxCandidates = 32;

  void describe() {
    CHECK_LT(
        library_,
        cublasLtMatmulDescCreate(&description_, computation_.type, data_type(computation_.scalar)));
    set_operation(abi::kLtTransA, shape_.transpose_b);
    set_operation(abi::kLtTransB, shape_.transpose_a);
    if (shape_.type.is_fp8()) {
      const std::int8_t fast = shape_.type.fast_accumulation ? 1 : 0;
      CHECK_LT(library_,
               cublasLtMatmulDescSetAttribute(
                   description_, abi::kLtFastAccumulation, &fast, sizeof fast));
    }
    const auto size = [](int value) { return static_cast<std::uint64_t>(value); };
    const std::uint64_t m = size(shape_.m), n = size(shape_.n), k = size(shape_.k);
    b_ = layout(shape_.type.b,
                shape_.transpose_b ? k : n,
                shape_.transpose_b ? n : k,
                static_cast<std::int64_t>(shape_.b_size()));
    a_ = layout(shape_.type.a,
                shape_.transpose_a ? m : k,
                shape_.transpose_a ? k : m,
                static_cast<std::int64_t>(shape_.a_size()));
    c_ = layout(shape_.type.c, n, m, static_cast<std::int64_t>(shape_.c_size()));
  }

  void set_operation(abi::CublasLtDescAttribute attribute, bool transpose) {
    const std::int32_t operation = transpose ? abi::kCublasOpT : abi::kCublasOpN;
    CHECK_LT(library_,
             cublasLtMatmulDescSetAttribute(description_, attribute, &operation, sizeof operation));
  }

  abi::CublasLtLayout layout(ElementType type,
                             std::uint64_t rows,
                             std::uint64_t columns,
                             std::int64_t stride) {
    abi::CublasLtLayout made = nullptr;
    CHECK_LT(library_,
             cublasLtMatrixLayoutCreate(
                 &made, data_type(type), rows, columns, static_cast<std::int64_t>(rows)));
    layouts_.push_back(made);
    if (shape_.batch > 1) {
      const std::int32_t count = shape_.batch;
      CHECK_LT(library_,
               cublasLtMatrixLayoutSetAttribute(made, abi::kLtBatchCount, &count, sizeof count));
      CHECK_LT(library_,
               cublasLtMatrixLayoutSetAttribute(made, abi::kLtBatchOffset, &stride, sizeof stride));
    }
    return made;
  }

  void find_candidates() {
    abi::CublasLtPreference preference = nullptr;
    CHECK_LT(library_, cublasLtMatmulPreferenceCreate(&preference));
    const std::uint64_t bytes = workspace_->bytes();
    std::array<abi::CublasLtHeuristic, kMaxCandidates> found{};
    int count = 0;
    abi::CublasStatus status = library_.cublasLtMatmulPreferenceSetAttribute(
        preference, abi::kLtMaxWorkspaceBytes, &bytes, sizeof bytes);
    if (status == abi::kCublasSuccess) {
      status = library_.cublasLtMatmulAlgoGetHeuristic(
          handle_, description_, b_, a_, c_, c_, preference, kMaxCandidates, found.data(), &count);
    }
    library_.cublasLtMatmulPreferenceDestroy(preference);
    // What it cannot compute it answers so here, by whichever of the two names.
    if (status == abi::kCublasInvalidValue) status = abi::kCublasNotSupported;
    library_.check(status, "cublasLtMatmulAlgoGetHeuristic");
    // It may say more than it wrote, and offer what then needs more workspace than there is.
    for (int i = 0; i < std::clamp(count, 0, kMaxCandidates); ++i) {
      const abi::CublasLtHeuristic& candidate = found[static_cast<std::size_t>(i)];
      if (candidate.status == abi::kCublasSuccess &&
          candidate.workspace_bytes <= workspace_->bytes())
        found_.push_back(candidate);
    }
    if (found_.empty()) {
      throw Unsupported("cuBLASLt {} has no algorithm for this product within {} MiB of workspace",
                        library_.facts.version,
                        workspace_->bytes() >> 20);
    }
  }

  int attribute(const abi::CublasLtHeuristic& found, abi::CublasLtConfigAttribute which) const {
    std::int32_t value = 0;
    std::size_t written = 0;
    library_.cublasLtMatmulAlgoConfigGetAttribute(
        &found.algorithm, which, &value, sizeof value, &written);
    return value;
  }

  void release() {
    for (const abi::CublasLtLayout layout : layouts_) library_.cublasLtMatrixLayoutDestroy(layout);
    if (description_) library_.cublasLtMatmulDescDestroy(description_);
    if (handle_) library_.cublasLtDestroy(handle_);
  }

  CublasLt& library_;
  abi::Stream stream_;
  MatmulShape shape_;
  Computation computation_;
  Scalar one_, zero_;
  abi::CublasLtHandle handle_ = nullptr;
  abi::CublasLtMatmulDesc description_ = nullptr;
  abi::CublasLtLayout a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::vector<abi::CublasLtLayout> layouts_;  // these, to be destroyed
  std::unique_ptr<Buffer> workspace_;
  std::vector<abi::CublasLtHeuristic> found_;
  std::size_t chosen_ = 0;
};

}  // namespace

std::unique_ptr<Matmul> cublaslt_matmul(Device& device,
                                        abi::Stream stream,
                                        const MatmulShape& shape) {
  return std::make_unique<CublasLtMatmul>(device, stream, shape);
}

}  // namespace launchgap::cuda
