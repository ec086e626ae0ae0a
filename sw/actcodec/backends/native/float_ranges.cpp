// Codecs division-float and actnn-float: means of cells, and codes with a least value and a step for each range. Every operation is
// that of backends/range_quantizer.py, in the same order, so that the results are the same to the last bit.
#include <vector>

#include "affine.h"

using namespace cdu;

namespace {

constexpr int PIECE_BEATS = 512;
constexpr int64_t PIECE_VALUES = PIECE_BEATS * LANES;

// The cells of maps (golden/pooling.py): parts of rows and columns in each turn, the first cell of each map, and its cells in a row.
struct Cells {
    int64_t height, width, row_turns, column_turns;
    const int32_t *rows, *columns;
    const int64_t* first;
    const int32_t* across;

    // Calls body(value, count, first cell of the row, parts of its columns) for parts of rows in values `begin` to `end`.
    template <class Body> void parts(int64_t begin, int64_t end, Body body) const {
        for (int64_t line = begin / width; begin < end; ++line) {
            int64_t next = std::min(end, (line + 1) * width), map = line / height;
            int64_t row = rows[map % row_turns * height + line % height];
            const int32_t* parts = columns + map / row_turns % column_turns * width + begin % width;
            body(begin, next - begin, first[map] + row * across[map], parts);
            begin = next;
        }
    }
};

// Subtracts the means of cells from values; without means copies the values.
struct Residuals {
    Cells cells;
    const float* means;

    template <class T> void load(const T* x, int64_t begin, int64_t end, float* values) const {
        to_floats(x + begin, end - begin, values);
        if (!means) return;
        cells.parts(begin, end, [&](int64_t at, int64_t count, int64_t cell, const int32_t* parts) {
            for (int64_t i = 0; i < count; ++i) values[at - begin + i] -= means[cell + parts[i]];
        });
    }

    void add(int64_t begin, int64_t end, float* values) const {
        if (!means) return;
        cells.parts(begin, end, [&](int64_t at, int64_t count, int64_t cell, const int32_t* parts) {
            for (int64_t i = 0; i < count; ++i) values[at - begin + i] += means[cell + parts[i]];
        });
    }
};

// Calls body(first value, count, number of the range) for the parts of ranges from value `begin` to before `end`.
template <class Body> void ranges_of(int64_t begin, int64_t end, int64_t range_values, Body body) {
    for (int64_t range = begin / range_values; begin < end; ++range) {
        int64_t next = std::min(end, (range + 1) * range_values);
        body(begin, next - begin, range);
        begin = next;
    }
}

}  // namespace

extern "C" {

// Mean of each cell, float32 of sums in float64 in the order of memory.
void cell_means(const void* x, int format, int64_t maps, int64_t height, int64_t width, int64_t row_turns, int64_t column_turns,
                const int32_t* rows, const int32_t* columns, const int64_t* first, const int32_t* across, int64_t all, float* means,
                int threads) {
    Cells cells{height, width, row_turns, column_turns, rows, columns, first, across};
    with_format(format, [&]<class T>(T) {
        parallel(maps, threads, [&](int64_t map) {
            int64_t begin = first[map], end = map + 1 < maps ? first[map + 1] : all;
            std::vector<double> sums(end - begin);
            std::vector<int64_t> counts(end - begin);
            std::vector<float> values(width);
            cells.parts(map * height * width, (map + 1) * height * width,
                        [&](int64_t at, int64_t count, int64_t cell, const int32_t* parts) {
                to_floats(static_cast<const T*>(x) + at, count, values.data());
                for (int64_t i = 0; i < count; ++i) sums[cell - begin + parts[i]] += values[i], ++counts[cell - begin + parts[i]];
            });
            for (int64_t cell = begin; cell < end; ++cell) means[cell] = float(sums[cell - begin] / double(counts[cell - begin]));
        });
    });
}

// Least and greatest residual of each range, float32.
void range_edges(const void* x, int format, int64_t count, int64_t range_values, int64_t height, int64_t width, int64_t row_turns,
                 int64_t column_turns, const int32_t* rows, const int32_t* columns, const int64_t* first, const int32_t* across,
                 const float* means, float* least, float* greatest, int threads) {
    Residuals residuals{{height, width, row_turns, column_turns, rows, columns, first, across}, means};
    with_format(format, [&]<class T>(T) {
        parallel(pieces(count, range_values), threads, [&](int64_t range) {
            float values[PIECE_VALUES];
            int64_t begin = range * range_values, end = std::min(count, begin + range_values);
            Floats low = Floats{} + INFINITY, high = -low;
            for (; begin < end; begin += PIECE_VALUES) {
                int64_t here = std::min(end - begin, PIECE_VALUES);
                residuals.load(static_cast<const T*>(x), begin, begin + here, values);
                for (int64_t i = 0; i < here; i += LANES) {
                    Floats some = load_some(values + i, here - i);
                    low = cdu::least(low, some), high = cdu::greatest(high, some);
                }
            }
            least[range] = low[0], greatest[range] = high[0];
            for (int i = 1; i < LANES; ++i) {
                least[range] = std::min(least[range], low[i]);
                greatest[range] = std::max(greatest[range], high[i]);
            }
        });
    });
}

// Packed codes of residuals.
void range_codes(const void* x, int format, int64_t count, int64_t range_values, int64_t height, int64_t width, int64_t row_turns,
                 int64_t column_turns, const int32_t* rows, const int32_t* columns, const int64_t* first, const int32_t* across,
                 const float* means, const float* low, const float* step, int bits, bool stochastic, uint32_t seed,
                 uint8_t* packed, int threads) {
    Residuals residuals{{height, width, row_turns, column_turns, rows, columns, first, across}, means};
    CodePacker packer(bits);
    Added added{stochastic, seed};
    float most = float((1 << bits) - 1);
    with_format(format, [&]<class T>(T) {
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            float values[PIECE_VALUES];
            uint16_t drawn[PIECE_BEATS][LANES];
            uint8_t codes[PIECE_VALUES + LANES] = {};
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            residuals.load(static_cast<const T*>(x), begin, end, values);
            added(begin / LANES, PIECE_BEATS, drawn);
            ranges_of(begin, end, range_values, [&](int64_t at, int64_t here, int64_t range) {
                const float* some = values + (at - begin);
                const uint16_t* random = drawn[0] + (at - begin);
                uint8_t* out = codes + (at - begin);
                float floor = low[range], width = step[range];
                for (int64_t i = 0; i < here; ++i) {
                    float whole = std::floor((some[i] - floor) / width + float(random[i]) * (1.0f / (1 << WORD_BITS)));
                    out[i] = uint8_t(int32_t(std::min(std::max(whole, 0.0f), most)));
                }
            });
            pack_some(packer, codes, end - begin, packed + begin / LANES * bits);
        });
    });
}

// Low + step * code, and the means of cells, limited to magnitudes of `limit`. Without codes the means alone.
void range_values(const uint8_t* packed, int format, int64_t count, int64_t range_values, int64_t height, int64_t width,
                  int64_t row_turns, int64_t column_turns, const int32_t* rows, const int32_t* columns, const int64_t* first,
                  const int32_t* across, const float* means, const float* low, const float* step, int bits, float limit, void* y,
                  int threads) {
    Residuals residuals{{height, width, row_turns, column_turns, rows, columns, first, across}, means};
    CodePacker packer(bits);
    with_format(format, [&]<class T>(T) {
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            float values[PIECE_VALUES];
            uint8_t codes[PIECE_VALUES];
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            // Begins with -0.0, to which a mean of -0.0 is added without a change of sign.
            if (!packed) std::fill_n(values, end - begin, -0.0f);
            if (packed) {
                unpack_some(packer, packed + begin / LANES * bits, end - begin, codes);
                ranges_of(begin, end, range_values, [&](int64_t at, int64_t here, int64_t range) {
                    const uint8_t* some = codes + (at - begin);
                    float* out = values + (at - begin);
                    float floor = low[range], width = step[range];
                    for (int64_t i = 0; i < here; ++i) out[i] = float(some[i]) * width + floor;
                });
            }
            residuals.add(begin, end, values);
            for (int64_t i = 0; i < end - begin; ++i) values[i] = std::min(std::max(values[i], -limit), limit);
            from_floats(values, end - begin, static_cast<T*>(y) + begin);
        });
    });
}
}
