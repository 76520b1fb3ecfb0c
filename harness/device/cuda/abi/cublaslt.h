// The part of cuBLASLt's binary interface that launchgap calls; the same in every release from 11
// to 13. tests/device/cuda_abi_test.cpp compares it with cublasLt.h where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "harness/device/cuda/abi/cublas.h"

namespace launchgap::cuda::abi {

using CublasLtHandle = struct CublasLtContext*;
using CublasLtMatmulDesc = struct CublasLtMatmulDescOpaque*;
using CublasLtLayout = struct CublasLtLayoutOpaque*;
using CublasLtPreference = struct CublasLtPreferenceOpaque*;

enum CublasLtDescAttribute : int {
  kLtTransA = 3,
  kLtTransB = 4,
  kLtFastAccumulation = 25,
};
enum CublasLtLayoutAttribute : int { kLtBatchCount = 5, kLtBatchOffset = 6 };
enum CublasLtPreferenceAttribute : int { kLtMaxWorkspaceBytes = 1 };
enum CublasLtConfigAttribute : int {
  kLtAlgorithmId = 0,
  kLtTileId = 1,
  kLtSplitK = 2,
  kLtStagesId = 6,
};

/// cublasLtMatmulAlgo_t: nobody but the library looks into it.
struct CublasLtAlgorithm {
  std::uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t.
struct CublasLtHeuristic {
  CublasLtAlgorithm algorithm;
  std::size_t workspace_bytes;
  CublasStatus status;
  float waves;
  int reserved[4];
};

/// X(exported symbol, required, signature). Matrices are column-major.
#define LAUNCHGAP_CUBLASLT_FUNCTIONS(X)                                                       \
  X(cublasLtCreate, true, CublasStatus(CublasLtHandle* handle))                               \
  X(cublasLtDestroy, true, CublasStatus(CublasLtHandle handle))                               \
  X(cublasLtGetVersion, true, std::size_t())                                                  \
  X(cublasLtGetStatusString, false, const char*(CublasStatus status))                         \
  X(cublasLtMatmulDescCreate,                                                                 \
    true,                                                                                     \
    CublasStatus(CublasLtMatmulDesc* description, int compute_type, int scale_type))          \
  X(cublasLtMatmulDescDestroy, true, CublasStatus(CublasLtMatmulDesc description))            \
  X(cublasLtMatmulDescSetAttribute,                                                           \
    true,                                                                                     \
    CublasStatus(                                                                             \
        CublasLtMatmulDesc description, int attribute, const void* value, std::size_t bytes)) \
  X(cublasLtMatrixLayoutCreate,                                                               \
    true,                                                                                     \
    CublasStatus(CublasLtLayout* layout,                                                      \
                 int type,                                                                    \
                 std::uint64_t rows,                                                          \
                 std::uint64_t columns,                                                       \
                 std::int64_t ld))                                                            \
  X(cublasLtMatrixLayoutDestroy, true, CublasStatus(CublasLtLayout layout))                   \
  X(cublasLtMatrixLayoutSetAttribute,                                                         \
    true,                                                                                     \
    CublasStatus(CublasLtLayout layout, int attribute, const void* value, std::size_t bytes)) \
  X(cublasLtMatmulPreferenceCreate, true, CublasStatus(CublasLtPreference* preference))       \
  X(cublasLtMatmulPreferenceDestroy, true, CublasStatus(CublasLtPreference preference))       \
  X(cublasLtMatmulPreferenceSetAttribute,                                                     \
    true,                                                                                     \
    CublasStatus(                                                                             \
        CublasLtPreference preference, int attribute, const void* value, std::size_t bytes))  \
  X(cublasLtMatmulAlgoGetHeuristic,                                                           \
    true,                                                                                     \
    CublasStatus(CublasLtHandle handle,                                                       \
                 CublasLtMatmulDesc description,                                              \
                 CublasLtLayout a,                                                            \
                 CublasLtLayout b,                                                            \
                 CublasLtLayout c,                                                            \
                 CublasLtLayout d,                                                            \
                 CublasLtPreference preference,                                               \
                 int requested,                                                               \
                 CublasLtHeuristic* results,                                                  \
                 int* returned))                                                              \
  X(cublasLtMatmulAlgoConfigGetAttribute,                                                     \
    true,                                                                                     \
    CublasStatus(const CublasLtAlgorithm* algorithm,                                          \
                 int attribute,                                                               \
                 void* value,                                                                 \
                 std::size_t bytes,                                                           \
                 std::size_t* written))                                                       \
  X(cublasLtMatmul,                                                                           \
    true,                                                                                     \
    CublasStatus(CublasLtHandle handle,                                                       \
                 CublasLtMatmulDesc description,                                              \
                 const void* alpha,                                                           \
                 const void* a,                                                               \
                 CublasLtLayout a_layout,                                                     \
                 const void* b,                                                               \
                 CublasLtLayout b_layout,                                                     \
                 const void* beta,                                                            \
                 const void* c,                                                               \
                 CublasLtLayout c_layout,                                                     \
                 void* d,                                                                     \
                 CublasLtLayout d_layout,                                                     \
                 const CublasLtAlgorithm* algorithm,                                          \
                 void* workspace,                                                             \
                 std::size_t workspace_bytes,                                                 \
                 Stream stream))

/// One pointer per function; optional ones may be null.
struct CublasLtFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUBLASLT_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
