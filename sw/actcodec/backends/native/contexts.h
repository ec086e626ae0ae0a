// Whole numbers in the contexts of their neighbours, coded by interleaved rANS: golden/context_coder.py, operation by operation.
#pragma once

#include <vector>

#include "bit_streams.h"

namespace cdu {

constexpr int CONTEXT_KEYS = CONTEXT_CONTEXTS * CONTEXT_TOKENS, NO_KEY = CONTEXT_KEYS;
constexpr int STREAMS = CONTEXT_STREAMS, CHUNK_STEPS = CONTEXT_MOST_STEPS, HALF = 16, TABLE_BITS = CONTEXT_TABLE_BITS;
constexpr int64_t CHUNK_VALUES = STREAMS * CHUNK_STEPS;
constexpr uint32_t FIRST_STATE = CONTEXT_FIRST_STATE, SLOTS = 1 << TABLE_BITS;

typedef int32_t Sixteen __attribute__((vector_size(4 * HALF)));
typedef uint32_t Unsigned16 __attribute__((vector_size(4 * HALF)));
typedef float Floats16 __attribute__((vector_size(4 * HALF)));
typedef uint16_t Keys16 __attribute__((vector_size(2 * HALF)));

// Sums and differences that may overflow, where bytes are not those of an encoder.
inline Sixteen plus(Sixteen a, Sixteen b) {
    return std::bit_cast<Sixteen>(std::bit_cast<Unsigned16>(a) + std::bit_cast<Unsigned16>(b));
}
inline Sixteen less(Sixteen a, Sixteen b) {
    return std::bit_cast<Sixteen>(std::bit_cast<Unsigned16>(a) - std::bit_cast<Unsigned16>(b));
}
inline Sixteen absolute(Sixteen x) { return x < 0 ? less(Sixteen{}, x) : x; }
inline Sixteen apart(Sixteen a, Sixteen b) { return absolute(less(a, b)); }

// Low bits of a token of at least 2 * DIRECT - 1.
inline int low_length(int token) { return ((token + 1) / 2 - CONTEXT_DIRECT) / 2 + CONTEXT_DIRECT_BITS - 1; }

// Values of a chunk: full ones have CHUNK_VALUES, the last one may have fewer.
struct Chunk {
    int64_t first, values, steps;

    Chunk(int64_t number, int64_t count)
        : first(number * CHUNK_VALUES), values(std::min<int64_t>(CHUNK_VALUES, count - first)),
          steps(std::max<int64_t>(pieces(values, STREAMS), CONTEXT_LEAST_STEPS)) {}

    int64_t streams() const { return pieces(values, steps); }
    // Values of a stream.
    int64_t of(int64_t stream) const { return std::min(std::max<int64_t>(values - stream * steps, 0), steps); }
};

inline int64_t chunk_count(int64_t count) { return pieces(count, CHUNK_VALUES); }

// The prediction of values by their neighbours, and the activity.
template <int RULE>
inline void guess(Sixteen left, Sixteen above, Sixteen corner, Sixteen beside, Sixteen& predicted, Sixteen& activity) {
    if constexpr (RULE == CONTEXT_ZERO) {
        predicted = Sixteen{}, activity = plus(absolute(left), absolute(above));
    } else if constexpr (RULE == CONTEXT_LEFT) {
        predicted = left, activity = apart(left, above);
    } else if constexpr (RULE == CONTEXT_ABOVE) {
        predicted = above, activity = apart(left, above);
    } else {
        Sixteen low = least(left, above), high = greatest(left, above);
        predicted = greatest(least(less(plus(left, above), corner), high), low);
        activity = plus(plus(apart(left, corner), apart(above, corner)), apart(above, beside));
    }
}

// The exponent of one more than the activity, and the bit behind its leading one: where a float has them.
inline Sixteen context_of(Sixteen activity) {
    Sixteen zero = {};
    auto number = __builtin_convertvector(least(activity, zero + CONTEXT_MOST_ACTIVITY) + 1, Floats16);
    return least((std::bit_cast<Sixteen>(number) >> 22) - (127 << 1), zero + (CONTEXT_CONTEXTS - 1));
}

template <class Body> inline auto with_prediction(int rule, Body body) {
    if (rule == CONTEXT_ZERO) return body(std::integral_constant<int, CONTEXT_ZERO>{});
    if (rule == CONTEXT_LEFT) return body(std::integral_constant<int, CONTEXT_LEFT>{});
    if (rule == CONTEXT_ABOVE) return body(std::integral_constant<int, CONTEXT_ABOVE>{});
    return body(std::integral_constant<int, CONTEXT_MEDIAN>{});
}

// Streams of values next to each other, step by step, behind steps of zeros that neighbours of the first values are.
class Steps {
  public:
    explicit Steps(int64_t reach, int streams = STREAMS)
        : before_((reach + 1) * streams), streams_(streams), held_(before_ + CHUNK_STEPS * streams) {}

    int32_t* values() { return held_.data() + before_; }
    // Distance from a value to the one `steps` steps before.
    int64_t back(int64_t steps) const { return steps * streams_; }

    // Put the values of a chunk, or of each `every`th stream of it, in their places; behind the last value are zeros.
    void put(const int32_t* flat, const Chunk& chunk, int every = 1) {
        for (int64_t top = 0; top < chunk.steps; top += BLOCK)
            for (int stream = 0; stream < streams_; ++stream) {
                int64_t many = std::min(std::max<int64_t>(chunk.of(stream * every) - top, 0), BLOCK);
                const int32_t* from = flat + stream * every * chunk.steps + top;
                int32_t* to = values() + top * streams_ + stream;
                for (int64_t step = 0; step < many; ++step) to[step * streams_] = from[step];
                for (int64_t step = many; step < std::min(chunk.steps - top, BLOCK); ++step) to[step * streams_] = 0;
            }
    }

    // Writes the values of a chunk back in flat order.
    void take(const Chunk& chunk, int32_t* flat) {
        for (int64_t top = 0; top < chunk.steps; top += BLOCK)
            for (int64_t stream = 0; stream < streams_; ++stream) {
                int64_t many = std::min(chunk.of(stream) - top, BLOCK);
                const int32_t* from = values() + top * streams_ + stream;
                int32_t* to = flat + stream * chunk.steps + top;
                for (int64_t step = 0; step < many; ++step) to[step] = from[step * streams_];
            }
    }

  private:
    static constexpr int64_t BLOCK = 16;
    int64_t before_;
    int streams_;
    std::vector<int32_t> held_;
};

// Token of a difference of at least DIRECT; use(bits, count) gets the low bits.
template <class Use> inline int great_token(int32_t left, Use use) {
    uint32_t magnitude = left < 0 ? -uint32_t(left) : uint32_t(left);
    int length = 30 - std::countl_zero(magnitude);
    use(magnitude & ((1u << length) - 1), length);
    return 2 * (CONTEXT_DIRECT + 2 * (length + 1 - CONTEXT_DIRECT_BITS) + int(magnitude >> length & 1)) - (left < 0);
}

// The key of each value, context and token in one, NO_KEY behind the last value; use(bits, count) gets the low bits in order.
// Streams are each `every`th. Differences have 30 bits.
template <int RULE, class Use>
inline void keys_of(Steps& steps, const Chunk& chunk, int64_t reach, uint16_t* keys, Use use, int every = 1) {
    const int streams = STREAMS / every;
    const int64_t count = chunk.steps * streams;
    const bool full = chunk.values == chunk.steps * STREAMS;
    const int32_t* values = steps.values();
    int64_t left = steps.back(1), above = steps.back(reach), corner = steps.back(reach + 1), beside = steps.back(reach - 1);
    for (int64_t i = 0; i < count; i += HALF) {
        const int32_t* here = values + i;
        Sixteen predicted, activity;
        guess<RULE>(load<Sixteen>(here - left), load<Sixteen>(here - above), load<Sixteen>(here - corner),
                    load<Sixteen>(here - beside), predicted, activity);
        Sixteen difference = load<Sixteen>(here) - predicted, contexts = context_of(activity) * CONTEXT_TOKENS;
        Sixteen magnitude = absolute(difference), found = contexts + 2 * magnitude + (difference >> 31);
        store(keys + i, __builtin_convertvector(std::bit_cast<Unsigned16>(found), Keys16));
        Sixteen great = magnitude >= CONTEXT_DIRECT;
        int32_t any = 0;
        for (int lane = 0; lane < HALF; ++lane) any |= great[lane];
        if (__builtin_expect(any != 0, 0))
            for (int lane = 0; lane < HALF; ++lane)
                if (great[lane] && (full || (i + lane) / streams < chunk.of((i + lane) % streams * every)))
                    keys[i + lane] = uint16_t(contexts[lane] + great_token(difference[lane], use));
    }
    if (full) return;
    for (int stream = 0; stream < streams; ++stream)
        for (int64_t step = chunk.of(stream * every); step < chunk.steps; ++step) keys[step * streams + stream] = NO_KEY;
}

// Counts of keys; one more place for NO_KEY.
class KeyCounts {
  public:
    void add(const uint16_t* keys, int64_t count) {
        for (int64_t i = 0; i < count; i += 4)
            for (int part = 0; part < 4; ++part) ++counts_[part][keys[i + part]];
    }
    void to(int64_t* counts) const {
        for (int key = 0; key < CONTEXT_KEYS; ++key)
            counts[key] = int64_t(counts_[0][key]) + counts_[1][key] + counts_[2][key] + counts_[3][key];
    }

  private:
    uint32_t counts_[4][CONTEXT_KEYS + 1] = {};
};

// Entry of a slot or a token: the frequency less one, and the first slot, or the distance of a slot from it.
inline uint32_t entry_of(uint32_t frequency, uint32_t slot, uint32_t token) {
    return (frequency - 1) | slot << TABLE_BITS | token << 2 * TABLE_BITS;
}

inline Unsigned16 looked_up(const uint32_t* table, Sixteen places) {
#ifdef __AVX512F__
    return std::bit_cast<Unsigned16>(_mm512_i32gather_epi32(std::bit_cast<__m512i>(places), table, 4));
#else
    Unsigned16 found;
    for (int lane = 0; lane < HALF; ++lane) found[lane] = table[places[lane]];
    return found;
#endif
}

// Codes the keys of a chunk from the last step to the first; words end before `end`. Returns where they begin.
inline uint16_t* code_words(const uint16_t* keys, int64_t steps, const uint32_t* table, uint16_t* end, uint32_t* states) {
    constexpr int HALVES = STREAMS / HALF;
    Unsigned16 state[HALVES];
    for (auto& half : state) half = Unsigned16{} + FIRST_STATE;
    for (int64_t step = steps - 1; step >= 0; --step)
        for (int half = HALVES - 1; half >= 0; --half) {
            Sixteen places = __builtin_convertvector(load<Keys16>(keys + step * STREAMS + half * HALF), Sixteen);
            Unsigned16 entry = looked_up(table, places), x = state[half];
            Unsigned16 frequency = (entry & (SLOTS - 1)) + 1, first = entry >> TABLE_BITS & (SLOTS - 1);
#ifdef __AVX512VBMI2__
            auto wide = std::bit_cast<__m512i>(x);
            __mmask16 full = _mm512_cmpge_epu32_mask(_mm512_srli_epi32(wide, 32 - TABLE_BITS), std::bit_cast<__m512i>(frequency));
            int many = std::popcount(uint32_t(full));
            end -= many;
            __m256i words = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, wide));
            _mm256_mask_storeu_epi16(end, __mmask16((1u << many) - 1), words);
            x = std::bit_cast<Unsigned16>(_mm512_mask_srli_epi32(wide, full, wide, 16));
#else
            for (int lane = HALF - 1; lane >= 0; --lane)
                if (x[lane] >> (32 - TABLE_BITS) >= frequency[lane]) *--end = uint16_t(x[lane]), x[lane] >>= 16;
#endif
            // The quotient has 20 bits and a float 24, so that it is off by one at most.
            auto ratio = __builtin_convertvector(x, Floats16) / __builtin_convertvector(std::bit_cast<Sixteen>(frequency), Floats16);
            Sixteen quotient = __builtin_convertvector(ratio, Sixteen), divisor = std::bit_cast<Sixteen>(frequency);
            auto rest = std::bit_cast<Sixteen>(x - std::bit_cast<Unsigned16>(quotient) * frequency);
            quotient += rest < 0;
            quotient -= rest >= divisor;
            state[half] = x + std::bit_cast<Unsigned16>(quotient) * (SLOTS - frequency) + first;
        }
    std::memcpy(states, state, sizeof state);
    return end;
}

// Decodes a chunk; false where its words and bits are not what an encoder wrote. Nothing behind `end` is read.
struct ChunkReader {
    const uint16_t *words, *stop, *end;  // first word of the chunk, the first behind it, and the first behind all
    BitReader bits;
    int64_t bit_count;
    const uint32_t* table;  // entries of the slots of each table
    Sixteen rows;           // first entry of each context's table

    template <int RULE> bool read(Steps& steps, const Chunk& chunk, int64_t reach, const uint32_t* states) {
        constexpr int HALVES = STREAMS / HALF;
        Unsigned16 state[HALVES];
        Sixteen last[HALVES] = {}, ends[HALVES];
        for (int stream = 0; stream < STREAMS; ++stream) {
            state[stream / HALF][stream % HALF] = stream < chunk.streams() ? states[stream] : FIRST_STATE;
            ends[stream / HALF][stream % HALF] = int32_t(chunk.of(stream));
        }
        bool full = chunk.values == chunk.steps * STREAMS;
        int64_t above = steps.back(reach), corner = steps.back(reach + 1), beside = steps.back(reach - 1), used = 0;
        for (int64_t step = 0; step < chunk.steps; ++step)
            for (int half = 0; half < HALVES; ++half) {
                int32_t* here = steps.values() + step * STREAMS + half * HALF;
                Sixteen predicted, activity;
                guess<RULE>(last[half], load<Sixteen>(here - above), load<Sixteen>(here - corner), load<Sixteen>(here - beside),
                            predicted, activity);
                Sixteen context = context_of(activity);
                // Damaged parts may overflow to negative numbers.
                context = greatest(context, Sixteen{});
                Unsigned16 x = state[half], slot = x & (SLOTS - 1);
#ifdef __AVX512F__
                auto row = std::bit_cast<Sixteen>(
                    _mm512_permutexvar_epi32(std::bit_cast<__m512i>(context), std::bit_cast<__m512i>(rows)));
#else
                Sixteen row = __builtin_shuffle(rows, context);
#endif
                Unsigned16 entry = looked_up(table, row + std::bit_cast<Sixteen>(slot));
                Unsigned16 following = ((entry & (SLOTS - 1)) + 1) * (x >> TABLE_BITS) + (entry >> TABLE_BITS & (SLOTS - 1));
                Sixteen token = std::bit_cast<Sixteen>(entry >> 2 * TABLE_BITS);
                if (!full) {
                    Sixteen active = int32_t(step) < ends[half];
                    following = active ? following : x, token &= active, predicted &= active;
                }
                Sixteen left = token >> 1 ^ -(token & 1);
                if (!filled(following)) return false;
                state[half] = following;
                last[half] = plus(predicted, left);
                Sixteen great = token >= 2 * CONTEXT_DIRECT - 1;
#ifdef __AVX512F__
                bool any = _mm512_test_epi32_mask(std::bit_cast<__m512i>(great), std::bit_cast<__m512i>(great));
#else
                int32_t any = 0;
                for (int lane = 0; lane < HALF; ++lane) any |= great[lane];
#endif
                if (__builtin_expect(any, 0))
                    for (int lane = 0; lane < HALF; ++lane)
                        if (great[lane]) {
                            int bucket = (token[lane] + 1) >> 1, length = low_length(token[lane]);
                            uint32_t magnitude = uint32_t(2 + (bucket & 1)) << length | uint32_t(bits.get(length));
                            used += length;
                            uint32_t signed_one = token[lane] & 1 ? -magnitude : magnitude;
                            last[half][lane] = int32_t(uint32_t(predicted[lane]) + signed_one);
                        }
                store(here, last[half]);
            }
        for (auto& half : state)
            for (int lane = 0; lane < HALF; ++lane)
                if (half[lane] != FIRST_STATE) return false;
        return words == stop && used == bit_count;
    }

  private:
    // States below the least take a word each, in their order; false where there is none.
    bool filled(Unsigned16& x) {
#ifdef __AVX512VBMI2__
        if (__builtin_expect(end - words >= HALF, 1)) {
            auto wide = std::bit_cast<__m512i>(x);
            __mmask16 empty = _mm512_cmplt_epu32_mask(wide, _mm512_set1_epi32(FIRST_STATE));
            __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
            next = _mm512_or_si512(_mm512_slli_epi32(wide, 16), _mm512_maskz_expand_epi32(empty, next));
            x = std::bit_cast<Unsigned16>(_mm512_mask_mov_epi32(wide, empty, next));
            words += std::popcount(uint32_t(empty));
            return true;
        }
#endif
        for (int lane = 0; lane < HALF; ++lane)
            if (x[lane] < FIRST_STATE) {
                if (words == end) return false;
                x[lane] = x[lane] << 16 | *words++;
            }
        return true;
    }
};

}  // namespace cdu
