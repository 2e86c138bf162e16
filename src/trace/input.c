// input.c - the bytes of a file, unpacked where it is packed (gzip, also of several members). Not what they mean.
//
// Idea: a stream with a buffer of a few hundred kilobytes, so that a file of any size takes no more memory. A file
// that is damaged gives what comes before the damage.
#include "trace/internal.h"
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum { BUFFER = 1 << 18 };
struct input {
  FILE *f;
  bool packed, cut, ended;
  u64 total;
  z_stream z;
  size_t at, have; // of buf
  u8 buf[BUFFER];
};

input *input_open(ctx *c, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    diag(c, E_FILE_OPEN, (loc){0}, "cannot open %s: %s", path, strerror(errno));
    return NULL;
  }
  input *x = base_malloc(sizeof *x);
  memset(x, 0, offsetof(input, buf));
  x->f = f;
  x->have = fread(x->buf, 1, BUFFER, f);
  if (!x->have && ferror(f)) {
    diag(c, E_FILE_OPEN, (loc){0}, "cannot read %s: %s", path, strerror(errno));
    input_close(x);
    return NULL;
  }
  x->packed = x->have >= 2 && x->buf[0] == 0x1f && x->buf[1] == 0x8b;
  if (x->packed && inflateInit2(&x->z, 15 + 16) != Z_OK) base_out_of_memory(sizeof x->z);
  return x;
}

void input_close(input *x) {
  if (!x) return;
  if (x->packed) inflateEnd(&x->z);
  fclose(x->f);
  free(x);
}

static bool refill(input *x) {
  if (x->at < x->have) return true;
  x->at = 0, x->have = fread(x->buf, 1, BUFFER, x->f);
  if (!x->have && ferror(x->f)) x->cut = true;
  return x->have > 0;
}

static size_t read_plain(input *x, u8 *to, size_t n) {
  size_t got = 0;
  while (got < n && refill(x)) {
    const size_t k = MIN(n - got, x->have - x->at);
    memcpy(to + got, x->buf + x->at, k);
    got += k, x->at += k;
  }
  return got;
}

static size_t read_packed(input *x, u8 *to, size_t n) {
  x->z.next_out = to, x->z.avail_out = (uInt)n;
  while (x->z.avail_out && !x->ended) {
    if (!refill(x)) {
      x->cut = x->ended = true; // a member without its end
      break;
    }
    x->z.next_in = x->buf + x->at, x->z.avail_in = (uInt)(x->have - x->at);
    const int r = inflate(&x->z, Z_NO_FLUSH);
    x->at = x->have - x->z.avail_in;
    if (r == Z_STREAM_END) {
      x->ended = !refill(x) || x->buf[x->at] != 0x1f; // else another member; padding is passed over
      if (!x->ended) inflateReset(&x->z);
    } else if (r != Z_OK && r != Z_BUF_ERROR) {
      x->cut = x->ended = true;
    }
  }
  return n - x->z.avail_out;
}

size_t input_read(input *x, u8 *to, size_t n) {
  size_t got = 0;
  while (got < n) { // zlib counts in 32 bits
    const size_t want = MIN(n - got, (size_t)1 << 30);
    const size_t k = x->packed ? read_packed(x, to + got, want) : read_plain(x, to + got, want);
    got += k;
    if (k < want) break;
  }
  x->total += got;
  return got;
}

bool input_cut(const input *x) { return x->cut; }
u64 input_total(const input *x) { return x->total; }
