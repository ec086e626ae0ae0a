// Modes division and actnn (docs/reference/bitstream.md, sections 2, 3, 5 and 6), and the residuals that division's scales follow from.
#include <atomic>
#include <utility>
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

inline Shorts scaled16(Floats x, double k) {
    constexpr int LIMIT = 1 << (BASE_BITS - 1);
    return __builtin_convertvector(scaled<-LIMIT, LIMIT - 1>(x, k), Shorts);
}

// Calls f(row of the block, number of its scale, its 8 values); the last value of each row and the last row fill up a block.
template <class T, class F> inline void rows_of(const T* x, int64_t columns, const Place& place, F f) {
    for (int64_t row = 0; row < BLOCK_SIDE; ++row) {
        int64_t there = std::min(row, place.height - 1);
        f(row, place.scale[there], load_some(x + (place.top + there) * columns + place.left, place.width));
    }
}

inline std::pair<int32_t, int32_t> least_and_greatest(const Shorts* values, int beats) {
    Shorts low = values[0], high = values[0];
    for (int i = 1; i < beats; ++i) low = least(low, values[i]), high = greatest(high, values[i]);
    int32_t lowest = low[0], highest = high[0];
    for (int i = 1; i < LANES; ++i) lowest = std::min<int32_t>(lowest, low[i]), highest = std::max<int32_t>(highest, high[i]);
    return {lowest, highest};
}

// Returns (sum + 32) >> 6.
inline int32_t mean_of(const Shorts* values) {
    Ints sums = {};
    for (int row = 0; row < BLOCK_SIDE; ++row) sums += __builtin_convertvector(values[row], Ints);
    int32_t sum = BLOCK_VALUES / 2;
    for (int i = 0; i < LANES; ++i) sum += sums[i];
    return sum >> bit_length(BLOCK_VALUES - 1);
}

// Adds halves to each other until one number is left.
inline float added_up(Floats x) {
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    return x[0] + x[1];
}

inline uint8_t* write_head(uint8_t* out, int32_t low) {
    store(out, int16_t(low));
    return out + LOW_BYTES;
}

inline uint8_t* write_head(uint8_t* out, const Range& range) {
    out = write_head(out, range.low);
    *out++ = uint8_t(range.mantissa);
    *out++ = uint8_t(range.exponent);
    return out;
}

// Reads a head with a found step; returns false for one that no encoder writes.
inline bool read_head(const uint8_t* head, int levels, Range& range) {
    range = {load<int16_t>(head), head[LOW_BYTES], head[LOW_BYTES + 1]};
    return range.mantissa >= 1 && range.exponent <= MAX_EXPONENT &&
           range.low + levels * (range.mantissa << range.exponent) < 1 << (DECODED_BITS - 1);
}

inline Range around(int32_t mean, int bits, int step_log2) {
    return {mean - (((1 << bits) - 1) << step_log2 >> 1), 1, step_log2};
}

}  // namespace

extern "C" {

// Largest distance of a value from the mean of its block, per channel, all in float32: each value times its channel's
// multiplier, sums as block_statistics.residual_maxima has them.
void residual_maxima(const void* x, int format, int64_t rows, int64_t columns, int64_t channels, int64_t channel_rows,
                     const float* k, float* largest, int threads) {
    Blocks blocks{rows, columns, channel_rows};
    std::fill_n(largest, channels, 0.0f);
    with_format(format, [&]<class T>(T) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<Floats> mine(channels);
#pragma omp for schedule(static) nowait
            for (int64_t block = 0; block < blocks.count; ++block) {
                Place place(block, blocks);
                Floats values[BLOCK_SIDE];
                rows_of(static_cast<const T*>(x), columns, place, [&](int64_t row, int64_t scale, Floats some) {
                    values[row] = some * k[scale % channels];
                });
                Floats sums[BLOCK_SIDE];
                std::copy_n(values, BLOCK_SIDE, sums);
                for (int half = BLOCK_SIDE / 2; half; half /= 2)
                    for (int row = 0; row < half; ++row) sums[row] += sums[row + half];
                float mean = added_up(sums[0]) / BLOCK_VALUES;
                for (int row = 0; row < place.height; ++row) {
                    Floats distance = values[row] - mean;
                    Floats& known = mine[place.scale[row] % channels];
                    known = greatest(known, greatest(distance, -distance));
                }
            }
#pragma omp critical
            for (int64_t channel = 0; channel < channels; ++channel)
                for (int i = 0; i < LANES; ++i) largest[channel] = std::max(largest[channel], mine[channel][i]);
        }
    });
}

// (rows, columns), a multiplier for every channel_rows rows, to blocks: mean and codes, or least value, step and codes. Random
// numbers are those of the tensor's beats from number `first` on, here and in the other encoders.
void division_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* k, int bits,
                     int step_log2, bool block_range, bool stochastic, uint32_t seed, int64_t first, uint8_t* payload, int threads) {
    Blocks blocks{rows, columns, channel_rows};
    int64_t size = LOW_BYTES + (block_range ? STEP_BYTES : 0) + BLOCK_SIDE * bits;
    CodePacker packer(bits);
    Added added{stochastic, seed};
    with_format(format, [&]<class T>(T) {
        parallel(pieces(blocks.count, BLOCKS_PER_STEP), threads, [&](int64_t step) {
            uint16_t fractions[STEP_BEATS][LANES];
            int64_t begin = step * BLOCKS_PER_STEP, end = std::min(blocks.count, begin + BLOCKS_PER_STEP);
            added(first + begin * BLOCK_SIDE, STEP_BEATS, fractions);
            for (int64_t block = begin; block < end; ++block) {
                Place place(block, blocks);
                Shorts values[BLOCK_SIDE];
                rows_of(static_cast<const T*>(x), columns, place, [&](int64_t row, int64_t scale, Floats some) {
                    values[row] = scaled16(some, k[scale]);
                });
                uint8_t* out = payload + block * size;
                Range range;
                if (block_range) {
                    auto [low, high] = least_and_greatest(values, BLOCK_SIDE);
                    range = found(low, high, (1 << bits) - 1);
                    out = write_head(out, range);
                } else {
                    int32_t mean = mean_of(values);
                    range = around(mean, bits, step_log2);
                    out = write_head(out, mean);
                }
                RowQuantizer quantize(range, bits);
                for (int row = 0; row < BLOCK_SIDE; ++row, out += bits)
                    packer.pack(quantize(values[row], fractions[(block - begin) * BLOCK_SIDE + row]), out);
            }
        });
    });
}

// Decodes blocks; returns false when a head has a step that no encoder writes.
bool division_decode(const uint8_t* payload, int format, int64_t rows, int64_t columns, int64_t channel_rows, const float* r,
                     int bits, int step_log2, bool block_range, void* y, int threads) {
    Blocks blocks{rows, columns, channel_rows};
    int64_t head = LOW_BYTES + (block_range ? STEP_BYTES : 0), size = head + BLOCK_SIDE * bits;
    CodePacker packer(bits);
    std::atomic<bool> intact = true;
    with_format(format, [&]<class T>(T) {
        parallel(pieces(blocks.count, BLOCKS_PER_STEP), threads, [&](int64_t step) {
            int64_t end = std::min(blocks.count, (step + 1) * BLOCKS_PER_STEP);
            for (int64_t block = step * BLOCKS_PER_STEP; block < end; ++block) {
                const uint8_t* in = payload + block * size;
                Range range;
                if (!block_range)
                    range = around(load<int16_t>(in), bits, step_log2);
                else if (!read_head(in, (1 << bits) - 1, range)) {
                    intact = false;
                    return;
                }
                Place place(block, blocks);
                for (int row = 0; row < place.height; ++row) {
                    T* to = static_cast<T*>(y) + (place.top + row) * columns + place.left;
                    float factor = r[place.scale[row]];
                    store_some(to, range.values(packer.unpack(in + head + row * bits), factor), place.width);
                }
            }
        });
    });
    return intact;
}

// `count` values with one multiplier to groups of 256, the last one filled up with the last value: range and codes. A group is
// 8 rows of 32 values, its codes are those of four 8x8 blocks side by side.
void actnn_encode(const void* x, int format, int64_t count, float k, int bits, bool stochastic, uint32_t seed, int64_t first,
                  uint8_t* payload, int threads) {
    int64_t groups = pieces(count, GROUP_VALUES), size = LOW_BYTES + STEP_BYTES + GROUP_ROWS * bits;
    CodePacker packer(bits);
    Added added{stochastic, seed};
    with_format(format, [&]<class T>(T) {
        parallel(pieces(groups, GROUPS_PER_STEP), threads, [&](int64_t step) {
            uint16_t fractions[STEP_BEATS][LANES];
            int64_t begin = step * GROUPS_PER_STEP, end = std::min(groups, begin + GROUPS_PER_STEP);
            added(first + begin * GROUP_ROWS, STEP_BEATS, fractions);
            for (int64_t group = begin; group < end; ++group) {
                const T* from = static_cast<const T*>(x) + group * GROUP_VALUES;
                int here = int(std::min<int64_t>(count - group * GROUP_VALUES, GROUP_VALUES));
                Shorts values[GROUP_ROWS];
                for (int row = 0; row < GROUP_ROWS; ++row) {
                    int left = std::max(here - row * LANES, 1);
                    values[row] = scaled16(load_some(from + here - left, left), k);
                }
                auto [low, high] = least_and_greatest(values, GROUP_ROWS);
                Range range = found(low, high, (1 << bits) - 1);
                uint8_t* out = write_head(payload + group * size, range);
                RowQuantizer quantize(range, bits);
                for (int beat = 0; beat < GROUP_ROWS; ++beat, out += bits) {
                    Shorts row = values[beat % BLOCK_SIDE * TILE_BLOCKS + beat / BLOCK_SIDE];
                    packer.pack(quantize(row, fractions[(group - begin) * GROUP_ROWS + beat]), out);
                }
            }
        });
    });
}

// Decodes groups; returns false when a head has a step that no encoder writes.
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
                int64_t here = std::min<int64_t>(count - group * GROUP_VALUES, GROUP_VALUES);
                T* to = static_cast<T*>(y) + group * GROUP_VALUES;
                for (int beat = 0; beat < GROUP_ROWS; ++beat) {
                    int64_t at = (beat % BLOCK_SIDE * TILE_BLOCKS + beat / BLOCK_SIDE) * LANES;
                    if (at < here) store_some(to + at, range.values(packer.unpack(in + head + beat * bits), r), here - at);
                }
            }
        });
    });
    return intact;
}
}
