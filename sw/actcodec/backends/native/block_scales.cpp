// Codecs of MX and NVFP4: blocks of values that share a scale. Every operation is that of golden/mx.py and golden/nvfp4.py, in the
// same order, so that the results are the same to the last bit.
#include "affine.h"

using namespace cdu;

namespace {

constexpr int FRACTION = 23, BIAS = 127, INFINITE = 0x7f800000, MAGNITUDE = 0x7fffffff;
constexpr int BLOCKS_PER_PIECE = PIECE / MX_VALUES;

// Numbers of a sign, an exponent and a fraction, or integers where there are no bits of an exponent.
struct Element {
    int exponent_bits, fraction_bits, greatest;
    int bits = 1 + exponent_bits + fraction_bits + !exponent_bits, bias = (1 << (exponent_bits - 1 + !exponent_bits)) - 1;

    // Rounds to nearest, ties to even, and limits.
    Ints codes(Floats scaled) const { return exponent_bits ? numbers(std::bit_cast<Ints>(scaled)) : integers(scaled); }

    Ints numbers(Ints patterns) const {
        int dropped = FRACTION - fraction_bits;
        Ints magnitudes = patterns & MAGNITUDE;
        Ints normal = ((magnitudes >> dropped & 1) + magnitudes + ((1 << (dropped - 1)) - 1)) >> dropped;
        normal = least(normal - ((BIAS - bias) << fraction_bits), Ints{} + greatest);
        // A sum with this number has the format's smallest step as its last bit: the adder rounds.
        float adder = std::ldexp(1.0f, 1 - bias - fraction_bits + FRACTION);
        Floats limited = std::bit_cast<Floats>(least(magnitudes, Ints{} + ((BIAS - bias + 1) << FRACTION)));
        Ints subnormal = std::bit_cast<Ints>(limited + adder) - std::bit_cast<int32_t>(adder);
        return cdu::greatest(normal, subnormal) | ((patterns >> (32 - bits)) & (1 << (bits - 1)));
    }

    Ints integers(Floats scaled) const {
        constexpr float SHIFTER = 0x1.8p23f;  // leaves no bits for fractions
        Floats steps = scaled * float(1 << fraction_bits), zero = {};
        steps = cdu::greatest(least(steps, zero + float(greatest)), zero - float(greatest));
        return std::bit_cast<Ints>(steps + SHIFTER) - std::bit_cast<int32_t>(SHIFTER);
    }
};

float power_of_two(int exponent) {
    return std::bit_cast<float>(exponent < 1 - BIAS ? 1 << (FRACTION - 1) : (exponent + BIAS) << FRACTION);
}

// Turns subnormal numbers into zeros of the same sign.
Floats flushed(Floats values) {
    Ints patterns = std::bit_cast<Ints>(values);
    return std::bit_cast<Floats>((patterns & MAGNITUDE) > (1 << FRACTION) - 1 ? patterns : patterns & ~MAGNITUDE);
}

// The values of a block, zeros where there are none, and the pattern of the greatest magnitude.
// With FLUSHED, zeros for subnormal numbers.
template <int VALUES, bool FLUSHED> struct Block {
    float values[VALUES];
    int32_t largest = 0;

    template <class T> Block(const T* x, int64_t count) : values{} {
        to_floats(x, std::min<int64_t>(count, VALUES), values);
        Ints most = {};
        for (int i = 0; i < VALUES; i += LANES) {
            if (FLUSHED) store(values + i, flushed(load<Floats>(values + i)));
            most = greatest(most, load<Ints>(values + i) & MAGNITUDE);
        }
        for (int i = 0; i < LANES; ++i) largest = std::max(largest, most[i]);
    }

    // Writes the codes behind the scale.
    void code(float factor, const Element& element, const CodePacker& packer, uint8_t* out) const {
        for (int i = 0; i < VALUES; i += LANES, out += element.bits)
            packer.pack(narrowed<Codes>(element.codes(load<Floats>(values + i) * factor)), out);
    }
};

// Limits values to the range of a number format; all NaN become the same.
Floats limited(Floats values, float most) {
    Floats limit = Floats{} + most;
    values = values > limit ? limit : values;
    values = values < -limit ? -limit : values;
    return values == values ? values : Floats{} + std::bit_cast<float>(INFINITE | 1 << (FRACTION - 1));
}

// Calls body(number) for each block.
template <class Body> void each_block(int64_t blocks, int threads, Body body) {
    parallel(pieces(blocks, BLOCKS_PER_PIECE), threads, [&](int64_t piece) {
        for (int64_t block = piece * BLOCKS_PER_PIECE; block < std::min(blocks, (piece + 1) * BLOCKS_PER_PIECE); ++block) body(block);
    });
}

// Decodes blocks; factor(scale byte) is the factor of the codes.
template <int VALUES, bool FLUSHED, class Factor>
void decode(const uint8_t* payload, int format, int64_t count, int bits, const float* numbers, float most, void* y, int threads,
            Factor factor) {
    CodePacker packer(bits);
    int64_t size = 1 + VALUES * bits / LANES;
    with_format(format, [&]<class T>(T) {
        each_block(pieces(count, VALUES), threads, [&](int64_t block) {
            const uint8_t* from = payload + block * size;
            float scale = factor(*from++);
            for (int64_t at = block * VALUES; at < std::min(count, (block + 1) * VALUES); at += LANES, from += bits) {
                Codes codes = packer.unpack(from);
                Floats values;
                for (int i = 0; i < LANES; ++i) values[i] = numbers[codes[i]];
                values = FLUSHED ? flushed(values * scale) : values * scale;
                store_some(static_cast<T*>(y) + at, limited(values, most), count - at);
            }
        });
    });
}

}  // namespace

extern "C" {

void mx_codes(const void* x, int format, int64_t count, int exponent_bits, int fraction_bits, int greatest, int emax, bool rceil,
              uint8_t* payload, int threads) {
    Element element{exponent_bits, fraction_bits, greatest};
    CodePacker packer(element.bits);
    int limit = (greatest & ((1 << fraction_bits) - 1)) << (FRACTION - fraction_bits);
    int64_t size = 1 + MX_VALUES * element.bits / LANES;
    with_format(format, [&]<class T>(T) {
        each_block(pieces(count, MX_VALUES), threads, [&](int64_t number) {
            Block<MX_VALUES, true> block(static_cast<const T*>(x) + number * MX_VALUES, count - number * MX_VALUES);
            int exponent = block.largest >> FRACTION, scale = exponent - emax;
            if (rceil) {
                scale += (block.largest & ((1 << FRACTION) - 1)) > limit;
                if (block.largest == INFINITE) scale = MX_SCALE_MOST;
            }
            scale = block.largest > INFINITE ? MX_SCALE_NAN : std::clamp(scale, 0, MX_SCALE_MOST);
            uint8_t* out = payload + number * size;
            *out = uint8_t(scale);
            if (scale == MX_SCALE_NAN) std::fill_n(out + 1, size - 1, 0);
            else block.code(power_of_two(MX_SCALE_BIAS - scale), element, packer, out + 1);
        });
    });
}

void mx_values(const uint8_t* payload, int format, int64_t count, int bits, const float* numbers, float most, void* y, int threads) {
    decode<MX_VALUES, true>(payload, format, count, bits, numbers, most, y, threads, [](int scale) {
        return scale == MX_SCALE_NAN ? std::bit_cast<float>(INFINITE | 1) : power_of_two(scale - MX_SCALE_BIAS);
    });
}

// Elements and scales, each by the bits of its fields and its greatest code, and what their codes stand for.
void nvfp4_codes(const void* x, int format, int64_t count, float tensor_scale, int exponent_bits, int fraction_bits, int greatest,
                 int scale_exponent_bits, int scale_fraction_bits, int greatest_scale, const float* numbers,
                 const float* scale_numbers, uint8_t* payload, int threads) {
    Element element{exponent_bits, fraction_bits, greatest}, scales{scale_exponent_bits, scale_fraction_bits, greatest_scale};
    CodePacker packer(element.bits);
    int64_t size = 1 + NVFP4_VALUES * element.bits / LANES;
    // Scales are normal numbers.
    float least_scale = scale_numbers[1 << scale_fraction_bits], most_scale = scale_numbers[greatest_scale];
    with_format(format, [&]<class T>(T) {
        each_block(pieces(count, NVFP4_VALUES), threads, [&](int64_t number) {
            Block<NVFP4_VALUES, false> block(static_cast<const T*>(x) + number * NVFP4_VALUES, count - number * NVFP4_VALUES);
            float wanted = std::bit_cast<float>(block.largest) / numbers[greatest] / tensor_scale;
            int scale = scales.codes(Floats{} + std::clamp(wanted, least_scale, most_scale))[0];
            uint8_t* out = payload + number * size;
            *out = uint8_t(scale);
            block.code(1.0f / tensor_scale / scale_numbers[scale], element, packer, out + 1);
        });
    });
}

void nvfp4_values(const uint8_t* payload, int format, int64_t count, float tensor_scale, const float* numbers,
                  const float* scale_numbers, float most, void* y, int threads) {
    decode<NVFP4_VALUES, false>(payload, format, count, NVFP4_BITS, numbers, most, y, threads,
                         [=](int scale) { return tensor_scale * scale_numbers[scale]; });
}
}
