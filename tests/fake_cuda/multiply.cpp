#include "tests/fake_cuda/multiply.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/kept_results.h"
#include "tests/fake_cuda/product.h"

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

std::optional<kernels::ElementType> element_type(int type) {
  using kernels::ElementType;
  static constexpr std::pair<int, ElementType> kTypes[] = {{kCudaR64F, ElementType::fp64},
                                                           {kCudaR32F, ElementType::fp32},
                                                           {kCudaR16F, ElementType::fp16},
                                                           {kCudaR16BF, ElementType::bf16},
                                                           {kCudaR8I, ElementType::int8},
                                                           {kCudaR32I, ElementType::int32},
                                                           {kCudaR8FE4m3, ElementType::fp8_e4m3},
                                                           {kCudaR8FE5m2, ElementType::fp8_e5m2}};
  return found_in(kTypes, type);
}

/// Which types go together: cuBLAS documentation, "cublasGemmEx", the table of compute types. And
/// the type of alpha and beta.
struct Combination {
  int compute, a, b, c;
  kernels::ElementType scalar;
};
constexpr Combination kCombinations[] = {
    {kCompute16F, kCudaR16F, kCudaR16F, kCudaR16F, kernels::ElementType::fp16},
    {kCompute32F, kCudaR16F, kCudaR16F, kCudaR16F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16F, kCudaR16F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16BF, kCudaR16BF, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16BF, kCudaR16BF, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8I, kCudaR8I, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR32F, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR16F, kCudaR16F, kCudaR16F, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR16BF, kCudaR16BF, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR32F, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32FFastTf32, kCudaR32F, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute64F, kCudaR64F, kCudaR64F, kCudaR64F, kernels::ElementType::fp64},
    // cuBLASLt alone; both in E5M2 are not there ("cublasLtMatmul", the table of FP8).
    {kCompute32F, kCudaR8FE4m3, kCudaR8FE4m3, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8FE4m3, kCudaR8FE4m3, kCudaR16F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8FE4m3, kCudaR8FE4m3, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8FE4m3, kCudaR8FE5m2, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8FE5m2, kCudaR8FE4m3, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32I, kCudaR8I, kCudaR8I, kCudaR32I, kernels::ElementType::int32},
};

/// INT8 needs leading dimensions and addresses that are multiples of 4, and then takes any size
/// (the same table's notes).
bool is_aligned_for_int8(int lda, int ldb, const void* a, const void* b) {
  const auto address = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  };
  return lda % 4 == 0 && ldb % 4 == 0 && address(a) % 4 == 0 && address(b) % 4 == 0;
}

/// FP8 needs A transposed and B not, dimensions that are multiples of 16, and addresses likewise
/// ("cublasLtMatmul", the requirements of FP8 kernels).
bool suits_fp8(const MatrixProduct& p) {
  return p.op_a == kCublasOpT && p.op_b == kCublasOpN && p.lda % 16 == 0 && p.ldb % 16 == 0 &&
         p.m % 16 == 0 && p.k % 16 == 0;
}

bool is_fp8(int type) {
  return type == kCudaR8FE4m3 || type == kCudaR8FE5m2;
}

bool is_operation(int operation) {
  return operation == kCublasOpN || operation == kCublasOpT;
}

bool large_enough(int ld, int rows) {
  return ld >= std::max(1, rows);
}

const Combination* combination_of(const MatrixProduct& p) {
  const auto found = std::ranges::find_if(kCombinations, [&](const Combination& row) {
    return row.compute == p.compute_type && row.a == p.a_type && row.b == p.b_type &&
           row.c == p.c_type;
  });
  return found == std::end(kCombinations) ? nullptr : &*found;
}

/// One in so many elements shows that sums were added in another order.
constexpr std::size_t kOneIn = 61;

void add_in_other_order(Operation& operation, int number, kernels::ElementType type) {
  const Range result = operation.writes.front();
  operation.signature += " order " + std::to_string(number);
  operation.compute = [=, compute = std::move(operation.compute)](std::size_t begin,
                                                                  std::size_t end) {
    compute(begin, end);
    const std::size_t size = kernels::element_bytes(type);
    const std::size_t last = std::min(end + size - 1, result.bytes) / size;
    for (std::size_t i = begin / size; i < last; ++i) {
      auto* const elements = reinterpret_cast<unsigned char*>(result.begin);
      const double value = kernels::load_element(elements, i, type);
      if (i % kOneIn == static_cast<std::size_t>(number) % kOneIn && value != std::floor(value))
        elements[i * size] ^= 1;  // of little-endian numbers the last bit
    }
  };
}

// What cublasGemmEx and cublasGemmStridedBatchedEx compute

/// A column-major matrix, or `batch` of them.
struct Matrix {
  const void* memory = nullptr;
  kernels::ElementType type = kernels::ElementType::fp32;
  std::size_t ld = 0, stride = 0;
  bool transposed = false;

  /// Bytes from the first to the last element of `batch` of them; op(it) has so many rows.
  std::size_t bytes(std::size_t rows, std::size_t columns, std::size_t batch) const {
    if (transposed) std::swap(rows, columns);
    const std::size_t span = rows == 0 || columns == 0 ? 0 : (columns - 1) * ld + rows;
    return ((batch - 1) * stride + span) * kernels::element_bytes(type);
  }
};

/// Column-major C (m x n) = alpha op(A) (m x k) op(B) (k x n) + beta C, accumulated in binary32, or
/// in binary64 where the type has more digits; `batch` of them, each so many elements behind the
/// last.
struct Gemm {
  Matrix a, b, c;
  std::size_t m = 0, n = 0, k = 0, batch = 1;
  double alpha = 1, beta = 0;
  bool tf32 = false;
};

std::string text_of(const Matrix& matrix) {
  return signature_of(int(matrix.type), matrix.ld, matrix.stride, matrix.transposed);
}

/// All of it but where the matrices are.
std::string text_of(const Gemm& g) {
  return signature_of(
      "gemm", text_of(g.a), text_of(g.b), text_of(g.c), g.m, g.n, g.k, g.batch, g.alpha, g.tf32);
}

template <class Scalar>
Product<Scalar> product_of(const Gemm& g, std::size_t number) {
  // op(X)[outer][inner] for the rows of op(A) and the columns of op(B).
  const auto loader = [&](const Matrix& matrix, bool inner_is_dense) {
    return [matrix,
            begin = number * matrix.stride,
            outer_step = inner_is_dense ? matrix.ld : 1,
            inner_step = inner_is_dense ? 1 : matrix.ld,
            tf32 = g.tf32](std::size_t outer, const Slice<Scalar>& slice) {
      for (std::size_t i = 0; i < slice.count; ++i) {
        const std::size_t index = begin + outer * outer_step + (slice.first + i) * inner_step;
        slice.to[i * slice.stride] =
            static_cast<Scalar>(load_operand(matrix.memory, index, matrix.type, tf32));
      }
    };
  };
  Product<Scalar> product{g.m, g.n, g.k, {}, {}, {}};
  product.load_a_row = loader(g.a, g.a.transposed);
  product.load_b_column = loader(g.b, !g.b.transposed);
  product.store = [g, number](std::size_t row, std::size_t column, Scalar sum) {
    const std::size_t index = number * g.c.stride + column * g.c.ld + row;
    double value = g.alpha * static_cast<double>(sum);
    // As in BLAS, C is not read (it may hold anything) when beta is 0.
    if (g.beta != 0) value += g.beta * kernels::load_element(g.c.memory, index, g.c.type);
    kernels::store_element(const_cast<void*>(g.c.memory), index, g.c.type, value);
  };
  return product;
}

template <class Scalar>
void compute(const Gemm& g, std::size_t begin, std::size_t end, std::size_t total) {
  const std::size_t size = kernels::element_bytes(g.c.type);
  for (std::size_t number = 0; number < g.batch; ++number) {
    const Product<Scalar> product = product_of<Scalar>(g, number);
    if (begin == 0 && end == total) {
      compute_product(product);
      continue;
    }
    const std::size_t first = std::max(begin / size, number * g.c.stride);
    const std::size_t last =
        std::min((end + size - 1) / size, number * g.c.stride + (g.n - 1) * g.c.ld + g.m);
    for (std::size_t index = first; index < last; ++index) {
      const std::size_t own = index - number * g.c.stride;
      if (own % g.c.ld < g.m) compute_element(product, own % g.c.ld, own / g.c.ld);
    }
  }
}

Operation gemm_operation(const Gemm& g) {
  const auto range = [&](const Matrix& matrix, std::size_t rows, std::size_t columns) {
    return range_of(matrix.memory, matrix.bytes(rows, columns, g.batch));
  };
  const Range c = range(g.c, g.m, g.n);
  Operation operation;
  operation.reads = {range(g.a, g.m, g.k), range(g.b, g.k, g.n)};
  operation.writes = {c};
  operation.dense = g.c.ld == g.m && (g.batch == 1 || g.c.stride == g.m * g.n);
  if (g.beta == 0) {
    operation.signature = signature_of(text_of(g), g.a.memory, g.b.memory, g.c.memory);
  } else {
    operation.reads.push_back(c);
  }
  operation.compute = [g, total = c.bytes](std::size_t begin, std::size_t end) {
    if (needs_double(g.a.type)) {
      compute<double>(g, begin, end, total);
    } else {
      compute<float>(g, begin, end, total);
    }
  };
  keep_result(operation, text_of(g), 2.0 * static_cast<double>(g.m * g.n * g.k * g.batch));
  return operation;
}

}  // namespace

CublasStatus enter_cublas(const char* call) {
  Driver* const driver = find_driver();
  return driver == nullptr ? CublasStatus{kCublasNotInitialized}
                           : driver->enter(Library::cublas, call);
}

const char* status_text(CublasStatus status) {
  static constexpr std::pair<int, const char*> kTexts[] = {
      {kCublasSuccess, "CUBLAS_STATUS_SUCCESS"},
      {kCublasNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED"},
      {kCublasAllocFailed, "CUBLAS_STATUS_ALLOC_FAILED"},
      {kCublasInvalidValue, "CUBLAS_STATUS_INVALID_VALUE"},
      {kCublasArchMismatch, "CUBLAS_STATUS_ARCH_MISMATCH"},
      {kCublasExecutionFailed, "CUBLAS_STATUS_EXECUTION_FAILED"},
      {kCublasInternalError, "CUBLAS_STATUS_INTERNAL_ERROR"},
      {kCublasNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED"}};
  return found_in(kTexts, status).value_or("<unknown>");
}

CublasStatus check_product(const MatrixProduct& p, bool is_lt) {
  if (!is_operation(p.op_a) || !is_operation(p.op_b) || p.m < 0 || p.n < 0 || p.k < 0 ||
      p.batch < 0)
    return kCublasInvalidValue;
  if (!large_enough(p.lda, p.op_a == kCublasOpN ? p.m : p.k) ||
      !large_enough(p.ldb, p.op_b == kCublasOpN ? p.k : p.n) || !large_enough(p.ldc, p.m))
    return kCublasInvalidValue;
  if (combination_of(p) == nullptr) return kCublasNotSupported;
  if (is_fp8(p.a_type) && (!is_lt || !suits_fp8(p))) return kCublasNotSupported;
  const kernels::ElementType type = *element_type(p.a_type);
  const DeviceDescription* const device = current_device();
  if (device == nullptr) return kCublasExecutionFailed;
  if (device->capability() < facts_of(type).first_capability) return kCublasArchMismatch;
  if (!arithmetic(*device, type, p.compute_type == kCompute32FFastTf32).tflops)
    return kCublasNotSupported;
  if (type == kernels::ElementType::int8 && !is_aligned_for_int8(p.lda, p.ldb, p.a, p.b))
    return kCublasNotSupported;
  return kCublasSuccess;
}

CublasStatus multiply(double begin_ns,
                      Stream stream,
                      const MatrixProduct& p,
                      const ProductAlgorithm& algorithm) {
  if (p.alpha == nullptr || p.beta == nullptr) return kCublasInvalidValue;
  if (const CublasStatus status = check_product(p, algorithm.is_lt)) return status;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return kCublasSuccess;
  const Combination& combination = *combination_of(p);
  const DeviceDescription* const device = current_device();
  if (device == nullptr) return kCublasExecutionFailed;
  const kernels::ElementType type = *element_type(p.a_type);
  const Arithmetic how = arithmetic(*device, type, p.compute_type == kCompute32FFastTf32);

  const auto size = [](auto value) { return static_cast<std::size_t>(value); };
  Gemm gemm;
  gemm.a = {p.a, type, size(p.lda), size(p.stride_a), p.op_a == kCublasOpT};
  gemm.b = {p.b, *element_type(p.b_type), size(p.ldb), size(p.stride_b), p.op_b == kCublasOpT};
  gemm.c = {p.c, *element_type(p.c_type), size(p.ldc), size(p.stride_c), false};
  gemm.m = size(p.m), gemm.n = size(p.n), gemm.k = size(p.k), gemm.batch = size(p.batch);
  gemm.alpha = kernels::load_element(p.alpha, 0, combination.scalar);
  gemm.beta = kernels::load_element(p.beta, 0, combination.scalar);
  gemm.tf32 = how.tf32;
  constexpr std::size_t kTile = 128;
  constexpr unsigned kThreads = 256;
  const std::string name = "fake_gemm_" + rate_name(type, how) + "_" + algorithm.tile;
  const KernelShape shape{
      kernel_name(name),
      {blocks_for(gemm.m, kTile), blocks_for(gemm.n, kTile), static_cast<unsigned>(p.batch)},
      {kThreads, 1, 1},
      0};
  Operation operation = gemm_operation(gemm);
  if (algorithm.wrong) spoil_first_element(operation);
  if (algorithm.other_order) add_in_other_order(operation, *algorithm.other_order, gemm.c.type);
  const double work = work_ns(2.0 * p.m * p.n * p.k * p.batch, *how.tflops) * algorithm.slowdown;
  const auto launched = find_driver()->launch(
      LibraryCaller::library, stream, begin_ns, {{shape, 1}}, work, std::move(operation));
  return launched == kSuccess ? kCublasSuccess : kCublasExecutionFailed;
}

}  // namespace launchgap::fake
