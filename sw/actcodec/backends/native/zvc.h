// ZVC (docs/reference/bitstream.md, section 3): per block of 64 bytes a mask of 8 bytes, then the bytes that are not zero.
#pragma once

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include <vector>

#include "values.h"

namespace cdu {

// Blocks that one step of a parallel loop handles.
constexpr int64_t BLOCKS_PER_STEP = 64;

// What a packed block may touch behind its end.
constexpr int SLACK = LANES;

// The bytes of `word` that `mask` covers with ones, moved together.
inline uint64_t selected(uint64_t word, uint64_t mask) {
#ifdef __BMI2__
    return _pext_u64(word, mask);
#else
    uint64_t moved = 0;
    for (int place = 0; mask; word >>= 8, mask >>= 8)
        if (mask & 1) moved |= (word & 0xff) << place, place += 8;
    return moved;
#endif
}

constexpr uint64_t ONES = 0x0101010101010101;

// Bit i of byte i, of a word whose bytes are 0 and 1.
inline uint8_t gathered(uint64_t word) { return uint8_t(word * 0x0102040810204080 >> 56); }

// Writes a block behind `out` and returns where it ends; SLACK bytes behind that are overwritten too.
inline uint8_t* pack_block(const int8_t* q, uint8_t* out) {
    constexpr uint64_t LOW = 0x7f * ONES;
    uint8_t* next = out + MASK_BYTES;
    for (int j = 0; j < MASK_BYTES; ++j) {
        uint64_t word = load<uint64_t>(q + LANES * j);
        uint64_t present = (((word & LOW) + LOW) | word) >> 7 & ONES;
        out[j] = gathered(present);
        store(next, selected(word, present * 0xff));
        next += std::popcount(present);
    }
    return next;
}

inline uint64_t mask_of(const uint8_t* block) { return load<uint64_t>(block); }

// The inverse of pack_block; returns where the block ends, beyond which nothing is read.
inline const uint8_t* unpack_block(const uint8_t* block, int8_t* q) {
    const uint8_t* next = block + MASK_BYTES;
    std::memset(q, 0, BLOCK_VALUES);
    for (uint64_t mask = mask_of(block); mask; mask &= mask - 1) q[std::countr_zero(mask)] = int8_t(*next++);
    return next;
}

// The payload of blocks that fill(block, q) makes; `out` has room for MAX_BLOCK_BYTES * blocks. Returns its length.
template <class Fill> inline int64_t pack_blocks(int64_t blocks, uint8_t* out, int threads, Fill fill) {
    int64_t steps = pieces(blocks, BLOCKS_PER_STEP);
    std::vector<int64_t> sizes(steps);
    auto begin_of = [&](int64_t step) { return out + step * BLOCKS_PER_STEP * MAX_BLOCK_BYTES; };
    parallel(steps, threads, [&](int64_t step) {
        alignas(64) int8_t q[BLOCK_VALUES];
        uint8_t packed[BLOCKS_PER_STEP * MAX_BLOCK_BYTES + SLACK];
        uint8_t* next = packed;
        int64_t end = std::min(blocks, (step + 1) * BLOCKS_PER_STEP);
        for (int64_t block = step * BLOCKS_PER_STEP; block < end; ++block) {
            fill(block, q);
            next = pack_block(q, next);
        }
        sizes[step] = next - packed;
        std::memcpy(begin_of(step), packed, sizes[step]);
    });
    int64_t total = 0;
    for (int64_t step = 0; step < steps; ++step) {
        std::memmove(out + total, begin_of(step), sizes[step]);
        total += sizes[step];
    }
    return total;
}

// Calls use(block, q) for every block of a payload; false when the chain of blocks does not end exactly where the payload does.
template <class Use> inline bool unpack_blocks(const uint8_t* payload, int64_t size, int64_t blocks, int threads, Use use) {
    int64_t steps = pieces(blocks, BLOCKS_PER_STEP);
    std::vector<int64_t> starts(steps);
    int64_t at = 0;
    for (int64_t block = 0; block < blocks; ++block) {
        if (block % BLOCKS_PER_STEP == 0) starts[block / BLOCKS_PER_STEP] = at;
        if (size - at < MASK_BYTES) return false;
        at += MASK_BYTES + std::popcount(mask_of(payload + at));
    }
    if (at != size) return false;
    parallel(steps, threads, [&](int64_t step) {
        alignas(64) int8_t q[BLOCK_VALUES];
        const uint8_t* next = payload + starts[step];
        int64_t end = std::min(blocks, (step + 1) * BLOCKS_PER_STEP);
        for (int64_t block = step * BLOCKS_PER_STEP; block < end; ++block) {
            next = unpack_block(next, q);
            use(block, q);
        }
    });
    return true;
}

}  // namespace cdu
