// Some lanes of a vector moved together, and apart again.
#pragma once

#include <array>

#include "coded_blocks.h"

namespace cdu {

// Moves of a set of lanes: together, lane i comes from lane `together[i]`; apart again, lane i comes from lane `apart[i]`.
struct LaneMove {
    int32_t together[LANES], apart[LANES];
};

constexpr std::array<LaneMove, 1 << LANES> LANE_MOVES = [] {
    std::array<LaneMove, 1 << LANES> moves{};
    for (int set = 0; set < 1 << LANES; ++set)
        for (int lane = 0, count = 0; lane < LANES; ++lane) {
            moves[set].apart[lane] = count;
            if (set >> lane & 1) moves[set].together[count++] = lane;
        }
    return moves;
}();

// The set of lanes whose bytes are ones, of bytes that are zeros or ones in all bits.
inline uint8_t lanes_of(Codes flags) { return gathered(std::bit_cast<uint64_t>(flags) & ONES); }
inline Codes equal(Codes codes, int value) { return std::bit_cast<Codes>(codes == uint8_t(value)); }

inline Ints together(Ints values, uint8_t set) { return __builtin_shuffle(values, load<Ints>(LANE_MOVES[set].together)); }
inline Ints apart(Ints values, uint8_t set) { return __builtin_shuffle(values, load<Ints>(LANE_MOVES[set].apart)); }

}  // namespace cdu
