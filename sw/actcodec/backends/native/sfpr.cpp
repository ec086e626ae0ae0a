// Modes sfpr, sfpr+zvc and brc (docs/reference/bitstream.md, sections 3, 5 and 6), and the maxima that scales follow from.
#include <vector>

#include "zvc.h"

using namespace cdu;

namespace {

// Bits of a number without the sign; they are ordered as the magnitudes are, infinity and NaN above all.
inline uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffff; }
inline uint16_t magnitude(Bf16 x) { return x.bits & 0x7fff; }
inline uint16_t magnitude(_Float16 x) { return std::bit_cast<uint16_t>(x) & 0x7fff; }

// Returns the number with these bits.
template <class T> inline float magnitude_of(uint32_t bits) {
    T some[LANES];
    std::memcpy(some, &bits, sizeof(T));
    std::fill_n(some + 1, LANES - 1, some[0]);
    return load8(some)[0];
}

inline Bytes quantized(Floats x, float k) { return narrowed<Bytes>(scaled<VALUE_MIN, VALUE_MAX>(x, k)); }
inline Floats dequantized(Bytes q, float r) { return floats(widened(q)) * r; }

// One value after the other over a matrix whose rows have a scale each: body(row, first column, columns).
template <class Body> void by_pieces(int64_t rows, int64_t columns, int threads, Body body) {
    int64_t per_row = pieces(columns, PIECE), rows_per_step = std::max<int64_t>(PIECE / columns, 1);
    parallel(pieces(rows, rows_per_step) * per_row, threads, [&](int64_t step) {
        int64_t first = step % per_row * PIECE, end = std::min(rows, (step / per_row + 1) * rows_per_step);
        for (int64_t row = step / per_row * rows_per_step; row < end; ++row)
            body(row, first, std::min(columns - first, PIECE));
    });
}

// Formats and limits of multipliers (golden/sfpr.py, scales_of): k has `bits` significand bits, r has `reciprocal_bits`, both lie
// within the powers of two of `exponents`. `full` is the code of the largest magnitude, k is `of_zeros` without any. Where the
// code is `greatest` and r is beyond `limit`, r is `most_r`.
struct ScaleRule {
    double full, of_zeros, greatest;
    int bits, reciprocal_bits, exponents;
    float limit, most_r;

    float rounded(double exact, int bits) const {  // ties to even
        int exponent;
        double least = std::ldexp(1.0, -exponents), most = std::ldexp(1.0, exponents);
        double mantissa = std::frexp(std::clamp(exact, least, most), &exponent);
        return float(std::clamp(std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits), least, most));
    }
    void apply(double largest, float& k, float& r) const {
        k = rounded(largest > 0 ? full / largest : of_zeros, bits);
        r = rounded(1.0 / double(k), reciprocal_bits);
        if (std::nearbyint(largest * double(k)) >= greatest && r > limit) r = most_r;
    }
};

// Row r of (rows, columns) has multiplier number r % channels; what follows the columns in a row of q is not written.
template <class T>
void encode_rows(const T* x, int64_t rows, int64_t columns, int64_t row_bytes, const float* k, int64_t channels, int8_t* q,
                 int threads) {
    by_pieces(rows, columns, threads, [&](int64_t row, int64_t first, int64_t count) {
        const T* from = x + row * columns + first;
        int8_t* to = q + row * row_bytes + first;
        float scale = k[row % channels];
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) store(to + i, quantized(load8(from + i), scale));
        if (i < count) {
            Bytes last = quantized(load_some(from + i, count - i), scale);
            std::memcpy(to + i, &last, count - i);
        }
    });
}

}  // namespace

extern "C" {

// Largest magnitude of each channel of (outer, channels, inner), as float32; returns false when a value is NaN or infinite.
bool channel_maxima(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, float* largest, int threads) {
    return with_format(format, [&]<class T>(T) {
        const T* values = static_cast<const T*>(x);
        std::vector<uint32_t> found(channels);
        int64_t per_step = std::max<int64_t>(PIECE / (channels * inner), 1);
        int64_t across = pieces(inner, PIECE), steps = pieces(outer, per_step) * across;
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<uint32_t> mine(channels);
#pragma omp for schedule(static) nowait
            for (int64_t step = 0; step < steps; ++step) {
                int64_t first = step % across * PIECE, count = std::min(inner - first, PIECE);
                int64_t begin = step / across * per_step, end = std::min(outer, begin + per_step);
                for (int64_t row = begin; inner == 1 && row < end; ++row)
                    for (int64_t channel = 0; channel < channels; ++channel)
                        mine[channel] = std::max<uint32_t>(mine[channel], magnitude(values[row * channels + channel]));
                for (int64_t row = begin * channels; inner != 1 && row < end * channels; ++row) {
                    const T* piece = values + row * inner + first;
                    auto most = magnitude(piece[0]);
                    for (int64_t i = 0; i < count; ++i) most = std::max(most, magnitude(piece[i]));
                    uint32_t& known = mine[row % channels];
                    known = std::max<uint32_t>(known, most);
                }
            }
#pragma omp critical
            for (int64_t channel = 0; channel < channels; ++channel)
                found[channel] = std::max(found[channel], mine[channel]);
        }
        bool finite = true;
        for (int64_t channel = 0; channel < channels; ++channel) {
            largest[channel] = magnitude_of<T>(found[channel]);
            finite = finite && std::isfinite(largest[channel]);
        }
        return finite;
    });
}

// Multiplier k and reciprocal r of each channel from its largest magnitude.
void scales(const double* largest, int64_t channels, double full, double of_zeros, double greatest, int bits, int reciprocal_bits,
            int exponents, float limit, float most_r, float* k, float* r, int) {
    ScaleRule rule{full, of_zeros, greatest, bits, reciprocal_bits, exponents, limit, most_r};
    for (int64_t channel = 0; channel < channels; ++channel) rule.apply(largest[channel], k[channel], r[channel]);
}

// (rows, columns) with one multiplier per row to int8, rows of row_bytes bytes; what follows the columns is not written.
void sfpr_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t row_bytes, const float* k, int8_t* q,
                 int threads) {
    with_format(format, [&]<class T>(T) {
        encode_rows(static_cast<const T*>(x), rows, columns, row_bytes, k, rows, q, threads);
    });
}

// Steps channel_maxima, scales and sfpr_encode of (outer, channels, inner) at once; false when a value is NaN or infinite.
bool sfpr_compress(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, int64_t row_bytes, double full,
                   double of_zeros, double greatest, int bits, int reciprocal_bits, int exponents, float limit, float most_r,
                   float* r, int8_t* q, int threads) {
    std::vector<float> largest(channels), k(channels);
    if (!channel_maxima(x, format, outer, channels, inner, largest.data(), threads)) return false;
    ScaleRule rule{full, of_zeros, greatest, bits, reciprocal_bits, exponents, limit, most_r};
    for (int64_t channel = 0; channel < channels; ++channel) rule.apply(largest[channel], k[channel], r[channel]);
    with_format(format, [&]<class T>(T) {
        encode_rows(static_cast<const T*>(x), outer * channels, inner, row_bytes, k.data(), channels, q, threads);
    });
    return true;
}

// The inverse; row i has the reciprocal number i % channels.
void sfpr_decode(const int8_t* q, int format, int64_t rows, int64_t columns, int64_t row_bytes, const float* r, int64_t channels,
                 void* y, int threads) {
    with_format(format, [&]<class T>(T) {
        by_pieces(rows, columns, threads, [&](int64_t row, int64_t first, int64_t count) {
            const int8_t* from = q + row * row_bytes + first;
            T* to = static_cast<T*>(y) + row * columns + first;
            float step = r[row % channels];
            int64_t i = 0;
            for (; i + LANES <= count; i += LANES) store8(to + i, dequantized(load<Bytes>(from + i), step));
            if (i < count) {
                int8_t last[LANES] = {};
                std::copy_n(from + i, count - i, last);
                store_some(to + i, dequantized(load<Bytes>(last), step), count - i);
            }
        });
    });
}

// The int8 values of sfpr_encode, rows filled up to whole beats, in blocks with masks. Returns the length of the payload.
int64_t sfpr_zvc_encode(const void* x, int format, int64_t rows, int64_t columns, int64_t row_beats, int64_t blocks,
                        const float* k, uint8_t* payload, int threads) {
    return with_format(format, [&]<class T>(T) {
        return pack_blocks<Zvc>(blocks, payload, threads, [&](int64_t block, int8_t* q) {
            int64_t row = block * BLOCK_SIDE / row_beats, beat = block * BLOCK_SIDE % row_beats;
            for (int j = 0; j < BLOCK_SIDE; ++j, q += LANES) {
                int64_t count = row < rows ? std::min<int64_t>(columns - beat * LANES, LANES) : 0;
                Bytes values = {};
                if (count) values = quantized(load_some(static_cast<const T*>(x) + row * columns + beat * LANES, count), k[row]);
                store(q, values);
                std::fill(q + count, q + LANES, 0);
                if (++beat == row_beats) beat = 0, ++row;
            }
        });
    });
}

// Decodes; returns false for a payload that is not exactly so many blocks.
bool sfpr_zvc_decode(const uint8_t* payload, int64_t size, int format, int64_t rows, int64_t columns, int64_t row_beats,
                     int64_t blocks, const float* r, void* y, int threads) {
    return with_format(format, [&]<class T>(T) {
        return unpack_blocks<Zvc>(payload, size, blocks, threads, [&](int64_t block, const int8_t* q) {
            int64_t row = block * BLOCK_SIDE / row_beats, beat = block * BLOCK_SIDE % row_beats;
            for (int j = 0; j < BLOCK_SIDE && row < rows; ++j, q += LANES) {
                int64_t count = std::min<int64_t>(columns - beat * LANES, LANES);
                T* to = static_cast<T*>(y) + row * columns + beat * LANES;
                store_some(to, dequantized(load<Bytes>(q), r[row]), count);
                if (++beat == row_beats) beat = 0, ++row;
            }
        });
    });
}

// Writes one bit per value, x > 0.
void brc_encode(const void* x, int format, int64_t count, uint8_t* payload, int threads) {
    with_format(format, [&]<class T>(T) {
        const T* values = static_cast<const T*>(x);
        int64_t bytes = pieces(count, 8);
        parallel(pieces(bytes, PIECE), threads, [&](int64_t step) {
            int64_t end = std::min(bytes, (step + 1) * PIECE);
            for (int64_t byte = step * PIECE; byte < end; ++byte) {
                int64_t here = std::min<int64_t>(count - 8 * byte, 8);
                Floats some = load_some(values + 8 * byte, here), zero = {};
                uint64_t present = std::bit_cast<uint64_t>(narrowed<Bytes>(some > zero)) & ONES;
                payload[byte] = gathered(present) & uint8_t(0xff >> (8 - here));
            }
        });
    });
}

void brc_decode(const uint8_t* payload, int format, int64_t count, void* y, int threads) {
    with_format(format, [&]<class T>(T) {
        int64_t bytes = pieces(count, 8);
        Ints places = {1, 2, 4, 8, 16, 32, 64, 128}, zero = {};
        Floats set = {}, clear = {};
        set += 1.0f;
        parallel(pieces(bytes, PIECE), threads, [&](int64_t step) {
            T* values = static_cast<T*>(y);
            int64_t end = std::min(bytes, (step + 1) * PIECE);
            for (int64_t byte = step * PIECE; byte < end; ++byte) {
                Ints bits = (zero + payload[byte]) & places;
                store_some(values + 8 * byte, bits != zero ? set : clear, count - 8 * byte);
            }
        });
    });
}
}
