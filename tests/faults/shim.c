/* Counts, fails or kills at the n-th call that changes files below one folder; loaded with LD_PRELOAD.
 *
 * A call counts when a path of it, or the file behind its descriptor, lies below the watched folder. Every
 * counted call is logged before it is made, so that the last line of the log is the call that was hit.
 * Armed and disarmed from Python with ctypes (shim.py); not armed, every call goes straight through.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum mode { COUNT, FAIL_ONCE, FAIL_ON, KILL, KILL_SHORT, SHORT };
enum verdict { PASS, FAIL, HALF, HALF_AND_DIE };

static char watched[PATH_MAX];
static size_t watched_length;
static int armed, mode, code, refused, log_descriptor = -1;
static long calls, target;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* The next definition of the function we stand in for: libc's. */
#define REAL(name) ((__typeof__(&name))next_definition(#name))

static void *next_definition(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

static void forget_after_fork(void) { armed = 0; }

/* Watch a folder (a real path without a trailing slash) and act at the n-th call, counted from 1. */
int likewise_arm(const char *folder, long n, int how, int error, const char *log) {
  if (strlen(folder) >= sizeof watched) return -1;
  strcpy(watched, folder);
  watched_length = strlen(folder);
  mode = how, code = error, target = n, calls = 0;
  if (log_descriptor >= 0) close(log_descriptor);
  log_descriptor = REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (log_descriptor < 0) return -1;
  /* A process that the watched one starts has counters of its own: it is not watched. */
  static int registered;
  if (!registered) registered = !pthread_atfork(NULL, NULL, forget_after_fork);
  armed = 1;
  return 0;
}

/* From now on two names cannot be exchanged in one step, as on file systems that do not know how. */
void likewise_refuse_exchange(void) { refused = 1; }

/* Let everything through again; how many calls there were. */
long likewise_disarm(void) {
  armed = 0;
  return calls;
}

static int below(const char *path) {
  return !strncmp(path, watched, watched_length) &&
         (path[watched_length] == '/' || path[watched_length] == '\0');
}

static int path_of(int descriptor, char *into) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, into, PATH_MAX - 1);
  if (length < 0) return 0;
  into[length] = '\0';
  return 1;
}

/* The path with its folder resolved; what it names itself may be absent, or a link that is not followed. */
static int resolve(int folder, const char *path, char *into) {
  char whole[2 * PATH_MAX], above[PATH_MAX], found[PATH_MAX];
  if (path == NULL) return 0;
  if (path[0] == '/') {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    if (folder == AT_FDCWD ? getcwd(above, sizeof above) == NULL : !path_of(folder, above)) return 0;
    snprintf(whole, sizeof whole, "%s/%s", above, path);
  }
  size_t length = strlen(whole);
  while (length > 1 && whole[length - 1] == '/') whole[--length] = '\0';
  char *last = strrchr(whole, '/');
  if (last == whole || !strcmp(last, "/..") || !strcmp(last, "/.")) {
    if (realpath(whole, found) == NULL) snprintf(found, sizeof found, "%.*s", PATH_MAX - 1, whole);
    snprintf(into, PATH_MAX, "%s", found);
    return 1;
  }
  *last = '\0';
  if (realpath(whole, found) == NULL) snprintf(found, sizeof found, "%.*s", PATH_MAX - 1, whole);
  if ((size_t)snprintf(into, PATH_MAX, "%s/%s", found, last + 1) >= PATH_MAX) return 0;
  return 1;
}

static const char *shown(const char *path) {
  if (!below(path)) return path;
  return path[watched_length] == '/' ? path + watched_length + 1 : ".";
}

/* A full disk stays full, but what takes no room still works on it. */
static int works_on_a_full_disk(const char *kind) {
  return !strcmp(kind, "unlink") || !strcmp(kind, "rmdir") || !strcmp(kind, "chmod");
}

static void __attribute__((noreturn)) die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static enum verdict judge(const char *kind, const char *first, const char *second, size_t bytes) {
  int is_write = !strcmp(kind, "write");
  char line[3 * PATH_MAX];
  pthread_mutex_lock(&guard);
  long number = ++calls;
  int size = snprintf(line, sizeof line, "%ld\t%s\t%s\t%s\t%zu\n", number, kind, shown(first),
                      second[0] ? shown(second) : "", bytes);
  REAL(write)(log_descriptor, line, (size_t)size);
  pthread_mutex_unlock(&guard);
  if (mode == FAIL_ON && number >= target && (code != ENOSPC || !works_on_a_full_disk(kind))) {
    errno = code;
    return FAIL;
  }
  if (number != target) return PASS;
  switch (mode) {
    case FAIL_ONCE: errno = code; return FAIL;
    case KILL: die();
    case KILL_SHORT: if (!is_write) die(); return HALF_AND_DIE;
    case SHORT: return is_write && bytes > 1 ? HALF : PASS;
    default: return PASS;
  }
}

static enum verdict at_path(const char *kind, int folder, const char *path) {
  char first[PATH_MAX];
  if (!armed) return PASS;
  int before = errno;
  int counts = resolve(folder, path, first) && below(first);
  errno = before;
  return counts ? judge(kind, first, "", 0) : PASS;
}

static enum verdict at_paths(const char *kind, int from, const char *old, int to, const char *new) {
  char first[PATH_MAX], second[PATH_MAX];
  if (!armed) return PASS;
  int before = errno;
  int counts = resolve(from, old, first) + resolve(to, new, second) == 2 && (below(first) || below(second));
  errno = before;
  return counts ? judge(kind, first, second, 0) : PASS;
}

static enum verdict at_file(const char *kind, int descriptor, size_t bytes) {
  char first[PATH_MAX];
  if (!armed || descriptor == log_descriptor) return PASS;
  int before = errno;
  int counts = path_of(descriptor, first) && below(first);
  errno = before;
  return counts ? judge(kind, first, "", bytes) : PASS;
}

/* Descriptors that are written to. */

#define WRITING(descriptor, size, whole, half)                 \
  enum verdict found = at_file("write", descriptor, size);     \
  if (found == FAIL) return -1;                                \
  if (found == PASS) return whole;                             \
  ssize_t done = half;                                         \
  if (found == HALF_AND_DIE) die();                            \
  return done;

ssize_t write(int fd, const void *data, size_t size) {
  WRITING(fd, size, REAL(write)(fd, data, size), REAL(write)(fd, data, size / 2))
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  WRITING(fd, size, REAL(pwrite)(fd, data, size, at), REAL(pwrite)(fd, data, size / 2, at))
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  WRITING(fd, size, REAL(pwrite64)(fd, data, size, at), REAL(pwrite64)(fd, data, size / 2, at))
}

static size_t total(const struct iovec *parts, int count) {
  size_t sum = 0;
  for (int i = 0; i < count; i++) sum += parts[i].iov_len;
  return sum;
}

static ssize_t half_of_first(int fd, const struct iovec *parts, int count) {
  return count ? REAL(write)(fd, parts[0].iov_base, parts[0].iov_len / 2) : 0;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  WRITING(fd, total(parts, count), REAL(writev)(fd, parts, count), half_of_first(fd, parts, count))
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  WRITING(fd, total(parts, count), REAL(pwritev)(fd, parts, count, at),
          count ? REAL(pwrite)(fd, parts[0].iov_base, parts[0].iov_len / 2, at) : 0)
}

ssize_t copy_file_range(int from, off64_t *here, int to, off64_t *there, size_t size, unsigned flags) {
  WRITING(to, size, REAL(copy_file_range)(from, here, to, there, size, flags),
          REAL(copy_file_range)(from, here, to, there, size / 2, flags))
}

ssize_t sendfile(int to, int from, off_t *at, size_t size) {
  WRITING(to, size, REAL(sendfile)(to, from, at, size), REAL(sendfile)(to, from, at, size / 2))
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
  WRITING(to, size, REAL(sendfile64)(to, from, at, size), REAL(sendfile64)(to, from, at, size / 2))
}

/* numpy's tofile: libc writes what is buffered by a way of its own that cannot be stood in for. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
  enum verdict found = at_file("write", fileno(stream), size * count);
  if (found == FAIL) return 0;
  size_t done = REAL(fwrite)(data, size, found == PASS ? count : count / 2, stream);
  if (found == HALF_AND_DIE) {
    fflush(stream);
    die();
  }
  return done;
}

#define CHANGING(kind, descriptor, whole) \
  return at_file(kind, descriptor, 0) == FAIL ? -1 : whole;

/* A process that is killed loses nothing that the kernel has: a real sync below the folder only costs time. */
static int sync_file(int fd, int (*real)(int)) {
  long before = calls;
  if (at_file("fsync", fd, 0) == FAIL) return -1;
  return calls > before ? 0 : real(fd);
}

int fsync(int fd) { return sync_file(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_file(fd, REAL(fdatasync)); }
int syncfs(int fd) { CHANGING("fsync", fd, REAL(syncfs)(fd)) }
int ftruncate(int fd, off_t size) { CHANGING("truncate", fd, REAL(ftruncate)(fd, size)) }
int ftruncate64(int fd, off64_t size) { CHANGING("truncate", fd, REAL(ftruncate64)(fd, size)) }
int fchmod(int fd, mode_t bits) { CHANGING("chmod", fd, REAL(fchmod)(fd, bits)) }
int fallocate(int fd, int how, off_t at, off_t size) {
  CHANGING("allocate", fd, REAL(fallocate)(fd, how, at, size))
}
int fallocate64(int fd, int how, off64_t at, off64_t size) {
  CHANGING("allocate", fd, REAL(fallocate64)(fd, how, at, size))
}
int posix_fallocate(int fd, off_t at, off_t size) {
  return at_file("allocate", fd, 0) == FAIL ? code : REAL(posix_fallocate)(fd, at, size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
  return at_file("allocate", fd, 0) == FAIL ? code : REAL(posix_fallocate64)(fd, at, size);
}

/* Names. */

#define NAMING(kind, folder, path, whole) return at_path(kind, folder, path) == FAIL ? -1 : whole;
#define MOVING(kind, from, old, to, new, whole) \
  return at_paths(kind, from, old, to, new) == FAIL ? -1 : whole;

int mkdir(const char *path, mode_t bits) { NAMING("mkdir", AT_FDCWD, path, REAL(mkdir)(path, bits)) }
int mkdirat(int in, const char *path, mode_t bits) { NAMING("mkdir", in, path, REAL(mkdirat)(in, path, bits)) }
int rmdir(const char *path) { NAMING("rmdir", AT_FDCWD, path, REAL(rmdir)(path)) }
int unlink(const char *path) { NAMING("unlink", AT_FDCWD, path, REAL(unlink)(path)) }
int remove(const char *path) { NAMING("unlink", AT_FDCWD, path, REAL(remove)(path)) }
int unlinkat(int in, const char *path, int flags) {
  NAMING(flags & AT_REMOVEDIR ? "rmdir" : "unlink", in, path, REAL(unlinkat)(in, path, flags))
}
int truncate(const char *path, off_t size) { NAMING("truncate", AT_FDCWD, path, REAL(truncate)(path, size)) }
int truncate64(const char *path, off64_t size) {
  NAMING("truncate", AT_FDCWD, path, REAL(truncate64)(path, size))
}
int chmod(const char *path, mode_t bits) { NAMING("chmod", AT_FDCWD, path, REAL(chmod)(path, bits)) }
int fchmodat(int in, const char *path, mode_t bits, int flags) {
  NAMING("chmod", in, path, REAL(fchmodat)(in, path, bits, flags))
}
int symlink(const char *to, const char *path) { NAMING("symlink", AT_FDCWD, path, REAL(symlink)(to, path)) }
int symlinkat(const char *to, int in, const char *path) {
  NAMING("symlink", in, path, REAL(symlinkat)(to, in, path))
}
int link(const char *old, const char *new) {
  MOVING("link", AT_FDCWD, old, AT_FDCWD, new, REAL(link)(old, new))
}
int linkat(int from, const char *old, int to, const char *new, int flags) {
  MOVING("link", from, old, to, new, REAL(linkat)(from, old, to, new, flags))
}
int rename(const char *old, const char *new) {
  MOVING("rename", AT_FDCWD, old, AT_FDCWD, new, REAL(rename)(old, new))
}
int renameat(int from, const char *old, int to, const char *new) {
  MOVING("rename", from, old, to, new, REAL(renameat)(from, old, to, new))
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  if (refused && flags & RENAME_EXCHANGE) {
    errno = EINVAL;
    return -1;
  }
  MOVING(flags & RENAME_EXCHANGE ? "exchange" : "rename", from, old, to, new,
         REAL(renameat2)(from, old, to, new, flags))
}

long syscall(long number, ...) {
  long given[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) given[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2)
    return renameat2((int)given[0], (const char *)given[1], (int)given[2], (const char *)given[3],
                     (unsigned)given[4]);
  return REAL(syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* Opening counts where it makes or empties a file. */

static int makes(int flags) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ||
         ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY);
}

#define OPENING(name, in, path, flags, ...)                                        \
  mode_t bits = 0;                                                                 \
  if (flags & (O_CREAT | O_TMPFILE)) {                                             \
    va_list list;                                                                  \
    va_start(list, flags);                                                         \
    bits = va_arg(list, mode_t);                                                   \
    va_end(list);                                                                  \
  }                                                                                \
  if (makes(flags) && at_path("open", in, path) == FAIL) return -1;                \
  return REAL(name)(__VA_ARGS__, bits);

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, path, flags, path, flags) }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, path, flags, path, flags) }
int openat(int in, const char *path, int flags, ...) { OPENING(openat, in, path, flags, in, path, flags) }
int openat64(int in, const char *path, int flags, ...) { OPENING(openat64, in, path, flags, in, path, flags) }
int creat(const char *path, mode_t bits) { NAMING("open", AT_FDCWD, path, REAL(creat)(path, bits)) }
int creat64(const char *path, mode_t bits) { NAMING("open", AT_FDCWD, path, REAL(creat64)(path, bits)) }

FILE *fopen(const char *path, const char *how) {
  if (strpbrk(how, "wa") && at_path("open", AT_FDCWD, path) == FAIL) return NULL;
  return REAL(fopen)(path, how);
}
FILE *fopen64(const char *path, const char *how) {
  if (strpbrk(how, "wa") && at_path("open", AT_FDCWD, path) == FAIL) return NULL;
  return REAL(fopen64)(path, how);
}

/* Calls that pass libc by: Rust's tempfile, with which safetensors writes, renames by a bare instruction. The
 * kernel sends such a call back to us (seccomp), and we make it by the function above that stands in for it.
 * What libc itself calls is known by its address and goes straight through.
 */
#ifdef __x86_64__

static const int trapped[] = {
    SYS_write,  SYS_pwrite64, SYS_writev,   SYS_fsync,     SYS_fdatasync, SYS_ftruncate,
    SYS_rename, SYS_renameat, SYS_renameat2, SYS_mkdir,    SYS_mkdirat,   SYS_rmdir,
    SYS_unlink, SYS_unlinkat, SYS_link,     SYS_linkat,    SYS_copy_file_range,
};
#define TRAPPED (sizeof trapped / sizeof *trapped)

static long stand_in(int number, const long *g) {
  const char *first = (const char *)g[0], *second = (const char *)g[1];
  switch (number) {
    case SYS_write: return write((int)g[0], (void *)g[1], (size_t)g[2]);
    case SYS_pwrite64: return pwrite((int)g[0], (void *)g[1], (size_t)g[2], g[3]);
    case SYS_writev: return writev((int)g[0], (void *)g[1], (int)g[2]);
    case SYS_fsync: return fsync((int)g[0]);
    case SYS_fdatasync: return fdatasync((int)g[0]);
    case SYS_ftruncate: return ftruncate((int)g[0], g[1]);
    case SYS_rename: return rename(first, second);
    case SYS_renameat: return renameat((int)g[0], second, (int)g[2], (char *)g[3]);
    case SYS_renameat2: return renameat2((int)g[0], second, (int)g[2], (char *)g[3], (unsigned)g[4]);
    case SYS_mkdir: return mkdir(first, (mode_t)g[1]);
    case SYS_mkdirat: return mkdirat((int)g[0], second, (mode_t)g[2]);
    case SYS_rmdir: return rmdir(first);
    case SYS_unlink: return unlink(first);
    case SYS_unlinkat: return unlinkat((int)g[0], second, (int)g[2]);
    case SYS_link: return link(first, second);
    case SYS_linkat: return linkat((int)g[0], second, (int)g[2], (char *)g[3], (int)g[4]);
    case SYS_copy_file_range:
      return copy_file_range((int)g[0], (void *)g[1], (int)g[2], (void *)g[3], (size_t)g[4], (unsigned)g[5]);
    default: errno = ENOSYS; return -1;
  }
}

static void on_trap(int signal, siginfo_t *info, void *context) {
  (void)signal;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const long given[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                         registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  int before = errno;
  long result = stand_in(info->si_syscall, given);
  registers[REG_RAX] = result < 0 ? -errno : result;
  errno = before;
}

struct range { unsigned long start, end; };

static int find_libc(struct dl_phdr_info *object, size_t size, void *into) {
  (void)size;
  if (strstr(object->dlpi_name, "/libc.so") == NULL) return 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    struct range *found = into;
    found->start = object->dlpi_addr + part->p_vaddr;
    found->end = found->start + part->p_memsz;
    return 1;
  }
  return 0;
}

/* Send bare calls of this process back to us; 0 where the kernel or the machine cannot. For good. */
int likewise_trap(void) {
  struct range libc = {0, 0};
  dl_iterate_phdr(find_libc, &libc);
  if (!libc.start || libc.start >> 32 != (libc.end - 1) >> 32) return 0;
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
  if (sigaction(SIGSYS, &action, NULL)) return 0;
  const unsigned low = offsetof(struct seccomp_data, instruction_pointer), high = low + 4;
  struct sock_filter program[TRAPPED + 9];
  size_t size = 0;
  program[size++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < TRAPPED; i++) {
    unsigned char ahead = (unsigned char)(TRAPPED - i);
    program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)trapped[i], ahead, 0);
  }
  program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[size++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, high);
  program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(libc.start >> 32), 0, 3);
  program[size++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low);
  program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)libc.end, 1, 0);
  program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)libc.start, 1, 0);
  program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  program[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = {.len = (unsigned short)size, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 0;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#else

int likewise_trap(void) { return 0; }

#endif
