// two_products.h - two products and a squared error as text: main has 5 instructions.
#ifndef HEDDLE_TEST_TWO_PRODUCTS_H
#define HEDDLE_TEST_TWO_PRODUCTS_H

#define TWO_PRODUCTS(weights, second, types, results)                                                        \
  "func @main(%x: f32[12,8], %y: f32[12,8] label, %w: f32[8,8] weight" weights ") -> (" types ") {\n"        \
  "  %1 = matmul %x, %w\n"                                                                                   \
  "  %2 = matmul %1, " second "\n"                                                                           \
  "  %3 = sub %2, %y\n"                                                                                      \
  "  %4 = mul %3, %3\n"                                                                                      \
  "  %5 = reduce_sum %4 {axes=[0,1], keepdims=0}\n"                                                          \
  "  return " results "\n"                                                                                   \
  "}\n"
#define TWO TWO_PRODUCTS(", %v: f32[8,8] weight", "%v", "f32[]", "%5")
// The same weight twice; and beside the loss a result that has the batch.
#define TIED             TWO_PRODUCTS("", "%w", "f32[]", "%5")
#define TIED_WITH_RESULT TWO_PRODUCTS("", "%w", "f32[], f32[12,8]", "%5, %2")
#endif
