// Whole numbers of steps, and the values that they stand for.
#pragma once

#include "values.h"

namespace cdu {

// The number of the step in which a value lies, whose ends belong to the step below; no step goes across zero.
struct Cells {
    static constexpr bool OUTLIERS = false;
    static int32_t whole(float x, float step) {
        float number = std::ceil(x / step) - 1;
        return int32_t(x > 0 ? std::max(number, 0.0f) : std::min(number, -1.0f));
    }
    static float value(int32_t number, float step) { return (float(number) + 0.5f) * step; }
};

// The nearest multiple of a step; of values that are too many steps from zero it is zero, and they are counted apart.
struct Multiples {
    static constexpr bool OUTLIERS = true;
    static double steps(float x, float step) { return std::nearbyint(double(x) / double(step)); }
    static bool beyond(float x, float step) { return std::abs(steps(x, step)) > MAX_MAGNITUDE; }
    static int32_t whole(float x, float step) {
        double exact = steps(x, step);
        return int32_t(std::abs(exact) > MAX_MAGNITUDE ? 0.0 : exact);
    }
    static float value(int32_t number, float step) {
        constexpr double MOST = __FLT_MAX__;
        return float(std::min(std::max(number * double(step), -MOST), MOST));
    }
};

template <class Body> inline auto with_rule(bool cells, Body body) {
    if (cells) return body(Cells{});
    return body(Multiples{});
}

}  // namespace cdu
