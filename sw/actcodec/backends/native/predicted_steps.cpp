// Codecs blpa-coded and cusz: whole steps of values, what prediction leaves over of them, and its narrow codes with escapes; and
// back. Every operation is that of backends/predicted_coder.py, golden/lorenzo.py and golden/integer_coder.py.
#include <array>
#include <vector>

#include "bit_streams.h"
#include "lane_moves.h"
#include "whole_steps.h"

using namespace cdu;

namespace {

constexpr int64_t BULK_VALUES = 1 << 12;
constexpr int LEVELS = std::size(INTEGER_WIDTHS), PLANES = 4;

constexpr int32_t greatest_of(int level) { return (1 << (INTEGER_WIDTHS[level] - 1)) - 1; }
constexpr uint32_t escape_of(int level) { return (1u << INTEGER_WIDTHS[level]) - 1; }
inline uint32_t code_of(int32_t value, int level) { return std::min(uint32_t(value) + greatest_of(level), escape_of(level)); }

// Samples of rows, of which `height` make a plane and `depth` planes predict each other; `channel_rows` rows have one step.
struct Layout {
    int64_t samples, rows, width, height, depth, channel_rows;
    int dimensions;

    int64_t sample_values() const { return rows * width; }
};

// Neighbours of the row that passes: what is left over of the row above along one axis, and of the plane before along two.
class Neighbours {
  public:
    explicit Neighbours(const Layout& layout)
        : layout_(layout), above_(layout.dimensions > 1 ? layout.width : 0),
          before_(layout.dimensions > 2 ? layout.width * layout.height : 0) {}

    // Whole numbers of row `row` of a sample become differences.
    void take_off(int64_t row, int32_t* values) {
        if (layout_.dimensions > 0)
            for (int64_t i = layout_.width - 1; i > 0; --i) values[i] = less(values[i], values[i - 1]);
        along(row % layout_.height, layout_.dimensions > 1, values, above_.data());
        along(row / layout_.height % layout_.depth, layout_.dimensions > 2, values, plane(row));
    }

    // Turns differences back into whole numbers.
    void put_back(int64_t row, int32_t* values) {
        back(row / layout_.height % layout_.depth, layout_.dimensions > 2, values, plane(row));
        back(row % layout_.height, layout_.dimensions > 1, values, above_.data());
        if (layout_.dimensions > 0)
            for (int64_t i = 1; i < layout_.width; ++i) values[i] = plus(values[i], values[i - 1]);
    }

  private:
    static int32_t less(int32_t a, int32_t b) { return int32_t(uint32_t(a) - uint32_t(b)); }
    static int32_t plus(int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }

    int32_t* plane(int64_t row) { return before_.data() + (before_.empty() ? 0 : row % layout_.height * layout_.width); }

    void along(int64_t place, bool predicts, int32_t* values, int32_t* known) const {
        if (!predicts) return;
        for (int64_t i = 0; i < layout_.width; ++i) {
            int32_t value = values[i];
            values[i] = less(value, place ? known[i] : 0);
            known[i] = value;
        }
    }

    void back(int64_t place, bool predicts, int32_t* values, int32_t* known) const {
        if (!predicts) return;
        for (int64_t i = 0; i < layout_.width; ++i) known[i] = values[i] = plus(values[i], place ? known[i] : 0);
    }

    const Layout& layout_;
    std::vector<int32_t> above_, before_;
};

// Rows that are handled at once.
inline int64_t bulk_rows(const Layout& layout) { return std::min(layout.rows, std::max<int64_t>(BULK_VALUES / layout.width, 1)); }

// use(first value in the tensor, count, differences, values, first row) for some rows of a sample after others. There is room for
// LANES more values behind the differences.
template <class Rule, class T, class Use>
void differences(const T* x, const Layout& layout, int64_t sample, const float* steps, Use use) {
    Neighbours neighbours(layout);
    int64_t width = layout.width, some = bulk_rows(layout);
    std::vector<float> values(some * width);
    std::vector<int32_t> whole(some * width + LANES);
    for (int64_t top = 0; top < layout.rows; top += some) {
        int64_t first = sample * layout.sample_values() + top * width, count = std::min(some, layout.rows - top) * width;
        to_floats(x + first, count, values.data());
        for (int64_t at = 0; at < count; at += width) {
            int64_t row = top + at / width;
            float step = steps[row / layout.channel_rows];
            for (int64_t i = at; i < at + width; ++i) whole[i] = Rule::whole(values[i], step);
            neighbours.take_off(row, whole.data() + at);
        }
        use(first, count, whole.data(), values.data(), top);
    }
}

// Codes of a level; the values that leave it, moved together, may take the place of all. Returns how many they are. Both buffers
// have room for LANES more.
template <int LEVEL> int64_t narrowed(const int32_t* values, int64_t count, uint8_t* codes, int32_t* escaped, BitWriter& stream) {
    static const CodePacker packer(INTEGER_WIDTHS[LEVEL]);
    for (int64_t i = 0; i < count; ++i) codes[i] = uint8_t(code_of(values[i], LEVEL));
    std::fill_n(codes + count, LANES, uint8_t(0));
    int64_t many = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        Codes some = load<Codes>(codes + i);
        stream.put(some, int(std::min<int64_t>(count - i, LANES)), packer);
        uint8_t left = lanes_of(equal(some, escape_of(LEVEL)));
        store(escaped + many, together(load<Ints>(values + i), left));
        many += std::popcount(left);
    }
    return many;
}

// Codes of a level; returns the number of values that leave it.
template <int LEVEL> int64_t read_codes(BitReader& stream, int64_t count, uint8_t* codes) {
    static const CodePacker packer(INTEGER_WIDTHS[LEVEL]);
    int64_t many = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        Codes some = stream.get(int(std::min<int64_t>(count - i, LANES)), packer);
        store(codes + i, some);
        many += std::popcount(lanes_of(equal(some, escape_of(LEVEL))));
    }
    return many;
}

// Inverse of narrowed().
template <int LEVEL> void widened(const uint8_t* codes, int64_t count, const int32_t* escaped, int32_t* values) {
    for (int64_t i = 0; i < count; i += LANES) {
        Codes some = load<Codes>(codes + i), leaves = equal(some, escape_of(LEVEL));
        uint8_t left = lanes_of(leaves);
        Ints known = cdu::widened(some) - greatest_of(LEVEL);
        store(values + i, cdu::widened(std::bit_cast<Bytes>(leaves)) ? apart(load<Ints>(escaped), left) : known);
        escaped += std::popcount(left);
    }
}

// Counts of a sample's integers per level, and of its outliers.
using Counts = std::array<int64_t, LEVELS + 1>;

// Sums of the counts of all samples before each.
inline std::vector<Counts> starts_of(const int64_t* counts, int64_t samples) {
    std::vector<Counts> starts(samples + 1);
    for (int64_t sample = 0; sample < samples; ++sample)
        for (int i = 0; i <= LEVELS; ++i) starts[sample + 1][i] = starts[sample][i] + counts[sample * (LEVELS + 1) + i];
    return starts;
}

}  // namespace

extern "C" {

// Counts for each sample how many differences leave levels 0, 1, 2, and how many values are outliers: int64 (samples, 4).
void predicted_counts(const void* x, int format, int64_t samples, int64_t rows, int64_t width, int64_t height, int64_t depth,
                      int64_t channel_rows, const float* steps, bool cells, int dimensions, int64_t* counts, int threads) {
    Layout layout{samples, rows, width, height, depth, channel_rows, dimensions};
    auto count = [&]<class Rule, class T>(Rule, T) {
        parallel(samples, threads, [&](int64_t sample) {
            int64_t left[LEVELS] = {}, outliers = 0;
            differences<Rule>(static_cast<const T*>(x), layout, sample, steps,
                              [&](int64_t, int64_t count, const int32_t* found, const float* values, int64_t top) {
                for (int level = 0; level < LEVELS; ++level) {
                    int32_t most = greatest_of(level), leave = 0;
                    uint32_t escape = escape_of(level);
                    for (int64_t i = 0; i < count; ++i) leave += uint32_t(found[i] + most) >= escape;
                    left[level] += leave;
                }
                if constexpr (Rule::OUTLIERS)
                    for (int64_t at = 0; at < count; at += width) {
                        float step = steps[(top + at / width) / channel_rows];
                        int32_t beyond = 0;
                        for (int64_t i = at; i < at + width; ++i) beyond += Rule::beyond(values[i], step);
                        outliers += beyond;
                    }
            });
            std::copy_n(left, LEVELS, counts + sample * (LEVELS + 1));
            counts[sample * (LEVELS + 1) + LEVELS] = outliers;
        });
    };
    with_rule(cells, [&](auto rule) { with_format(format, [&](auto value) { count(rule, value); }); });
}

// The codes of each level, streams of zeros until then; planes of the bytes of what fits none; and the numbers of outliers.
void predicted_codes(const void* x, int format, int64_t samples, int64_t rows, int64_t width, int64_t height, int64_t depth,
                     int64_t channel_rows, const float* steps, bool cells, int dimensions, const int64_t* counts, uint8_t* codes0,
                     uint8_t* codes1, uint8_t* codes2, uint8_t* planes, int64_t* places, int threads) {
    Layout layout{samples, rows, width, height, depth, channel_rows, dimensions};
    std::vector<Counts> starts = starts_of(counts, samples);
    int64_t plane_bytes = starts[samples][LEVELS - 1];
    auto write = [&]<class Rule, class T>(Rule, T) {
        parallel(samples, threads, [&](int64_t sample) {
            const Counts& start = starts[sample];
            BitWriter first(codes0, sample * layout.sample_values() * INTEGER_WIDTHS[0]);
            BitWriter second(codes1, start[0] * INTEGER_WIDTHS[1]), third(codes2, start[1] * INTEGER_WIDTHS[2]);
            int64_t wide = start[2], outlier = start[LEVELS];
            int64_t room = bulk_rows(layout) * width + LANES;
            std::vector<int32_t> escaped(room);
            std::vector<uint8_t> codes(room);
            differences<Rule>(static_cast<const T*>(x), layout, sample, steps,
                              [&](int64_t at, int64_t count, const int32_t* found, const float* values, int64_t top) {
                int64_t many = narrowed<0>(found, count, codes.data(), escaped.data(), first);
                many = narrowed<1>(escaped.data(), many, codes.data(), escaped.data(), second);
                many = narrowed<2>(escaped.data(), many, codes.data(), escaped.data(), third);
                for (int64_t i = 0; i < many; ++i, ++wide) {
                    uint32_t folded = uint32_t(escaped[i]) << 1 ^ uint32_t(escaped[i] >> 31);
                    for (int plane = 0; plane < PLANES; ++plane) planes[plane * plane_bytes + wide] = uint8_t(folded >> 8 * plane);
                }
                if (outlier == starts[sample + 1][LEVELS]) return;
                if constexpr (Rule::OUTLIERS)
                    for (int64_t i = 0; i < count; ++i)
                        if (Rule::beyond(values[i], steps[(top + i / width) / channel_rows])) places[outlier++] = at + i;
            });
            first.end(), second.end(), third.end();
        });
    };
    with_rule(cells, [&](auto rule) { with_format(format, [&](auto value) { write(rule, value); }); });
}

// Counts each byte in each stream of codes, and in each plane, of some differences: int64 (7, 256).
void narrowed_bytes(const int32_t* found, int64_t count, int64_t* occurs, int) {
    std::vector<int32_t> left(found, found + count);
    for (int level = 0; level < LEVELS; ++level) {
        int width = INTEGER_WIDTHS[level], per_byte = 8 / width;
        size_t many = 0;
        uint32_t byte = 0;
        for (size_t i = 0; i < left.size(); ++i) {
            uint32_t code = code_of(left[i], level);
            byte |= code << i % per_byte * width;
            if (i % per_byte == size_t(per_byte - 1) || i + 1 == left.size()) ++occurs[level * 256 + byte], byte = 0;
            if (code == escape_of(level)) left[many++] = left[i];
        }
        left.resize(many);
    }
    for (int32_t value : left) {
        uint32_t folded = uint32_t(value) << 1 ^ uint32_t(value >> 31);
        for (int plane = 0; plane < PLANES; ++plane) ++occurs[(LEVELS + plane) * 256 + (folded >> 8 * plane & 0xff)];
    }
}

// The inverse of predicted_codes but for outliers: the middles of cells or the multiples of steps; not negative where `rectified`,
// then `slope` times as much and `shift` more (float32 per channel, or none), limited to magnitudes of `limit`. Bytes of the
// streams are given; false where they do not fit each other.
bool predicted_values(const uint8_t* codes0, const uint8_t* codes1, const uint8_t* codes2, const uint8_t* planes, int64_t bytes0,
                      int64_t bytes1, int64_t bytes2, int64_t plane_bytes, int format, int64_t samples, int64_t rows, int64_t width,
                      int64_t height, int64_t depth, int64_t channel_rows, const float* steps, bool cells, int dimensions,
                      bool rectified, const float* slope, const float* shift, float limit, void* y, int threads) {
    Layout layout{samples, rows, width, height, depth, channel_rows, dimensions};
    const uint8_t* streams[] = {codes0, codes1, codes2};
    int64_t sizes[] = {bytes0, bytes1, bytes2, plane_bytes};
    // First codes of each sample in the stream of each level.
    std::vector<Counts> starts(samples + 1);
    for (int64_t sample = 0; sample <= samples; ++sample) starts[sample][0] = sample * layout.sample_values();
    for (int level = 0; level < LEVELS; ++level) {
        if (pieces(starts[samples][level] * INTEGER_WIDTHS[level], 8) != sizes[level]) return false;
        parallel(samples, threads, [&](int64_t sample) {
            int bits = INTEGER_WIDTHS[level];
            CodePacker packer(bits);
            BitReader codes(streams[level], sizes[level], starts[sample][level] * bits);
            int64_t escapes = 0;
            for (int64_t left = starts[sample + 1][level] - starts[sample][level]; left > 0; left -= LANES) {
                Codes some = codes.get(int(std::min<int64_t>(left, LANES)), packer);
                escapes += std::popcount(lanes_of(equal(some, escape_of(level))));
            }
            starts[sample + 1][level + 1] = escapes;
        });
        for (int64_t sample = 0; sample < samples; ++sample) starts[sample + 1][level + 1] += starts[sample][level + 1];
    }
    if (starts[samples][LEVELS] != plane_bytes) return false;
    float least = rectified ? 0.0f : -INFINITY;
    auto read = [&]<class Rule, class T>(Rule, T) {
        parallel(samples, threads, [&](int64_t sample) {
            const Counts& start = starts[sample];
            auto reader = [&](int level) {
                return BitReader(streams[level], sizes[level], start[level] * INTEGER_WIDTHS[level]);
            };
            BitReader first = reader(0), second = reader(1), third = reader(2);
            int64_t wide = start[3];
            Neighbours neighbours(layout);
            int64_t some = bulk_rows(layout), room = some * width + LANES;
            std::vector<int32_t> whole(room), seconds(room), thirds(room), fourths(room);
            std::vector<uint8_t> codes[LEVELS];
            for (auto& of_level : codes) of_level.resize(room);
            std::vector<float> values(room);
            for (int64_t top = 0; top < rows; top += some) {
                int64_t count = std::min(some, rows - top) * width;
                int64_t left = read_codes<0>(first, count, codes[0].data());
                int64_t left_again = read_codes<1>(second, left, codes[1].data());
                int64_t wides = read_codes<2>(third, left_again, codes[2].data());
                for (int64_t i = 0; i < wides; ++i, ++wide) {
                    uint32_t folded = 0;
                    for (int plane = 0; plane < PLANES; ++plane)
                        folded |= uint32_t(planes[plane * plane_bytes + wide]) << 8 * plane;
                    fourths[i] = int32_t(folded >> 1 ^ -(folded & 1));
                }
                widened<2>(codes[2].data(), left_again, fourths.data(), thirds.data());
                widened<1>(codes[1].data(), left, thirds.data(), seconds.data());
                widened<0>(codes[0].data(), count, seconds.data(), whole.data());
                for (int64_t at = 0; at < count; at += width) {
                    int64_t row = top + at / width, channel = row / channel_rows;
                    neighbours.put_back(row, whole.data() + at);
                    float step = steps[channel], *out = values.data() + at;
                    for (int64_t i = 0; i < width; ++i) out[i] = std::max(Rule::value(whole[at + i], step), least);
                    if (slope)
                        for (int64_t i = 0; i < width; ++i) out[i] = out[i] * slope[channel] + shift[channel];
                    for (int64_t i = 0; i < width; ++i) out[i] = std::min(std::max(out[i], -limit), limit);
                }
                from_floats(values.data(), count, static_cast<T*>(y) + sample * layout.sample_values() + top * width);
            }
        });
    };
    with_rule(cells, [&](auto rule) { with_format(format, [&](auto value) { read(rule, value); }); });
    return true;
}
}
