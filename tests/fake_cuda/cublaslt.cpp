// The fake libcublasLt: as many candidates as the node says, each as slow as it says.
#include "harness/device/cuda/abi/cublaslt.h"

#include <cstring>
#include <map>
#include <vector>

#include "tests/fake_cuda/multiply.h"
#include "tests/fake_cuda/node.h"

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

struct Description {
  int compute_type = 0, scale_type = 0;
  int op_a = kCublasOpN, op_b = kCublasOpN;
  bool fast_accumulation = false;
};

struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};

struct Preference {
  std::uint64_t workspace_bytes = 0;  // as in the real one, none is allowed by default
};

const std::vector<double>& slowdowns() {
  return find_driver()->node()->cublaslt_candidates;
}

/// Every second one wants a workspace, as those do that split k.
std::size_t workspace_of(std::size_t candidate) {
  return candidate % 2 == 1 ? std::size_t{1} << 20 : 0;
}

/// Takes a value of exactly its size, as the real one demands.
template <class T>
CublasStatus take(T& to, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return kCublasInvalidValue;
  std::memcpy(&to, value, sizeof(T));
  return kCublasSuccess;
}

/// alpha and beta of FP32 sums are FP32, and so on: any other pair is none of the real one's.
bool scale_fits(const Description& description) {
  const int compute = description.compute_type;
  return description.scale_type == (compute == kCompute16F   ? kCudaR16F
                                    : compute == kCompute64F ? kCudaR64F
                                    : compute == kCompute32I ? kCudaR32I
                                                             : kCudaR32F);
}

MatrixProduct product_of(const Description& description,
                         const Layout& a,
                         const Layout& b,
                         const Layout& c) {
  MatrixProduct p;
  p.op_a = description.op_a, p.op_b = description.op_b;
  p.m = static_cast<int>(c.rows), p.n = static_cast<int>(c.columns);
  p.k = static_cast<int>(p.op_a == kCublasOpT ? a.rows : a.columns);
  p.a_type = a.type, p.b_type = b.type, p.c_type = c.type;
  p.lda = static_cast<int>(a.ld), p.ldb = static_cast<int>(b.ld), p.ldc = static_cast<int>(c.ld);
  p.compute_type = description.compute_type;
  p.batch = c.batch;
  p.stride_a = a.stride, p.stride_b = b.stride, p.stride_c = c.stride;
  return p;
}

}  // namespace

EXPORT CublasStatus cublasLtCreate(CublasLtHandle* handle) {
  return create_handle<int>("cublasLtCreate", handle);
}

EXPORT CublasStatus cublasLtDestroy(CublasLtHandle handle) {
  return destroy<int>("cublasLtDestroy", handle);
}

EXPORT std::size_t cublasLtGetVersion() {
  const Node* const node = find_driver() != nullptr ? find_driver()->node() : nullptr;
  return node != nullptr ? static_cast<std::size_t>(node->cublas_version) : 0;
}

EXPORT const char* cublasLtGetStatusString(CublasStatus status) {
  return status_text(status);
}

EXPORT CublasStatus cublasLtMatmulDescCreate(CublasLtMatmulDesc* description,
                                             int compute_type,
                                             int scale_type) {
  return create("cublasLtMatmulDescCreate", description, Description{compute_type, scale_type});
}

EXPORT CublasStatus cublasLtMatmulDescDestroy(CublasLtMatmulDesc description) {
  return destroy<Description>("cublasLtMatmulDescDestroy", description);
}

EXPORT CublasStatus cublasLtMatmulDescSetAttribute(CublasLtMatmulDesc description,
                                                   int attribute,
                                                   const void* value,
                                                   std::size_t bytes) {
  if (const CublasStatus status = enter_cublas("cublasLtMatmulDescSetAttribute")) return status;
  if (description == nullptr) return kCublasInvalidValue;
  Description& its = *as<Description>(description);
  switch (attribute) {
    case kLtTransA:
      return take(its.op_a, value, bytes);
    case kLtTransB:
      return take(its.op_b, value, bytes);
    case kLtFastAccumulation: {
      std::int8_t fast = 0;
      const CublasStatus status = take(fast, value, bytes);
      its.fast_accumulation = fast != 0;
      return status;
    }
    default:
      return kCublasInvalidValue;
  }
}

EXPORT CublasStatus cublasLtMatrixLayoutCreate(CublasLtLayout* layout,
                                               int type,
                                               std::uint64_t rows,
                                               std::uint64_t columns,
                                               std::int64_t ld) {
  return create("cublasLtMatrixLayoutCreate", layout, Layout{type, rows, columns, ld});
}

EXPORT CublasStatus cublasLtMatrixLayoutDestroy(CublasLtLayout layout) {
  return destroy<Layout>("cublasLtMatrixLayoutDestroy", layout);
}

EXPORT CublasStatus cublasLtMatrixLayoutSetAttribute(CublasLtLayout layout,
                                                     int attribute,
                                                     const void* value,
                                                     std::size_t bytes) {
  if (const CublasStatus status = enter_cublas("cublasLtMatrixLayoutSetAttribute")) return status;
  if (layout == nullptr) return kCublasInvalidValue;
  if (attribute == kLtBatchCount) return take(as<Layout>(layout)->batch, value, bytes);
  if (attribute == kLtBatchOffset) return take(as<Layout>(layout)->stride, value, bytes);
  return kCublasInvalidValue;
}

EXPORT CublasStatus cublasLtMatmulPreferenceCreate(CublasLtPreference* preference) {
  return create("cublasLtMatmulPreferenceCreate", preference, Preference());
}

EXPORT CublasStatus cublasLtMatmulPreferenceDestroy(CublasLtPreference preference) {
  return destroy<Preference>("cublasLtMatmulPreferenceDestroy", preference);
}

EXPORT CublasStatus cublasLtMatmulPreferenceSetAttribute(CublasLtPreference preference,
                                                         int attribute,
                                                         const void* value,
                                                         std::size_t bytes) {
  if (const CublasStatus status = enter_cublas("cublasLtMatmulPreferenceSetAttribute"))
    return status;
  if (preference == nullptr || attribute != kLtMaxWorkspaceBytes) return kCublasInvalidValue;
  return take(as<Preference>(preference)->workspace_bytes, value, bytes);
}

EXPORT CublasStatus cublasLtMatmulAlgoGetHeuristic(CublasLtHandle handle,
                                                   CublasLtMatmulDesc description,
                                                   CublasLtLayout a,
                                                   CublasLtLayout b,
                                                   CublasLtLayout c,
                                                   CublasLtLayout d,
                                                   CublasLtPreference preference,
                                                   int requested,
                                                   CublasLtHeuristic* results,
                                                   int* returned) {
  if (const CublasStatus status = enter_cublas("cublasLtMatmulAlgoGetHeuristic")) return status;
  if (handle == nullptr || description == nullptr || a == nullptr || b == nullptr || c == nullptr ||
      d == nullptr || preference == nullptr || results == nullptr || returned == nullptr)
    return kCublasInvalidValue;
  *returned = 0;
  const Description& its = *as<Description>(description);
  if (!scale_fits(its)) return kCublasNotSupported;
  const MatrixProduct p = product_of(its, *as<Layout>(a), *as<Layout>(b), *as<Layout>(d));
  if (const CublasStatus status = check_product(p, true)) return status;
  for (std::size_t i = 0; i < slowdowns().size() && *returned < requested; ++i) {
    if (workspace_of(i) > as<Preference>(preference)->workspace_bytes) continue;
    CublasLtHeuristic& result = results[*returned];
    result = {};
    result.algorithm.data[0] = i;
    result.workspace_bytes = workspace_of(i);
    result.status = kCublasSuccess;
    result.waves = 1.5f;
    ++*returned;
  }
  return *returned > 0 ? kCublasSuccess : kCublasNotSupported;
}

EXPORT CublasStatus cublasLtMatmulAlgoConfigGetAttribute(const CublasLtAlgorithm* algorithm,
                                                         int attribute,
                                                         void* value,
                                                         std::size_t bytes,
                                                         std::size_t* written) {
  if (const CublasStatus status = enter_cublas("cublasLtMatmulAlgoConfigGetAttribute"))
    return status;
  if (algorithm == nullptr || value == nullptr || bytes != sizeof(std::int32_t))
    return kCublasInvalidValue;
  const auto candidate = static_cast<std::int32_t>(algorithm->data[0]);
  const std::map<int, std::int32_t> answers{{kLtAlgorithmId, 20 + candidate},
                                            {kLtTileId, 15 + candidate % 3},
                                            {kLtSplitK, candidate % 2 == 1 ? 2 : 1},
                                            {kLtStagesId, 8}};
  const auto found = answers.find(attribute);
  if (found == answers.end()) return kCublasInvalidValue;
  const std::int32_t answer = found->second;
  std::memcpy(value, &answer, sizeof answer);
  if (written != nullptr) *written = sizeof answer;
  return kCublasSuccess;
}

EXPORT CublasStatus cublasLtMatmul(CublasLtHandle handle,
                                   CublasLtMatmulDesc description,
                                   const void* alpha,
                                   const void* a,
                                   CublasLtLayout a_layout,
                                   const void* b,
                                   CublasLtLayout b_layout,
                                   const void* beta,
                                   const void* c,
                                   CublasLtLayout c_layout,
                                   void* d,
                                   CublasLtLayout d_layout,
                                   const CublasLtAlgorithm* algorithm,
                                   void* workspace,
                                   std::size_t workspace_bytes,
                                   Stream stream) {
  const double begin = now_ns();
  if (const CublasStatus status = enter_cublas("cublasLtMatmul")) return status;
  if (handle == nullptr || description == nullptr || a_layout == nullptr || b_layout == nullptr ||
      c_layout == nullptr || d_layout == nullptr || c != d)
    return kCublasInvalidValue;
  const Description& its = *as<Description>(description);
  if (!scale_fits(its)) return kCublasNotSupported;
  const std::size_t candidate =
      algorithm == nullptr ? 0 : static_cast<std::size_t>(algorithm->data[0]);
  if (candidate >= slowdowns().size()) return kCublasInvalidValue;
  if (workspace_of(candidate) > workspace_bytes ||
      (workspace_of(candidate) > 0 && workspace == nullptr))
    return kCublasInvalidValue;
  MatrixProduct p =
      product_of(its, *as<Layout>(a_layout), *as<Layout>(b_layout), *as<Layout>(d_layout));
  p.alpha = alpha, p.beta = beta, p.a = a, p.b = b, p.c = d;
  ProductAlgorithm how;
  how.is_lt = true;
  how.slowdown = slowdowns()[candidate];
  how.tile = candidate % 2 == 1 ? "128x256" : "256x128";
  how.wrong = find_driver()->node()->cublaslt_wrong == static_cast<int>(candidate);
  return multiply(begin, stream, p, how);
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
LAUNCHGAP_CUBLASLT_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
