/* A library that refers to a function which its driver may lack. */
#pragma weak cuTexRefGetFlags
extern int cuTexRefGetFlags(unsigned int*, void*);

__attribute__((visibility("default"))) int call_missing(void);
int call_missing(void) {
  unsigned int flags = 0;
  return cuTexRefGetFlags(&flags, 0);
}
