// Codecs acgc-quant and acgc-quantz: whole numbers of steps, stochastically rounded, in 1 to 16 bits. Every operation is that of
// backends/row_quantizer.py. Values stand in rows: channel by channel, or all in one.
#include <vector>

#include "bit_streams.h"
#include "coded_blocks.h"

using namespace cdu;

namespace {

constexpr int64_t SEGMENT = 1 << 12;
constexpr int BYTE = 8, WIDTHS = 17;

// Rows of a tensor (outer, rows, inner), cut into segments.
struct Rows {
    int64_t outer, rows, inner;
    int64_t row_values = outer * inner, per_row = pieces(row_values, SEGMENT), segments = rows * per_row;
};

struct Segment {
    int64_t row, first, count;  // first value in the row

    Segment(const Rows& rows, int64_t number)
        : row(number / rows.per_row), first(number % rows.per_row * SEGMENT), count(std::min(rows.row_values - first, SEGMENT)) {}

    // Position of the segment's first value in the order of rows, which random numbers and bits follow.
    int64_t place(const Rows& rows) const { return row * rows.row_values + first; }

    // Calls body(first value in the segment, in the tensor, count) for the contiguous parts of the segment.
    template <class Body> void parts(const Rows& rows, Body body) const {
        for (int64_t done = 0; done < count;) {
            int64_t sample = (first + done) / rows.inner, within = (first + done) % rows.inner;
            int64_t here = std::min(count - done, rows.inner - within);
            body(done, (sample * rows.rows + row) * rows.inner + within, here);
            done += here;
        }
    }
};

struct Quantizer {
    const float* steps;
    const double *least, *greatest;
    uint32_t seed;

    // Whole numbers of steps of a segment.
    template <class T> void operator()(const T* x, const Rows& rows, const Segment& segment, int32_t* whole) const {
        constexpr int BEATS = SEGMENT / LANES + RANDOM_BEATS;
        float values[SEGMENT];
        uint16_t drawn[BEATS][LANES];
        segment.parts(rows, [&](int64_t at, int64_t from, int64_t here) { to_floats(x + from, here, values + at); });
        int64_t place = segment.place(rows), beats = pieces(place % LANES + segment.count, LANES);
        Added{true, seed}(place / LANES, int(pieces(beats, RANDOM_BEATS)) * RANDOM_BEATS, drawn);
        const uint16_t* random = drawn[0] + place % LANES;
        double step = steps[segment.row], low = -least[segment.row], high = greatest[segment.row];
        for (int64_t i = 0; i < segment.count; ++i) {
            double exact = double(values[i]) / step, below = std::floor(exact);
            double threshold = (float(random[i]) + 0.5f) / float(1 << WORD_BITS);
            below += exact - below > threshold ? 1.0 : 0.0;
            whole[i] = int32_t(std::min(std::max(below, low), high));
        }
    }
};

// First bytes of the codes of each width in the stream: of their low 8 bits, and of their upper bits.
struct Places {
    const int64_t *low, *high;
};

// The number of each segment's first code among those of its width.
std::vector<int64_t> starts_of(const Rows& rows, const uint8_t* widths, const int64_t* kept) {
    std::vector<int64_t> starts(rows.segments);
    int64_t next[WIDTHS] = {};
    for (int64_t number = 0; number < rows.segments; ++number) {
        Segment segment(rows, number);
        int64_t& start = next[widths[segment.row]];
        starts[number] = start;
        start += kept ? kept[number] : segment.count;
    }
    return starts;
}

}  // namespace

extern "C" {

// Counts the nonzero values of each segment: int64 (segments,), rows one after the other.
void fixed_point_kept(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, const float* steps,
                      const double* least, const double* greatest, uint32_t seed, int64_t* kept, int threads) {
    Rows rows{outer, channels, inner};
    Quantizer quantize{steps, least, greatest, seed};
    with_format(format, [&]<class T>(T) {
        parallel(rows.segments, threads, [&](int64_t number) {
            int32_t whole[SEGMENT];
            Segment segment(rows, number);
            quantize(static_cast<const T*>(x), rows, segment, whole);
            kept[number] = segment.count - std::count(whole, whole + segment.count, 0);
        });
    });
}

// Writes codes to a stream of zeros, those of each width from `low` and `high` on; with `kept` only nonzero codes, and their
// mask, initially zeros.
void fixed_point_codes(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, const float* steps,
                       const double* least, const double* greatest, uint32_t seed, const uint8_t* widths, const int64_t* kept,
                       const int64_t* low, const int64_t* high, uint8_t* mask, uint8_t* codes, int threads) {
    Rows rows{outer, channels, inner};
    Quantizer quantize{steps, least, greatest, seed};
    std::vector<int64_t> starts = starts_of(rows, widths, kept);
    with_format(format, [&]<class T>(T) {
        parallel(rows.segments, threads, [&](int64_t number) {
            int32_t whole[SEGMENT + LANES];
            Segment segment(rows, number);
            quantize(static_cast<const T*>(x), rows, segment, whole);
            std::fill_n(whole + segment.count, LANES, 0);
            int width = widths[segment.row], above = std::max(width - BYTE, 0), below = width - above;
            CodePacker low_packer(below), high_packer(std::max(above, 1));
            BitWriter lows(codes + low[width], starts[number] * below), highs(codes + high[width], starts[number] * above);
            BitWriter present(mask, kept ? segment.place(rows) : 0);
            for (int64_t i = 0; i < segment.count; i += LANES) {
                int many = int(std::min<int64_t>(segment.count - i, LANES));
                Ints some = load<Ints>(whole + i) & ((1 << width) - 1);
                uint64_t first = std::bit_cast<uint64_t>(narrowed<Codes>(some & 0xff));
                uint64_t second = std::bit_cast<uint64_t>(narrowed<Codes>(some >> BYTE));
                if (kept) {
                    Ints zero = {};
                    uint64_t flags = std::bit_cast<uint64_t>(narrowed<Bytes>(some != zero));
                    present.put(gathered(flags & ONES), many);
                    many = std::popcount(flags) / 8;
                    first = extracted(first, flags), second = extracted(second, flags);
                }
                lows.put(std::bit_cast<Codes>(first), many, low_packer);
                if (above) highs.put(std::bit_cast<Codes>(second), many, high_packer);
            }
            lows.end(), highs.end();
            if (kept) present.end();
        });
    });
}

// Counts the set bits of each row of a mask of `count` bits: int64 (rows,).
void fixed_point_present(const uint8_t* mask, int64_t count, int64_t rows, int64_t* present, int threads) {
    int64_t size = count / rows;
    parallel(rows, threads, [&](int64_t row) {
        BitReader bits(mask, pieces(count, 8), row * size);
        present[row] = 0;
        for (int64_t left = size; left > 0; left -= MOST_READ) present[row] += std::popcount(bits.get(int(std::min<int64_t>(left, MOST_READ))));
    });
}

// Decodes: codes times steps, limited to magnitudes of `limit`. `size` is that of the stream of codes; `mask` may be missing.
void fixed_point_values(const uint8_t* codes, int64_t size, const uint8_t* mask, int format, int64_t outer, int64_t channels,
                        int64_t inner, const float* steps, const uint8_t* widths, const bool* has_sign, const int64_t* low,
                        const int64_t* high, float limit, void* y, int threads) {
    Rows rows{outer, channels, inner};
    int64_t mask_bytes = pieces(rows.rows * rows.row_values, 8);
    std::vector<int64_t> kept(mask ? rows.segments : 0);
    if (mask)
        parallel(rows.segments, threads, [&](int64_t number) {
            Segment segment(rows, number);
            BitReader present(mask, mask_bytes, segment.place(rows));
            for (int64_t i = 0; i < segment.count; i += LANES)
                kept[number] += std::popcount(present.get(int(std::min<int64_t>(segment.count - i, LANES))));
        });
    std::vector<int64_t> starts = starts_of(rows, widths, mask ? kept.data() : nullptr);
    with_format(format, [&]<class T>(T) {
        parallel(rows.segments, threads, [&](int64_t number) {
            float values[SEGMENT + LANES];
            Segment segment(rows, number);
            int width = widths[segment.row], above = std::max(width - BYTE, 0), below = width - above;
            int32_t half = has_sign[segment.row] ? 1 << (width - 1) : 0;
            float step = steps[segment.row];
            Floats most = Floats{} + limit;
            CodePacker low_packer(below), high_packer(std::max(above, 1));
            BitReader lows(codes + low[width], size - low[width], starts[number] * below);
            BitReader highs(codes + high[width], size - high[width], starts[number] * above);
            BitReader present(mask, mask_bytes, segment.place(rows));
            for (int64_t i = 0; i < segment.count; i += LANES) {
                int many = int(std::min<int64_t>(segment.count - i, LANES));
                uint64_t flags = mask ? deposited(present.get(many), ONES) * 0xff : ~uint64_t(0);
                if (mask) many = std::popcount(flags) / 8;
                uint64_t first = std::bit_cast<uint64_t>(lows.get(many, low_packer));
                Ints some = widened(std::bit_cast<Codes>(mask ? deposited(first, flags) : first));
                if (above) {
                    uint64_t second = std::bit_cast<uint64_t>(highs.get(many, high_packer));
                    some += widened(std::bit_cast<Codes>(mask ? deposited(second, flags) : second)) << BYTE;
                }
                Floats scaled = floats((some ^ half) - half) * step;
                store8(values + i, greatest(least(scaled, most), -most));
            }
            segment.parts(rows, [&](int64_t at, int64_t to, int64_t here) {
                from_floats(values + at, here, static_cast<T*>(y) + to);
            });
        });
    });
}
}
