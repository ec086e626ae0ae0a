// Number formats of tensors, eight values at a time; SFPR (docs/reference/bitstream.md, sections 5 and 6); loops shared among threads.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "constants.h"

namespace cdu {

// The values of a beat. Operators work on all of them at once, and the compiler splits them where a machine has shorter vectors.
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words32 __attribute__((vector_size(4 * LANES)));
typedef uint16_t Words16 __attribute__((vector_size(2 * LANES)));
typedef int16_t Shorts __attribute__((vector_size(2 * LANES)));
typedef int8_t Bytes __attribute__((vector_size(LANES)));
typedef uint8_t Codes __attribute__((vector_size(LANES)));

template <class V> inline V load(const void* from) {
    V vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class V> inline void store(void* to, V vector) { std::memcpy(to, &vector, sizeof vector); }

template <class V> inline V least(V a, V b) { return a < b ? a : b; }
template <class V> inline V greatest(V a, V b) { return a > b ? a : b; }

// Conversions between 8 and 32 bits go by way of 16: compilers turn __builtin_convertvector there into one value at a time.
inline Ints widened(Bytes x) {
    Bytes zero = {};
    auto high = __builtin_shufflevector(zero, x, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15);
    return __builtin_convertvector(std::bit_cast<Shorts>(high) >> 8, Ints);
}
inline Ints widened(Codes x) {
    Codes zero = {};
    auto low = __builtin_shufflevector(x, zero, 0, 8, 1, 8, 2, 8, 3, 8, 4, 8, 5, 8, 6, 8, 7, 8);
    return __builtin_convertvector(std::bit_cast<Words16>(low), Ints);
}
// Returns the low bytes.
template <class Narrow> inline Narrow narrowed(Ints x) {
    typedef uint8_t Pairs __attribute__((vector_size(2 * LANES)));
    auto pairs = std::bit_cast<Pairs>(__builtin_convertvector(x, Shorts));
    return std::bit_cast<Narrow>(__builtin_shufflevector(pairs, pairs, 0, 2, 4, 6, 8, 10, 12, 14));
}
inline Floats floats(Ints x) { return __builtin_convertvector(x, Floats); }

struct Bf16 {
    uint16_t bits;
};

inline Floats load8(const float* x) { return load<Floats>(x); }
inline Floats load8(const Bf16* x) { return std::bit_cast<Floats>(__builtin_convertvector(load<Words16>(x), Words32) << 16); }
inline Floats load8(const _Float16* x) {
    Floats values;
    for (int i = 0; i < LANES; ++i) values[i] = float(x[i]);
    return values;
}

// Rounds to nearest, ties to even; beyond the largest number the result is infinity. Never called with NaN.
inline void store8(float* y, Floats values) { store(y, values); }
inline void store8(_Float16* y, Floats values) {
    for (int i = 0; i < LANES; ++i) y[i] = _Float16(values[i]);
}
inline void store8(Bf16* y, Floats values) {
    Words32 bits = std::bit_cast<Words32>(values);
    store(y, __builtin_convertvector((bits + 0x7fff + (bits >> 16 & 1)) >> 16, Words16));
}

// Loads the first `count` values, 1 to 8; the last of them fills the places behind.
template <class T> inline Floats load_some(const T* x, int64_t count) {
    if (count >= LANES) return load8(x);
    T some[LANES];
    for (int i = 0; i < LANES; ++i) some[i] = x[std::min<int64_t>(i, count - 1)];
    return load8(some);
}

template <class T> inline void store_some(T* y, Floats values, int64_t count) {
    if (count >= LANES) return store8(y, values);
    T some[LANES];
    store8(some, values);
    std::copy_n(some, count, y);
}

// Converts `count` values to float32, and back.
template <class T> inline void to_floats(const T* x, int64_t count, float* values) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store8(values + i, load8(x + i));
    if (i < count) store_some(values + i, load_some(x + i, count - i), count - i);
}
template <class T> inline void from_floats(const float* values, int64_t count, T* y) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store8(y + i, load8(values + i));
    if (i < count) store_some(y + i, load_some(values + i, count - i), count - i);
}

// Calls body(T{}) with the type of a number format.
template <class Body> inline auto with_format(int format, Body body) {
    if (format == DTYPE_BF16) return body(Bf16{});
    if (format == DTYPE_FP16) return body(_Float16{});
    return body(float{});
}

// Returns sat(round(x * k)) of the exact product, ties to even; NaN becomes 0. The limits have at most 16 bits.
template <int LEAST, int GREATEST> inline Ints scaled(Floats x, float k) {
#ifdef __FMA__
    // The sum's float has no bits for fractions and is rounded once, to a whole number, ties to even. The last bits of the sum
    // are that number.
    constexpr float SHIFTER = 0x1.8p23f;
    Floats sum = std::bit_cast<Floats>(_mm256_fmadd_ps(std::bit_cast<__m256>(x), _mm256_set1_ps(k), _mm256_set1_ps(SHIFTER)));
    Floats zero = {};
    sum = x == x ? greatest(least(sum, zero + (SHIFTER + GREATEST)), zero + (SHIFTER + LEAST)) : zero + SHIFTER;
    return std::bit_cast<Ints>(sum) - std::bit_cast<int32_t>(SHIFTER);
#else
    constexpr int HALF = LANES / 2;
    typedef double Doubles __attribute__((vector_size(8 * HALF)));
    typedef float HalfFloats __attribute__((vector_size(4 * HALF)));
    typedef int32_t HalfInts __attribute__((vector_size(4 * HALF)));
    // Two significands of 24 bits fit a double, and adding this leaves no bits for fractions.
    constexpr double SHIFTER = 0x1.8p52;
    auto half = [k](HalfFloats part) {
        Doubles product = __builtin_convertvector(part, Doubles) * double(k), zero = {};
        product = product == product ? product : zero;
        product = greatest(least(product, zero + GREATEST), zero + LEAST);
        return __builtin_convertvector((product + SHIFTER) - SHIFTER, HalfInts);
    };
    HalfInts low = half(__builtin_shufflevector(x, x, 0, 1, 2, 3)), high = half(__builtin_shufflevector(x, x, 4, 5, 6, 7));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

inline Ints clamped(Ints x, int low, int high) {
    Ints zero = {};
    return greatest(least(x, zero + high), zero + low);
}

// A matrix of 8x8 blocks, in which `channel_rows` rows after one another share a scale.
struct Blocks {
    int64_t rows, columns, channel_rows;
    int64_t per_strip = (columns + BLOCK_SIDE - 1) / BLOCK_SIDE, count = per_strip * ((rows + BLOCK_SIDE - 1) / BLOCK_SIDE);
};

// Position of a block in the matrix, its rows and columns inside, and the number of the scale of each row.
struct Place {
    int64_t top, left, height, width, scale[BLOCK_SIDE];

    Place(int64_t block, const Blocks& blocks)
        : top(block / blocks.per_strip * BLOCK_SIDE), left(block % blocks.per_strip * BLOCK_SIDE),
          height(std::min<int64_t>(blocks.rows - top, BLOCK_SIDE)), width(std::min<int64_t>(blocks.columns - left, BLOCK_SIDE)) {
        int64_t number = top / blocks.channel_rows, next = (number + 1) * blocks.channel_rows;
        for (int row = 0; row < height; ++row) {
            if (top + row == next) ++number, next += blocks.channel_rows;
            scale[row] = number;
        }
    }
};

// Calls body(i) for i from 0 to count - 1.
template <class Body> inline void parallel(int64_t count, int threads, Body body) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < count; ++i) body(i);
}

inline int64_t pieces(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Number of values, about, that one step of a parallel loop handles.
constexpr int64_t PIECE = 1 << 14;

}  // namespace cdu
