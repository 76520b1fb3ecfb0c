/* Linked with libcudart.so.10.1, which the loader does not find. */
int cudaRuntimeGetVersion(int* version);

int main(void) {
  int version = 0;
  return cudaRuntimeGetVersion(&version);
}
