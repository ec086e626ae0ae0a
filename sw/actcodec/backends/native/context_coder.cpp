// Codecs blpa-coded, feature-coded and feature-klt: values in whole numbers of steps, coded in the contexts of their neighbours.
#include <atomic>

#include "contexts.h"
#include "whole_steps.h"

using namespace cdu;

namespace {

// `count` values, of which `inner` after one another share one of `channels` steps.
struct Layout {
    int64_t count, channels, inner;
    const float* steps;

    // body(place in the part, values that follow, first channel): the values share its step, or have one each where inner is 1.
    template <class Body> void runs(int64_t first, int64_t many, Body body) const {
        for (int64_t done = 0; done < many;) {
            int64_t place = (first + done) / inner % channels;
            int64_t run = inner == 1 ? channels - place : inner - (first + done) % inner;
            run = std::min(run, many - done);
            body(done, run, place);
            done += run;
        }
    }
};

// The whole numbers of some values.
template <class Rule, class T>
void quantise(const T* x, const Layout& layout, int64_t first, int64_t many, float* values, int32_t* whole) {
    to_floats(x + first, many, values);
    layout.runs(first, many, [&](int64_t at, int64_t run, int64_t channel) {
        const float* from = values + at;
        int32_t* to = whole + at;
        if (layout.inner == 1) {
            const float* steps = layout.steps + channel;
            for (int64_t i = 0; i < run; ++i) to[i] = Rule::whole(from[i], steps[i]);
        } else {
            float step = layout.steps[channel];
            for (int64_t i = 0; i < run; ++i) to[i] = Rule::whole(from[i], step);
        }
    });
}

// Low bits of a chunk, with room for a word more.
struct LowBits {
    uint8_t* to;
    uint64_t held = 0;
    int left = 0;
    int32_t count = 0;

    void put(uint32_t bits, int length) {
        held |= uint64_t(bits) << left;
        left += length, count += length;
        if (left < 32) return;
        store(to, uint32_t(held));
        to += 4, held >>= 32, left -= 32;
    }
    void end() { store(to, uint32_t(held)); }
};

// Binary logarithms in units of 2**-LOG_BITS by golden/context_coder.py's table.
struct Logs {
    const int64_t* of_mantissa;

    int64_t times_log(int64_t count) const {
        if (!count) return 0;
        int exponent = 63 - std::countl_zero(uint64_t(count));
        int64_t mantissa = (count << CONTEXT_MANTISSA_BITS >> exponent) & ((1 << CONTEXT_MANTISSA_BITS) - 1);
        return count * ((int64_t(exponent) << CONTEXT_LOG_BITS) + of_mantissa[mantissa]);
    }
    // Bits of tokens with these counts, and of their table.
    int64_t cost(const int64_t* counts, int entry_bits) const {
        int64_t sum = 0, parts = 0, occurring = 0;
        for (int token = 0; token < CONTEXT_TOKENS; ++token)
            if (counts[token]) sum += counts[token], parts += times_log(counts[token]), ++occurring;
        return times_log(sum) - parts + (int64_t(entry_bits) << CONTEXT_LOG_BITS) * occurring;
    }
};

// Frequencies with the sum SLOTS, at least 1 for what occurs; the most frequent token gets what rounding leaves. Returns how many
// tokens there are up to the last that occurs.
int normalised(const int64_t* counts, int32_t* frequencies) {
    int64_t sum = 0, occurring = 0;
    int most = 0, last = 0;
    for (int token = 0; token < CONTEXT_TOKENS; ++token) {
        sum += counts[token], occurring += counts[token] > 0;
        if (counts[token] > counts[most]) most = token;
        if (counts[token]) last = token;
    }
    int32_t left = SLOTS;
    for (int token = 0; token < CONTEXT_TOKENS; ++token) {
        frequencies[token] = counts[token] ? int32_t(1 + counts[token] * (SLOTS - occurring) / sum) : 0;
        left -= frequencies[token];
    }
    frequencies[most] += left;
    return last + 1;
}

// The rule and, for each context, the entries of its table's slots, from the bytes that context_tables writes; false for others.
bool unpack_tables(const uint8_t* packed, int64_t bytes, int& rule, std::vector<uint32_t>& entries, Sixteen& rows) {
    constexpr int HEAD = 3;
    if (bytes <= HEAD || packed[0] > CONTEXT_MEDIAN) return false;
    rule = packed[0];
    uint32_t begins = packed[1] | packed[2] << 8;
    int groups = std::popcount(begins);
    if (!(begins & 1) || begins >> CONTEXT_CONTEXTS || bytes < HEAD + groups) return false;
    const uint8_t* tokens = packed + HEAD;
    int64_t many = 0, used = 0, bit_bytes = bytes - HEAD - groups;
    for (int group = 0; group < groups; ++group) {
        if (!tokens[group] || tokens[group] > CONTEXT_TOKENS) return false;
        many += tokens[group];
    }
    if (bit_bytes * 8 < many * CONTEXT_LENGTH_BITS) return false;
    BitReader lengths(tokens + groups, bit_bytes, 0), low(tokens + groups, bit_bytes, many * CONTEXT_LENGTH_BITS);
    entries.resize(groups * int64_t(SLOTS));
    uint32_t* to = entries.data();
    for (int group = 0; group < groups; ++group) {
        uint32_t left = SLOTS;
        for (uint32_t token = 0; token < tokens[group]; ++token) {
            int length = int(lengths.get(CONTEXT_LENGTH_BITS));
            if (!length) continue;
            used += length - 1;
            uint32_t frequency = 1u << (length - 1) | (length > 1 ? uint32_t(low.get(length - 1)) : 0);
            if (frequency > left) return false;
            left -= frequency;
            for (uint32_t slot = 0; slot < frequency; ++slot) to[slot] = entry_of(frequency, slot, token);
            to += frequency;
        }
        if (left) return false;
    }
    for (int context = 0, group = -1; context < CONTEXT_CONTEXTS; ++context) {
        group += begins >> context & 1;
        rows[context] = group * int32_t(SLOTS);
    }
    return pieces(many * CONTEXT_LENGTH_BITS + used, 8) == bit_bytes;
}

}  // namespace

extern "C" {

// The rule with the fewest bits, given the counts of keys: int64 (rules, contexts, tokens).
int64_t context_rule(const int64_t* counts, const int64_t* logs, int) {
    int64_t least = INT64_MAX, chosen = 0;
    for (int rule = 0; rule <= CONTEXT_MEDIAN; ++rule) {
        int64_t bits = 0;
        for (int context = 0; context < CONTEXT_CONTEXTS; ++context) {
            const int64_t* own = counts + rule * CONTEXT_KEYS + context * CONTEXT_TOKENS;
            bits += Logs{logs}.cost(own, 0);
            for (int token = 2 * CONTEXT_DIRECT - 1; token < CONTEXT_TOKENS; ++token)
                bits += own[token] * low_length(token) << CONTEXT_LOG_BITS;
        }
        if (bits < least) least = bits, chosen = rule;
    }
    return chosen;
}

// Frequencies of all contexts, int32 (contexts, tokens), and the tables as bytes, of which there is room for two for each frequency
// and 16 more. Returns the number of bytes.
int64_t context_tables(int rule, const int64_t* counts, const int64_t* logs, int32_t* frequencies, uint8_t* packed, int) {
    Logs known{logs};
    std::vector<std::vector<int64_t>> groups;
    int begins = 0, group_of[CONTEXT_CONTEXTS];
    for (int context = 0; context < CONTEXT_CONTEXTS; ++context) {
        std::vector<int64_t> own(counts + context * CONTEXT_TOKENS, counts + (context + 1) * CONTEXT_TOKENS);
        bool joins = false;
        if (context) {
            std::vector<int64_t> both = own;
            for (int token = 0; token < CONTEXT_TOKENS; ++token) both[token] += groups.back()[token];
            int64_t apart = known.cost(groups.back().data(), CONTEXT_ENTRY_BITS) + known.cost(own.data(), CONTEXT_ENTRY_BITS);
            joins = known.cost(both.data(), CONTEXT_ENTRY_BITS) <= apart;
            if (joins) groups.back() = both;
        }
        if (!joins) begins |= 1 << context, groups.push_back(own);
        group_of[context] = int(groups.size()) - 1;
    }
    std::vector<std::vector<int32_t>> tables;
    uint8_t* to = packed;
    *to++ = uint8_t(rule), *to++ = uint8_t(begins), *to++ = uint8_t(begins >> 8);
    for (auto& group : groups) {
        tables.emplace_back(CONTEXT_TOKENS);
        int many = normalised(group.data(), tables.back().data());
        *to++ = uint8_t(many);
        tables.back().resize(many);
    }
    LowBits bits{to};
    for (auto& table : tables)
        for (int32_t frequency : table) bits.put(std::bit_width(uint32_t(frequency)), CONTEXT_LENGTH_BITS);
    for (auto& table : tables)
        for (int32_t frequency : table)
            if (int below = std::bit_width(uint32_t(frequency)) - 1; below > 0) bits.put(frequency & ((1 << below) - 1), below);
    bits.end();
    for (int context = 0; context < CONTEXT_CONTEXTS; ++context) {
        const auto& table = tables[group_of[context]];
        std::fill_n(std::copy(table.begin(), table.end(), frequencies + context * CONTEXT_TOKENS), CONTEXT_TOKENS - table.size(), 0);
    }
    return to - packed + pieces(bits.count, 8);
}

// Counts of the keys of a sample of the first chunk by each rule: int64 (rules, contexts, tokens).
void context_sample(const void* x, int format, int64_t count, int64_t channels, int64_t inner, const float* steps, bool cells,
                    int64_t reach, int64_t* counts, int) {
    constexpr int SOME = STREAMS / CONTEXT_SAMPLED;
    Layout layout{count, channels, inner, steps};
    Chunk chunk(0, count);
    std::vector<float> values(chunk.values);
    std::vector<int32_t> whole(chunk.values);
    std::vector<uint16_t> keys(CHUNK_STEPS * SOME);
    with_rule(cells, [&]<class Rule>(Rule) {
        with_format(format, [&]<class T>(T) {
            for (int stream = 0; stream < STREAMS; stream += CONTEXT_SAMPLED) {
                int64_t from = stream * chunk.steps, many = chunk.of(stream);
                quantise<Rule>(static_cast<const T*>(x), layout, from, many, values.data() + from, whole.data() + from);
            }
        });
    });
    Steps some(reach, SOME);
    some.put(whole.data(), chunk, CONTEXT_SAMPLED);
    for (int rule = 0; rule <= CONTEXT_MEDIAN; ++rule)
        with_prediction(rule, [&]<int RULE>(std::integral_constant<int, RULE>) {
            KeyCounts found;
            keys_of<RULE>(some, chunk, reach, keys.data(), [](uint32_t, int) {}, CONTEXT_SAMPLED);
            found.add(keys.data(), chunk.steps * SOME);
            found.to(counts + rule * CONTEXT_KEYS);
        });
}

// Keys of all values by a rule, CHUNK_VALUES for each chunk; low bits, `bit_bytes` for each chunk; how many of these a chunk has,
// as the second of its sizes, int32 (chunks, 2); and the counts of keys, added to int64 (contexts, tokens).
void context_keys(const void* x, int format, int64_t count, int64_t channels, int64_t inner, const float* steps, bool cells,
                  int64_t reach, int rule, uint16_t* keys, uint8_t* bits, int64_t bit_bytes, int32_t* sizes, int64_t* counts,
                  int threads) {
    Layout layout{count, channels, inner, steps};
    auto run = [&]<class Rule, class T, int RULE>(Rule, T, std::integral_constant<int, RULE>) {
        parallel(chunk_count(count), threads, [&](int64_t number) {
            Chunk chunk(number, count);
            thread_local std::vector<float> values(CHUNK_VALUES);
            thread_local std::vector<int32_t> whole(CHUNK_VALUES);
            quantise<Rule>(static_cast<const T*>(x), layout, chunk.first, chunk.values, values.data(), whole.data());
            Steps held(reach);
            held.put(whole.data(), chunk);
            LowBits low{bits + number * bit_bytes};
            uint16_t* mine = keys + number * CHUNK_VALUES;
            keys_of<RULE>(held, chunk, reach, mine, [&](uint32_t part, int length) { low.put(part, length); });
            low.end();
            sizes[2 * number + 1] = low.count;
            KeyCounts found;
            found.add(mine, chunk.steps * STREAMS);
            std::vector<int64_t> sums(CONTEXT_KEYS);
            found.to(sums.data());
            for (int key = 0; key < CONTEXT_KEYS; ++key)
                if (sums[key]) std::atomic_ref<int64_t>(counts[key]).fetch_add(sums[key], std::memory_order_relaxed);
        });
    };
    with_rule(cells, [&](auto whole) {
        with_format(format, [&](auto value) { with_prediction(rule, [&](auto guess) { run(whole, value, guess); }); });
    });
}

// Words of each chunk in place of its keys, at the end of CHUNK_VALUES of them, as no value has more than one word; their number as
// the first of the chunk's sizes; and the states, 32 for each chunk.
void context_words(uint16_t* keys, int64_t count, const int32_t* frequencies, int32_t* sizes, uint32_t* states, int threads) {
    std::vector<uint32_t> table(CONTEXT_KEYS + 1);
    for (int context = 0; context < CONTEXT_CONTEXTS; ++context)
        for (uint32_t token = 0, first = 0; token < CONTEXT_TOKENS; ++token) {
            int key = context * CONTEXT_TOKENS + token;
            if (frequencies[key]) table[key] = entry_of(frequencies[key], first, 0);
            first += frequencies[key];
        }
    table[NO_KEY] = entry_of(SLOTS, 0, 0);
    parallel(chunk_count(count), threads, [&](int64_t number) {
        Chunk chunk(number, count);
        uint16_t* end = keys + (number + 1) * CHUNK_VALUES;
        uint32_t found[STREAMS];
        sizes[2 * number] = int32_t(end - code_words(keys + number * CHUNK_VALUES, chunk.steps, table.data(), end, found));
        std::copy_n(found, chunk.streams(), states + number * STREAMS);
    });
}

// Words and low bits of all chunks one behind the other; `bits` is zeros until then.
void context_joined(const uint16_t* words, const uint8_t* low, int64_t bit_bytes, const int32_t* sizes, int64_t chunks,
                    uint16_t* all_words, uint8_t* bits, int) {
    int64_t bit = 0;
    for (int64_t number = 0; number < chunks; ++number) {
        int32_t many = sizes[2 * number], length = sizes[2 * number + 1];
        all_words = std::copy_n(words + (number + 1) * CHUNK_VALUES - many, many, all_words);
        const uint8_t* from = low + number * bit_bytes;
        BitWriter to(bits, bit);
        for (int32_t done = 0; done < length; done += 32, from += 4) {
            int some = std::min(length - done, 32);
            to.put(load<uint32_t>(from) & ((uint64_t(1) << some) - 1), some);
        }
        to.end();
        bit += length;
    }
}

// The values of all chunks: the middles of cells or the multiples of steps; not negative where `rectified`, then `slope` times as
// much and `shift` more (float32 per channel, or none), limited to magnitudes of `limit`. False where the parts are not those of
// an encoder.
bool context_values(const uint8_t* packed, int64_t packed_bytes, const int32_t* sizes, int64_t size_count, const uint32_t* states,
                    int64_t state_count, const uint16_t* words, int64_t word_count, const uint8_t* bits, int64_t bit_bytes,
                    int64_t reach, int format, int64_t count, int64_t channels, int64_t inner, const float* steps, bool cells,
                    bool rectified, const float* slope, const float* shift, float limit, void* y, int threads) {
    Layout layout{count, channels, inner, steps};
    int64_t chunks = chunk_count(count), streams = 0;
    if (size_count != 2 * chunks) return false;
    std::vector<int64_t> first_words(chunks + 1), first_bits(chunks + 1);
    for (int64_t number = 0; number < chunks; ++number) {
        if (sizes[2 * number] < 0 || sizes[2 * number + 1] < 0) return false;
        first_words[number + 1] = first_words[number] + sizes[2 * number];
        first_bits[number + 1] = first_bits[number] + sizes[2 * number + 1];
        streams += Chunk(number, count).streams();
    }
    if (state_count != streams || word_count != first_words[chunks] || bit_bytes != pieces(first_bits[chunks], 8)) return false;
    if (!chunks) return true;
    int rule;
    std::vector<uint32_t> table;
    Sixteen rows = {};
    if (!unpack_tables(packed, packed_bytes, rule, table, rows)) return false;
    std::atomic<bool> fits = true;
    float least = rectified ? 0.0f : -INFINITY;
    auto run = [&]<class Rule, class T, int RULE>(Rule, T, std::integral_constant<int, RULE>) {
        parallel(chunks, threads, [&](int64_t number) {
            Chunk chunk(number, count);
            Steps held(reach);
            ChunkReader reader{words + first_words[number], words + first_words[number + 1], words + word_count,
                               BitReader(bits, bit_bytes, first_bits[number]), sizes[2 * number + 1], table.data(), rows};
            if (!reader.template read<RULE>(held, chunk, reach, states + number * STREAMS)) {
                fits = false;
                return;
            }
            thread_local std::vector<int32_t> whole(CHUNK_VALUES);
            thread_local std::vector<float> values(CHUNK_VALUES);
            held.take(chunk, whole.data());
            layout.runs(chunk.first, chunk.values, [&](int64_t at, int64_t many, int64_t channel) {
                const int32_t* from = whole.data() + at;
                float* to = values.data() + at;
                bool each = layout.inner == 1;
                if (each) {
                    for (int64_t i = 0; i < many; ++i) to[i] = std::max(Rule::value(from[i], steps[channel + i]), least);
                } else {
                    float step = steps[channel];
                    for (int64_t i = 0; i < many; ++i) to[i] = std::max(Rule::value(from[i], step), least);
                }
                if (slope)
                    for (int64_t i = 0; i < many; ++i)
                        to[i] = to[i] * slope[channel + (each ? i : 0)] + shift[channel + (each ? i : 0)];
                for (int64_t i = 0; i < many; ++i) to[i] = std::min(std::max(to[i], -limit), limit);
            });
            from_floats(values.data(), chunk.values, static_cast<T*>(y) + chunk.first);
        });
    };
    with_rule(cells, [&](auto whole) {
        with_format(format, [&](auto value) { with_prediction(rule, [&](auto guess) { run(whole, value, guess); }); });
    });
    return fits;
}
}
