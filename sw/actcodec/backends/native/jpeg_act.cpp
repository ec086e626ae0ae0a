// Mode jpeg-act (docs/reference/bitstream.md, sections 3 to 6): SFPR, 8x8 DCT, shift quantiser, ZVC or GMC, and back.
#include "gmc.h"
#include "transform.h"
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

// The inverse transform to int8, y before x, of coefficients as PairTransform takes them. Between the passes numbers are so wide
// that products need Int. The second pass takes columns of the first one's result, so that nothing has to be transposed.
template <class Int> struct WideInverse {
    using V = typename Vector<Int>::type;
    V matrix[BLOCK_SIDE];
    int first_shift, second_shift;

    WideInverse(const int32_t* basis, int first_shift, int second_shift) : first_shift(first_shift), second_shift(second_shift) {
        for (int i = 0; i < BLOCK_SIDE; ++i)
            for (int j = 0; j < BLOCK_SIDE; ++j) matrix[i][j] = basis[BLOCK_SIDE * i + j];
    }

    void operator()(const TwoShorts* coefficients, int8_t* samples) const {
        V between[BLOCK_SIDE], out[BLOCK_SIDE];
        Int middle[BLOCK_SIDE][BLOCK_SIDE];
        auto coefficient = [&](int u, int v) { return Int(coefficients[u % HALF_SIDE][u / HALF_SIDE * LANES + v]); };
        pass(coefficient, matrix, first_shift, between);
        std::memcpy(middle, between, sizeof middle);
        pass([&](int i, int j) { return middle[j][i]; }, matrix, second_shift, out);
        for (int y = 0; y < BLOCK_SIDE; ++y)
            store(samples + LANES * y, narrowed<Bytes>(clamped(__builtin_convertvector(out[y], Ints), VALUE_MIN, VALUE_MAX)));
    }
};

// The inverse transform with products of 16 bits, which `first_shift` makes fit.
struct PairInverse {
    PairTransform transform;

    PairInverse(const int32_t* basis, int first_shift, int second_shift) : transform(basis, first_shift, second_shift, true) {}

    static bool fits(const int32_t* basis, int first_shift) {
        int64_t most = 0;
        for (int sample = 0; sample < BLOCK_SIDE; ++sample) {
            int64_t sum = 0;
            for (int frequency = 0; frequency < BLOCK_SIDE; ++frequency) sum += std::abs(basis[BLOCK_SIDE * frequency + sample]);
            most = std::max(most, sum);
        }
        return (most * -COEFFICIENT_MIN >> first_shift) + 1 <= INT16_MAX;
    }

    void operator()(const TwoShorts* coefficients, int8_t* samples) const {
        TwoInts out[HALF_SIDE];
        TwoBytes columns[HALF_SIDE];
        transform(coefficients, out);
        for (int x = 0; x < HALF_SIDE; ++x) columns[x] = saturated(out[x]);
        turn(columns, samples);
    }
};

// The quantiser sign(c) * ((|c| + added) >> shift), limited to int8; c as PairTransform leaves them.
class Quantizer {
  public:
    // Order of `shifts`: that of the payload.
    Quantizer(const uint8_t* shifts, bool half_away) {
        for (int i = 0; i < HALF_SIDE; ++i)
            for (int lane = 0; lane < 2 * LANES; ++lane) {
                int v = i + lane / LANES * HALF_SIDE, u = lane % LANES;
                shifts_[i][lane] = shifts[BLOCK_SIDE * u + v];
                added_[i][lane] = half_away ? 1 << shifts_[i][lane] >> 1 : 0;
            }
    }

    // Writes coefficients in the order of the payload.
    void operator()(const TwoInts* coefficients, int8_t* q) const {
        TwoBytes rows[HALF_SIDE];
        for (int i = 0; i < HALF_SIDE; ++i) {
            // Xor and subtraction take the sign off and put it back.
            TwoInts sign = coefficients[i] >> 31;
            TwoInts quotient = (((((coefficients[i] ^ sign) - sign) + added_[i]) >> shifts_[i]) ^ sign) - sign;
            rows[i] = saturated(quotient);
        }
        turn(rows, q);
    }

  private:
    TwoInts shifts_[HALF_SIDE], added_[HALF_SIDE];
};

// Inverse of the quantiser: steps, and the summand of magnitudes that are not zero.
class InverseQuantizer {
  public:
    InverseQuantizer(const uint8_t* shifts, const uint8_t* added) {
        for (int i = 0; i < HALF_SIDE; ++i)
            for (int lane = 0; lane < 2 * LANES; ++lane) {
                int place = BLOCK_SIDE * (i + lane / LANES * HALF_SIDE) + lane % LANES;
                steps_[i][lane] = int16_t(1 << shifts[place]);
                added_[i][lane] = added[place];
            }
    }

    // Returns rows i and i + 4 of a block.
    TwoShorts operator()(int i, const int8_t* block) const {
        Bytes one = load<Bytes>(block + LANES * i), other = load<Bytes>(block + LANES * (i + HALF_SIDE));
        TwoShorts q = widened(__builtin_shufflevector(one, other, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        TwoShorts zero = {}, c = q * steps_[i] + (q > 0 ? added_[i] : zero) - (q < 0 ? added_[i] : zero);
        return greatest(least(c, zero + int16_t(COEFFICIENT_MAX)), zero + int16_t(COEFFICIENT_MIN));
    }

  private:
    TwoShorts steps_[HALF_SIDE], added_[HALF_SIDE];
};

// Calls body(coder) with a coder, by its name in Python.
template <class Body> inline auto with_coder(int coder, Body body) {
    if (coder == CODER_GMC) return body(Gmc{});
    return body(Zvc{});
}

template <class Coder, class Inverse, class T>
bool decode(const uint8_t* payload, int64_t size, const Blocks& blocks, const float* r, const InverseQuantizer& unquantized,
            const Inverse& inverse, T* y, int threads) {
    return unpack_blocks<Coder>(payload, size, blocks.count, threads, [&](int64_t block, const int8_t* q) {
        TwoShorts coefficients[HALF_SIDE];
        int8_t samples[BLOCK_VALUES];
        for (int i = 0; i < HALF_SIDE; ++i) coefficients[i] = unquantized(i, q);
        inverse(coefficients, samples);
        Place place(block, blocks);
        for (int row = 0; row < place.height; ++row) {
            T* to = y + (place.top + row) * blocks.columns + place.left;
            store_some(to, floats(widened(load<Bytes>(samples + LANES * row))) * r[place.scale[row]], place.width);
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
    PairTransform forward(basis, first_shift, second_shift, false);
    Quantizer quantize(shifts, half_away);
    Blocks blocks{rows, columns, channel_rows};
    auto encode = [&]<class Coder, class T>(Coder, T) {
        return pack_blocks<Coder>(blocks.count, payload, threads, [&](int64_t block, int8_t* q) {
            TwoShorts samples[HALF_SIDE];
            TwoInts coefficients[HALF_SIDE];
            Place place(block, blocks);
            const T* from = static_cast<const T*>(x) + place.top * columns + place.left;
            auto whole_row = [&](int i) { return scaled<VALUE_MIN, VALUE_MAX>(load8(from + i * columns), k[place.scale[i]]); };
            auto row = [&](int i) {
                Ints numbers = {0, 1, 2, 3, 4, 5, 6, 7}, zero = {};
                if (i >= place.height) return zero;
                Ints some = scaled<VALUE_MIN, VALUE_MAX>(load_some(from + i * columns, place.width), k[place.scale[i]]);
                return numbers < int32_t(place.width) ? some : zero;
            };
            auto load_rows = [&](auto row) {
                for (int i = 0; i < HALF_SIDE; ++i)
                    samples[i] = __builtin_convertvector(beside(row(i), row(i + HALF_SIDE)), TwoShorts);
            };
            if (place.height == BLOCK_SIDE && place.width == BLOCK_SIDE) load_rows(whole_row);
            else load_rows(row);
            forward(samples, coefficients);
            quantize(coefficients, q);
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
    InverseQuantizer unquantized(shifts, added);
    Blocks blocks{rows, columns, channel_rows};
    auto in_format = [&]<class Coder, class T>(Coder, T) {
        auto by = [&](const auto& inverse) {
            return decode<Coder>(payload, size, blocks, r, unquantized, inverse, static_cast<T*>(y), threads);
        };
        if (PairInverse::fits(basis, first_shift)) return by(PairInverse(basis, first_shift, second_shift));
        if (wide) return by(WideInverse<int64_t>(basis, first_shift, second_shift));
        return by(WideInverse<int32_t>(basis, first_shift, second_shift));
    };
    return with_coder(coder, [&](auto coder) { return with_format(format, [&](auto value) { return in_format(coder, value); }); });
}
}
