#include <stdio.h>

int main(int argc, char** argv) {
  printf("hello %d %s\n", argc, argc > 1 ? argv[1] : "");
  return 6;
}
