// Indices of max pools as positions in their windows, and back: actcodec/saved/pool_indices.py has the definition.
#include <algorithm>
#include <vector>

#include "values.h"

using namespace cdu;

namespace {

constexpr int MOST_AXES = 3, NUMBERS = 5;
constexpr int64_t PIECE_VALUES = 1 << 13;

// A pooled axis: its extent, the positions of a window along it and how far apart they are, and how the outputs go along it.
struct Axis {
    int64_t extent, positions, dilation, outputs, step;
    const int64_t* starts;
};

struct Axes {
    int count;
    Axis axes[MOST_AXES];

    // numbers: NUMBERS of each axis, the last one first; starts: of the windows along the axes, one axis after the other.
    Axes(int count, const int64_t* numbers, const int64_t* starts) : count(count) {
        for (int a = 0; a < count; ++a, numbers += NUMBERS) {
            axes[a] = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], starts};
            starts += axes[a].outputs;
        }
    }
};

// Starts of the windows of consecutive outputs.
struct Walk {
    const Axes& axes;
    int64_t place[MOST_AXES], within[MOST_AXES], start[MOST_AXES];

    Walk(const Axes& axes, int64_t output) : axes(axes) {
        for (int a = 0; a < axes.count; ++a) {
            const Axis& axis = axes.axes[a];
            within[a] = output % axis.step, place[a] = output / axis.step % axis.outputs;
            start[a] = axis.starts[place[a]];
        }
    }

    void next() {
        for (int a = 0; a < axes.count; ++a) {
            const Axis& axis = axes.axes[a];
            if (++within[a] < axis.step) continue;
            within[a] = 0;
            if (++place[a] == axis.outputs) place[a] = 0;
            start[a] = axis.starts[place[a]];
        }
    }
};

}  // namespace

extern "C" {

// Turns indices into positions, at most 256 to a window; returns false when an index does not lie in its window.
bool window_positions(const int64_t* indices, int64_t count, int axes_count, const int64_t* numbers, const int64_t* starts,
                      uint8_t* positions, int threads) {
    Axes axes(axes_count, numbers, starts);
    int64_t inputs = 1;
    double inverse[MOST_AXES];
    for (int a = 0; a < axes.count; ++a) inputs *= axes.axes[a].extent, inverse[a] = 1.0 / double(axes.axes[a].extent);
    std::vector<uint8_t> strays(pieces(count, PIECE_VALUES), 0);
    parallel(int64_t(strays.size()), threads, [&](int64_t piece) {
        int64_t end = std::min(count, (piece + 1) * PIECE_VALUES);
        Walk walk(axes, piece * PIECE_VALUES);
        bool stray = false;
        for (int64_t i = piece * PIECE_VALUES; i < end; ++i, walk.next()) {
            int64_t rest = indices[i], position = 0, weight = 1;
            if (rest < 0 || rest >= inputs) {
                stray = true;
                continue;
            }
            for (int a = 0; a < axes.count; ++a) {
                const Axis& axis = axes.axes[a];
                int64_t quotient = int64_t(double(rest) * inverse[a]), within = rest - quotient * axis.extent;
                // The product may be rounded across a whole number.
                if (within < 0) --quotient, within += axis.extent;
                if (within >= axis.extent) ++quotient, within -= axis.extent;
                int64_t step = within - walk.start[a];
                if (axis.dilation > 1) {
                    stray |= step % axis.dilation != 0;
                    step /= axis.dilation;
                }
                stray |= step < 0 || step >= axis.positions;
                position += step * weight, weight *= axis.positions, rest = quotient;
            }
            positions[i] = uint8_t(position);
        }
        strays[piece] = stray;
    });
    return std::none_of(strays.begin(), strays.end(), [](uint8_t stray) { return stray; });
}

// Turns positions into indices.
void window_indices(const uint8_t* positions, int64_t count, int axes_count, const int64_t* numbers, const int64_t* starts,
                    int64_t* indices, int threads) {
    Axes axes(axes_count, numbers, starts);
    int64_t weights[MOST_AXES], beyond[256];
    for (int64_t a = 0, weight = 1; a < axes.count; weight *= axes.axes[a++].extent) weights[a] = weight;
    for (int64_t position = 0; position < 256; ++position) {
        int64_t rest = position;
        beyond[position] = 0;
        for (int a = 0; a < axes.count; ++a) {
            beyond[position] += rest % axes.axes[a].positions * axes.axes[a].dilation * weights[a];
            rest /= axes.axes[a].positions;
        }
    }
    parallel(pieces(count, PIECE_VALUES), threads, [&](int64_t piece) {
        int64_t end = std::min(count, (piece + 1) * PIECE_VALUES);
        Walk walk(axes, piece * PIECE_VALUES);
        for (int64_t i = piece * PIECE_VALUES; i < end; ++i, walk.next()) {
            int64_t index = beyond[positions[i]];
            for (int a = 0; a < axes.count; ++a) index += walk.start[a] * weights[a];
            indices[i] = index;
        }
    });
}
}
