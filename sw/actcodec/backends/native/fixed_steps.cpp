// Modes blpa, autoquant and autoquantz (docs/reference/bitstream.md, sections 3, 5 and 6): a fixed step for all values of a job.
#include <vector>

#include "affine.h"
#include "coded_blocks.h"

using namespace cdu;

namespace {

constexpr int STEP_BEATS = int(BLOCKS_PER_STEP) * BLOCK_SIDE;

// Returns sat16(round(x * k)), or with offsets sat16(floor(x * k) - offset), of the exact product.
struct Scaler {
    const float* k;
    const int16_t* offsets;

    Shorts operator()(Floats x, int64_t row) const {
        constexpr int LEAST = -(1 << (BASE_BITS - 1)), GREATEST = -LEAST - 1;
        if (!offsets) return __builtin_convertvector(scaled<LEAST, GREATEST>(x, k[row]), Shorts);
        return __builtin_convertvector(clamped(floored(x, k[row]) - int32_t(offsets[row]), LEAST, GREATEST), Shorts);
    }

  private:
    // Rounds the product down, limited beyond the reach of any offset, so that results of 16 bits are exact.
    static Ints floored(Floats x, double k) {
        constexpr double LIMIT = 1 << (BASE_BITS + 2);
        Ints whole;
        for (int i = 0; i < LANES; ++i) {
            double product = x[i] * k;
            product = product == product ? product : 0.0;
            whole[i] = int32_t(std::floor(std::max(std::min(product, LIMIT), -LIMIT)));
        }
        return whole;
    }
};

// A matrix of rows that are filled up with zeros to whole beats; beats behind the last row are zeros.
struct Beats {
    int64_t rows, columns, row_beats;

    template <class T> Shorts load(const T* x, int64_t beat, const Scaler& scaled16) const {
        int64_t row = beat / row_beats, column = beat % row_beats * LANES;
        if (row >= rows) return Shorts{};
        int64_t count = std::min<int64_t>(columns - column, LANES);
        Floats some = load_some(x + row * columns + column, count);
        for (int64_t i = count; i < LANES; ++i) some[i] = 0;
        return scaled16(some, row);
    }

    template <class T> void store(T* y, int64_t beat, Ints integers, const float* r) const {
        int64_t row = beat / row_beats, column = beat % row_beats * LANES;
        if (row < rows) store_some(y + row * columns + column, floats(integers) * r[row], columns - column);
    }
};

// Codes around zero and their values.
struct Fixed {
    int bits, step_log2;

    Range range() const { return {-(1 << (bits - 1 + step_log2)), 1, step_log2}; }
};

// The codes of blocks without those of zeros (autoquantz): a mask, then those of each row together, filled up to whole bytes.
template <int BITS> struct MaskedRows {
    static constexpr int TOGETHER = 1;
    static constexpr int HEAD = MASK_BYTES, LONGEST = MASK_BYTES + BLOCK_SIDE * BITS, SLACK = LANES;
    static constexpr uint64_t LEVELS = ONES * ((1 << BITS) - 1), HALF = ONES << (BITS - 1);

    // Codes less that of zero, as signed bytes.
    static uint8_t* pack(const int8_t* q, uint8_t* out) {
        CodePacker packer(BITS);
        uint8_t* next = out + MASK_BYTES;
        for (int j = 0; j < BLOCK_SIDE; ++j, q += LANES) {
            uint64_t word = load<uint64_t>(q), low = word & 0x7f * ONES;
            uint64_t present = ((low + 0x7f * ONES) | word) >> 7 & ONES;
            out[j] = gathered(present);
            packer.pack(std::bit_cast<Codes>(extracted(word & LEVELS, present * 0xff)), next);
            next += row_bytes(std::popcount(present));
        }
        return next;
    }

    static int length(const uint8_t* block) {
        int bytes = MASK_BYTES;
        for (int j = 0; j < BLOCK_SIDE; ++j) bytes += row_bytes(std::popcount(block[j]));
        return bytes;
    }

    static void unpack(const uint8_t* const* packed, const uint8_t*, int8_t (*blocks)[BLOCK_VALUES]) {
        const uint8_t* block = *packed;
        int8_t* q = *blocks;
        CodePacker packer(BITS);
        const uint8_t* next = block + MASK_BYTES;
        for (int j = 0; j < BLOCK_SIDE; ++j, q += LANES) {
            uint8_t row[LANES] = {};
            int bytes = row_bytes(std::popcount(block[j]));
            std::copy_n(next, bytes, row);
            next += bytes;
            uint64_t codes = std::bit_cast<uint64_t>(packer.unpack(row));
            uint64_t present = deposited(block[j], ONES) * 0xff;
            // A code's highest bit is its sign.
            Bytes placed = std::bit_cast<Bytes>(deposited(codes, present) ^ (HALF & present));
            store(q, placed - std::bit_cast<Bytes>(HALF & present));
        }
    }

  private:
    static int row_bytes(int codes) { return (codes * BITS + 7) / 8; }
};

template <class Body> inline auto with_width(int bits, Body body) {
    if (bits == 1) return body(MaskedRows<1>{});
    if (bits == 2) return body(MaskedRows<2>{});
    if (bits == 4) return body(MaskedRows<4>{});
    return body(MaskedRows<8>{});
}

}  // namespace

extern "C" {

// (rows, columns) with a multiplier per row to codes of all beats; with an offset per row it is mode blpa, which rounds down.
void fixed_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t row_beats, const float* k,
                  const int16_t* offsets, int bits, int step_log2, bool stochastic, uint32_t seed, int64_t first, uint8_t* payload,
                  int threads) {
    Beats beats{rows, columns, row_beats};
    Scaler scaled16{k, offsets};
    RowQuantizer quantize(Fixed{bits, step_log2}.range(), bits);
    CodePacker packer(bits);
    Added added{stochastic, seed};
    int64_t count = rows * row_beats;
    with_format(format, [&]<class T>(T) {
        parallel(pieces(count, STEP_BEATS), threads, [&](int64_t step) {
            uint16_t fractions[STEP_BEATS][LANES] = {};
            int64_t begin = step * STEP_BEATS, end = std::min(count, begin + STEP_BEATS);
            if (!offsets) added(first + begin, STEP_BEATS, fractions);
            for (int64_t beat = begin; beat < end; ++beat) {
                Shorts values = beats.load(static_cast<const T*>(x), beat, scaled16);
                packer.pack(quantize(values, fractions[beat - begin]), payload + beat * bits);
            }
        });
    });
}

void fixed_decode(const uint8_t* payload, int format, int64_t rows, int64_t columns, int64_t row_beats, const float* r,
                  const int16_t* offsets, int bits, int step_log2, void* y, int threads) {
    Beats beats{rows, columns, row_beats};
    int32_t low = Fixed{bits, step_log2}.range().low + (offsets ? 1 << step_log2 >> 1 : 0);
    CodePacker packer(bits);
    int64_t count = rows * row_beats;
    with_format(format, [&]<class T>(T) {
        parallel(pieces(count, STEP_BEATS), threads, [&](int64_t step) {
            int64_t end = std::min(count, (step + 1) * STEP_BEATS);
            for (int64_t beat = step * STEP_BEATS; beat < end; ++beat) {
                Ints integers = (widened(packer.unpack(payload + beat * bits)) << step_log2) + low;
                if (offsets) integers += int32_t(offsets[beat / row_beats]);
                beats.store(static_cast<T*>(y), beat, integers, r);
            }
        });
    });
}

// Encodes like fixed_encode without offsets, in blocks with masks; `payload` has room for the longest result. Returns its length.
int64_t fixed_masked_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t row_beats, int64_t blocks,
                            const float* k, int bits, int step_log2, bool stochastic, uint32_t seed, int64_t first,
                            uint8_t* payload, int threads) {
    Beats beats{rows, columns, row_beats};
    Scaler scaled16{k, nullptr};
    RowQuantizer quantize(Fixed{bits, step_log2}.range(), bits);
    Added added{stochastic, seed};
    Codes zero = Codes{} + uint8_t(1 << (bits - 1));
    auto encode = [&]<class Coder, class T>(Coder, T) {
        return pack_blocks<Coder>(blocks, payload, threads, [&](int64_t block, int8_t* q) {
            uint16_t fractions[RANDOM_BEATS][LANES];
            // Two blocks share the numbers that are drawn together; drawing them twice costs less than keeping them.
            added(first + block * BLOCK_SIDE, RANDOM_BEATS, fractions);
            for (int j = 0; j < BLOCK_SIDE; ++j) {
                Shorts values = beats.load(static_cast<const T*>(x), block * BLOCK_SIDE + j, scaled16);
                store(q + LANES * j, quantize(values, fractions[j]) - zero);
            }
        });
    };
    return with_width(bits, [&](auto coder) { return with_format(format, [&](auto value) { return encode(coder, value); }); });
}

// Decodes; returns false for a payload that is not exactly so many blocks.
bool fixed_masked_decode(const uint8_t* payload, int64_t size, int format, int64_t rows, int64_t columns, int64_t row_beats,
                         int64_t blocks, const float* r, int bits, int step_log2, void* y, int threads) {
    Beats beats{rows, columns, row_beats};
    auto decode = [&]<class Coder, class T>(Coder, T) {
        return unpack_blocks<Coder>(payload, size, blocks, threads, [&](int64_t block, const int8_t* q) {
            for (int j = 0; j < BLOCK_SIDE; ++j) {
                Ints integers = widened(load<Bytes>(q + LANES * j)) << step_log2;
                beats.store(static_cast<T*>(y), block * BLOCK_SIDE + j, integers, r);
            }
        });
    };
    return with_width(bits, [&](auto coder) { return with_format(format, [&](auto value) { return decode(coder, value); }); });
}
}
