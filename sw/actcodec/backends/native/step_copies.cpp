// Codec blpa-float: codes of the steps of a channel, packed, and back. Every operation is that of backends/step_quantizer.py, in
// float32 and in the same order, so that the results are the same to the last bit.
#include "affine.h"
#include "channel_rows.h"

using namespace cdu;

extern "C" {

void step_codes(const void* x, int format, int64_t count, int64_t channels, int64_t inner, const float* step,
                const int16_t* first, int bits, uint8_t* packed, int threads) {
    Channels rows{channels, inner};
    CodePacker packer(bits);
    float most = float((1 << bits) - 1);
    with_format(format, [&]<class T>(T) {
        const T* from = static_cast<const T*>(x);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            float values[PIECE_VALUES];
            uint8_t codes[PIECE_VALUES + LANES] = {};
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            to_floats(from + begin, end - begin, values);
            rows.parts(begin, end, [&](int64_t at, int64_t here, int64_t channel) {
                const float* some = values + (at - begin);
                uint8_t* out = codes + (at - begin);
                float width = step[channel], before = first[channel];
                for (int64_t i = 0; i < here; ++i) {
                    float whole = std::ceil(some[i] / width) - 1;
                    // The sign still counts if the quotient is too small for a float.
                    whole = some[i] > 0 ? std::max(whole, 0.0f) : std::min(whole, -1.0f);
                    out[i] = uint8_t(int32_t(std::min(std::max(whole - before, 0.0f), most)));
                }
            });
            pack_some(packer, codes, end - begin, packed + begin / LANES * bits);
        });
    });
}

// The middles of steps, then `slope` times as much and `shift` more (float32 per channel, or none), limited to magnitudes of
// `limit`. `rectified`: middles are not negative.
void step_values(const uint8_t* packed, int format, int64_t count, int64_t channels, int64_t inner, const float* step,
                 const int16_t* first, int bits, bool rectified, const float* slope, const float* shift, float limit, void* y,
                 int threads) {
    Channels rows{channels, inner};
    CodePacker packer(bits);
    float least = rectified ? 0.0f : -INFINITY;
    with_format(format, [&]<class T>(T) {
        T* to = static_cast<T*>(y);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            uint8_t codes[PIECE_VALUES];
            float values[PIECE_VALUES];
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            unpack_some(packer, packed + begin / LANES * bits, end - begin, codes);
            rows.parts(begin, end, [&](int64_t at, int64_t here, int64_t channel) {
                const uint8_t* some = codes + (at - begin);
                float* out = values + (at - begin);
                float width = step[channel], before = first[channel];
                for (int64_t i = 0; i < here; ++i)
                    out[i] = std::max((float(some[i]) + 0.5f + before) * width, least);
                if (slope)
                    for (int64_t i = 0; i < here; ++i) out[i] = out[i] * slope[channel] + shift[channel];
                for (int64_t i = 0; i < here; ++i) out[i] = std::min(std::max(out[i], -limit), limit);
            });
            from_floats(values, end - begin, to + begin);
        });
    });
}
}
