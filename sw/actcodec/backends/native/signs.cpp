// Exact signs beside a lossy reconstruction. Every operation is that of backends/sign_arithmetic.py, in float32 and in the same
// order, so that the results are the same to the last bit.
#include <vector>

#include "channel_rows.h"
#include "values.h"

using namespace cdu;

namespace {

// The number of steps of SFPR, a whole number, kept within the limits.
inline float steps_of(float value, float unit) {
    return std::min(std::max(std::nearbyint(value / unit), float(LEAST_STEPS)), float(MOST_STEPS));
}

// Bit of a row of eight that belongs to a value.
inline uint8_t bit(int64_t value, bool set) { return uint8_t(set << (value % LANES)); }

}  // namespace

extern "C" {

// Counts each number of steps, first with values that are not positive, then with positive ones: int64 (2, PLACES).
void sign_counts(const void* decoded, int format, int64_t count, int64_t channels, int64_t inner, const float* unit,
                 const void* original, int64_t* counts, int threads) {
    constexpr int PLACES = MOST_STEPS - LEAST_STEPS + 1;
    Channels rows{channels, inner};
    with_format(format, [&]<class T>(T) {
        const T *from = static_cast<const T*>(decoded), *exact = static_cast<const T*>(original);
        int64_t all = pieces(count, PIECE_VALUES), shares = std::min<int64_t>(all, std::max(threads, 1));
        std::vector<int64_t> found(std::max<int64_t>(shares, 1) * 2 * PLACES, 0);
        parallel(shares, threads, [&](int64_t share) {
            int64_t* mine = found.data() + share * 2 * PLACES;
            float values[PIECE_VALUES], wanted[PIECE_VALUES];
            for (int64_t piece = share; piece < all; piece += shares) {
                int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
                to_floats(from + begin, end - begin, values);
                to_floats(exact + begin, end - begin, wanted);
                rows.parts(begin, end, [&](int64_t at, int64_t here, int64_t channel) {
                    for (int64_t i = at - begin; i < at - begin + here; ++i)
                        values[i] = steps_of(values[i], unit[channel]);
                });
                for (int64_t i = 0; i < end - begin; ++i)
                    ++mine[int(values[i]) - LEAST_STEPS + (wanted[i] > 0 ? PLACES : 0)];
            }
        });
        for (int64_t place = 0; place < 2 * PLACES; ++place) {
            counts[place] = 0;
            for (int64_t share = 0; share < shares; ++share) counts[place] += found[share * 2 * PLACES + place];
        }
    });
}

// Bits, value i at bit i % 8 of byte i / 8: where more steps than `limit` do not tell which values are positive.
void sign_differences(const void* decoded, int format, int64_t count, int64_t channels, int64_t inner, const float* unit,
                      const void* original, int limit, uint8_t* bits, int threads) {
    Channels rows{channels, inner};
    with_format(format, [&]<class T>(T) {
        const T *from = static_cast<const T*>(decoded), *exact = static_cast<const T*>(original);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            float values[PIECE_VALUES], wanted[PIECE_VALUES];
            uint8_t wrong[PIECE_VALUES + LANES] = {};
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            to_floats(from + begin, end - begin, values);
            to_floats(exact + begin, end - begin, wanted);
            rows.parts(begin, end, [&](int64_t at, int64_t here, int64_t channel) {
                for (int64_t i = at - begin; i < at - begin + here; ++i)
                    wrong[i] = (steps_of(values[i], unit[channel]) > float(limit)) != (wanted[i] > 0);
            });
            for (int64_t i = 0; i < end - begin; i += LANES) {
                uint8_t byte = 0;
                for (int lane = 0; lane < LANES; ++lane) byte |= bit(lane, wrong[i + lane]);
                bits[(begin + i) / LANES] = byte;
            }
        });
    });
}

// A reconstruction with these signs (`bits` as above, or none), of which others than positive values are at most zero or, where
// it is `rectified`, zero; then `slope` times as much and `shift` more (per channel, or none), limited to magnitudes of `most`.
// `least`: the smallest positive number of the format.
void signed_values(void* decoded, int format, int64_t count, int64_t channels, int64_t inner, const float* unit, int limit,
                   const uint8_t* bits, bool rectified, float least, const float* slope, const float* shift, float most,
                   int threads) {
    Channels rows{channels, inner};
    with_format(format, [&]<class T>(T) {
        T* to = static_cast<T*>(decoded);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            float values[PIECE_VALUES];
            uint8_t wrong[PIECE_VALUES + LANES];
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            to_floats(to + begin, end - begin, values);
            if (bits)
                for (int64_t i = 0; i < end - begin; i += LANES)
                    for (int lane = 0; lane < LANES; ++lane) wrong[i + lane] = bits[(begin + i) / LANES] >> lane & 1;
            rows.parts(begin, end, [&](int64_t at, int64_t here, int64_t channel) {
                float* out = values + (at - begin);
                const uint8_t* off = wrong + (at - begin);
                float width = unit[channel], smallest = std::max(width, least);
                if (bits)
                    for (int64_t i = 0; i < here; ++i) {
                        bool positive = (steps_of(out[i], width) > float(limit)) != bool(off[i]);
                        float other = rectified ? 0.0f : std::min(out[i], 0.0f);
                        out[i] = positive ? std::max(out[i], smallest) : other;
                    }
                if (slope)
                    for (int64_t i = 0; i < here; ++i) out[i] = out[i] * slope[channel] + shift[channel];
                for (int64_t i = 0; i < here; ++i) out[i] = std::min(std::max(out[i], -most), most);
            });
            from_floats(values, end - begin, to + begin);
        });
    });
}
}
