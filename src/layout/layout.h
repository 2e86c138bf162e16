// layout.h - where the elements of a tensor lie: axes, meshes, groups, layouts and the ways from one layout
// to another. Layer 1: pure index arithmetic, knows no programs.
//
// Idea: an axis of size n splits a dimension at a stride. Element index i of the dimension belongs to the
// coordinate (i / stride) % n. So a layout is a small set of (axis, dim, stride) plus a set of axes over
// which the value is still partial; every other axis of the group replicates. This is SuperScaler's R/V/D
// with named axes; a fused QKV weight of 3072 = 3 x 16 x 64 split over heads by tp=4 is (tp, dim, 256), and
// several axes on one dimension are several strides. Layouts are interned: equal layouts have equal ids; so
// an axis of size 1 is never part of one, and a table of equal contiguous pieces is the stride it stands for.
// docs/design/layouts.md has the reasons.
#ifndef HEDDLE_LAYOUT_H
#define HEDDLE_LAYOUT_H
#include "base/base.h"

enum { DIMS_MAX = 8, AXES_MAX = 64, LAY_SPLITS = 16, LAY_PARTS = 8, MESH_AXES = 12 };

typedef struct {
  u32 i;
} mesh; // 0 = none
typedef struct {
  u32 i;
} group; // 0 = the group the surrounding function is called on
typedef struct {
  u32 i;
} layout; // 0 = replicated everywhere
typedef struct {
  u32 i;
} pieces;                   // 0 = regular pieces
typedef struct space space; // owns axes, meshes, groups, layouts, piece tables

typedef enum { RED_NONE, RED_SUM, RED_MAX, RED_MIN, RED_PROD } reduction; // of partial results
const char *red_name(reduction r);                                        // "none" "sum" "max" "min" "prod"

space *space_new(ctx *c, arena *a);
space *space_clone(const space *s, ctx *c, arena *a); // same ids

// ---- axes. Atoms: a spatial axis lies across ranks, a temporal axis in time on the same ranks. ----------
// An id is 1..AXES_MAX-1; 0 = none. Names are unique in a space.
typedef struct {
  sym name;
  u32 size;
  bool temporal;
  u32 nparts; // of one in time: coordinates that run on placements of their own, one part after the other; 0: one
  const u32 *part;
} axis_info;
u8 axis_add(space *s, sym name, u32 size,
            bool temporal); // 0 and a diagnostic when the name exists or too many
void axis_in_parts(space *s, u8 axis, const u32 *part, u32 n);
u8 axis_find(const space *s, sym name); // 0 if absent
const axis_info *axis_get(const space *s, u8 axis);
u32 axis_count(const space *s);                               // ids are 1..axis_count
static inline u32 axis_size(const space *s, u8 axis);         // below
bool axis_alias(space *s, sym name, const u8 *axes, u32 n);   // a name for a product, major first
u32 axis_expand(const space *s, sym name, u8 *axes, u32 cap); // atoms of an axis or alias; 0 if unknown

// ---- meshes and groups ---------------------------------------------------------------------------------
// A mesh numbers ranks row-major over its spatial axes (major first): rank = first + row-major index, or an
// explicit list. A group is a mesh with some axes fixed at a coordinate or restricted to a subset; its
// members are numbered row-major over what is left. Bad arguments: a diagnostic E_NAME, E_GROUP or E_LIMIT,
// and id 0.
typedef struct {
  sym name;
  u32 naxes;
  u8 axis[MESH_AXES];
  u32 nranks;
  u32 first;
  const u32 *ranks;
} mesh_info;
mesh mesh_add(space *s, sym name, const u8 *axes, u32 naxes, u32 first,
              const u32 *ranks); // ranks copied, or NULL
mesh mesh_find(const space *s, sym name);
const mesh_info *mesh_get(const space *s, mesh m);
u32 mesh_count(const space *s);
u32 mesh_ranks(const space *s); // of all meshes: one past the last; 0: there is no mesh
typedef struct {
  u8 axis;
  int at; // >= 0: fixed at this coordinate; -1: free; -2: the subset `only`
  u32 nonly;
  const u32 *only; // coordinates, in order
} group_axis;
typedef struct {
  mesh m;
  u32 naxes;
  group_axis axis[MESH_AXES]; // all axes of the mesh, in mesh order
  u32 nranks;
  const u32 *ranks; // member -> rank
} group_info;
group group_of(space *s, mesh m, const group_axis *fix,
               u32 nfix); // axes not named in fix are free; {0}+diag if bad
group group_fix(space *s, group g, u8 axis,
                u32 at); // g with one more axis fixed at this coordinate of the mesh
group group_all(space *s, mesh m);
const group_info *group_get(const space *s, group g); // of group 0: no mesh, no ranks
u32 group_count(const space *s);
bool group_has_axis(const space *s, group g,
                    u8 axis); // is it free (or a subset) in g, i.e. usable in layouts; in
                              // group 0 every spatial axis is, with its whole size
u32 group_axis_size(const space *s, group g,
                    u8 axis);                        // size within the group (subset: its length; absent: 1)
int group_member(const space *s, group g, u32 rank); // member number, or -1
u32 group_coord(const space *s, group g, u32 member, u8 axis); // position along the axis *within the group*
// Group 0 where no call says which group that is: one rank, number 0.
static inline u32 group_size(const space *s, group g);             // members
static inline u32 group_rank(const space *s, group g, u32 member); // below
static inline int group_place(const space *s, group g, u32 rank) { // member number, or -1
  return g.i ? group_member(s, g, rank) : rank == 0 ? 0 : -1;
}
// The group that is meant by one in a function that is called on `call`.
static inline group group_bind(group own, group call) { return own.i ? own : call; }
// Subgroups over some axes: members equal in all other axes. `lead` is the member with coordinate 0 on
// `axes`; element k (row-major over axes, major first) of its subgroup is lead + offset[k]. n = product of
// the sizes, returned; at most cap offsets are written.
u32 group_offsets(const space *s, group g, const u8 *axes, u32 naxes, u32 *offset, u32 cap);
u32 group_lead(const space *s, group g, u32 member, const u8 *axes, u32 naxes);
// like[member]: the first member that has its coordinates on `axes`; all its others are 0. same: NULL, or for each of
// `axes` the coordinate that is taken for one of it (layout_same_sizes).
void group_likes(const space *s, group g, const u8 *axes, u32 naxes, const u32 *const *same, u32 *like);

// ---- layouts -------------------------------------------------------------------------------------------
typedef struct {
  u8 axis, dim;
  u16 table;
  i64 stride;
} lay_split; // table: a `pieces` id when uneven (stride 0)
typedef struct {
  u8 axis, red;
} lay_part;
typedef struct {
  u32 nsplit, npart;
  lay_split split[LAY_SPLITS];
  lay_part part[LAY_PARTS];
} layout_info;
// Canonical order: splits by dimension, stride descending, axis; parts by axis. Asserts that an axis occurs
// once.
layout layout_of(space *s, const layout_info *l);
const layout_info *layout_get(const space *s, layout l);
// May this layout be used for a tensor of these extents on this group? Strides nest and divide, axes belong
// to g or are temporal, no axis twice. Otherwise a diagnostic E_LAYOUT / E_DIVIDE at `at` and false. Nesting:
// the coordinates are digits of the index, disjoint ones: of two strides s > t with sizes m, n on one
// dimension t*n divides s, and the largest s*m divides the extent. What is left of the digits, in order, is
// the local index. An axis that g restricts to a subset splits by a table only, with a piece for each
// position in the subset.
bool layout_check(space *s, layout l, group g, u32 nd, const i64 *dims, loc at);
bool layout_fits(const space *s, layout l, u32 nd,
                 const i64 *dims); // the same without groups and diagnostics
const lay_split *layout_split_of(const space *s, layout l, u8 axis); // NULL if the axis does not split
reduction layout_part_of(const space *s, layout l, u8 axis);         // RED_NONE if not partial over it
layout layout_without(space *s, layout l, u8 axis);                  // axis replicates
layout layout_with_split(space *s, layout l, u8 axis, u8 dim, i64 stride);
layout layout_with_pieces(space *s, layout l, u8 axis, u8 dim, pieces p);
layout layout_with_part(space *s, layout l, u8 axis, reduction r);
// The stride at which one more axis of size n splits what is left of a dimension, as far major as it can.
// 0 if it does not divide, or if the dimension has uneven pieces.
i64 layout_next_stride(const space *s, layout l, u8 dim, i64 extent, u32 n);

// Uneven pieces of one dimension over one axis: piece k is a list of half-open intervals (may be empty,
// overlap, or several: zig-zag). Intervals are given as lo0,hi0,lo1,hi1,...; begin[k]..begin[k+1] index
// interval pairs. Asserts that they lie in 0..extent and that those of one piece do not overlap; copied.
// Every index must be in some piece for a layout to fit. Beside its table a dimension may have strides, not a
// second table; a rank then holds what both give it, in the table's order.
typedef struct {
  u32 npieces;
  const u32 *begin;
  const i64 *bound;
  const u32 *like; // by piece: one not behind it of as many elements, itself after the first 16 sizes
  i64 extent;
  i64 each;     // > 0: piece k is each*k..each*(k+1), the same as a stride
  i64 longest;  // elements of the largest piece
  bool covers;  // every index is in some piece
  bool ordered; // the intervals of every piece ascend, and none but a piece's first is empty
} pieces_info;
pieces pieces_of(space *s, u32 npieces, const u32 *begin, const i64 *bound, i64 extent);
// n pieces that differ by one element at most, the larger ones first. n <= extent.
pieces pieces_spread(space *s, u32 n, i64 extent);
// Of every `block` consecutive elements piece k has share[k] parts in sum, one piece after the other; a share
// may be 0. Asserts that block divides extent, and the sum of shares block.
pieces pieces_shared(space *s, u32 n, const u32 *share, i64 block, i64 extent);
// Where the sum of shares does not divide the extent: each piece ends at the whole element below its share's
// end.
pieces pieces_near(space *s, u32 n, const u32 *share, i64 extent);
// The pieces of a dimension of factors outer x (extent of p) x inner that is cut as p cuts the middle one;
// and the other way round, {0} if the dimension is not cut so.
pieces pieces_tile(space *s, pieces p, i64 outer, i64 inner);
pieces pieces_untile(space *s, pieces p, i64 outer, i64 inner);
const pieces_info *pieces_get(const space *s, pieces p);

// Coordinates of every axis for one member of a group and one temporal point (temporal may be NULL = all 0).
// Free axes: group_coord; fixed ones: the coordinate they are fixed at.
typedef struct {
  u16 at[AXES_MAX];
} coords;
void coords_of(const space *s, group g, u32 member, const coords *temporal, coords *out);
i64 layout_local_extent(const space *s, layout l, u8 dim, i64 extent,
                        const coords *c); // c may be NULL if even
void layout_local_dims(const space *s, layout l, u32 nd, const i64 *dims, const coords *c, i64 *out);
// The axes of the group, n of them in axes[MESH_AXES] already, and those that cut dimensions with uneven
// pieces of this layout, each once; their number. Members with the same coordinates on them hold pieces of
// the same extents.
u32 layout_uneven_axes(const space *s, layout l, group g, u8 *axes, u32 n);
// same[k], of each coordinate that the group has on the axis: one not behind it, same[same[k]] = same[k], with pieces
// of the same extents, whatever the other coordinates are; of all layouts that it was called for, with all 0 at first.
void layout_same_sizes(const space *s, layout l, group g, u8 axis, u32 *same);
// index[k] = global index of local index k along the dimension; returns the local extent.
i64 layout_index(const space *s, layout l, u8 dim, i64 extent, const coords *c, i64 *index);
// Elements that a rank with layout l at coordinates c and one with layout m at d both hold.
i64 layout_common_elems(const space *s, u32 nd, const i64 *dims, layout l, const coords *c, layout m,
                        const coords *d);
bool layout_is_even(const space *s, layout l);
i64 layout_local_elems(const space *s, layout l, u32 nd,
                       const i64 *dims); // uneven: the largest piece, shared by the strides

// ---- from one layout to another (intra-group) ----------------------------------------------------------
// One step moves one or more axes between the roles replicated, partial and split. Kinds are SuperScaler's
// edges: D->R all_gather, D->D' all_to_all (another dimension, or another stride or table of the same one),
// V->R all_reduce, V->D reduce_scatter, R->D shard (free), R->V partial (free). `permute` exchanges whole
// pieces between ranks when only the axes' places differ.
typedef enum {
  STEP_SHARD,
  STEP_PARTIAL,
  STEP_ALL_GATHER,
  STEP_ALL_REDUCE,
  STEP_REDUCE_SCATTER,
  STEP_ALL_TO_ALL,
  STEP_PERMUTE,
  STEP_EXCHANGE // whatever changes, by plain sends: on no cheapest path
} step_kind;
typedef struct {
  step_kind kind;
  u32 naxes;
  u8 axis[MESH_AXES];
  layout to;
} layout_step;
// Cost of one step (any unit): over `axes` (n ways in all), from a value of in_elems local elements to
// out_elems.
typedef double step_cost(void *arg, step_kind kind, const u8 *axes, u32 naxes, u32 n, i64 in_elems,
                         i64 out_elems);
enum { PLAIN_STEPS = 6 };
// A path without a search: sums first, then what is split otherwise, each by STEP_EXCHANGE; what moves nothing by shard and
// partial. Returns as layout_path.
int layout_plain_path(space *s, group g, u32 nd, const i64 *dims, layout from, layout to,
                      layout_step steps[PLAIN_STEPS]);
// What the member of the group that is sent most in an exchange over the axes is sent, in elements.
i64 layout_exchanged_elems(const space *s, group g, u32 nd, const i64 *dims, layout from, layout to,
                           const u8 *axes, u32 naxes);
double step_cost_elements(void *arg, step_kind kind, const u8 *axes, u32 naxes, u32 n, i64 in_elems,
                          i64 out_elems); // elements moved + 1 a hop (nnScaler's rule)
// Cheapest chain of steps from one layout to another of a tensor on a group (Dijkstra over the steps that can
// help; what they leave out is counted in docs/design/layouts.md). Returns the number of steps written to
// `steps` (cap at most), or -1 if there is none within cap (a temporal axis changes, the layouts do not fit);
// *cost gets the sum. Ties go to the fewest steps, then to the first axis: deterministic. A cost is at least
// 0; INFINITY forbids the step. Axes of a step are in the order of the strides they leave or take, else of
// the mesh. Uneven pieces occur on the way only as they are in `from` or `to`, and count as their largest.
int layout_path(space *s, group g, u32 nd, const i64 *dims, layout from, layout to, step_cost *cost_fn,
                void *arg, layout_step *steps, u32 cap, double *cost);

// The whole R/V/D graph up to axis names: states are (R,V,D1..Dk) with R*V*D1*..*Dk = ndevices and Di
// dividing the extents; all shortest paths. cost[i*n+j], next[i*n+j] (state after i on the way to j; n if
// none). Arrays in `a`.
typedef struct {
  u32 n, nd;
  const u32 *state; /* n x (2+nd) */
  const double *cost;
  const u32 *next;
} rvd_graph;
rvd_graph rvd_all_paths(arena *a, u32 ndevices, u32 nd, const i64 *dims, step_cost *cost_fn, void *arg);

// ---- text: "[2048{dp},3072{tp:256},64]+tp,max pp" ------------------------------------------------------
// {a,b:64}: axes, with the stride where it is not layout_next_stride after those before it.
// {a:0-5|-|5-8+9-12}: the pieces of coordinates 0, 1 (none), 2 (two intervals). After the bracket the partial
// axes: "+tp" a sum, " max pp".
void layout_print(const space *s, layout l, u32 nd, const i64 *dims, strbuf *out);
void group_print(const space *s, group g, strbuf *out); // "@m[pp=0,dp={0,3}]"
// Read what was printed (blanks between tokens and names of products are fine too) and leave *text behind it.
// Otherwise false, *text where it fails, *error the reason (lives as long as the session). Whether the layout
// fits the extents is layout_check's to say.
bool layout_parse(space *s, const char **text, u32 *nd, i64 dims[DIMS_MAX], layout *out, const char **error);
bool group_parse(space *s, const char **text, group *out, const char **error); // free axes also as "pp=*"

typedef struct {
  pieces from, to;
  i64 outer, inner;
  bool back;
} piece_tile;
struct group_dims;
struct path_work;
struct space { // fields are private to layout/, except through the inlines here
  ctx *c;
  arena *a;
  axis_info axis[AXES_MAX];
  u32 naxes;
  VEC(struct {
    sym name;
    u32 n;
    u8 axis[MESH_AXES];
  })
  aliases;
  VEC(mesh_info) meshes;
  VEC(group_info) groups;
  VEC(layout_info) layouts;
  VEC(pieces_info) tables;
  VEC(piece_tile) tiles;
  hmap group_map, layout_map, table_map, spread_map, tile_map;
  VEC(struct group_dims) group_dims; // beside groups: how member numbers are made of coordinates
  VEC(u32 *) mesh_order;  // beside meshes: positions by ascending rank, NULL if ranks are consecutive
  struct path_work *path; // memory that layout_path uses again and again
};
static inline u32 axis_size(const space *s, u8 axis) { return s->axis[axis].size; }
static inline u32 group_size(const space *s, group g) { return g.i ? s->groups.v[g.i].nranks : 1; }
static inline u32 group_rank(const space *s, group g, u32 member) {
  return g.i ? s->groups.v[g.i].ranks[member] : 0;
}
#endif
