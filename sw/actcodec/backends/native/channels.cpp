// Statistics of the channels of a tensor (outer, channels, inner): extremes, moments, errors of a step. Sums are of integers,
// so that neither the order nor the number of threads changes them (golden/channel_statistics.py).
#include <vector>

#include "values.h"

using namespace cdu;

namespace {

// Applies add(values, count, channel, one) to all pieces of each channel, beginning with `none`; join(one, other) joins
// results. `values` are float32. Where each value has another channel, each(value, channel, one) is applied row by row.
template <class One, class T, class Add, class Each, class Join>
std::vector<One> of_channels(const T* x, int64_t outer, int64_t channels, int64_t inner, One none, int threads, Add add, Each each,
                             Join join) {
    std::vector<One> found(channels, none);
    int64_t across = pieces(inner, PIECE), per_step = std::max<int64_t>(PIECE / (channels * inner), 1);
    int64_t steps = pieces(outer, per_step) * across;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<One> mine(channels, none);
        std::vector<float> values(inner == 1 ? channels : std::min(inner, PIECE));
#pragma omp for schedule(static) nowait
        for (int64_t step = 0; step < steps; ++step) {
            int64_t first = step % across * PIECE, count = std::min(inner - first, PIECE);
            int64_t begin = step / across * per_step, end = std::min(outer, begin + per_step);
            if (inner == 1) {
                for (int64_t row = begin; row < end; ++row) {
                    to_floats(x + row * channels, channels, values.data());
                    for (int64_t channel = 0; channel < channels; ++channel) each(values[channel], channel, mine[channel]);
                }
                continue;
            }
            for (int64_t row = begin * channels; row < end * channels; ++row) {
                to_floats(x + row * inner + first, count, values.data());
                add(values.data(), count, row % channels, mine[row % channels]);
            }
        }
#pragma omp critical
        for (int64_t channel = 0; channel < channels; ++channel) join(found[channel], mine[channel]);
    }
    return found;
}

// The form of `each` for a piece of a channel.
template <class One, class Each, class Join> auto in_pieces(Each each, Join join) {
    return [=](const float* values, int64_t count, int64_t channel, One& one) {
        One sum{};
        for (int64_t i = 0; i < count; ++i) each(values[i], channel, sum);
        join(one, sum);
    };
}

struct Edges {
    float least, greatest;
};

struct Sums {
    int64_t values, squares;
};

// Sum of the squares of a channel's values, and what it would be if each piece of a row had nothing but its mean.
struct Powers {
    double whole, means;
};

}  // namespace

extern "C" {

// Least and greatest value of each channel, float32.
void channel_edges(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, float* least, float* greatest,
                   int threads) {
    auto join = [](Edges& one, const Edges& other) {
        one = {std::min(one.least, other.least), std::max(one.greatest, other.greatest)};
    };
    auto add = [&](const float* values, int64_t count, int64_t, Edges& one) {
        Floats low = load_some(values, count), high = low;
        for (int64_t i = 0; i < count; i += LANES) {
            Floats some = load_some(values + i, count - i);
            low = cdu::least(low, some), high = cdu::greatest(high, some);
        }
        for (int i = 0; i < LANES; ++i) join(one, {low[i], high[i]});
    };
    auto each = [](float value, int64_t, Edges& one) {
        one = {value < one.least ? value : one.least, value > one.greatest ? value : one.greatest};
    };
    with_format(format, [&]<class T>(T) {
        Edges none{INFINITY, -INFINITY};
        auto found = of_channels(static_cast<const T*>(x), outer, channels, inner, none, threads, add, each, join);
        for (int64_t channel = 0; channel < channels; ++channel)
            least[channel] = found[channel].least, greatest[channel] = found[channel].greatest;
    });
}

// True if it is certain that the square of the mean of each channel, and the mean of the squared means of its maps, is at most
// `share` of the mean square. Mean squares beyond `least` and `most`, where float32 has no exact sums, are never certain.
bool near_zero(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, double share, double least, double most,
               int threads) {
    return with_format(format, [&]<class T>(T) {
        const T* from = static_cast<const T*>(x);
        std::vector<Powers> found(channels, Powers{});
        if (inner > 1) {
            auto join = [](Powers& one, const Powers& other) { one.whole += other.whole, one.means += other.means; };
            auto add = [&](const float* values, int64_t count, int64_t, Powers& one) {
                Floats sums = {}, squares = {};
                int64_t i = 0;
                for (; i + LANES <= count; i += LANES) {
                    Floats some = load8(values + i);
                    sums += some, squares += some * some;
                }
                double sum = 0, square = 0;
                for (int lane = 0; lane < LANES; ++lane) sum += double(sums[lane]), square += double(squares[lane]);
                for (; i < count; ++i) sum += double(values[i]), square += double(values[i] * values[i]);
                join(one, {square, sum * sum / double(count)});
            };
            found = of_channels(from, outer, channels, inner, Powers{}, threads, add, [](float, int64_t, Powers&) {}, join);
        } else {
            std::vector<float> values(channels), sums(channels), squares(channels);
            std::vector<double> all(channels);
            constexpr int64_t ROWS = 256;  // as many squares as float32 adds up well
            for (int64_t first = 0; first < outer; first += ROWS) {
                std::fill(sums.begin(), sums.end(), 0.0f), std::fill(squares.begin(), squares.end(), 0.0f);
                for (int64_t row = first; row < std::min(outer, first + ROWS); ++row) {
                    to_floats(from + row * channels, channels, values.data());
                    for (int64_t channel = 0; channel < channels; ++channel) {
                        sums[channel] += values[channel];
                        squares[channel] += values[channel] * values[channel];
                    }
                }
                for (int64_t channel = 0; channel < channels; ++channel)
                    all[channel] += double(sums[channel]), found[channel].whole += double(squares[channel]);
            }
            for (int64_t channel = 0; channel < channels; ++channel)
                found[channel].means = all[channel] * all[channel] / double(outer);
        }
        double count = double(outer) * double(inner);
        return std::all_of(found.begin(), found.end(), [&](const Powers& one) {
            if (one.whole == 0 && one.means == 0) return true;
            double square = one.whole / count;
            return square >= least && square <= most && one.means <= share * one.whole;  // false for NaN
        });
    });
}

// Sums of the places of values between `least` and the greatest one, in whole parts, and of their squares without the lowest bits.
void channel_moments(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, const double* least,
                     const double* factor, int dropped, int64_t* values, int64_t* squares, int threads) {
    auto join = [](Sums& one, const Sums& other) { one.values += other.values, one.squares += other.squares; };
    int64_t half = int64_t(1) << dropped >> 1;
    auto each = [=](float value, int64_t channel, Sums& one) {
        int64_t place = int32_t(std::nearbyint((double(value) - least[channel]) * factor[channel]));
        one.values += place;
        one.squares += (place * place + half) >> dropped;
    };
    with_format(format, [&]<class T>(T) {
        auto found = of_channels(static_cast<const T*>(x), outer, channels, inner, Sums{}, threads, in_pieces<Sums>(each, join), each, join);
        for (int64_t channel = 0; channel < channels; ++channel)
            values[channel] = found[channel].values, squares[channel] = found[channel].squares;
    });
}

// Sums of the squared distances of values from whole steps, in parts of a squared step, rounded up.
void squared_errors(const void* x, int format, int64_t outer, int64_t channels, int64_t inner, const double* steps, double parts,
                    int64_t* squares, int threads) {
    auto join = [](int64_t& one, int64_t other) { one += other; };
    auto each = [=](float value, int64_t channel, int64_t& one) {
        double exact = double(value) / steps[channel], error = exact - std::nearbyint(exact);
        one += int32_t(std::ceil(error * error * parts));
    };
    with_format(format, [&]<class T>(T) {
        auto found = of_channels(static_cast<const T*>(x), outer, channels, inner, int64_t(0), threads, in_pieces<int64_t>(each, join), each, join);
        std::copy(found.begin(), found.end(), squares);
    });
}
}
