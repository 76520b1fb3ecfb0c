/* As the toolkit's stub of the driver: every call returns CUDA_ERROR_STUB_LIBRARY. */
int cuInit(unsigned flags) {
  (void)flags;
  return 34;
}
