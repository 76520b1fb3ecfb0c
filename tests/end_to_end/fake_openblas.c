/* An OpenBLAS that multiplies by the real one, and says of its code what a test wants.
 *
 * FAKE_CORE: what it says it runs; else what OPENBLAS_CORETYPE asks for, else Prescott.
 * FAKE_ILLEGAL: with this core it executes an instruction that no CPU has.
 * FAKE_SLOW: with this core each product takes 0.15 s longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void* real(const char* name) {
  static void* library = NULL;
  if (!library) library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : NULL;
}

static const char* or_else(const char* variable, const char* otherwise) {
  const char* value = getenv(variable);
  return value && *value ? value : otherwise;
}

const char* openblas_get_corename(void) {
  return or_else("FAKE_CORE", or_else("OPENBLAS_CORETYPE", "Prescott"));
}

const char* openblas_get_config(void) {
  return "OpenBLAS 0.0.1 DYNAMIC_ARCH";
}

void openblas_set_num_threads(int threads) {
  ((void (*)(int))real("openblas_set_num_threads"))(threads);
}

void cblas_sgemm(int order,
                 int transpose_a,
                 int transpose_b,
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
                 int ldc) {
  const struct timespec longer = {0, 150000000};
  if (!strcmp(or_else("FAKE_ILLEGAL", ""), openblas_get_corename())) __builtin_trap();
  if (!strcmp(or_else("FAKE_SLOW", ""), openblas_get_corename())) nanosleep(&longer, NULL);
  ((void (*)(int,
             int,
             int,
             int,
             int,
             int,
             float,
             const float*,
             int,
             const float*,
             int,
             float,
             float*,
             int))real("cblas_sgemm"))(
      order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_dgemm(int order,
                 int transpose_a,
                 int transpose_b,
                 int m,
                 int n,
                 int k,
                 double alpha,
                 const double* a,
                 int lda,
                 const double* b,
                 int ldb,
                 double beta,
                 double* c,
                 int ldc) {
  ((void (*)(int,
             int,
             int,
             int,
             int,
             int,
             double,
             const double*,
             int,
             const double*,
             int,
             double,
             double*,
             int))real("cblas_dgemm"))(
      order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
