// Codec int8-rows: integers with a scale per row. Every operation is that of golden/floating/scaled_rows.py, in the same order.
#include "values.h"

using namespace cdu;

namespace {

// Calls body(row) for each row.
template <class Body> void each_row(int64_t rows, int64_t columns, int threads, Body body) {
    int64_t some = std::max<int64_t>(1, PIECE / columns);
    parallel(pieces(rows, some), threads, [&](int64_t piece) {
        for (int64_t row = piece * some; row < std::min(rows, (piece + 1) * some); ++row) body(row);
    });
}

// Calls body(place, count) for the values of a row, eight at a time: the last eight, some of them again, or fewer in a short row.
template <class Body> void each_beat(int64_t columns, Body body) {
    if (columns < LANES) return body(0, columns);
    for (int64_t i = 0; i < columns; i += LANES) body(std::min(i, columns - LANES), LANES);
}

// Returns the greatest magnitude, NaN where there is one.
template <class T> float largest(const T* x, int64_t columns) {
    Ints most = {};
    each_beat(columns, [&](int64_t i, int64_t count) {
        most = greatest(most, std::bit_cast<Ints>(load_some(x + i, count)) & 0x7fffffff);
    });
    int found = 0;
    for (int i = 0; i < LANES; ++i) found = std::max(found, most[i]);
    return std::bit_cast<float>(found);
}

Bytes load_some(const int8_t* codes, int64_t count) {
    if (count >= LANES) return load<Bytes>(codes);
    Bytes some = {};
    std::copy_n(codes, count, reinterpret_cast<int8_t*>(&some));
    return some;
}

void store_some(int8_t* codes, Bytes some, int64_t count) {
    if (count >= LANES) return store(codes, some);
    std::copy_n(reinterpret_cast<const int8_t*>(&some), count, codes);
}

}  // namespace

extern "C" {

void scaled_row_codes(const void* x, int format, int64_t rows, int64_t columns, int8_t* codes, float* greatest, int threads) {
    with_format(format, [&]<class T>(T) {
        each_row(rows, columns, threads, [&](int64_t row) {
            const T* from = static_cast<const T*>(x) + row * columns;
            int8_t* to = codes + row * columns;
            float most = greatest[row] = largest(from, columns), divisor = most > 0 ? most : 1;
            constexpr float SHIFTER = 0x1.8p23f;  // leaves no bits for fractions
            each_beat(columns, [&](int64_t i, int64_t count) {
                Floats steps = load_some(from + i, count) / divisor * float(FULL_SCALE);
                Ints whole = std::bit_cast<Ints>(steps + SHIFTER) - std::bit_cast<int32_t>(SHIFTER);
                store_some(to + i, narrowed<Bytes>(whole), count);
            });
        });
    });
}

void scaled_row_values(const int8_t* codes, const float* greatest, int format, int64_t rows, int64_t columns, void* y, int threads) {
    with_format(format, [&]<class T>(T) {
        each_row(rows, columns, threads, [&](int64_t row) {
            const int8_t* from = codes + row * columns;
            T* to = static_cast<T*>(y) + row * columns;
            each_beat(columns, [&](int64_t i, int64_t count) {
                store_some(to + i, floats(widened(load_some(from + i, count))) / float(FULL_SCALE) * greatest[row], count);
            });
        });
    });
}
}
