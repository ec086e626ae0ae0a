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
    uint16_t bits : 12, length : 4;
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

    constexpr Tables() {
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

    // `first` is the symbol of the first word.
    template <int SIZE, int WORDS>
    static constexpr void fill(Symbol (&table)[SIZE], const uint8_t (&words)[WORDS][2], int first) {
        for (int symbol = 0; symbol < WORDS; ++symbol)
            for (int rest = 0; rest < SIZE >> words[symbol][1]; ++rest)
                table[words[symbol][0] | rest << words[symbol][1]] = Symbol(symbol + first, words[symbol][1]);
    }
};

inline constexpr Tables TABLES;

// Bits one after the other; what is written ends with up to 8 bytes that do not count.
class Writer {
   public:
    explicit Writer(uint8_t* start) : start(start), next(start) {}

    // The `count` bits of a number, at most 56 and none above them.
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

// The fields of a block, bytes of ones where they are, and the bytes of the coefficients; DC counts as 0.
struct Block {
    alignas(64) uint64_t fields[BLOCK_SIDE], present[BLOCK_SIDE], values[BLOCK_SIDE];
};

typedef int8_t Whole __attribute__((vector_size(BLOCK_VALUES)));
typedef uint8_t WholeCodes __attribute__((vector_size(BLOCK_VALUES)));

// Bits of the bytes of a group, of those that are there, that its fields have.
constexpr uint32_t FIELD_BITS[CLASSES] = {0,
                                          0x01 * uint32_t(ONES), 0x03 * uint32_t(ONES), 0x07 * uint32_t(ONES),
                                          0x0f * uint32_t(ONES), 0x1f * uint32_t(ONES), 0x3f * uint32_t(ONES),
                                          0xff * uint32_t(ONES)};

inline uint32_t field_bits(int number, uint32_t present) {
    return FIELD_BITS[number] & (number == GMC_RAW_CLASS ? UINT32_MAX : present);
}

}  // namespace gmc

struct Gmc {
    static constexpr int HEAD = 1, LONGEST = 1 + GMC_MAX_WRITTEN_BODY_BYTES, SLACK = 1 + GMC_MAX_BODY_BYTES;

    static uint8_t* pack(const int8_t* q, uint8_t* out) {
        using namespace gmc;
        Block block;
        fold(q, block);
        int pairs[BLOCK_SIDE];
        for (int u = 0; u < BLOCK_SIDE; ++u) {
            int a = class_of(uint32_t(block.fields[u]), uint32_t(block.present[u]));
            int b = class_of(block.fields[u] >> 32, block.present[u] >> 32);
            pairs[u] = a + CLASSES * b;
        }
        int category = std::bit_width(unsigned(std::abs(q[0])));
        uint8_t body[ROOM];
        Writer to(body);
        to.put((q[0] < 0) | (std::abs(q[0]) - (1 << category >> 1)) << 1, category);
        Word word = TABLES.classes[FIRST][pairs[0]];
        to.put(word.bits, word.length);
        for (int u = 0; u < BLOCK_SIDE; ++u) {
            int a = pairs[u] % CLASSES, b = pairs[u] / CLASSES;
            unsigned mask = gathered(block.present[u] & ONES);
            Word mask_a = TABLES.masks[a][mask % 16], mask_b = TABLES.masks[b][mask / 16];
            word = u + 1 < BLOCK_SIDE ? TABLES.classes[pairs[u]][pairs[u + 1]] : Word();
            int masks = mask_a.length + mask_b.length;
            to.put(mask_a.bits | mask_b.bits << mask_a.length | uint32_t(word.bits) << masks, masks + word.length);
            put_fields(a, uint32_t(block.fields[u]), uint32_t(block.present[u]), uint32_t(block.values[u]), to);
            put_fields(b, block.fields[u] >> 32, block.present[u] >> 32, block.values[u] >> 32, to);
        }
        return finish(body, to.bytes(), category, out);
    }

    static int length(const uint8_t* block) {
        return 1 + (*block < GMC_LONG_HEAD ? *block >> 3 : *block - GMC_LONG_HEAD + GMC_SHORT_BYTES + 1);
    }

    static void unpack(const uint8_t* packed, int length, int8_t* q) {
        using namespace gmc;
        uint8_t body[ROOM] = {};
        std::memcpy(body, packed + 1, length - 1);
        int place = 0;
        auto next = [&] { return load<uint64_t>(body + place / 8) >> place % 8; };
        int category = *packed % 8;
        if (*packed >= GMC_LONG_HEAD) {
            category = std::min(*body % (1 << GMC_CATEGORY_BITS), GMC_MAX_CATEGORY);
            place = GMC_CATEGORY_BITS;
        }
        uint64_t bits = next();
        int top = 1 << category >> 1, magnitude = top | (bits >> 1 & (std::max(top, 1) - 1));
        int dc = std::clamp(bits & 1 ? -magnitude : magnitude, VALUE_MIN, VALUE_MAX);
        place += category;
        int pair = FIRST;
        auto read_classes = [&] {
            Symbol a = TABLES.a[TABLES.row_a[pair]][bits % (1 << GMC_A_BITS)];
            bits >>= a.length;
            Symbol b = TABLES.b[TABLES.row_b[std::min<int>(a.value, KINDS - 1)][pair]][bits % (1 << GMC_B_BITS)];
            bits >>= b.length;
            place += a.length + b.length;
            return std::max(a.value - 1, 0) + CLASSES * b.value;
        };
        bits = next();
        pair = read_classes();
        Block block;
        for (int u = 0; u < BLOCK_SIDE; ++u) {
            int a = pair % CLASSES, b = pair / CLASSES;
            bits = next();
            Symbol mask_a = TABLES.mask[a][bits % (1 << GMC_MASK_BITS)];
            bits >>= mask_a.length;
            Symbol mask_b = TABLES.mask[b][bits % (1 << GMC_MASK_BITS)];
            bits >>= mask_b.length;
            place += mask_a.length + mask_b.length;
            if (u + 1 < BLOCK_SIDE) pair = read_classes();
            uint64_t present = deposited(mask_a.value | mask_b.value << GMC_GROUP_VALUES, ONES) * 0xff;
            uint64_t taken_a = field_bits(a, uint32_t(present)), taken_b = field_bits(b, present >> 32);
            uint64_t fields = deposited(bits, taken_a);
            place += std::popcount(taken_a);
            fields |= deposited(next(), taken_b) << 32;
            place += std::popcount(taken_b);
            uint64_t raw = (a == GMC_RAW_CLASS ? UINT32_MAX : 0) | uint64_t(b == GMC_RAW_CLASS ? UINT32_MAX : 0) << 32;
            block.fields[u] = fields;
            block.present[u] = present;
            block.values[u] = fields & raw;
        }
        unfold(block, q);
        q[0] = int8_t(dc);
    }

   private:
    // Bytes of a body, and of the words that are loaded and stored behind it.
    static constexpr int ROOM = GMC_MAX_BODY_BYTES + 2 * sizeof(uint64_t);

    static void fold(const int8_t* q, gmc::Block& block) {
        using namespace gmc;
        Whole x = load<Whole>(q);
        x[0] = 0;
        WholeCodes negative = std::bit_cast<WholeCodes>(x < 0), present = std::bit_cast<WholeCodes>(x != 0);
        WholeCodes less = (std::bit_cast<WholeCodes>(x) ^ negative) - negative - 1;
        store(block.fields, ((less + less) | (negative & 1)) & present);
        store(block.present, present);
        store(block.values, x);
    }

    static void unfold(const gmc::Block& block, int8_t* q) {
        using namespace gmc;
        WholeCodes fields = load<WholeCodes>(block.fields), sign = -(fields & 1);
        WholeCodes x = (((fields >> 1) + 1) ^ sign) - sign;
        store(q, (x & load<WholeCodes>(block.present)) | load<WholeCodes>(block.values));
    }

    // Returns the class of four fields.
    static int class_of(uint32_t fields, uint32_t present) {
        fields |= fields >> 16;
        fields |= fields >> 8;
        return present ? std::min<int>(std::bit_width((fields & 0xff) | 1), GMC_RAW_CLASS) : 0;
    }

    static void put_fields(int number, uint32_t fields, uint32_t present, uint32_t values, gmc::Writer& to) {
        uint64_t taken = gmc::field_bits(number, present);
        to.put(extracted(number == GMC_RAW_CLASS ? values : fields, taken), std::popcount(taken));
    }

    // The head, and the body up to its last byte that is not zero; the category stands before the body if that is long.
    static uint8_t* finish(const uint8_t* body, int bytes, int category, uint8_t* out) {
        while (bytes && !body[bytes - 1]) --bytes;
        if (bytes <= GMC_SHORT_BYTES && category < GMC_MAX_CATEGORY) {
            *out++ = uint8_t(bytes << 3 | category);
            std::memcpy(out, body, GMC_SHORT_BYTES);
            return out + bytes;
        }
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
