// Modes division and actnn (docs/bitstream.md, sections 2, 3, 5 and 6), and the residuals that division's scales follow from.
#include <atomic>
#include <vector>

#include "affine.h"

using namespace cdu;

namespace {

constexpr int GROUP_ROWS = GROUP_VALUES / LANES;
// Groups of actnn, or blocks of division, that one step of a parallel loop handles.
constexpr int64_t GROUPS_PER_STEP = 16;
constexpr int64_t BLOCKS_PER_STEP = 64;
constexpr int STEP_BEATS = 512;
static_assert(GROUPS_PER_STEP * GROUP_ROWS == STEP_BEATS && BLOCKS_PER_STEP * BLOCK_SIDE == STEP_BEATS);

template <class T> inline int16_t scaled16(T x, double k) {
    constexpr int LIMIT = 1 << (BASE_BITS - 1);
    return int16_t(scaled<-LIMIT, LIMIT - 1>(x, k));
}

// An 8x8 block of a matrix, in division filled up with the last value of each row and the last row.
struct Place {
    int64_t top, left;
    int height, width;

    Place(int64_t block, int64_t row_blocks, int64_t rows, int64_t columns)
        : top(block / row_blocks * BLOCK_SIDE), left(block % row_blocks * BLOCK_SIDE),
          height(int(std::min<int64_t>(rows - top, BLOCK_SIDE))), width(int(std::min<int64_t>(columns - left, BLOCK_SIDE))) {}
};

// out[8 * y + x] = f(value, y) of all places of a block.
template <class T, class Out, class F>
inline void gather(const T* x, int64_t columns, const Place& place, Out* out, F f) {
    for (int y = 0; y < place.height; ++y) {
        const T* from = x + (place.top + y) * columns + place.left;
        if (place.width == BLOCK_SIDE)
            for (int i = 0; i < BLOCK_SIDE; ++i) out[BLOCK_SIDE * y + i] = f(from[i], y);
        else
            for (int i = 0; i < BLOCK_SIDE; ++i) out[BLOCK_SIDE * y + i] = f(from[std::min(i, place.width - 1)], y);
    }
    for (int y = place.height; y < BLOCK_SIDE; ++y)
        std::copy_n(out + BLOCK_SIDE * (place.height - 1), BLOCK_SIDE, out + BLOCK_SIDE * y);
}

inline uint8_t* write_head(uint8_t* out, int32_t low) {
    int16_t short_low = int16_t(low);
    std::memcpy(out, &short_low, LOW_BYTES);
    return out + LOW_BYTES;
}

inline uint8_t* write_head(uint8_t* out, const Range& range) {
    out = write_head(out, range.low);
    *out++ = uint8_t(range.mantissa);
    *out++ = uint8_t(range.exponent);
    return out;
}

// Of a head with a found step; false for one that no encoder writes.
inline bool read_head(const uint8_t* head, int levels, Range& range) {
    range = {read16(head), head[LOW_BYTES], head[LOW_BYTES + 1]};
    return range.mantissa >= 1 && range.exponent <= MAX_EXPONENT &&
           range.low + levels * range.step() < 1 << (DECODED_BITS - 1);
}

inline Range around(int32_t mean, int bits, int step_log2) {
    return {mean - (((1 << bits) - 1) << step_log2 >> 1), 1, step_log2};
}

}  // namespace

extern "C" {

// Largest distance of a value from the mean of its block, per channel, all in float32: each value times its channel's
// multiplier, sums over the halves of a row, then over those of a column, and so on (block_statistics.residual_maxima).
void residual_maxima(const void* x, int format, int64_t rows, int64_t columns, int64_t channels, int64_t channel_rows,
                     const float* k, float* largest, int threads) {
    int64_t row_blocks = pieces(columns, BLOCK_SIDE), blocks = row_blocks * pieces(rows, BLOCK_SIDE);
    std::fill_n(largest, channels, 0.0f);
    with_format(format, [&]<class T>(T) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<float> mine(channels);
#pragma omp for schedule(static) nowait
            for (int64_t block = 0; block < blocks; ++block) {
                Place place(block, row_blocks, rows, columns);
                float values[BLOCK_VALUES], sums[BLOCK_SIDE], factors[BLOCK_SIDE];
                int64_t channel[BLOCK_SIDE];
                for (int y = 0; y < place.height; ++y) {
                    channel[y] = (place.top + y) / channel_rows % channels;
                    factors[y] = k[channel[y]];
                }
                gather(static_cast<const T*>(x), columns, place, values, [&](T value, int y) { return widened(value) * factors[y]; });
                for (int y = 0; y < BLOCK_SIDE; ++y) {
                    const float* row = values + BLOCK_SIDE * y;
                    sums[y] = ((row[0] + row[4]) + (row[2] + row[6])) + ((row[1] + row[5]) + (row[3] + row[7]));
                }
                float sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
                float mean = sum / BLOCK_VALUES;
                for (int y = 0; y < place.height; ++y) {
                    float most = mine[channel[y]];
                    for (int i = 0; i < BLOCK_SIDE; ++i) most = std::max(most, std::fabs(values[BLOCK_SIDE * y + i] - mean));
                    mine[channel[y]] = most;
                }
            }
#pragma omp critical
            for (int64_t channel = 0; channel < channels; ++channel)
                largest[channel] = std::max(largest[channel], mine[channel]);
        }
    });
}

// (rows, columns), a multiplier for every channel_rows rows, to blocks: mean and codes, or least value, step and codes.
void division_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* k, int bits,
                     int step_log2, bool block_range, bool stochastic, uint32_t seed, uint8_t* payload, int threads) {
    int64_t row_blocks = pieces(columns, BLOCK_SIDE), blocks = row_blocks * pieces(rows, BLOCK_SIDE);
    int64_t size = LOW_BYTES + (block_range ? STEP_BYTES : 0) + BLOCK_SIDE * bits;
    CodePacker packer(bits);
    Added added{stochastic, seed};
    with_format(format, [&]<class T>(T) {
        parallel(pieces(blocks, BLOCKS_PER_STEP), threads, [&](int64_t step) {
            uint16_t fractions[STEP_BEATS][LANES];
            int64_t begin = step * BLOCKS_PER_STEP, end = std::min(blocks, begin + BLOCKS_PER_STEP);
            added(begin * BLOCK_SIDE, STEP_BEATS, fractions);
            for (int64_t block = begin; block < end; ++block) {
                Place place(block, row_blocks, rows, columns);
                int16_t values[BLOCK_VALUES];
                double factors[BLOCK_SIDE];
                for (int y = 0; y < place.height; ++y) factors[y] = k[(place.top + y) / channel_rows];
                gather(static_cast<const T*>(x), columns, place, values, [&](T value, int y) { return scaled16(value, factors[y]); });
                uint8_t* out = payload + block * size;
                Range range;
                if (block_range) {
                    auto [least, greatest] = std::minmax_element(values, values + BLOCK_VALUES);
                    range = found(*least, *greatest, (1 << bits) - 1);
                    out = write_head(out, range);
                } else {
                    int32_t sum = BLOCK_VALUES / 2;
                    for (int16_t value : values) sum += value;
                    int32_t mean = sum >> bit_length(BLOCK_VALUES - 1);
                    range = around(mean, bits, step_log2);
                    out = write_head(out, mean);
                }
                RowQuantizer quantize(range, bits);
                uint8_t codes[BLOCK_VALUES];
                for (int y = 0; y < BLOCK_SIDE; ++y)
                    quantize(values + LANES * y, fractions[(block - begin) * BLOCK_SIDE + y], codes + LANES * y);
                for (int y = 0; y < BLOCK_SIDE; ++y, out += bits) packer.pack(codes + LANES * y, out);
            }
        });
    });
}

// The inverse; false when a head has a step that no encoder writes.
bool division_decode(const uint8_t* payload, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* r,
                     int bits, int step_log2, bool block_range, void* y, int threads) {
    int64_t row_blocks = pieces(columns, BLOCK_SIDE), blocks = row_blocks * pieces(rows, BLOCK_SIDE);
    int64_t head = LOW_BYTES + (block_range ? STEP_BYTES : 0), size = head + BLOCK_SIDE * bits;
    CodePacker packer(bits);
    std::atomic<bool> intact = true;
    with_format(format, [&]<class T>(T) {
        parallel(pieces(blocks, BLOCKS_PER_STEP), threads, [&](int64_t step) {
            int64_t end = std::min(blocks, (step + 1) * BLOCKS_PER_STEP);
            for (int64_t block = step * BLOCKS_PER_STEP; block < end; ++block) {
                const uint8_t* in = payload + block * size;
                Range range;
                if (!block_range)
                    range = around(read16(in), bits, step_log2);
                else if (!read_head(in, (1 << bits) - 1, range)) {
                    intact = false;
                    return;
                }
                Place place(block, row_blocks, rows, columns);
                for (int row = 0; row < place.height; ++row) {
                    uint8_t codes[LANES];
                    packer.unpack(in + head + row * bits, codes);
                    float factor = r[(place.top + row) / channel_rows];
                    T* to = static_cast<T*>(y) + (place.top + row) * columns + place.left;
                    int32_t width = range.step();
                    if (place.width == BLOCK_SIDE)
                        for (int i = 0; i < LANES; ++i) to[i] = narrowed<T>(float(range.low + codes[i] * width) * factor);
                    else
                        for (int i = 0; i < place.width; ++i) to[i] = narrowed<T>(float(range.low + codes[i] * width) * factor);
                }
            }
        });
    });
    return intact;
}

// `count` values with one multiplier to groups of 256, the last one filled up with the last value: range and codes. A group is
// 8 rows of 32 values, its codes are those of four 8x8 blocks side by side.
void actnn_encode(const void* x, int format, int64_t count, float k, int bits, bool stochastic, uint32_t seed, uint8_t* payload,
                  int threads) {
    int64_t groups = pieces(count, GROUP_VALUES), size = LOW_BYTES + STEP_BYTES + GROUP_ROWS * bits;
    CodePacker packer(bits);
    Added added{stochastic, seed};
    with_format(format, [&]<class T>(T) {
        parallel(pieces(groups, GROUPS_PER_STEP), threads, [&](int64_t step) {
            uint16_t fractions[STEP_BEATS][LANES];
            int64_t begin = step * GROUPS_PER_STEP, end = std::min(groups, begin + GROUPS_PER_STEP);
            added(begin * GROUP_ROWS, STEP_BEATS, fractions);
            for (int64_t group = begin; group < end; ++group) {
                const T* from = static_cast<const T*>(x) + group * GROUP_VALUES;
                int here = int(std::min<int64_t>(count - group * GROUP_VALUES, GROUP_VALUES));
                int16_t values[GROUP_VALUES];
                for (int i = 0; i < here; ++i) values[i] = scaled16(from[i], k);
                std::fill(values + here, values + GROUP_VALUES, values[here - 1]);
                int16_t least = values[0], greatest = values[0];
                for (int16_t value : values) least = std::min(least, value), greatest = std::max(greatest, value);
                Range range = found(least, greatest, (1 << bits) - 1);
                uint8_t* out = write_head(payload + group * size, range);
                RowQuantizer quantize(range, bits);
                for (int row = 0; row < GROUP_ROWS; ++row, out += bits) {
                    uint8_t codes[LANES];
                    const int16_t* beat = values + row % BLOCK_SIDE * TILE_COLUMNS + row / BLOCK_SIDE * LANES;
                    quantize(beat, fractions[(group - begin) * GROUP_ROWS + row], codes);
                    packer.pack(codes, out);
                }
            }
        });
    });
}

// The inverse; false when a head has a step that no encoder writes.
bool actnn_decode(const uint8_t* payload, int format, int64_t count, float r, int bits, void* y, int threads) {
    int64_t groups = pieces(count, GROUP_VALUES), head = LOW_BYTES + STEP_BYTES, size = head + GROUP_ROWS * bits;
    CodePacker packer(bits);
    std::atomic<bool> intact = true;
    with_format(format, [&]<class T>(T) {
        parallel(pieces(groups, GROUPS_PER_STEP), threads, [&](int64_t step) {
            int64_t end = std::min(groups, (step + 1) * GROUPS_PER_STEP);
            for (int64_t group = step * GROUPS_PER_STEP; group < end; ++group) {
                const uint8_t* in = payload + group * size;
                Range range;
                if (!read_head(in, (1 << bits) - 1, range)) {
                    intact = false;
                    return;
                }
                T values[GROUP_VALUES];
                int32_t width = range.step();
                for (int row = 0; row < GROUP_ROWS; ++row) {
                    uint8_t codes[LANES];
                    packer.unpack(in + head + row * bits, codes);
                    T* to = values + row % BLOCK_SIDE * TILE_COLUMNS + row / BLOCK_SIDE * LANES;
                    for (int i = 0; i < LANES; ++i) to[i] = narrowed<T>(float(range.low + codes[i] * width) * r);
                }
                int64_t here = std::min<int64_t>(count - group * GROUP_VALUES, GROUP_VALUES);
                std::copy_n(values, here, static_cast<T*>(y) + group * GROUP_VALUES);
            }
        });
    });
    return intact;
}
}
