// The two functions of the LZ4 library that Verilator's FST writer calls, so that waveforms need no package that an
// installation may lack. One greedy pass over the input, in the LZ4 block format.

#ifndef CDU_VERIF_LZ4_H
#define CDU_VERIF_LZ4_H

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

namespace cdu_lz4 {

inline uint32_t word(const char* at) {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// Writes the part of a length that does not fit the token's four bits.
inline char* put_length(char* out, int rest) {
    if (rest < 15) return out;
    for (rest -= 15; rest >= 255; rest -= 255) *out++ = static_cast<char>(255);
    *out++ = static_cast<char>(rest);
    return out;
}

// Writes literals, and after them a match unless its length is 0 (end of the block).
inline char* put_sequence(char* out, const char* literals, int count, int distance, int match) {
    const int extra = match ? match - 4 : 0;
    *out++ = static_cast<char>((count < 15 ? count : 15) << 4 | (extra < 15 ? extra : 15));
    out = put_length(out, count);
    if (count) std::memcpy(out, literals, count);
    out += count;
    if (!match) return out;
    *out++ = static_cast<char>(distance & 255);
    *out++ = static_cast<char>(distance >> 8);
    return put_length(out, extra);
}

}  // namespace cdu_lz4

// Returns the bytes written to `to`, 0 when `capacity` is below LZ4_compressBound(size).
inline int LZ4_compress_default(const char* from, char* to, int size, int capacity) {
    if (capacity < LZ4_compressBound(size)) return 0;
    constexpr int hash_bits = 14, farthest = 65535;
    std::vector<int> latest(1 << hash_bits, -1);
    char* out = to;
    int done = 0;  // everything before it is written
    // The format requires the last match to begin 12 bytes before the end and the last 5 bytes to be literals.
    for (int at = 0; at + 12 <= size;) {
        const uint32_t here = cdu_lz4::word(from + at);
        int& slot = latest[(here * 2654435761u) >> (32 - hash_bits)];
        const int candidate = slot;
        slot = at;
        if (candidate < 0 || at - candidate > farthest || cdu_lz4::word(from + candidate) != here) {
            ++at;
            continue;
        }
        int match = 4;
        while (at + match < size - 5 && from[candidate + match] == from[at + match]) ++match;
        out = cdu_lz4::put_sequence(out, from + done, at - done, at - candidate, match);
        at += match;
        done = at;
    }
    out = cdu_lz4::put_sequence(out, from + done, size - done, 0, 0);
    return static_cast<int>(out - to);
}

#endif
