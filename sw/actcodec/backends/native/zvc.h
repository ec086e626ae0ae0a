// ZVC (docs/reference/bitstream.md, section 3): per block of 64 bytes a mask of 8 bytes, then the bytes that are not zero.
#pragma once

#include "coded_blocks.h"

namespace cdu {

struct Zvc {
    static constexpr int TOGETHER = 1;
    static constexpr int HEAD = MASK_BYTES, LONGEST = MAX_BLOCK_BYTES, SLACK = LANES;

    static uint8_t* pack(const int8_t* q, uint8_t* out) {
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

    static int length(const uint8_t* block) { return MASK_BYTES + std::popcount(load<uint64_t>(block)); }

    static void unpack(const uint8_t* const* packed, const uint8_t*, int8_t (*blocks)[BLOCK_VALUES]) {
        const uint8_t* block = *packed;
        int8_t* q = *blocks;
        const uint8_t* next = block + MASK_BYTES;
        std::memset(q, 0, BLOCK_VALUES);
        for (uint64_t mask = load<uint64_t>(block); mask; mask &= mask - 1) q[std::countr_zero(mask)] = int8_t(*next++);
    }

   private:
    // Moves the bytes of `word` that `mask` covers with ones together.
    static uint64_t selected(uint64_t word, uint64_t mask) {
#ifdef __BMI2__
        return _pext_u64(word, mask);
#else
        uint64_t moved = 0;
        for (int place = 0; mask; word >>= 8, mask >>= 8)
            if (mask & 1) moved |= (word & 0xff) << place, place += 8;
        return moved;
#endif
    }
};

}  // namespace cdu
