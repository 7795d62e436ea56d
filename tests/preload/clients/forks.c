/* Forks a child that prints, waits for it, and prints. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    printf("child\n");
    return 4;
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("parent of %d\n", WEXITSTATUS(status));
  return 5;
}
