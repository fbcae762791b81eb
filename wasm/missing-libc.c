// What the standard library of Rust calls and the libc of Debian's package `wasi-libc`, of 2022, lacks. There are no threads, so
// none can be made; Rust goes on with one.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef errno
extern _Thread_local int errno;

int *__errno_location(void) { return &errno; }

int pthread_attr_init(void *attributes) {
  (void)attributes;
  return 0;
}

int pthread_attr_setstacksize(void *attributes, size_t bytes) {
  (void)attributes;
  (void)bytes;
  return 0;
}

int pthread_attr_destroy(void *attributes) {
  (void)attributes;
  return 0;
}

int pthread_create(void *thread, const void *attributes, void *(*start)(void *), void *argument) {
  (void)thread;
  (void)attributes;
  (void)start;
  (void)argument;
  return ENOTSUP;
}

int pthread_join(void *thread, void **result) {
  (void)thread;
  (void)result;
  return ENOTSUP;
}

int pthread_detach(void *thread) {
  (void)thread;
  return ENOTSUP;
}

/** The path of a file that exists, as it is: links in it are not followed. */
char *realpath(const char *path, char *resolved) {
  if (access(path, F_OK) != 0) return NULL;
  if (resolved == NULL) resolved = malloc(strlen(path) + 1);
  return resolved == NULL ? NULL : strcpy(resolved, path);
}
