// GMC (docs/reference/bitstream.md, section 3): per block of 64 coefficients a head byte and a body of code words and fields.
//
// A field is a byte here: the sign in bit 0, the magnitude less 1 above it. Those of a group are taken together to as many bits
// as its class has, and back, by one instruction; so are the bytes of a group of class 7. The classes of both groups of a column
// are one number, A + 8 * B.
#pragma once

#include "coded_blocks.h"

namespace cdu {

namespace gmc {

// A code word, first bit lowest.
struct Word {
    uint16_t bits, length;
};

// The symbol of a code word, and the word's length.
struct Symbol {
    uint8_t value, length;
};

constexpr int CLASSES = 8, PAIRS = CLASSES * CLASSES;
// The column before the first one, as a context.
constexpr int FIRST = PAIRS;
// Kinds of B by the symbol of A: no B, for both are zero; A is zero; neither. And the row of a B that is not there.
constexpr int KINDS = 3, NO_B = 7;

constexpr bool is_coded(int number) { return number > 0 && number < GMC_RAW_CLASS; }

struct Tables {
    // To write: both classes of a column, by those before; masks, by class.
    Word classes[PAIRS + 1][PAIRS] = {}, masks[CLASSES][1 << GMC_GROUP_VALUES] = {};
    // To read: what the next bits begin with, by row; the row of A, and that of B by kind, follow from the classes before.
    uint8_t row_a[PAIRS + 1] = {}, row_b[KINDS][PAIRS + 1] = {};
    Symbol a[std::size(GMC_A_CODES)][1 << GMC_A_BITS] = {}, b[NO_B + 1][1 << GMC_B_BITS] = {};
    Symbol mask[CLASSES][1 << GMC_MASK_BITS] = {};
    // Masks by both classes: the bits of fields in bytes, and ones in groups of bytes.
    uint64_t fields[PAIRS] = {}, raw[PAIRS] = {};

    constexpr Tables() {
        for (int pair = 0; pair < PAIRS; ++pair)
            for (int number : {pair / CLASSES, pair % CLASSES}) {
                bool is_raw = number == GMC_RAW_CLASS;
                fields[pair] = fields[pair] << 32 | uint32_t(ONES) * (is_raw ? 0 : (1 << number) - 1);
                raw[pair] = raw[pair] << 32 | (is_raw ? UINT32_MAX : 0);
            }
        for (int before = 0; before <= PAIRS; ++before) {
            int a = before % CLASSES, b = before / CLASSES;
            bool first = before == FIRST;
            row_a[before] = first ? GMC_A_FIRST : a == 0 && b ? GMC_A_AFTER_ZERO : std::min(a, GMC_LAST_CLASS_CONTEXT);
            row_b[GMC_A_BOTH_ZERO][before] = NO_B;
            row_b[GMC_A_ZERO][before] = GMC_B_BESIDE_ZERO;
            row_b[KINDS - 1][before] = first ? GMC_B_FIRST : std::min(b, GMC_LAST_CLASS_CONTEXT);
            for (int pair = 0; pair < PAIRS; ++pair) classes[before][pair] = pair_word(before, pair % CLASSES, pair / CLASSES);
        }
        for (int row = 0; row < int(std::size(GMC_A_CODES)); ++row) fill(a[row], GMC_A_CODES[row], 0);
        for (int row = 0; row < int(std::size(GMC_B_CODES)); ++row) fill(b[row], GMC_B_CODES[row], 0);
        for (int number = 1; number < GMC_RAW_CLASS; ++number) {
            const auto& words = GMC_MASK_CODES[std::min(number, GMC_LAST_MASK_CLASS) - 1];
            for (int i = 0; i < int(std::size(words)); ++i) masks[number][i + 1] = Word(words[i][0], words[i][1]);
            fill(mask[number], words, 1);
        }
    }

    constexpr Word pair_word(int before, int a, int b) const {
        int symbol = a ? a + 1 : b ? GMC_A_ZERO : GMC_A_BOTH_ZERO;
        auto [bits, length] = GMC_A_CODES[row_a[before]][symbol];
        if (symbol == GMC_A_BOTH_ZERO) return Word(bits, length);
        auto [bits_b, length_b] = GMC_B_CODES[row_b[std::min(symbol, KINDS - 1)][before]][b];
        return Word(bits | bits_b << length, length + length_b);
    }

    // The argument `first` is the symbol of the first word.
    template <int SIZE, int WORDS>
    static constexpr void fill(Symbol (&table)[SIZE], const uint8_t (&words)[WORDS][2], int first) {
        for (int symbol = 0; symbol < WORDS; ++symbol)
            for (int rest = 0; rest < SIZE >> words[symbol][1]; ++rest)
                table[words[symbol][0] | rest << words[symbol][1]] = Symbol(symbol + first, words[symbol][1]);
    }
};

inline constexpr Tables TABLES;

// Writes bits one after the other; up to 8 bytes behind the end are overwritten.
class Writer {
   public:
    explicit Writer(uint8_t* start) : start(start), next(start) {}

    static constexpr int MOST = 56;

    // Appends the `count` bits of a number, at most MOST and none above them.
    void put(uint64_t bits, int count) {
        held |= bits << waiting;
        waiting += count;
        store(next, held);
        next += waiting >> 3;
        held >>= waiting & ~7;
        waiting &= 7;
    }

    int bytes() const { return int(next - start) + (waiting + 7) / 8; }

   private:
    uint8_t *start, *next;
    uint64_t held = 0;
    int waiting = 0;
};

// Reads the bits of a body, and zeros behind it. Loads up to 8 bytes behind those that were skipped.
class Reader {
   public:
    // Number of bits that next() has at least.
    static constexpr int MOST = 57;

    Reader() = default;
    Reader(const uint8_t* start, int bytes) : start(start), left(8 * bytes) {}

    uint64_t next() const {
        uint64_t bits = load<uint64_t>(start + place / 8) >> place % 8;
        // Clamps by sign bits: std::clamp would pass through vector registers.
        int none = left >> 31, all = (64 - left) >> 31, count = (left & ~(none | all)) | (all & 64);
#ifdef __BMI2__
        return _bzhi_u64(bits, count);
#else
        return count == 64 ? bits : bits & ~(~uint64_t(0) << count);
#endif
    }

    void skip(int count) { place += count, left -= count; }

   private:
    const uint8_t* start;
    unsigned place = 0;
    int left;
};

// Columns of a block: the fields, or the bytes of groups that have fields; the bits that are written; bytes of ones where
// coefficients are; the classes. DC counts as 0.
struct Block {
    alignas(64) uint64_t fields[BLOCK_SIDE], taken[BLOCK_SIDE], present[BLOCK_SIDE], pairs[BLOCK_SIDE];
};

// Fields, bytes of ones where they are, and bytes of groups that have those.
struct Read {
    alignas(64) uint64_t fields[BLOCK_SIDE], present[BLOCK_SIDE], values[BLOCK_SIDE];
};

// Groups and columns of a block.
typedef uint32_t Groups __attribute__((vector_size(BLOCK_VALUES)));
typedef int32_t Ints16 __attribute__((vector_size(BLOCK_VALUES)));
typedef uint64_t Columns __attribute__((vector_size(BLOCK_VALUES)));
typedef int8_t Whole __attribute__((vector_size(BLOCK_VALUES)));
typedef uint8_t WholeCodes __attribute__((vector_size(BLOCK_VALUES)));

}  // namespace gmc

struct Gmc {
    static constexpr int TOGETHER = 2;
    static constexpr int HEAD = 1, LONGEST = 1 + GMC_MAX_WRITTEN_BODY_BYTES, SLACK = 1 + GMC_MAX_BODY_BYTES;

    static uint8_t* pack(const int8_t* q, uint8_t* out) {
        using namespace gmc;
        Block block;
        fold(q, block);
        uint8_t before_body[sizeof(uint64_t) + ROOM], *body = before_body + sizeof(uint64_t);
        store(before_body, uint64_t(0));
        Writer to(body);
        int category = std::bit_width(unsigned(std::abs(q[0])));
        uint64_t dc = (q[0] < 0) | (std::abs(q[0]) - (1 << category >> 1)) << 1;
        Word word = TABLES.classes[FIRST][block.pairs[0]];
        to.put(dc | uint64_t(word.bits) << category, category + word.length);
        for (int u = 0; u < BLOCK_SIDE; ++u) {
            unsigned pair = unsigned(block.pairs[u]), mask = gathered(block.present[u] & ONES);
            Word mask_a = TABLES.masks[pair % CLASSES][mask % 16], mask_b = TABLES.masks[pair / CLASSES][mask / 16];
            word = u + 1 < BLOCK_SIDE ? TABLES.classes[pair][block.pairs[u + 1]] : Word();
            int masks = mask_a.length + mask_b.length, count = masks + word.length;
            uint64_t bits = mask_a.bits | mask_b.bits << mask_a.length | uint32_t(word.bits) << masks;
            uint64_t taken = block.taken[u], fields = extracted(block.fields[u], taken);
            int size = std::popcount(taken);
            if (count + size > Writer::MOST) {
                to.put(bits, count);
                bits = fields & 0xffff, count = 16;
                fields >>= 16, size -= 16;
                to.put(bits, count);
                bits = count = 0;
            }
            to.put(bits | fields << count, count + size);
        }
        return finish(body, to.bytes(), category, out);
    }

    static int length(const uint8_t* block) {
        return 1 + (*block < GMC_LONG_HEAD ? *block >> 3 : *block - GMC_LONG_HEAD + GMC_SHORT_BYTES + 1);
    }

    static void unpack(const uint8_t* const* packed, const uint8_t* end, int8_t (*q)[BLOCK_VALUES]) {
        using namespace gmc;
        // Each step of a block waits for the one before; steps of other blocks fill the time.
        Reader readers[TOGETHER];
        Read blocks[TOGETHER];
        int dc[TOGETHER];
        unsigned pairs[TOGETHER];
        uint8_t copies[TOGETHER][ROOM] = {};
        auto each = [](auto use) {
            for (int i = 0; i < TOGETHER; ++i) use(i);
        };
        each([&](int i) {
            int body = length(packed[i]) - 1;
            const uint8_t* from = packed[i] + 1;
            if (end - from < ROOM) from = static_cast<uint8_t*>(std::memcpy(copies[i], from, body));
            readers[i] = Reader(from, body);
        });
        each([&](int i) {
            Reader& from = readers[i];
            uint64_t bits = from.next();
            int category = *packed[i] % 8;
            if (*packed[i] >= GMC_LONG_HEAD) {
                category = std::min<int>(bits % (1 << GMC_CATEGORY_BITS), GMC_MAX_CATEGORY);
                bits >>= GMC_CATEGORY_BITS, from.skip(GMC_CATEGORY_BITS);
            }
            int top = 1 << category >> 1, magnitude = top | (bits >> 1 & (std::max(top, 1) - 1));
            dc[i] = std::clamp(bits & 1 ? -magnitude : magnitude, VALUE_MIN, VALUE_MAX);
            bits >>= category, from.skip(category);
            pairs[i] = read_classes(FIRST, bits, from);
        });
        for (int u = 0; u < BLOCK_SIDE; ++u)
            each([&](int i) {
                Reader& from = readers[i];
                unsigned pair = pairs[i];
                uint64_t bits = from.next();
                Symbol mask_a = TABLES.mask[pair % CLASSES][bits % (1 << GMC_MASK_BITS)];
                bits >>= mask_a.length;
                Symbol mask_b = TABLES.mask[pair / CLASSES][bits % (1 << GMC_MASK_BITS)];
                bits >>= mask_b.length;
                from.skip(mask_a.length + mask_b.length);
                if (u + 1 < BLOCK_SIDE) pairs[i] = read_classes(pair, bits, from);
                uint64_t present = deposited(mask_a.value | mask_b.value << GMC_GROUP_VALUES, ONES) * 0xff;
                uint64_t raw = TABLES.raw[pair], taken = (TABLES.fields[pair] & present) | raw;
                int size = std::popcount(taken);
                uint64_t fields = deposited(from.next(), taken);
                if (size > Reader::MOST) {
                    // The last byte that is taken lies beyond those bits.
                    int last = std::popcount(taken & UINT32_MAX);
                    from.skip(last);
                    fields = (fields & UINT32_MAX) | deposited(from.next(), taken >> 32) << 32;
                    from.skip(-last);
                }
                from.skip(size);
                blocks[i].fields[u] = fields;
                blocks[i].present[u] = present;
                blocks[i].values[u] = fields & raw;
            });
        each([&](int i) {
            unfold(blocks[i], q[i]);
            q[i][0] = int8_t(dc[i]);
        });
    }

   private:
    // Bytes of a body, and of the words that are loaded and stored behind it.
    static constexpr int ROOM = GMC_MAX_BODY_BYTES + 2 * sizeof(uint64_t);

    // Returns the classes of the column behind the one with classes `pair`, whose code words `bits` begin with.
    static unsigned read_classes(unsigned pair, uint64_t bits, gmc::Reader& from) {
        using namespace gmc;
        Symbol a = TABLES.a[TABLES.row_a[pair]][bits % (1 << GMC_A_BITS)];
        bits >>= a.length;
        Symbol b = TABLES.b[TABLES.row_b[std::min<int>(a.value, KINDS - 1)][pair]][bits % (1 << GMC_B_BITS)];
        from.skip(a.length + b.length);
        return std::max(a.value - 1, 0) + CLASSES * b.value;
    }

    static void fold(const int8_t* q, gmc::Block& block) {
        using namespace gmc;
        typedef float Numbers __attribute__((vector_size(BLOCK_VALUES)));
        // The exponent of a float is the number of bits of a whole number, but for this.
        constexpr uint32_t MANTISSA = 23, BIAS = 126;
        Whole x = load<Whole>(q);
        x[0] = 0;
        WholeCodes negative = std::bit_cast<WholeCodes>(x < 0), present = std::bit_cast<WholeCodes>(x != 0);
        WholeCodes less = (std::bit_cast<WholeCodes>(x) ^ negative) - negative - 1;
        Groups fields = std::bit_cast<Groups>(((less + less) | (negative & 1)) & present), there = std::bit_cast<Groups>(present);
        Groups all = fields | fields >> 16;
        all = ((all | all >> 8) & 0xff) | 1;
        Groups bits = (std::bit_cast<Groups>(__builtin_convertvector(std::bit_cast<Ints16>(all), Numbers)) >> MANTISSA) - BIAS;
        Groups raw = std::bit_cast<Groups>(bits >= uint32_t(GMC_RAW_CLASS));
        Groups classes = ((bits & ~raw) | (raw & GMC_RAW_CLASS)) & std::bit_cast<Groups>(there != 0);
        Groups ones = Groups{} + uint32_t(ONES);
        store(block.fields, (fields & ~raw) | (std::bit_cast<Groups>(x) & raw));
        store(block.taken, (((ones << classes) - ones) & there) | raw);
        store(block.present, present);
        Columns pairs = std::bit_cast<Columns>(classes);
        store(block.pairs, (pairs | pairs >> 29) & (PAIRS - 1));
    }

    static void unfold(const gmc::Read& block, int8_t* q) {
        using namespace gmc;
        WholeCodes fields = load<WholeCodes>(block.fields), sign = -(fields & 1);
        WholeCodes x = (((fields >> 1) + 1) ^ sign) - sign;
        store(q, (x & load<WholeCodes>(block.present)) | load<WholeCodes>(block.values));
    }

    // The head, and the body up to its last byte that is not zero; the category stands before the body if that is long. There
    // are 8 zeros before the body.
    static uint8_t* finish(uint8_t* body, int bytes, int category, uint8_t* out) {
        constexpr int STEP = sizeof(uint64_t);
        while (bytes > STEP && !load<uint64_t>(body + bytes - STEP)) bytes -= STEP;
        bytes = std::max(bytes - std::countl_zero(load<uint64_t>(body + bytes - STEP)) / 8, 0);
        if (bytes <= GMC_SHORT_BYTES && category < GMC_MAX_CATEGORY) {
            *out++ = uint8_t(bytes << 3 | category);
            std::memcpy(out, body, GMC_SHORT_BYTES);
            return out + bytes;
        }
        std::fill(body + bytes, body + std::max(bytes, GMC_SHORT_BYTES + 1), 0);
        uint64_t before = category;
        for (int i = 0; i < GMC_MAX_BODY_BYTES; i += sizeof before) {
            uint64_t word = load<uint64_t>(body + i);
            store(out + 1 + i, word << GMC_CATEGORY_BITS | before);
            before = word >> (64 - GMC_CATEGORY_BITS);
        }
        int size = bytes + (body[bytes - 1] >> (8 - GMC_CATEGORY_BITS) != 0);
        size = std::max(size, GMC_SHORT_BYTES + 1);
        *out = uint8_t(GMC_LONG_HEAD + size - GMC_SHORT_BYTES - 1);
        return out + 1 + size;
    }
};

}  // namespace cdu
