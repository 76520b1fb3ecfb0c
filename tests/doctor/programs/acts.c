/* A program that does what its arguments say, one after the other, as frameworks do it:
 *
 *   open NAME     dlopen by name; goes on if it fails
 *   need NAME     the same, and exits with 3 if it fails
 *   init          cuInit of libcuda.so.1; goes on if it fails
 *   context       creates a context on the first GPU, allocates and clears memory
 *   sleep MS
 *   fork N        N children do the rest; the parent waits and exits with the sum of their codes
 *   print BYTES   so many bytes on standard output
 *   copy          standard input to standard output
 *   signal N      sends itself a signal
 *   await N       waits for a signal, and exits with 40 + N when it comes
 *   chdir PATH
 *   exit N
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* symbol(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  void* found = library ? dlsym(library, name) : NULL;
  if (!found) fprintf(stderr, "no %s: %s\n", name, dlerror());
  return found;
}

static void init(void) {
  int (*cuInit)(unsigned) = (int (*)(unsigned))symbol("cuInit");
  const int code = cuInit ? cuInit(0) : -1;
  if (code != 0) fprintf(stderr, "cuInit: %d\n", code);
}

static void context(void) {
  int (*retain)(void**, int) = (int (*)(void**, int))symbol("cuDevicePrimaryCtxRetain");
  int (*set)(void*) = (int (*)(void*))symbol("cuCtxSetCurrent");
  int (*allocate)(unsigned long long*, size_t) =
      (int (*)(unsigned long long*, size_t))symbol("cuMemAlloc_v2");
  int (*wait_for_all)(void) = (int (*)(void))symbol("cuCtxSynchronize");
  void* handle = NULL;
  unsigned long long memory = 0;
  if (!retain || !set || !allocate || !wait_for_all) return;
  int code = retain(&handle, 0);
  if (code == 0) code = set(handle);
  if (code == 0) code = allocate(&memory, 1 << 20);
  if (code == 0) code = wait_for_all();
  if (code != 0) fprintf(stderr, "no context: %d\n", code);
}

static void fork_rest(int children) {
  for (int i = 0; i < children; ++i) {
    if (fork() == 0) return;
  }
  int sum = 0, status = 0;
  while (wait(&status) > 0) sum += WEXITSTATUS(status);
  exit(sum);
}

static int awaited = 0;
static void leave(int number) {
  _exit(40 + number);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* act = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "0";
    if (!strcmp(act, "init")) {
      init();
      continue;
    }
    if (!strcmp(act, "context")) {
      context();
      continue;
    }
    if (!strcmp(act, "copy")) {
      for (int c; (c = getchar()) != EOF;) putchar(c);
      continue;
    }
    ++i;
    if (!strcmp(act, "open") && !dlopen(value, RTLD_LAZY)) fprintf(stderr, "%s\n", dlerror());
    if (!strcmp(act, "need") && !dlopen(value, RTLD_LAZY)) return 3;
    if (!strcmp(act, "sleep")) usleep(1000 * (useconds_t)atoi(value));
    if (!strcmp(act, "fork")) fork_rest(atoi(value));
    if (!strcmp(act, "print")) {
      for (long n = atol(value); n > 0; --n) putchar("0123456789abcde\n"[n % 16]);
    }
    if (!strcmp(act, "signal")) raise(atoi(value));
    if (!strcmp(act, "await")) {
      awaited = atoi(value);
      signal(awaited, leave);
      puts("ready");
      fflush(stdout);
      for (;;) pause();
    }
    if (!strcmp(act, "chdir") && chdir(value) != 0) return 4;
    if (!strcmp(act, "exit")) return atoi(value);
  }
  return 0;
}
