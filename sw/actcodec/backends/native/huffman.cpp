// Entropy coder of jpeg-base: a grayscale scan of baseline JPEG (ITU-T T.81, F.1.2), as golden/entropy_encoder.py has it. A scan is
// one chain of symbols, so it takes one thread.
#include "values.h"

using namespace cdu;

namespace {

int size_of(int value) { return std::bit_width(unsigned(std::abs(value))); }

// symbol(number, value) for every symbol of the blocks in order; whether the coefficients are those of 8-bit samples.
template <class Symbol> bool scan(const int16_t* coefficients, int64_t count, Symbol symbol) {
    int previous = 0;
    for (const int16_t* block = coefficients; block < coefficients + count * BLOCK_VALUES; block += BLOCK_VALUES) {
        if (block[0] < DC_MIN || block[0] > DC_MAX) return false;
        int difference = block[0] - previous;
        symbol(DC_BASE + size_of(difference), difference);
        previous = block[0];
        int run = 0;
        for (int place = 1; place < BLOCK_VALUES; ++place) {
            int value = block[place];
            if (!value) {
                ++run;
                continue;
            }
            if (std::abs(value) > AC_LIMIT) return false;
            for (; run >= ZRL_RUN; run -= ZRL_RUN) symbol(ZRL, 0);
            symbol(run << 4 | size_of(value), value);
            run = 0;
        }
        if (run) symbol(EOB, 0);
    }
    return true;
}

// Bits, first at the top of a byte, with a zero byte after every byte of ones.
class BitWriter {
  public:
    explicit BitWriter(uint8_t* to) : begin_(to), to_(to) {}

    void put(uint64_t bits, int count) {
        held_ = held_ << count | bits;
        for (left_ += count; left_ >= 8;) {
            left_ -= 8;
            uint8_t byte = uint8_t(held_ >> left_);
            *to_++ = byte;
            if (byte == MARKER) *to_++ = 0;
        }
    }

    // Fills the last byte with ones; bytes written.
    int64_t end() {
        if (left_) put((1u << (8 - left_)) - 1, 8 - left_);
        return to_ - begin_;
    }

  private:
    uint8_t *begin_, *to_;
    uint64_t held_ = 0;
    int left_ = 0;
};

// Reads what BitWriter wrote. Beyond the end there are ones; `lost` says that some were taken, or that a marker stands there.
class BitReader {
  public:
    BitReader(const uint8_t* from, int64_t count) : from_(from), end_(from + count) {}

    int peek(int count) {
        while (left_ < count) {
            held_ = held_ << 8 | next();
            left_ += 8;
        }
        return int(held_ >> (left_ - count) & ((1u << count) - 1));
    }

    int take(int count) {
        int bits = peek(count);
        left_ -= count;
        return bits;
    }

    bool lost() const { return marker_ || left_ < 8 * beyond_; }

    // Whether less than a byte is left, of ones only.
    bool at_end() {
        int rest = left_ - 8 * beyond_;
        return !lost() && rest < 8 && from_ == end_ && peek(rest) == (1 << rest) - 1;
    }

  private:
    uint8_t next() {
        if (from_ == end_) return ++beyond_, 0xFF;
        uint8_t byte = *from_++;
        if (byte == MARKER && (from_ == end_ || *from_++)) marker_ = true;
        return byte;
    }

    const uint8_t *from_, *end_;
    uint64_t held_ = 0;
    int left_ = 0, beyond_ = 0;
    bool marker_ = false;
};

// Symbol and length of the code at the begin of every pattern of MAX_CODE_BITS bits; length 0 for no code.
struct Lookup {
    const uint8_t *symbols, *lengths;

    // The next symbol, or -1.
    int read(BitReader& bits) const {
        int pattern = bits.peek(MAX_CODE_BITS), length = lengths[pattern];
        bits.take(length);
        return length ? symbols[pattern] : -1;
    }
};

int extended(BitReader& bits, int size) {
    int value = bits.take(size);
    return size && !(value >> (size - 1)) ? value - (1 << size) + 1 : value;
}

// AC coefficients of a block of zeros; whether it is one.
bool read_ac(BitReader& bits, const Lookup& ac, int16_t* block) {
    int before = EOB;
    for (int place = 1; place < BLOCK_VALUES;) {
        int symbol = ac.read(bits);
        // A coefficient must follow the zeros of a ZRL.
        if (symbol == EOB) return before != ZRL;
        before = symbol;
        int run = symbol >> 4, size = symbol & 15;
        if (symbol < 0 || place + run + (symbol == ZRL) >= BLOCK_VALUES) return false;
        place += run;
        block[place++] = int16_t(extended(bits, size));
    }
    return true;
}

}  // namespace

extern "C" {

// How often each symbol of the alphabet occurs, added to `frequencies`; whether the coefficients are those of 8-bit samples.
bool symbol_counts(const int16_t* coefficients, int64_t count, int64_t* frequencies, int) {
    return scan(coefficients, count, [&](int number, int) { ++frequencies[number]; });
}

// Bytes written to `segment`; codes and their lengths are those of the alphabet.
int64_t entropy_encode(const int16_t* coefficients, int64_t count, const int64_t* codes, const int64_t* lengths, uint8_t* segment,
                       int) {
    BitWriter bits(segment);
    scan(coefficients, count, [&](int number, int value) {
        int size = number & 15;
        bits.put(uint64_t(codes[number]), int(lengths[number]));
        bits.put(uint64_t(value < 0 ? value + (1 << size) - 1 : value), size);
    });
    return bits.end();
}

// Coefficients (count, BLOCK_VALUES) from zeros; false for anything that is not exactly so many blocks.
bool entropy_decode(const uint8_t* segment, int64_t bytes, int64_t count, const uint8_t* dc_symbols, const uint8_t* dc_lengths,
                    const uint8_t* ac_symbols, const uint8_t* ac_lengths, int16_t* coefficients, int) {
    BitReader bits(segment, bytes);
    Lookup dc{dc_symbols, dc_lengths}, ac{ac_symbols, ac_lengths};
    int previous = 0;
    for (int16_t* block = coefficients; block < coefficients + count * BLOCK_VALUES; block += BLOCK_VALUES) {
        int size = dc.read(bits);
        if (size < 0) return false;
        previous += extended(bits, size);
        if (previous < DC_MIN || previous > DC_MAX) return false;
        block[0] = int16_t(previous);
        if (!read_ac(bits, ac, block) || bits.lost()) return false;
    }
    return bits.at_end();
}
}
