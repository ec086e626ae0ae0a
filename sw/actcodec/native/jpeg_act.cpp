// Mode jpeg-act (docs/bitstream.md, sections 3 to 6): SFPR, 8x8 DCT, shift quantiser, ZVC, and back.
#include "zvc.h"

using namespace cdu;

namespace {

// The 8 values of a row or column of a block; a pass multiplies such vectors, never single values.
template <class Int> struct Vector;
template <> struct Vector<int32_t> {
    typedef int32_t type __attribute__((vector_size(32)));
};
template <> struct Vector<int64_t> {
    typedef int64_t type __attribute__((vector_size(64)));
};
using Vector32 = Vector<int32_t>::type;

// out[i] = (sum over j of in(i, j) * matrix[j] + half) >> shift, with 8 numbers in each matrix[j] and out[i].
template <class V, class In> inline void pass(In in, const V* matrix, int shift, V* out) {
    for (int i = 0; i < BLOCK_SIDE; ++i) {
        V sum = {};
        sum += 1 << shift >> 1;
        for (int j = 0; j < BLOCK_SIDE; ++j) sum += in(i, j) * matrix[j];
        out[i] = sum >> shift;
    }
}

// Two passes: out[u][v] of in[y][x] forward, out[y][x] of in[u][v] inverse. The second one takes columns of the first one's
// result, so that both multiply whole rows of a matrix and nothing has to be transposed.
template <class Int> struct Transform {
    using V = typename Vector<Int>::type;
    V matrix[BLOCK_SIDE];
    int first_shift, second_shift;

    // `basis` is the matrix [frequency][sample] of a forward pass.
    Transform(const int32_t* basis, int first_shift, int second_shift, bool inverse)
        : first_shift(first_shift), second_shift(second_shift) {
        for (int i = 0; i < BLOCK_SIDE; ++i)
            for (int j = 0; j < BLOCK_SIDE; ++j) matrix[i][j] = basis[inverse ? BLOCK_SIDE * i + j : BLOCK_SIDE * j + i];
    }

    void operator()(const Int (*in)[BLOCK_SIDE], V* out) const {
        V between[BLOCK_SIDE];
        Int middle[BLOCK_SIDE][BLOCK_SIDE];
        pass([&](int i, int j) { return in[i][j]; }, matrix, first_shift, between);
        std::memcpy(middle, between, sizeof middle);
        pass([&](int i, int j) { return middle[j][i]; }, matrix, second_shift, out);
    }
};

template <class Int, class T>
bool decode(const uint8_t* payload, int64_t size, int64_t rows, int64_t columns, int64_t channel_rows, const float* r,
            const uint8_t* shifts, const Transform<Int>& inverse, T* y, int threads) {
    int64_t row_blocks = pieces(columns, BLOCK_SIDE), blocks = row_blocks * pieces(rows, BLOCK_SIDE);
    return unpack_blocks(payload, size, blocks, threads, [&](int64_t block, const int8_t* q) {
        alignas(64) Int coefficients[BLOCK_SIDE][BLOCK_SIDE];
        alignas(64) typename Vector<Int>::type samples[BLOCK_SIDE];
        for (int place = 0; place < BLOCK_VALUES; ++place) {
            int32_t c = int32_t(q[place]) << shifts[place];
            coefficients[place / BLOCK_SIDE][place % BLOCK_SIDE] = std::max(COEFFICIENT_MIN, std::min(COEFFICIENT_MAX, c));
        }
        inverse(coefficients, samples);
        int64_t top = block / row_blocks * BLOCK_SIDE, left = block % row_blocks * BLOCK_SIDE;
        int height = int(std::min<int64_t>(rows - top, BLOCK_SIDE)), width = int(std::min<int64_t>(columns - left, BLOCK_SIDE));
        for (int row = 0; row < height; ++row) {
            float factor = r[(top + row) / channel_rows], values[BLOCK_SIDE];
            for (int i = 0; i < BLOCK_SIDE; ++i)
                values[i] = float(std::max<Int>(VALUE_MIN, std::min<Int>(VALUE_MAX, samples[row][i]))) * factor;
            T* to = y + (top + row) * columns + left;
            if (width == BLOCK_SIDE)
                for (int i = 0; i < BLOCK_SIDE; ++i) to[i] = narrowed<T>(values[i]);
            else
                for (int i = 0; i < width; ++i) to[i] = narrowed<T>(values[i]);
        }
    });
}

}  // namespace

extern "C" {

// (rows, columns) with a multiplier for every channel_rows rows to the payload; returns its length. `basis` is the matrix
// [frequency][sample] of a pass, `shifts` are those of the quantiser in the order of the payload. No sum exceeds 31 bits:
// rows of the matrix sum up to at most 8 * 2**const_bits, so that the second pass has at most 2**(10 + pass1_bits) * 8 * 2**const_bits.
int64_t jpeg_act_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* k,
                        const int32_t* basis, int first_shift, int second_shift, const uint8_t* shifts, bool half_away,
                        uint8_t* payload, int threads) {
    Transform<int32_t> forward(basis, first_shift, second_shift, false);
    Vector32 places[BLOCK_SIDE], added[BLOCK_SIDE];
    for (int place = 0; place < BLOCK_VALUES; ++place) {
        places[place / BLOCK_SIDE][place % BLOCK_SIDE] = shifts[place];
        added[place / BLOCK_SIDE][place % BLOCK_SIDE] = half_away ? 1 << shifts[place] >> 1 : 0;
    }
    int64_t row_blocks = pieces(columns, BLOCK_SIDE), blocks = row_blocks * pieces(rows, BLOCK_SIDE);
    return with_format(format, [&]<class T>(T) {
        return pack_blocks(blocks, payload, threads, [&](int64_t block, int8_t* q) {
            alignas(64) int32_t samples[BLOCK_SIDE][BLOCK_SIDE];
            alignas(64) Vector32 coefficients[BLOCK_SIDE];
            int64_t top = block / row_blocks * BLOCK_SIDE, left = block % row_blocks * BLOCK_SIDE;
            int height = int(std::min<int64_t>(rows - top, BLOCK_SIDE)), width = int(std::min<int64_t>(columns - left, BLOCK_SIDE));
            if (height < BLOCK_SIDE || width < BLOCK_SIDE) std::memset(samples, 0, sizeof samples);
            for (int row = 0; row < height; ++row) {
                const T* from = static_cast<const T*>(x) + (top + row) * columns + left;
                double factor = k[(top + row) / channel_rows];
                if (width == BLOCK_SIDE)
                    for (int i = 0; i < BLOCK_SIDE; ++i) samples[row][i] = scaled<VALUE_MIN, VALUE_MAX>(from[i], factor);
                else
                    for (int i = 0; i < width; ++i) samples[row][i] = scaled<VALUE_MIN, VALUE_MAX>(from[i], factor);
            }
            forward(samples, coefficients);
            for (int u = 0; u < BLOCK_SIDE; ++u) {
                // c.sign() * ((c.abs() + added) >> place): the sign is taken off and put back by xor and subtraction.
                Vector32 sign = coefficients[u] >> 31;
                Vector32 magnitude = (((coefficients[u] ^ sign) - sign) + added[u]) >> places[u];
                Vector32 quotient = (magnitude ^ sign) - sign;
                for (int v = 0; v < BLOCK_SIDE; ++v)
                    q[BLOCK_SIDE * u + v] = int8_t(std::max(VALUE_MIN, std::min<int32_t>(VALUE_MAX, quotient[v])));
            }
        });
    });
}

// The inverse; false for a payload that is not exactly the blocks of such a matrix. `wide` computes in 64 bits, for precisions
// with which sums need more than 32.
bool jpeg_act_decode(const uint8_t* payload, int64_t size, int format, int64_t rows, int64_t columns, int64_t channel_rows,
                     const float* r, const int32_t* basis, int first_shift, int second_shift, const uint8_t* shifts, bool wide,
                     void* y, int threads) {
    return with_format(format, [&]<class T>(T) {
        T* values = static_cast<T*>(y);
        if (wide) {
            Transform<int64_t> inverse(basis, first_shift, second_shift, true);
            return decode(payload, size, rows, columns, channel_rows, r, shifts, inverse, values, threads);
        }
        Transform<int32_t> inverse(basis, first_shift, second_shift, true);
        return decode(payload, size, rows, columns, channel_rows, r, shifts, inverse, values, threads);
    });
}
}
