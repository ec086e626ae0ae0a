// Codec actnn-sample: groups within samples, in floating point. Every operation is that of codecs/sample_groups.py, in float32
// and in the same order, so that the results are the same to the last bit.
#include "affine.h"

using namespace cdu;

namespace {

// (samples, size) values in order, each sample cut into groups, the last of which has what is left.
struct Groups {
    int64_t samples, size, group;

    int64_t per_sample() const { return pieces(size, group); }

    // Calls body(first value, count, number of the group, sample) for the parts of groups from value `begin` to before `end`.
    template <class Body> void parts(int64_t begin, int64_t end, Body body) const {
        while (begin < end) {
            int64_t sample = begin / size, within = begin % size, number = within / group;
            int64_t next = std::min(end, sample * size + std::min(size, (number + 1) * group));
            body(begin, next - begin, sample * per_sample() + number, sample);
            begin = next;
        }
    }
};

constexpr int PIECE_BEATS = 512;
constexpr int64_t PIECE_VALUES = PIECE_BEATS * LANES;

}  // namespace

extern "C" {

// Least and greatest value of each group, float32 (samples, groups), never -0.0; NaN if a value is not finite.
void group_edges(const void* x, int format, int64_t samples, int64_t size, int64_t group, float* least, float* greatest,
                 int threads) {
    int64_t per_sample = pieces(size, group);
    with_format(format, [&]<class T>(T) {
        parallel(samples * per_sample, threads, [&](int64_t number) {
            int64_t first = number % per_sample * group, count = std::min(group, size - first);
            const T* values = static_cast<const T*>(x) + number / per_sample * size + first;
            Floats low = load_some(values, count), high = low, nothing = {};
            for (int64_t i = 0; i < count; i += LANES) {
                Floats some = load_some(values + i, count - i);
                low = cdu::least(low, some), high = cdu::greatest(high, some);
                nothing += some - some;  // NaN for values that are not finite
            }
            least[number] = low[0], greatest[number] = high[0];
            float all = nothing[0];
            for (int i = 1; i < LANES; ++i) {
                least[number] = std::min(least[number], low[i]);
                greatest[number] = std::max(greatest[number], high[i]);
                all += nothing[i];
            }
            least[number] += all, greatest[number] += all;
        });
    });
}

// Codes, uint8 (samples, size), of ranges (samples, groups) and greatest codes (samples,).
void group_codes(const void* x, int format, int64_t samples, int64_t size, int64_t group, const float* low, const float* extent,
                 const float* levels, bool stochastic, uint32_t seed, uint8_t* codes, int threads) {
    Groups groups{samples, size, group};
    Added added{true, seed};
    int64_t count = samples * size;
    with_format(format, [&]<class T>(T) {
        const T* values = static_cast<const T*>(x);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            uint16_t drawn[PIECE_BEATS + 1][LANES] = {};
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            if (stochastic) added(begin / LANES, PIECE_BEATS, drawn);
            groups.parts(begin, end, [&](int64_t first, int64_t here, int64_t number, int64_t sample) {
                float least = low[number], width = extent[number], most = levels[sample];
                const uint16_t* random = drawn[0] + (first - begin);
                for (int64_t i = 0; i < here; i += LANES) {
                    // Steps are not negative, so that conversion to integers rounds down.
                    Floats steps = (load_some(values + first + i, here - i) - least) / width * most;
                    Ints whole;
                    if (stochastic) {
                        whole = __builtin_convertvector(steps, Ints);
                        Floats fraction = steps - floats(whole);
                        Ints integers = __builtin_convertvector(load<Words16>(random + i), Ints);
                        Floats thresholds = (floats(integers) + 0.5f) / float(1 << WORD_BITS);
                        whole -= fraction > thresholds;  // a comparison that holds is -1
                    } else {
                        whole = __builtin_convertvector(steps + 0.5f, Ints);
                    }
                    Codes rounded = narrowed<Codes>(clamped(whole, 0, int(most)));
                    std::memcpy(codes + first + i, &rounded, std::min<int64_t>(here - i, LANES));
                }
            });
        });
    });
}

// Low + extent * code / levels; limited to magnitudes of `limit`, the greatest number of the format.
void group_values(const uint8_t* codes, int format, int64_t samples, int64_t size, int64_t group, const float* low,
                  const float* extent, const float* levels, float limit, void* y, int threads) {
    Groups groups{samples, size, group};
    int64_t count = samples * size;
    with_format(format, [&]<class T>(T) {
        T* values = static_cast<T*>(y);
        parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
            int64_t begin = piece * PIECE_VALUES, end = std::min(count, begin + PIECE_VALUES);
            groups.parts(begin, end, [&](int64_t first, int64_t here, int64_t number, int64_t sample) {
                float least = low[number], width = extent[number], most = levels[sample];
                Floats bound = Floats{} + limit;
                for (int64_t i = 0; i < here; i += LANES) {
                    Codes some = {};
                    std::memcpy(&some, codes + first + i, std::min<int64_t>(here - i, LANES));
                    Floats value = floats(widened(some)) / most * width + least;
                    store_some(values + first + i, greatest(cdu::least(value, bound), -bound), here - i);
                }
            });
        });
    });
}

// Packs `count` codes of `bits` bits without gaps.
void codes_pack(const uint8_t* codes, int64_t count, int bits, uint8_t* packed, int threads) {
    CodePacker packer(bits);
    int64_t rows = count / LANES;
    parallel(pieces(rows, PIECE_BEATS), threads, [&](int64_t piece) {
        int64_t end = std::min(rows, (piece + 1) * PIECE_BEATS);
        for (int64_t row = piece * PIECE_BEATS; row < end; ++row) packer.pack(load<Codes>(codes + row * LANES), packed + row * bits);
    });
    if (int left = int(count % LANES)) {
        uint8_t last[LANES] = {}, bytes[LANES];
        std::copy_n(codes + rows * LANES, left, last);
        packer.pack(load<Codes>(last), bytes);
        std::copy_n(bytes, pieces(left * bits, 8), packed + rows * bits);
    }
}

void codes_unpack(const uint8_t* packed, int64_t count, int bits, uint8_t* codes, int threads) {
    CodePacker packer(bits);
    int64_t rows = count / LANES;
    parallel(pieces(rows, PIECE_BEATS), threads, [&](int64_t piece) {
        int64_t end = std::min(rows, (piece + 1) * PIECE_BEATS);
        for (int64_t row = piece * PIECE_BEATS; row < end; ++row) store(codes + row * LANES, packer.unpack(packed + row * bits));
    });
    if (int left = int(count % LANES)) {
        uint8_t bytes[LANES] = {};
        std::copy_n(packed + rows * bits, pieces(left * bits, 8), bytes);
        Codes some = packer.unpack(bytes);
        std::memcpy(codes + rows * LANES, &some, left);
    }
}
}
