// Functions of zlib that Verilator's FST writer calls; they make a zlib stream of stored blocks. The writer stores the input
// itself when the result is no smaller; value changes, which are the bulk of a waveform, go through LZ4.

#ifndef CDU_VERIF_ZLIB_H
#define CDU_VERIF_ZLIB_H

#include <cstdint>
#include <cstring>

typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef unsigned long uLongf;
#define Z_OK 0
#define Z_BUF_ERROR (-5)

inline uLong compressBound(uLong size) { return size + 5 * (size / 65535 + 1) + 6; }

inline int compress2(Bytef* to, uLongf* capacity, const Bytef* from, uLong size, int) {
    if (*capacity < compressBound(size)) return Z_BUF_ERROR;
    Bytef* out = to;
    *out++ = 0x78;
    *out++ = 0x01;
    uLong done = 0;
    do {
        const uLong part = size - done < 65535 ? size - done : 65535;
        *out++ = done + part == size;
        for (const uLong field : {part, part ^ 65535}) {
            *out++ = field & 255;
            *out++ = field >> 8;
        }
        if (part) std::memcpy(out, from + done, part);
        out += part;
        done += part;
    } while (done < size);
    uint32_t low = 1, high = 0;  // Adler-32
    for (uLong i = 0; i < size; ++i) {
        low = (low + from[i]) % 65521;
        high = (high + low) % 65521;
    }
    for (int shift : {24, 16, 8, 0}) *out++ = ((high << 16 | low) >> shift) & 255;
    *capacity = out - to;
    return Z_OK;
}

#endif
