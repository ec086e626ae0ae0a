// ZVC (docs/bitstream.md, section 3): per block of 64 bytes a mask of 8 bytes, then the bytes that are not zero.
#pragma once

#include <vector>

#include "values.h"

namespace cdu {

// Blocks that one step of a parallel loop handles.
constexpr int64_t BLOCKS_PER_STEP = 64;

// Writes a block behind `out` and returns where it ends; up to MAX_BLOCK_BYTES are written whatever the length is.
inline uint8_t* pack_block(const int8_t* q, uint8_t* out) {
    uint8_t* next = out + MASK_BYTES;
    for (int j = 0; j < MASK_BYTES; ++j) {
        const int8_t* row = q + 8 * j;
        uint64_t word;
        std::memcpy(&word, row, 8);
        uint8_t mask = 0;
        if (word) {
            for (int i = 0; i < 8; ++i) {
                bool present = row[i] != 0;
                *next = uint8_t(row[i]);
                next += present;
                mask |= uint8_t(present << i);
            }
        }
        out[j] = mask;
    }
    return next;
}

inline uint64_t mask_of(const uint8_t* block) {
    uint64_t mask;
    std::memcpy(&mask, block, MASK_BYTES);
    return mask;
}

// The inverse of pack_block; returns where the block ends, beyond which nothing is read.
inline const uint8_t* unpack_block(const uint8_t* block, int8_t* q) {
    const uint8_t* next = block + MASK_BYTES;
    std::memset(q, 0, BLOCK_VALUES);
    for (uint64_t mask = mask_of(block); mask; mask &= mask - 1) q[std::countr_zero(mask)] = int8_t(*next++);
    return next;
}

// The payload of blocks that fill(block, q) makes; `out` has room for MAX_BLOCK_BYTES * blocks and one byte. Returns its length.
template <class Fill> inline int64_t pack_blocks(int64_t blocks, uint8_t* out, int threads, Fill fill) {
    int64_t steps = pieces(blocks, BLOCKS_PER_STEP);
    std::vector<int64_t> sizes(steps);
    auto begin_of = [&](int64_t step) { return out + step * BLOCKS_PER_STEP * MAX_BLOCK_BYTES; };
    parallel(steps, threads, [&](int64_t step) {
        alignas(64) int8_t q[BLOCK_VALUES];
        uint8_t packed[BLOCKS_PER_STEP * MAX_BLOCK_BYTES + 1];
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
