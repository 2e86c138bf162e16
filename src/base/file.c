// file.c - whole files in and out. Not a stream layer: inputs are mapped, outputs appear at once.
//
// Idea: an output is written beside its target without a name, or under a temporary one, and renamed when it
// is complete, so whoever looks at the target sees the old content or the new one, never a part, and an
// interrupted write leaves nothing behind. Devices and pipes
// (/dev/null, a fifo) cannot be replaced and are written in place.
#define _GNU_SOURCE // O_TMPFILE, and the strerror_r that goes with it
#include "base/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *reason(int err, char buf[128]) { return strerror_r(err, buf, 128); }

static bool open_failed(ctx *c, const char *path, int err) {
  char buf[128];
  diag(c, E_FILE_OPEN, (loc){0}, "cannot read '%s': %s", path, reason(err, buf));
  return false;
}

static const char *folder_of(arena *a, const char *target) {
  const char *slash = strrchr(target, '/');
  return !slash ? "." : slash == target ? "/" : arena_strndup(a, target, (size_t)(slash - target));
}

static bool write_failed(ctx *c, const char *path, int err) {
  char buf[128];
  const char *folder = folder_of(ctx_arena(c), path);
  strbuf b = {.a = ctx_arena(c)};
  diag(c, E_FILE_WRITE, (loc){0}, "cannot write '%s': %s", path, reason(err, buf));
  if (err != ENOENT || !access(folder, F_OK))
    return false; // some file systems say so of a file in a folder that is there
  sb_shell(&b, folder);
  diag_hint(c, "mkdir -p %s%s", *folder == '-' ? "-- " : "", sb_str(&b));
  return false;
}

// Reads what cannot be mapped: pipes, empty files, files of /proc that claim to be empty.
static int read_all(int fd, u8 **data, size_t *size) {
  size_t cap = 4096, n = 0;
  u8 *p = malloc(cap);
  if (!p) return ENOMEM;
  for (;;) {
    ssize_t got = read(fd, p + n, cap - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      int err = errno;
      free(p);
      return err;
    }
    if (!got) break;
    n += (size_t)got;
    if (n == cap) {
      u8 *q = realloc(p, cap *= 2);
      if (!q) {
        free(p);
        return ENOMEM;
      }
      p = q;
    }
  }
  *data = p;
  *size = n;
  return 0;
}

bool file_map(ctx *c, const char *path, file_view *out) {
  *out = (file_view){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return open_failed(c, path, errno);
  struct stat st;
  int err = 0;
  if (fstat(fd, &st)) {
    err = errno;
  } else if (S_ISDIR(st.st_mode)) {
    err = EISDIR;
  } else if (S_ISREG(st.st_mode) && st.st_size > 0) {
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
      err = errno;
    else
      *out = (file_view){p, (size_t)st.st_size, true};
  } else {
    u8 *p = NULL;
    size_t n = 0;
    err = read_all(fd, &p, &n);
    if (!err) *out = (file_view){p, n, false};
  }
  close(fd);
  return err ? open_failed(c, path, err) : true;
}

void file_unmap(file_view *f) {
  if (f->mapped)
    munmap((void *)f->data, f->size);
  else
    free((void *)f->data);
  *f = (file_view){0};
}

_Thread_local i64 base_io_fail_after;
static bool io_fails(void) {
  if (!base_io_fail_after || base_io_fail_after-- > 1) return false;
  base_io_fail_after = 1;
  errno = EIO;
  return true;
}

// at: in the file; -1: behind what was written.
static int write_all(int fd, const u8 *p, size_t n, i64 at) {
  const bool fails = io_fails();
  for (size_t left = fails ? n / 2 : n; left;) {
    const size_t most = MIN(left, (size_t)1 << 30);
    ssize_t put = at < 0 ? write(fd, p, most) : pwrite(fd, p, most, (off_t)at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    p += put;
    left -= (size_t)put;
    if (at >= 0) at += put;
  }
  return fails ? EIO : 0;
}

// A file without a name is gone when the process is: an interrupted write leaves nothing behind. -1 where the
// file system has no such files.
static int open_nameless(arena *a, const char *target) {
#ifdef O_TMPFILE
  return open(folder_of(a, target), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
#else
  return (void)a, (void)target, -1;
#endif
}

typedef struct {
  char s[32];
} fd_path;
static fd_path path_of_fd(int fd) {
  fd_path p;
  snprintf(p.s, sizeof p.s, "/proc/self/fd/%d", fd);
  return p;
}

static int name_it(int fd, const char *name) {
  if (io_fails()) return EIO;
  return linkat(AT_FDCWD, path_of_fd(fd).s, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

struct file_out {
  ctx *c;
  int fd, err;
  int mode;                // of the file replaced, or negative: then the umask decides
  bool nameless, standard; // standard: standard output, which stays open
  bool durable;
  const char *path;
  const char *target, *temp; // NULL: written in place
};

// Beside the target, without a name where it can be given one later (not without /proc).
static void open_beside(file_out *f, arena *a) {
  u64 state = clock_ns() ^ (u64)getpid() << 40;
  f->temp = arena_printf(a, "%s.%08x.tmp", f->target, (u32)rng_next(&state));
  f->fd = open_nameless(a, f->target);
  f->nameless = f->fd >= 0;
  if (f->nameless && access(path_of_fd(f->fd).s, F_OK)) {
    close(f->fd);
    f->nameless = false;
  }
  if (!f->nameless) f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

file_out *file_begin(ctx *c, arena *a, const char *path) {
  file_out *f = NEW(a, file_out);
  char real[PATH_MAX]; // through a link: the file is replaced, the link stays
  struct stat st;
  *f = (file_out){.c = c, .path = path, .mode = -1};
  if (!strcmp(path, "-")) {
    fflush(stdout);
    f->path = "standard output";
    f->fd = STDOUT_FILENO;
    f->standard = true;
    return f;
  }
  bool old = !stat(path, &st);
  if (old && S_ISDIR(st.st_mode)) {
    write_failed(c, path, EISDIR);
    return NULL;
  }
  if (old && !S_ISREG(st.st_mode)) {
    f->fd = open(path, O_WRONLY | O_CLOEXEC);
  } else {
    if (old) f->mode = (int)st.st_mode;
    f->target = arena_strdup(a, old && realpath(path, real) ? real : path);
    open_beside(f, a);
  }
  if (f->fd >= 0) return f;
  write_failed(c, path, errno);
  return NULL;
}

void file_durable(file_out *f) { f->durable = true; }

void file_put(file_out *f, const void *data, size_t n) {
  if (!f->err) f->err = write_all(f->fd, data, n, -1);
}
void file_put_at(file_out *f, i64 at, const void *data, size_t n) {
  if (!f->err) f->err = write_all(f->fd, data, n, at);
}

static void remove_temp(const file_out *f) {
  if (!io_fails()) unlink(f->temp);
}

static int sync_fd(int fd) { return io_fails() || fsync(fd) ? errno : 0; }

// The folder, in which a name is new.
static int sync_folder(const char *target) {
  arena *a = arena_new();
  const int fd = open(folder_of(a, target), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  arena_free(a);
  if (fd < 0) return errno;
  const int err = sync_fd(fd);
  close(fd);
  return err;
}

static int rename_it(const char *from, const char *to) { return io_fails() || rename(from, to) ? errno : 0; }

void file_drop(file_out *f) {
  if (!f || f->standard) return;
  close(f->fd);
  if (f->target && !f->nameless) remove_temp(f);
}

bool file_end(file_out *f) {
  if (f->standard) return f->err ? write_failed(f->c, f->path, f->err) : true;
  if (!f->err && f->mode >= 0 && fchmod(f->fd, (mode_t)f->mode & 07777)) f->err = errno;
  if (!f->err && f->durable && f->target) f->err = sync_fd(f->fd);
  if (!f->err && f->nameless) f->err = name_it(f->fd, f->temp);
  if (close(f->fd) && !f->err) f->err = errno;
  if (!f->err && f->target) f->err = rename_it(f->temp, f->target);
  if (f->err && f->target) remove_temp(f);
  if (!f->err && f->durable && f->target) f->err = sync_folder(f->target);
  return f->err ? write_failed(f->c, f->path, f->err) : true;
}

bool file_write(ctx *c, const char *path, const void *data, size_t n) {
  arena *a = arena_new();
  file_out *f = file_begin(c, a, path);
  if (f) file_put(f, data, n);
  bool ok = f && file_end(f);
  arena_free(a);
  return ok;
}

bool file_exists(const char *path) {
  struct stat st;
  return !stat(path, &st);
}

bool dir_exists(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool dir_readable(ctx *c, const char *path) {
  char buf[128];
  if (!access(path, R_OK | X_OK)) return true;
  diag(c, E_FILE_OPEN, (loc){0}, "cannot read '%s': %s", path, reason(errno, buf));
  return false;
}

// Makes the missing parents too.
bool dir_make(ctx *c, const char *path) {
  arena_mark_t m = arena_mark(c->a);
  char *p = arena_strdup(c->a, path), *s = p;
  int err = 0;
  do {
    s += strspn(s, "/");
    s += strcspn(s, "/");
    char end = *s;
    *s = 0;
    if (*p && mkdir(p, 0777) && errno != EEXIST) err = errno;
    *s = end;
  } while (!err && *s);
  struct stat st;
  if (!err && stat(path, &st)) err = errno;
  if (!err && !S_ISDIR(st.st_mode)) err = ENOTDIR;
  if (!err && access(path, W_OK | X_OK)) err = errno;
  arena_release(c->a, m);
  return err ? write_failed(c, path, err) : true;
}
