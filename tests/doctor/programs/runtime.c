/* A library that another is linked with. */
int cudaRuntimeGetVersion(int* version) {
  *version = 10010;
  return 0;
}
