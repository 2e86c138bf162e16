// internal.h - what the files of layout/ share among themselves and hide from everybody else.
#ifndef HEDDLE_LAYOUT_INTERNAL_H
#define HEDDLE_LAYOUT_INTERNAL_H
#include "layout/layout.h"

enum { NO_SLOT = 255 };

// member = sum over the axes of the mesh of (position in the group) * step; position = member / step % size.
struct group_dims {
  u8 slot[AXES_MAX]; // axis -> place in the mesh, NO_SLOT if the mesh does not have it
  u32 size[MESH_AXES], step[MESH_AXES];
};

// One even split of a dimension, as a digit of its index.
typedef struct {
  i64 stride;
  u32 size;
} digit;

// May these two split one dimension? Neither reads a digit of the other.
static inline bool digits_nest(digit x, digit y) {
  return x.stride % (y.stride * y.size) == 0 || y.stride % (x.stride * x.size) == 0;
}
// Does one fit the extent?
static inline bool digit_fits(digit x, i64 extent) {
  return x.stride > 0 && x.stride <= extent / x.size && extent % (x.stride * x.size) == 0;
}
// layout_next_stride over digits, largest stride first.
i64 digits_next(const digit *d, u32 n, i64 extent, u32 size);

// Do the intervals of a table lie in 0..extent, and those of one piece apart? Otherwise *piece is the first
// that fails.
bool pieces_sound(arena *a, u32 npieces, const u32 *begin, const i64 *bound, i64 extent, u32 *piece);

#endif
