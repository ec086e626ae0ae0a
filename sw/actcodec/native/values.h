// Number formats of tensors, SFPR of one value (docs/bitstream.md, sections 5 and 6), and how loops are shared among threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "constants.h"

namespace cdu {

struct Bf16 {
    uint16_t bits;
};

inline float widened(float x) { return x; }
inline float widened(_Float16 x) { return float(x); }
inline float widened(Bf16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }

// Rounded to nearest, ties to even; beyond the largest number it is infinity. Never called with NaN.
template <class T> inline T narrowed(float y);
template <> inline float narrowed(float y) { return y; }
template <> inline _Float16 narrowed(float y) { return _Float16(y); }
template <> inline Bf16 narrowed(float y) {
    uint32_t bits = std::bit_cast<uint32_t>(y);
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// body(T{}) with the type of a number format.
template <class Body> inline auto with_format(int format, Body body) {
    if (format == DTYPE_BF16) return body(Bf16{});
    if (format == DTYPE_FP16) return body(_Float16{});
    return body(float{});
}

// sat(round(x * k)) of the exact product (two significands of 24 bits fit a double), ties to even; NaN becomes 0.
template <int LEAST, int GREATEST, class T> inline int32_t scaled(T x, double k) {
    double product = double(widened(x)) * k;
    product = product == product ? product : 0.0;
    product = std::max(double(LEAST), std::min(double(GREATEST), product));
    return int32_t(std::nearbyint(product));
}

// body(i) for i from 0 to count - 1.
template <class Body> inline void parallel(int64_t count, int threads, Body body) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < count; ++i) body(i);
}

inline int64_t pieces(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Values that one step of a parallel loop handles.
constexpr int64_t PIECE = 1 << 14;

}  // namespace cdu
