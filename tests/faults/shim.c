/* A file system that fails on purpose: preloaded into a server, it stands between it and the system calls.

   The plan is a file that this process and the test map (`plan.py` has the same layout): rules say which calls on
   which files fail, how and how often; each call on a file below the prefix is counted and noted. Calls on anything
   else pass as they are. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, ALLOCATE = 8, OPEN = 16, READ = 32, RENAME = 64, MKDIR = 128, UNLINK = 256,
       MAP = 512 };
enum { RULES = 8, NOTES = 16384, PATH = 512, PARTS_MAX = 64 };

struct rule {
  int32_t calls, error, part, done; /* `part`: the most bytes that a call moves; `done`: it fails after it is done */
  int32_t kills, awaits;            /* `kills`: it ends the process as kill -9 does; `awaits`: begin with such a call */
  int64_t after, times, delay_ms;
  int64_t seen, struck;
  char name[64]; /* a part of the path */
};

struct note {
  int32_t call;
  char path[60];
};

struct plan {
  int64_t version, clock_ms, rules, noted;
  char prefix[PATH];
  struct rule rule[RULES];
  struct note note[NOTES];
};

struct verdict {
  int error, part, done, kills;
};

static const struct verdict PASSED = {0, -1, 0, 0};

static struct plan *plan;

static struct plan *planned(void) {
  const char *path;
  if (plan == NULL && (path = getenv("FAULT_PLAN")) != NULL) {
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
      long at = syscall(SYS_mmap, NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      syscall(SYS_close, file);
      if (at != -1)
        plan = (struct plan *)at;
    }
  }
  return plan;
}

static void die(void) {
  for (;;)
    syscall(SYS_kill, getpid(), SIGKILL);
}

static struct verdict judged(int call, const char *path) {
  struct verdict verdict = PASSED;
  size_t length = strlen(plan->prefix);
  if (length == 0 || strncmp(path, plan->prefix, length) != 0 || strstr(path + length, ".log"))
    return verdict;
  int64_t number = __atomic_fetch_add(&plan->noted, 1, __ATOMIC_SEQ_CST);
  if (number < NOTES) {
    plan->note[number].call = call;
    snprintf(plan->note[number].path, sizeof plan->note[number].path, "%s", path + length);
  }
  for (int64_t n = 0; n < plan->rules && n < RULES; n++) {
    struct rule *rule = &plan->rule[n];
    if (strstr(path + length, rule->name) == NULL)
      continue;
    if (rule->awaits & call)
      rule->awaits = 0;
    if (rule->awaits || !(rule->calls & call))
      continue;
    int64_t seen = __atomic_fetch_add(&rule->seen, 1, __ATOMIC_SEQ_CST);
    if (seen < rule->after || (rule->times >= 0 && seen >= rule->after + rule->times))
      continue;
    __atomic_fetch_add(&rule->struck, 1, __ATOMIC_SEQ_CST);
    if (rule->delay_ms > 0) {
      struct timespec pause = {rule->delay_ms / 1000, rule->delay_ms % 1000 * 1000000};
      nanosleep(&pause, NULL);
    }
    verdict.error = rule->error;
    verdict.part = rule->part;
    verdict.done = rule->done;
    verdict.kills = rule->kills;
  }
  if (verdict.kills && !verdict.done && verdict.part < 0)
    die();
  return verdict;
}

static struct verdict of_file(int call, int file) {
  struct verdict verdict = PASSED;
  char link[40], path[PATH];
  int before = errno;
  if (planned() == NULL || file < 0)
    return verdict;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = 0;
    verdict = judged(call, path);
  }
  errno = before;
  return verdict;
}

static struct verdict of_path(int call, int directory, const char *name) {
  struct verdict verdict = PASSED;
  char link[40], path[2 * PATH];
  int before = errno;
  if (planned() == NULL)
    return verdict;
  if (name[0] == '/')
    return judged(call, name);
  if (directory == AT_FDCWD)
    strcpy(link, "/proc/self/cwd");
  else
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = readlink(link, path, PATH - 1);
  if (length > 0) {
    snprintf(path + length, sizeof path - length, "/%s", name);
    verdict = judged(call, path);
  }
  errno = before;
  return verdict;
}

static long failed(int error) {
  errno = error;
  return -1;
}

/* After the call was made. */
static long ended(struct verdict found, long result) {
  if (found.kills)
    die();
  return found.error ? failed(found.error) : result;
}

/* What the call returns, where `CALL` is the system call. */
#define UNLESS(JUDGED, CALL)                 \
  do {                                       \
    struct verdict found = (JUDGED);         \
    if (found.error && !found.done)          \
      return failed(found.error);            \
    return ended(found, (CALL));             \
  } while (0)

#define SHORTER(JUDGED, count, CALL)                                  \
  do {                                                                \
    struct verdict found = (JUDGED);                                  \
    if (found.error && !found.done)                                   \
      return failed(found.error);                                     \
    if (found.part >= 0 && (count) > (size_t)found.part)              \
      (count) = found.part;                                           \
    return ended(found, (CALL));                                      \
  } while (0)

ssize_t write(int file, const void *data, size_t count) {
  SHORTER(of_file(WRITE, file), count, syscall(SYS_write, file, data, count));
}

ssize_t pwrite64(int file, const void *data, size_t count, off64_t at) {
  SHORTER(of_file(WRITE, file), count, syscall(SYS_pwrite64, file, data, count, at));
}

ssize_t pwrite(int file, const void *data, size_t count, off_t at) { return pwrite64(file, data, count, at); }

static long write_vector(int file, const struct iovec *parts, int count, off64_t at, int is_placed) {
  struct verdict found = of_file(WRITE, file);
  struct iovec fewer[PARTS_MAX];
  if (found.error && !found.done)
    return failed(found.error);
  if (found.part >= 0 && count <= PARTS_MAX) {
    size_t left = found.part;
    for (int n = 0; n < count; n++) {
      fewer[n] = parts[n];
      if (fewer[n].iov_len > left)
        fewer[n].iov_len = left;
      left -= fewer[n].iov_len;
    }
    parts = fewer;
  }
  long result = is_placed ? syscall(SYS_pwritev, file, parts, (long)count, (long)at, 0L)
                          : syscall(SYS_writev, file, parts, (long)count);
  return ended(found, result);
}

ssize_t writev(int file, const struct iovec *parts, int count) { return write_vector(file, parts, count, 0, 0); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
  return write_vector(file, parts, count, at, 1);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
  return write_vector(file, parts, count, at, 1);
}

ssize_t read(int file, void *data, size_t count) {
  SHORTER(of_file(READ, file), count, syscall(SYS_read, file, data, count));
}

ssize_t pread64(int file, void *data, size_t count, off64_t at) {
  SHORTER(of_file(READ, file), count, syscall(SYS_pread64, file, data, count, at));
}

ssize_t pread(int file, void *data, size_t count, off_t at) { return pread64(file, data, count, at); }

int fsync(int file) { UNLESS(of_file(SYNC, file), syscall(SYS_fsync, file)); }

int fdatasync(int file) { UNLESS(of_file(SYNC, file), syscall(SYS_fdatasync, file)); }

int ftruncate64(int file, off64_t size) { UNLESS(of_file(TRUNCATE, file), syscall(SYS_ftruncate, file, size)); }

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int posix_fallocate64(int file, off64_t at, off64_t size) {
  int before = errno;
  struct verdict found = of_file(ALLOCATE, file);
  if (found.error && !found.done)
    return found.error;
  int error = syscall(SYS_fallocate, file, 0, at, size) == 0 ? 0 : errno;
  errno = before;
  if (found.kills)
    die();
  return found.error ? found.error : error;
}

int posix_fallocate(int file, off_t at, off_t size) { return posix_fallocate64(file, at, size); }

static int open_at(int directory, const char *path, int flags, mode_t mode) {
  UNLESS(of_path(OPEN, directory, path), syscall(SYS_openat, directory, path, flags, mode));
}

static mode_t mode_of(int flags, va_list more) {
  return flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

#define OPENED(directory, extra)            \
  do {                                      \
    va_list more;                           \
    va_start(more, flags);                  \
    mode_t mode = mode_of(flags, more);     \
    va_end(more);                           \
    return open_at(directory, path, flags | (extra), mode); \
  } while (0)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, 0); }

int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, O_LARGEFILE); }

int openat(int directory, const char *path, int flags, ...) { OPENED(directory, 0); }

int openat64(int directory, const char *path, int flags, ...) { OPENED(directory, O_LARGEFILE); }

int renameat(int from, const char *old, int to, const char *new) {
  UNLESS(of_path(RENAME, to, new), syscall(SYS_renameat2, from, old, to, new, 0));
}

int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int mkdirat(int directory, const char *path, mode_t mode) {
  int before = errno;
  if (syscall(SYS_faccessat, directory, path, F_OK) == 0) /* that it exists is known without the disk */
    return failed(EEXIST);
  errno = before;
  UNLESS(of_path(MKDIR, directory, path), syscall(SYS_mkdirat, directory, path, mode));
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int directory, const char *path, int flags) {
  UNLESS(of_path(UNLINK, directory, path), syscall(SYS_unlinkat, directory, path, flags));
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

void *mmap64(void *at, size_t size, int access, int flags, int file, off64_t offset) {
  if (file >= 0) {
    struct verdict found = of_file(MAP, file);
    if (found.error) {
      errno = found.error;
      return MAP_FAILED;
    }
  }
  return (void *)syscall(SYS_mmap, at, size, access, flags, file, offset);
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset) {
  return mmap64(at, size, access, flags, file, offset);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME && planned() != NULL)
    time->tv_sec += plan->clock_ms / 1000;
  return result;
}
