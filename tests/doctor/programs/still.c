/* Sleeps for as many milliseconds as its argument says. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  usleep(1000 * (useconds_t)(argc > 1 ? atoi(argv[1]) : 0));
  return 0;
}
