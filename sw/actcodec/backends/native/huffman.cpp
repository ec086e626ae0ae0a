// Entropy coder of jpeg-base: a grayscale scan of baseline JPEG (ITU-T T.81, F.1.2), as golden/entropy_encoder.py has it. A scan is
// one chain of symbols, so it takes one thread.
#include "coded_blocks.h"

using namespace cdu;

namespace {

int size_of(int value) { return std::bit_width(unsigned(std::abs(value))); }

// Returns the set of a block's nonzero coefficients.
uint64_t present(const int16_t* block) {
    uint64_t places = 0;
    Shorts zero = {};
    for (int j = 0; j < BLOCK_SIDE; ++j) {
        auto flags = __builtin_convertvector(load<Shorts>(block + LANES * j) != zero, Bytes);
        places |= uint64_t(gathered(std::bit_cast<uint64_t>(flags) & ONES)) << LANES * j;
    }
    return places;
}

// Calls symbol(number, value) for every symbol of the blocks in order; returns false for coefficients beyond 8-bit samples.
template <class Symbol> bool scan(const int16_t* coefficients, int64_t count, Symbol symbol) {
    int previous = 0;
    for (const int16_t* block = coefficients; block < coefficients + count * BLOCK_VALUES; block += BLOCK_VALUES) {
        if (block[0] < DC_MIN || block[0] > DC_MAX) return false;
        int difference = block[0] - previous;
        symbol(DC_BASE + size_of(difference), difference);
        previous = block[0];
        int last = 0;
        for (uint64_t left = present(block) & ~uint64_t(1); left; left &= left - 1) {
            int place = std::countr_zero(left), value = block[place], run = place - last - 1;
            if (std::abs(value) > AC_LIMIT) return false;
            for (; run >= ZRL_RUN; run -= ZRL_RUN) symbol(ZRL, 0);
            symbol(run << 4 | size_of(value), value);
            last = place;
        }
        if (last < BLOCK_VALUES - 1) symbol(EOB, 0);
    }
    return true;
}

// Loads eight bytes, the first one highest; returns whether none of them is all ones.
inline bool plain_bytes(const uint8_t* from, uint64_t& bytes) {
    uint64_t word = load<uint64_t>(from), others = ~word;
    bytes = __builtin_bswap64(word);
    return !((others - 0x0101010101010101) & ~others & 0x8080808080808080);
}

// Writes bits, first at the top of a byte, with a zero byte after every byte of ones.
class BitWriter {
  public:
    explicit BitWriter(uint8_t* to) : begin_(to), to_(to) {}

    // Appends `count` bits, up to 31.
    void put(uint64_t bits, int count) {
        held_ = held_ << count | bits;
        left_ += count;
        if (left_ >= 32) flush(left_ - 32);
    }

    // Fills the last byte with ones; returns the number of bytes written.
    int64_t end() {
        if (int rest = left_ % 8) put((1u << (8 - rest)) - 1, 8 - rest);
        flush(0);
        return to_ - begin_;
    }

  private:
    // Writes whole bytes, until no more than `rest` and 7 bits are left.
    void flush(int rest) {
        while (left_ >= rest + 8) {
            left_ -= 8;
            uint8_t byte = uint8_t(held_ >> left_);
            *to_++ = byte;
            if (byte == MARKER) *to_++ = 0;
        }
    }

    uint8_t *begin_, *to_;
    uint64_t held_ = 0;
    int left_ = 0;
};

// Reads the bits of BitWriter. Beyond the end there are ones; `lost` tells that some were taken, or that a marker stands there.
class BitReader {
  public:
    BitReader(const uint8_t* from, int64_t count) : from_(from), end_(from + count) {}

    // Provides 56 bits: several bytes at once where no byte of ones is among them.
    void fill() {
        if (left_ >= MOST) return;
        uint64_t bytes;
        if (end_ - from_ >= 8 && plain_bytes(from_, bytes)) {
            int more = (63 - left_) / 8;
            held_ = held_ << 8 * more | bytes >> (64 - 8 * more);
            left_ += 8 * more, from_ += more;
        }
        while (left_ < MOST) held_ = held_ << 8 | next(), left_ += 8;
    }

    // Returns bits that fill() has provided.
    int peek(int count) const { return int(held_ >> (left_ - count) & ((1u << count) - 1)); }
    void skip(int count) { left_ -= count; }
    int take(int count) {
        int bits = peek(count);
        skip(count);
        return bits;
    }
    bool has(int count) const { return left_ >= count; }

    bool lost() const { return marker_ || left_ < 8 * beyond_; }

    // Returns whether less than a byte is left, of ones only.
    bool at_end() {
        fill();
        int64_t rest = left_ - 8 * beyond_;
        return !lost() && rest < 8 && from_ == end_ && (held_ >> (left_ - rest) & ((1u << rest) - 1)) == (1u << rest) - 1;
    }

  private:
    static constexpr int MOST = 56;

    uint8_t next() {
        if (from_ == end_) return ++beyond_, 0xFF;
        uint8_t byte = *from_++;
        if (byte == MARKER && (from_ == end_ || *from_++)) marker_ = true;
        return byte;
    }

    const uint8_t *from_, *end_;
    uint64_t held_ = 0;
    int left_ = 0;
    int64_t beyond_ = 0;
    bool marker_ = false;
};

// Symbol and length of the code at the begin of every pattern of MAX_CODE_BITS bits; length 0 for no code.
struct Lookup {
    const uint8_t *symbols, *lengths;

    // Returns the next symbol, or -1.
    int read(BitReader& bits) const {
        int pattern = bits.peek(MAX_CODE_BITS), length = lengths[pattern];
        bits.skip(length);
        return length ? symbols[pattern] : -1;
    }
};

// Largest number of bits of a symbol and its value; after fill() the buffer holds at least two of them.
constexpr int SYMBOL_BITS = 28;

int extended(BitReader& bits, int size) {
    int value = bits.take(size);
    return size && !(value >> (size - 1)) ? value - (1 << size) + 1 : value;
}

// Lookup by the first bits: a run of zeros and a coefficient with all its bits, or EOB or ZRL.
class ShortCodes {
  public:
    struct Entry {
        int16_t value;  // 0: EOB or, with a run, ZRL
        uint8_t run;
        uint8_t bits;  // bits of all of it; 0: look further
    };

    explicit ShortCodes(const Lookup& ac) {
        for (int pattern = 0; pattern < 1 << BITS; ++pattern) {
            int whole = pattern << (MAX_CODE_BITS - BITS), symbol = ac.symbols[whole], length = ac.lengths[whole];
            int size = symbol & 15, left = BITS - length - size;
            bool known = size || symbol == EOB || symbol == ZRL;
            if (!length || left < 0 || !known) continue;
            int value = pattern >> left & ((1 << size) - 1);
            if (size && !(value >> (size - 1))) value -= (1 << size) - 1;
            entries_[pattern] = {int16_t(value), uint8_t(symbol == ZRL ? ZRL_RUN : symbol >> 4), uint8_t(length + size)};
        }
    }

    const Entry& at(const BitReader& bits) const { return entries_[bits.peek(BITS)]; }

  private:
    static constexpr int BITS = 12;
    Entry entries_[1 << BITS] = {};
};

// Reads AC coefficients into a block of zeros; returns false for bits that are no block.
bool read_ac(BitReader& bits, const Lookup& ac, const ShortCodes& short_codes, int16_t* block) {
    bool after_zrl = false;
    for (int place = 1; place < BLOCK_VALUES;) {
        if (!bits.has(SYMBOL_BITS)) bits.fill();
        const ShortCodes::Entry& found = short_codes.at(bits);
        int run = found.run, value = found.value;
        bool zrl = run == ZRL_RUN, ends = !value && !run;
        if (found.bits) {
            bits.skip(found.bits);
        } else {
            int symbol = ac.read(bits);
            if (symbol < 0) return false;
            ends = symbol == EOB, zrl = symbol == ZRL;
            run = zrl ? ZRL_RUN : symbol >> 4;
            value = zrl ? 0 : extended(bits, symbol & 15);
        }
        // A coefficient must follow the zeros of a ZRL.
        if (ends) return !after_zrl;
        place += run;
        if (place >= BLOCK_VALUES) return false;
        if (!zrl) block[place++] = int16_t(value);
        after_zrl = zrl;
    }
    return true;
}

}  // namespace

extern "C" {

// Adds how often each symbol of the alphabet occurs to `frequencies`; returns whether the coefficients are those of 8-bit
// samples.
bool symbol_counts(const int16_t* coefficients, int64_t count, int64_t* frequencies, int) {
    return scan(coefficients, count, [&](int number, int) { ++frequencies[number]; });
}

// Writes `segment` and returns the number of bytes; codes and their lengths are those of the alphabet.
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

// Decodes into coefficients (count, BLOCK_VALUES) of zeros; returns false for anything that is not exactly so many blocks.
bool entropy_decode(const uint8_t* segment, int64_t bytes, int64_t count, const uint8_t* dc_symbols, const uint8_t* dc_lengths,
                    const uint8_t* ac_symbols, const uint8_t* ac_lengths, int16_t* coefficients, int) {
    BitReader bits(segment, bytes);
    Lookup dc{dc_symbols, dc_lengths}, ac{ac_symbols, ac_lengths};
    ShortCodes short_codes(ac);
    int previous = 0;
    for (int16_t* block = coefficients; block < coefficients + count * BLOCK_VALUES; block += BLOCK_VALUES) {
        bits.fill();
        int size = dc.read(bits);
        if (size < 0) return false;
        previous += extended(bits, size);
        if (previous < DC_MIN || previous > DC_MAX) return false;
        block[0] = int16_t(previous);
        if (!read_ac(bits, ac, short_codes, block) || bits.lost()) return false;
    }
    return bits.at_end();
}
}
