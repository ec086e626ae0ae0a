// The affine quantiser and its random numbers (docs/reference/bitstream.md, sections 5 and 6, "Affine modes").
#pragma once

#include "values.h"

namespace cdu {

// Beats whose random numbers are computed at once: bit slices of so many beats fill a vector of 16-bit words.
constexpr int RANDOM_BEATS = 16;
typedef uint16_t Words __attribute__((vector_size(2 * RANDOM_BEATS)));

inline Words rotated(Words word, int places) { return places ? (word << places) | (word >> (WORD_BITS - places)) : word; }

// Random numbers of RANDOM_BEATS beats from number `first` on, which counts modulo 2**32.
inline void random_beats(uint32_t seed, uint32_t first, uint16_t (*out)[LANES]) {
    uint16_t low[RANDOM_BEATS], high[RANDOM_BEATS];
    for (int beat = 0; beat < RANDOM_BEATS; ++beat) {
        low[beat] = uint16_t(first + beat);
        high[beat] = uint16_t((first + beat) >> WORD_BITS);
    }
    Words zero = {}, second[STATE_WORDS];
    Words word[] = {load<Words>(low), load<Words>(high), zero + uint16_t(seed), zero + uint16_t(seed >> WORD_BITS)};
    for (int constant : ROUND_CONSTANTS) {
        // The substitution of all 16 columns, in the sequence of operations that the authors of RECTANGLE give.
        Words a0 = word[0] ^ uint16_t(constant), a1 = word[1], a2 = word[2], a3 = word[3];
        Words mixed = a2 ^ a3, t6 = a0 ^ (a3 | ~a1), t8 = a1 ^ a2;
        Words b0 = (a0 & ~a1) ^ mixed;
        word[0] = rotated(b0, ROTATIONS[0]);
        word[1] = rotated(a2 ^ t6, ROTATIONS[1]);
        word[2] = rotated(t6 ^ (b0 | t8), ROTATIONS[2]);
        word[3] = rotated(t8 ^ (mixed & t6), ROTATIONS[3]);
    }
    for (int i = 0; i < STATE_WORDS; ++i) second[i] = rotated(word[i], SECOND_ROTATION) ^ word[(i + 1) % STATE_WORDS];
    // A perfect shuffle makes the highest bit of a number's place, (lane, beat), the lowest: three times, and it is (beat, lane).
    Words lanes[LANES];
    for (int i = 0; i < STATE_WORDS; ++i) lanes[i] = word[i], lanes[STATE_WORDS + i] = second[i];
    for (int bit = 1; bit < LANES; bit *= 2) {
        Words shuffled[LANES];
        for (int i = 0; i < LANES / 2; ++i) {
            Words a = lanes[i], b = lanes[LANES / 2 + i];
            shuffled[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            shuffled[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        std::copy_n(shuffled, LANES, lanes);
    }
    std::memcpy(out, lanes, sizeof lanes);
}

// Summands of quotients before rounding down: random numbers, or one half.
struct Added {
    bool stochastic;
    uint32_t seed;

    // Fills in the summands of `beats` beats, a multiple of RANDOM_BEATS, from number `first` on.
    void operator()(int64_t first, int beats, uint16_t (*out)[LANES]) const {
        if (stochastic)
            for (int beat = 0; beat < beats; beat += RANDOM_BEATS) random_beats(seed, uint32_t(first + beat), out + beat);
        else
            std::fill_n(out[0], beats * LANES, uint16_t(1 << (FRACTION_BITS - 1)));
    }
};

inline int bit_length(uint32_t value) { return 32 - std::countl_zero(value); }

// Step D = mantissa * 2**exponent; value `low` has code 0.
struct Range {
    int32_t low;
    int32_t mantissa, exponent;

    // Returns the values of codes.
    Floats values(Codes codes, float r) const {
        return floats(widened(codes) * (mantissa << exponent) + low) * r;
    }
};

// The range from the least to (at least) the greatest value.
inline Range found(int32_t least, int32_t greatest, int levels) {
    uint32_t step = std::max((greatest - least + levels - 1) / levels, 1);
    int exponent = std::max(bit_length(step) - MANTISSA_BITS, 0);
    uint32_t mantissa = (step + (1u << exponent) - 1) >> exponent;
    int carry = mantissa >> MANTISSA_BITS;
    return {least, int32_t(mantissa >> carry), exponent + carry};
}

// Codes of 8 values. All numbers fit 32 bits: t has 16, the reciprocal is at most 2**16.
struct RowQuantizer {
    int32_t low;
    uint32_t inverse, shift, levels;

    RowQuantizer(const Range& range, int bits) : low(range.low), levels((1u << bits) - 1) {
        int spare = MANTISSA_BITS - bit_length(range.mantissa);
        uint32_t normalised = uint32_t(range.mantissa) << spare;
        inverse = ((1u << RECIPROCAL_SHIFT) + normalised / 2) / normalised;
        shift = RECIPROCAL_SHIFT - FRACTION_BITS + range.exponent - spare;
    }

    Codes operator()(Shorts x, const uint16_t* added) const {
        Words32 t = std::bit_cast<Words32>(clamped(__builtin_convertvector(x, Ints) - low, 0, (1 << BASE_BITS) - 1));
        Words32 sum = (t * inverse >> shift) + __builtin_convertvector(load<Words16>(added), Words32);
        Words32 most = {};
        return narrowed<Codes>(std::bit_cast<Ints>(least(sum >> FRACTION_BITS, most + levels)));
    }
};

// The lowest `width` bits of every `period` bits.
inline uint64_t low_bits(int width, int period) {
    uint64_t mask = 0;
    for (int at = 0; at < 64; at += period) mask |= ((uint64_t(1) << width) - 1) << at;
    return mask;
}

// Eight codes of `bits` bits as so many bytes, code 0 lowest: neighbours move together, then pairs, then fours.
struct CodePacker {
    int bits;
    uint64_t left[3];  // bits that stay: every other code, pair, four

    explicit CodePacker(int bits) : bits(bits), left{low_bits(bits, 16), low_bits(2 * bits, 32), low_bits(4 * bits, 64)} {}

    void pack(Codes codes, uint8_t* out) const { write(out, together(codes)); }
    Codes unpack(const uint8_t* packed) const { return apart(read(packed)); }

    // A row of codes as a number.
    uint64_t together(Codes codes) const {
        uint64_t word = std::bit_cast<uint64_t>(codes);
        if (bits < 8)
            for (int i = 0; i < 3; ++i) {
                int width = bits << i, gap = (8 - bits) << i;
                word = (word & left[i]) | (word >> gap & left[i] << width);
            }
        return word;
    }

    Codes apart(uint64_t word) const {
        if (bits < 8)
            for (int i = 2; i >= 0; --i) {
                int width = bits << i, gap = (8 - bits) << i;
                word = (word & left[i]) | (word & left[i] << width) << gap;
            }
        return std::bit_cast<Codes>(word);
    }

  private:
    // A row of codes; codes that fill a whole number are moved as one.
    uint64_t read(const uint8_t* from) const {
        if (bits == 1) return *from;
        if (bits == 2) return load<uint16_t>(from);
        if (bits == 4) return load<uint32_t>(from);
        if (bits == 8) return load<uint64_t>(from);
        uint64_t word = 0;
        std::memcpy(&word, from, bits);
        return word;
    }

    void write(uint8_t* to, uint64_t word) const {
        if (bits == 1) return store(to, uint8_t(word));
        if (bits == 2) return store(to, uint16_t(word));
        if (bits == 4) return store(to, uint32_t(word));
        if (bits == 8) return store(to, word);
        std::memcpy(to, &word, bits);
    }
};

// Packs `count` codes without gaps; zeros fill up the last byte. LANES bytes behind the codes may be changed.
inline void pack_some(const CodePacker& packer, uint8_t* codes, int64_t count, uint8_t* packed) {
    int64_t rows = count / LANES;
    for (int64_t row = 0; row < rows; ++row) packer.pack(load<Codes>(codes + row * LANES), packed + row * packer.bits);
    if (int left = int(count % LANES)) {
        uint8_t bytes[LANES];
        std::fill_n(codes + count, LANES - left, uint8_t(0));
        packer.pack(load<Codes>(codes + rows * LANES), bytes);
        std::copy_n(bytes, pieces(left * packer.bits, 8), packed + rows * packer.bits);
    }
}

// Unpacks codes; `codes` has room for whole rows.
inline void unpack_some(const CodePacker& packer, const uint8_t* packed, int64_t count, uint8_t* codes) {
    int64_t rows = count / LANES;
    for (int64_t row = 0; row < rows; ++row) store(codes + row * LANES, packer.unpack(packed + row * packer.bits));
    if (int left = int(count % LANES)) {
        uint8_t bytes[LANES] = {};
        std::copy_n(packed + rows * packer.bits, pieces(left * packer.bits, 8), bytes);
        store(codes + rows * LANES, packer.unpack(bytes));
    }
}

}  // namespace cdu
