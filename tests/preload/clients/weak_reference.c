/* A program that uses the driver if it happens to be there. */
#include <stdio.h>

#pragma weak cuInit
extern int cuInit(unsigned int);

int main(void) {
  if (cuInit == NULL) {
    printf("no driver\n");
  } else {
    printf("%s\n", cuInit(0) == 0 ? "driver" : "no driver");
  }
  return 0;
}
