// Streams of bits, lowest first, of which several threads write or read parts.
#pragma once

#include <atomic>

#include "affine.h"

namespace cdu {

// Largest numbers of bits that one call reads and writes.
constexpr int MOST_READ = 56, MOST_WRITTEN = 32;

// Bits from number `first` on of a stream that is zeros; others write what stands before and behind.
class BitWriter {
  public:
    BitWriter(uint8_t* stream, int64_t first) : to_(stream + first / 8), left_(int(first % 8)), shared_(left_) {}

    // Appends `count` bits, up to MOST_WRITTEN; the bits above must be zeros.
    void put(uint64_t bits, int count) {
        held_ |= bits << left_;
        left_ += count;
        if (shared_ && left_ >= 8) flush();
        if (left_ < MOST_WRITTEN) return;
        store(to_, uint32_t(held_));
        to_ += MOST_WRITTEN / 8, held_ >>= MOST_WRITTEN, left_ -= MOST_WRITTEN;
    }

    // Eight codes, or the first `count` of them, the others being zeros.
    void put(Codes codes, int count, const CodePacker& packer) {
        uint64_t word = packer.together(codes);
        int bits = count * packer.bits;
        if (bits > MOST_WRITTEN) put(word & 0xffffffff, MOST_WRITTEN), word >>= MOST_WRITTEN, bits -= MOST_WRITTEN;
        put(word, bits);
    }

    void end() {
        while (left_ > 0) {
            shared_ = shared_ || left_ < 8;
            flush();
        }
    }

  private:
    void flush() {
        if (shared_)
            std::atomic_ref<uint8_t>(*to_).fetch_or(uint8_t(held_), std::memory_order_relaxed);
        else
            *to_ = uint8_t(held_);
        ++to_, held_ >>= 8, left_ -= 8, shared_ = false;
    }

    uint8_t* to_;
    uint64_t held_ = 0;
    int left_;
    bool shared_;
};

// Bits from number `first` on of a stream of `size` bytes.
class BitReader {
  public:
    BitReader(const uint8_t* stream, int64_t size, int64_t first) : stream_(stream), size_(size), bit_(first) {}

    // Reads the next `count` bits, up to MOST_READ.
    uint64_t get(int count) {
        uint64_t word = 0;
        int64_t at = bit_ / 8;
        if (at + 8 <= size_)
            word = load<uint64_t>(stream_ + at);
        else if (at < size_)
            std::memcpy(&word, stream_ + at, size_ - at);
        word = word >> bit_ % 8 & ((uint64_t(1) << count) - 1);
        bit_ += count;
        return word;
    }

    // Reads the next `count` codes, up to eight; zeros fill the other places.
    Codes get(int count, const CodePacker& packer) {
        int bits = count * packer.bits;
        if (bits <= MOST_READ) return packer.apart(get(bits));
        uint64_t low = get(32);
        return packer.apart(low | get(bits - 32) << 32);
    }

  private:
    const uint8_t* stream_;
    int64_t size_, bit_;
};

}  // namespace cdu
