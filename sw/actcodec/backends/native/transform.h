// The 8x8 transform of mode jpeg-act in products of 16 bits, and the bytes of a block turned.
//
// A row of a block is 8 numbers of 16 bits, four pairs. Row i of a block stands beside row i + 4: two rows in a vector of 16.
#pragma once

#include "values.h"

namespace cdu {

constexpr int HALF_SIDE = BLOCK_SIDE / 2;

typedef int32_t TwoInts __attribute__((vector_size(2 * sizeof(Ints))));
typedef int16_t TwoShorts __attribute__((vector_size(2 * sizeof(Shorts))));
typedef int8_t TwoBytes __attribute__((vector_size(2 * sizeof(Bytes))));

inline TwoInts beside(Ints one, Ints other) {
    return __builtin_shufflevector(one, other, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Ints first_of(TwoInts x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7); }
inline Ints second_of(TwoInts x) { return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15); }

inline TwoBytes narrowed(TwoInts x) {
    typedef int8_t Parts __attribute__((vector_size(sizeof(TwoShorts))));
    auto parts = std::bit_cast<Parts>(__builtin_convertvector(x, TwoShorts));
    return __builtin_shufflevector(parts, parts, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
inline TwoShorts widened(TwoBytes x) { return __builtin_convertvector(x, TwoShorts); }

// Limits to int8.
inline TwoBytes saturated(TwoInts x) {
#ifdef __AVX512F__
    return std::bit_cast<TwoBytes>(_mm512_cvtsepi32_epi8(std::bit_cast<__m512i>(x)));
#else
    TwoInts zero = {};
    return narrowed(greatest(least(x, zero + VALUE_MAX), zero + VALUE_MIN));
#endif
}

// Returns sums + the products of pairs, the two of a pair added.
inline TwoInts with_products(TwoInts sums, TwoInts a, TwoInts b) {
#if defined __AVX512VNNI__
    return std::bit_cast<TwoInts>(
        _mm512_dpwssd_epi32(std::bit_cast<__m512i>(sums), std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
#elif defined __AVX512BW__
    return sums + std::bit_cast<TwoInts>(_mm512_madd_epi16(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
#elif defined __AVX2__
    auto products = [](Ints a, Ints b) {
        return std::bit_cast<Ints>(_mm256_madd_epi16(std::bit_cast<__m256i>(a), std::bit_cast<__m256i>(b)));
    };
    return sums + beside(products(first_of(a), first_of(b)), products(second_of(a), second_of(b)));
#else
    return sums + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

// The pairs of all rows: pairs[j] has pair j of rows 0 to 7, twice.
inline void pairs_of(const TwoShorts* rows, TwoInts* pairs) {
    auto low = [](Ints x, Ints y) { return __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13); };
    auto high = [](Ints x, Ints y) { return __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15); };
    auto join = [&](Ints x, Ints y, TwoInts* to) {
        Ints even = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
        Ints odd = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
        to[0] = beside(even, even), to[1] = beside(odd, odd);
    };
    Ints some[HALF_SIDE];
    for (int i = 0; i < HALF_SIDE; ++i) some[i] = std::bit_cast<Ints>(rows[i]);
    join(low(some[0], some[1]), low(some[2], some[3]), pairs);
    join(high(some[0], some[1]), high(some[2], some[3]), pairs + 2);
}

// Two passes of a matrix: out[i], and out[i + 4] beside it, of a block's rows; rows and columns are exchanged.
class PairTransform {
   public:
    // The argument `basis` is the matrix [frequency][sample] of a forward pass.
    PairTransform(const int32_t* basis, int first_shift, int second_shift, bool inverse)
        : first_shift_(first_shift), second_shift_(second_shift) {
        for (int i = 0; i < HALF_SIDE; ++i)
            for (int j = 0; j < HALF_SIDE; ++j)
                for (int lane = 0; lane < 2 * LANES; ++lane) {
                    int row = i + lane / LANES * HALF_SIDE, column = 2 * j;
                    auto entry = [&](int column) {
                        return uint16_t(inverse ? basis[BLOCK_SIDE * column + row] : basis[BLOCK_SIDE * row + column]);
                    };
                    matrix_[i][j][lane] = int32_t(entry(column) | uint32_t(entry(column + 1)) << 16);
                }
    }

    void operator()(const TwoShorts* rows, TwoInts* out) const {
        TwoShorts between[HALF_SIDE];
        pass(rows, first_shift_, [&](int i, TwoInts sums) { between[i] = __builtin_convertvector(sums, TwoShorts); });
        pass(between, second_shift_, [&](int i, TwoInts sums) { out[i] = sums; });
    }

   private:
    template <class Use> void pass(const TwoShorts* rows, int shift, Use use) const {
        TwoInts pairs[HALF_SIDE], half = TwoInts{} + (1 << shift >> 1);
        pairs_of(rows, pairs);
        for (int i = 0; i < HALF_SIDE; ++i) {
            TwoInts sums = half;
            for (int j = 0; j < HALF_SIDE; ++j) sums = with_products(sums, pairs[j], matrix_[i][j]);
            use(i, sums >> shift);
        }
    }

    TwoInts matrix_[HALF_SIDE][HALF_SIDE];
    int first_shift_, second_shift_;
};

// Rows and columns of a block exchanged: `rows` stand as above, `out` has 8 after one another.
inline void turn(const TwoBytes* rows, int8_t* out) {
    auto low = [](TwoBytes a, TwoBytes b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    };
    auto high = [](TwoBytes a, TwoBytes b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    };
    TwoBytes a = low(rows[0], rows[2]), b = low(rows[1], rows[3]), c = high(rows[0], rows[2]), d = high(rows[1], rows[3]);
    TwoBytes e = low(a, b), f = high(a, b), g = low(c, d), h = high(c, d);
    auto join = [&](TwoBytes x, TwoBytes y, int8_t* to) {
        store(to, __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
        store(to + 2 * LANES, __builtin_shufflevector(x, y, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31));
    };
    join(e, g, out), join(f, h, out + 4 * LANES);
}

}  // namespace cdu
