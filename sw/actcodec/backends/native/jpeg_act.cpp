// Mode jpeg-act (docs/reference/bitstream.md, sections 3 to 6): SFPR, 8x8 DCT, shift quantiser, ZVC or GMC, and back.
#include "gmc.h"
#include "zvc.h"

using namespace cdu;

namespace {

// A row or column of a block; a pass multiplies such vectors, never single values.
template <class Int> struct Vector;
template <> struct Vector<int32_t> {
    using type = Ints;
};
template <> struct Vector<int64_t> {
    typedef int64_t type __attribute__((vector_size(8 * LANES)));
};

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

// The inverse quantiser of a column: shifts, and what is added to magnitudes that are not zero.
struct Steps {
    Ints shifts[BLOCK_SIDE], added[BLOCK_SIDE];

    Ints operator()(int u, Ints q) const {
        Ints zero = {};
        Ints c = (q << shifts[u]) + (q > 0 ? added[u] : zero) - (q < 0 ? added[u] : zero);
        return clamped(c, COEFFICIENT_MIN, COEFFICIENT_MAX);
    }
};

// body(coder) with a coder of the name that Python has for it.
template <class Body> inline auto with_coder(int coder, Body body) {
    if (coder == CODER_GMC) return body(Gmc{});
    return body(Zvc{});
}

template <class Coder, class Int, class T>
bool decode(const uint8_t* payload, int64_t size, const Blocks& blocks, const float* r, const Steps& steps,
            const Transform<Int>& inverse, T* y, int threads) {
    return unpack_blocks<Coder>(payload, size, blocks.count, threads, [&](int64_t block, const int8_t* q) {
        Int coefficients[BLOCK_SIDE][BLOCK_SIDE];
        typename Vector<Int>::type samples[BLOCK_SIDE];
        for (int u = 0; u < BLOCK_SIDE; ++u) {
            Ints c = steps(u, widened(load<Bytes>(q + LANES * u)));
            store(coefficients[u], __builtin_convertvector(c, typename Vector<Int>::type));
        }
        inverse(coefficients, samples);
        Place place(block, blocks);
        for (int row = 0; row < place.height; ++row) {
            Ints values = clamped(__builtin_convertvector(samples[row], Ints), VALUE_MIN, VALUE_MAX);
            T* to = y + (place.top + row) * blocks.columns + place.left;
            store_some(to, floats(values) * r[place.scale[row]], place.width);
        }
    });
}

}  // namespace

extern "C" {

// (rows, columns) with a multiplier for every channel_rows rows to the payload; returns its length. `basis` is the matrix
// [frequency][sample] of a pass, `shifts` are those of the quantiser in the order of the payload, `coder` is its number. No sum exceeds 31 bits:
// a row of the matrix has at most 8 * 2**const_bits, and what the first pass leaves at most 2**(10 + pass1_bits).
int64_t jpeg_act_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* k,
                        const int32_t* basis, int first_shift, int second_shift, const uint8_t* shifts, bool half_away,
                        int coder, uint8_t* payload, int threads) {
    Transform<int32_t> forward(basis, first_shift, second_shift, false);
    Ints places[BLOCK_SIDE], added[BLOCK_SIDE];
    for (int u = 0; u < BLOCK_SIDE; ++u) {
        places[u] = widened(load<Codes>(shifts + LANES * u));
        for (int v = 0; v < BLOCK_SIDE; ++v) added[u][v] = half_away ? 1 << places[u][v] >> 1 : 0;
    }
    Blocks blocks{rows, columns, channel_rows};
    auto encode = [&]<class Coder, class T>(Coder, T) {
        return pack_blocks<Coder>(blocks.count, payload, threads, [&](int64_t block, int8_t* q) {
            int32_t samples[BLOCK_SIDE][BLOCK_SIDE] = {};
            Ints coefficients[BLOCK_SIDE];
            Place place(block, blocks);
            for (int row = 0; row < place.height; ++row) {
                const T* from = static_cast<const T*>(x) + (place.top + row) * columns + place.left;
                store(samples[row], scaled<VALUE_MIN, VALUE_MAX>(load_some(from, place.width), k[place.scale[row]]));
                std::fill(samples[row] + place.width, samples[row] + BLOCK_SIDE, 0);
            }
            forward(samples, coefficients);
            for (int u = 0; u < BLOCK_SIDE; ++u) {
                // sign(c) * ((|c| + added) >> places): the sign is taken off and put back by xor and subtraction.
                Ints sign = coefficients[u] >> 31;
                Ints quotient = (((((coefficients[u] ^ sign) - sign) + added[u]) >> places[u]) ^ sign) - sign;
                store(q + LANES * u, narrowed<Bytes>(clamped(quotient, VALUE_MIN, VALUE_MAX)));
            }
        });
    };
    return with_coder(coder, [&](auto coder) { return with_format(format, [&](auto value) { return encode(coder, value); }); });
}

// The inverse; false for a payload that is not exactly the blocks of such a matrix. `added` is what the inverse quantiser adds to
// magnitudes that are not zero, in the order of `shifts`. `wide` computes in 64 bits, for precisions
// with which sums need more than 32.
bool jpeg_act_decode(const uint8_t* payload, int64_t size, int format, int64_t rows, int64_t columns, int64_t channel_rows,
                     const float* r, const int32_t* basis, int first_shift, int second_shift, const uint8_t* shifts,
                     const uint8_t* added, int coder, bool wide, void* y, int threads) {
    Steps steps;
    for (int u = 0; u < BLOCK_SIDE; ++u) {
        steps.shifts[u] = widened(load<Codes>(shifts + LANES * u));
        steps.added[u] = widened(load<Codes>(added + LANES * u));
    }
    Blocks blocks{rows, columns, channel_rows};
    auto in_format = [&]<class Coder, class T>(Coder, T) {
        T* values = static_cast<T*>(y);
        if (wide) {
            Transform<int64_t> inverse(basis, first_shift, second_shift, true);
            return decode<Coder>(payload, size, blocks, r, steps, inverse, values, threads);
        }
        Transform<int32_t> inverse(basis, first_shift, second_shift, true);
        return decode<Coder>(payload, size, blocks, r, steps, inverse, values, threads);
    };
    return with_coder(coder, [&](auto coder) { return with_format(format, [&](auto value) { return in_format(coder, value); }); });
}
}
