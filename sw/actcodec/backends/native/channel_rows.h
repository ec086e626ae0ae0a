// Tensors (outer, channels, inner) in the order of memory, in pieces.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cdu {

constexpr int64_t PIECE_VALUES = 1 << 12;  // a multiple of LANES

struct Channels {
    int64_t channels, inner;

    // Calls body(first value, count, channel) for the parts of rows from value `begin` to before `end`.
    template <class Body> void parts(int64_t begin, int64_t end, Body body) const {
        for (int64_t row = begin / inner; begin < end; ++row) {
            int64_t next = std::min(end, (row + 1) * inner);
            body(begin, next - begin, row % channels);
            begin = next;
        }
    }
};

}  // namespace cdu
