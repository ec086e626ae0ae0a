// Payloads of blocks of 64 bytes that are not all of one length, as a coder writes them: ZVC (zvc.h) or GMC (gmc.h).
//
// A Coder has
//   HEAD, LONGEST, SLACK                bytes that a block's length follows from; of the longest block that is written; that are
//                                       overwritten behind a written block
//   pack(q, out)                        writes a block and returns where it ends
//   length(block)                       of a block, from its first HEAD bytes
//   TOGETHER                            blocks that unpack takes
//   unpack(packed, end, q)              the inverse of pack, of TOGETHER blocks; reads nothing from `end` on, where the payload ends
#pragma once

#include <vector>

#include "values.h"

namespace cdu {

// Blocks that one step of a parallel loop handles, or a multiple of which it does.
constexpr int64_t BLOCKS_PER_STEP = 64;

// The payload of blocks that fill(block, q) makes; `out` has room for LONGEST * blocks. Returns its length.
template <class Coder, class Fill> inline int64_t pack_blocks(int64_t blocks, uint8_t* out, int threads, Fill fill) {
    // A thread writes its blocks from where they would begin if all before were of the longest.
    int64_t share = pieces(pieces(blocks, threads), BLOCKS_PER_STEP) * BLOCKS_PER_STEP, shares = pieces(blocks, share);
    std::vector<int64_t> sizes(shares);
    auto begin_of = [&](int64_t number) { return out + number * share * Coder::LONGEST; };
    parallel(shares, threads, [&](int64_t number) {
        alignas(64) int8_t q[BLOCK_VALUES];
        int64_t end = std::min(blocks, (number + 1) * share);
        uint8_t *next = begin_of(number), *limit = out + end * Coder::LONGEST;
        for (int64_t block = number * share; block < end; ++block) {
            fill(block, q);
            if (limit - next >= Coder::LONGEST + Coder::SLACK) {
                next = Coder::pack(q, next);
            } else {
                uint8_t packed[Coder::LONGEST + Coder::SLACK];
                next = std::copy(packed, Coder::pack(q, packed), next);
            }
        }
        sizes[number] = next - begin_of(number);
    });
    int64_t total = 0;
    for (int64_t number = 0; number < shares; ++number) {
        if (number) std::memmove(out + total, begin_of(number), sizes[number]);
        total += sizes[number];
    }
    return total;
}

// Calls use(block, q) for every block of a payload; returns false if the chain of blocks does not end where the payload does.
template <class Coder, class Use>
inline bool unpack_blocks(const uint8_t* payload, int64_t size, int64_t blocks, int threads, Use use) {
    int64_t steps = pieces(blocks, BLOCKS_PER_STEP);
    std::vector<int64_t> starts(steps);
    int64_t at = 0;
    for (int64_t block = 0; block < blocks; ++block) {
        if (block % BLOCKS_PER_STEP == 0) starts[block / BLOCKS_PER_STEP] = at;
        if (size - at < Coder::HEAD) return false;
        at += Coder::length(payload + at);
    }
    if (at != size) return false;
    parallel(steps, threads, [&](int64_t step) {
        alignas(64) int8_t q[Coder::TOGETHER][BLOCK_VALUES];
        const uint8_t *next = payload + starts[step], *packed[Coder::TOGETHER];
        int64_t end = std::min(blocks, (step + 1) * BLOCKS_PER_STEP);
        for (int64_t block = step * BLOCKS_PER_STEP; block < end; block += Coder::TOGETHER) {
            int count = int(std::min<int64_t>(end - block, Coder::TOGETHER));
            for (int i = 0; i < Coder::TOGETHER; ++i) {
                packed[i] = i < count ? next : packed[0];
                if (i < count) next += Coder::length(next);
            }
            Coder::unpack(packed, payload + size, q);
            for (int i = 0; i < count; ++i) use(block + i, q[i]);
        }
    });
    return true;
}

// Moves the bits of a word under ones of a mask together, and apart again.
inline uint64_t extracted(uint64_t word, uint64_t mask) {
#ifdef __BMI2__
    return _pext_u64(word, mask);
#else
    uint64_t moved = 0;
    for (int place = 0; mask; mask &= mask - 1, ++place) moved |= (word >> std::countr_zero(mask) & 1) << place;
    return moved;
#endif
}
inline uint64_t deposited(uint64_t word, uint64_t mask) {
#ifdef __BMI2__
    return _pdep_u64(word, mask);
#else
    uint64_t moved = 0;
    for (; mask; mask &= mask - 1, word >>= 1) moved |= (word & 1) << std::countr_zero(mask);
    return moved;
#endif
}

constexpr uint64_t ONES = 0x0101010101010101;

// Bit i of byte i, of a word whose bytes are 0 and 1.
inline uint8_t gathered(uint64_t word) { return uint8_t(word * 0x0102040810204080 >> 56); }

}  // namespace cdu
