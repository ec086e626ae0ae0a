// The affine quantiser and its random numbers (docs/bitstream.md, sections 5 and 6, "Affine modes").
#pragma once

#include "values.h"

namespace cdu {

// Beats whose random numbers are computed at once: bit slices of so many beats fill a vector of 16-bit words.
constexpr int RANDOM_BEATS = 16;
typedef uint16_t Words __attribute__((vector_size(2 * RANDOM_BEATS)));

inline Words rotated(Words word, int places) { return places ? (word << places) | (word >> (WORD_BITS - places)) : word; }

// Random numbers of RANDOM_BEATS beats from number `first` on, which counts modulo 2**32.
inline void random_beats(uint32_t seed, uint32_t first, uint16_t (*out)[LANES]) {
    Words word[STATE_WORDS] = {}, second[STATE_WORDS];
    for (int beat = 0; beat < RANDOM_BEATS; ++beat) {
        uint32_t counter = first + beat;
        word[0][beat] = uint16_t(counter), word[1][beat] = uint16_t(counter >> WORD_BITS);
        word[2][beat] = uint16_t(seed), word[3][beat] = uint16_t(seed >> WORD_BITS);
    }
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
    uint16_t lanes[LANES][RANDOM_BEATS];
    std::memcpy(lanes[0], word, sizeof word);
    std::memcpy(lanes[STATE_WORDS], second, sizeof second);
    for (int beat = 0; beat < RANDOM_BEATS; ++beat)
        for (int lane = 0; lane < LANES; ++lane) out[beat][lane] = lanes[lane][beat];
}

// What is added to quotients before they are rounded down: random numbers, or one half.
struct Added {
    bool stochastic;
    uint32_t seed;

    // Of `beats` beats, a multiple of RANDOM_BEATS, from number `first` on.
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

    int32_t step() const { return mantissa << exponent; }
};

// The range from the least to (at least) the greatest value.
inline Range found(int32_t least, int32_t greatest, int levels) {
    uint32_t step = std::max((greatest - least + levels - 1) / levels, 1);
    int exponent = std::max(bit_length(step) - MANTISSA_BITS, 0);
    uint32_t mantissa = (step + (1u << exponent) - 1) >> exponent;
    int carry = mantissa >> MANTISSA_BITS;
    return {least, int32_t(mantissa >> carry), exponent + carry};
}

// Codes of a row of 8 values as `bits` bytes. All numbers fit 32 bits: t has 16, the reciprocal is at most 2**16.
struct RowQuantizer {
    int32_t low;
    uint32_t inverse, shift, levels;
    int bits;

    RowQuantizer(const Range& range, int bits) : low(range.low), levels((1u << bits) - 1), bits(bits) {
        int spare = MANTISSA_BITS - bit_length(range.mantissa);
        uint32_t normalised = uint32_t(range.mantissa) << spare;
        inverse = ((1u << RECIPROCAL_SHIFT) + normalised / 2) / normalised;
        shift = RECIPROCAL_SHIFT - FRACTION_BITS + range.exponent - spare;
    }

    void operator()(const int16_t* x, const uint16_t* added, uint8_t* codes) const {
        for (int i = 0; i < LANES; ++i) {
            uint32_t t = uint32_t(std::min(std::max(x[i] - low, 0), (1 << BASE_BITS) - 1));
            codes[i] = uint8_t(std::min(levels, ((t * inverse >> shift) + added[i]) >> FRACTION_BITS));
        }
    }
};

// Numbers of `width` bits that are `gap` bits apart, moved together in pairs, and back.
inline uint64_t low_bits(int width, int period) {
    uint64_t mask = 0;
    for (int at = 0; at < 64; at += period) mask |= ((uint64_t(1) << width) - 1) << at;
    return mask;
}

// Eight codes of `bits` bits as so many bytes, code 0 lowest: neighbours move together, then pairs, then fours.
struct CodePacker {
    int bits;
    uint64_t one, two, four;

    explicit CodePacker(int bits)
        : bits(bits), one(low_bits(bits, 8)), two(low_bits(2 * bits, 16)), four(bits == 8 ? ~uint64_t(0) : low_bits(4 * bits, 32)) {}

    void pack(const uint8_t* codes, uint8_t* out) const {
        uint64_t word;
        std::memcpy(&word, codes, LANES);
        if (bits < 8) {
            word = (word | word >> (8 - bits)) & two;
            word = (word | word >> (16 - 2 * bits)) & four;
            word |= word >> (32 - 4 * bits);
        }
        std::memcpy(out, &word, bits);
    }

    void unpack(const uint8_t* packed, uint8_t* codes) const {
        uint64_t word = 0;
        std::memcpy(&word, packed, bits);
        if (bits < 8) {
            word = (word | word << (32 - 4 * bits)) & four;
            word = (word | word << (16 - 2 * bits)) & two;
            word = (word | word << (8 - bits)) & one;
        }
        std::memcpy(codes, &word, LANES);
    }
};

inline int16_t read16(const uint8_t* at) {
    int16_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace cdu
