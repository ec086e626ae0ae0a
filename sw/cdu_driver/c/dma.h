/*
 * Driver of a unit behind its DMA engine (docs/user/dma.md): one ring of descriptors for each direction.
 *
 * tiny.h holds registers and records; `cdu generate --config tiny --set dma_bits=64` writes it. The four functions below belong
 * to the platform.
 */
#ifndef CDU_DMA_DRIVER_H
#define CDU_DMA_DRIVER_H

#include "tiny.h"

uint32_t cdu_read(uint32_t address);
void cdu_write(uint32_t address, uint32_t value);
void cdu_wait_interrupt(void);   /* returns when the interrupt line is high */
void cdu_memory_barrier(void);   /* what was written to memory is there for the engine, and what the engine wrote for us */

enum cdu_dma_result {
    CDU_DMA_OK,
    CDU_DMA_NO_UNIT,  /* no unit, or another version of its registers */
    CDU_DMA_BAD_RING, /* its memory does not begin at a multiple of CDU_DMA_DESCRIPTOR_SIZE */
    CDU_DMA_FULL,     /* take the record of an earlier job first */
    CDU_DMA_FAILED,   /* the record says what was wrong with the job; the next ones are not touched */
    CDU_DMA_LOST      /* no record could be written, or memory refused the descriptor */
};

/* A job; the members are those of a descriptor. Addresses are those that the engine sees. */
struct cdu_dma_job {
    uint8_t mode, value_format, coder, point, payload_crc, mx_coding;
    uint16_t quantizer;
    uint32_t seed;
    uint32_t n, c, h, w;
    uint64_t tensor, stride_n, stride_c, stride_h;
    uint64_t scales;
    uint64_t payload;
    uint32_t payload_bytes;
    const uint8_t *shifts; /* CDU_DMA_DESCRIPTOR_SHIFTS_SIZE bytes, or none */
};

/* What became of a job; the members are those of a completion record. */
struct cdu_dma_record {
    uint32_t job, tag, errors, unit_errors, cycles, bytes;
};

/* Bytes of memory of a ring of 2**log2 places: its descriptors, and a record for each; whole descriptors, so that rings may
 * follow each other. */
#define CDU_DMA_RING_BYTES(log2)                                                                                    \
    ((((CDU_DMA_DESCRIPTOR_SIZE + CDU_DMA_COMPLETION_SIZE) << (log2)) + CDU_DMA_DESCRIPTOR_SIZE - 1u)               \
     & ~(CDU_DMA_DESCRIPTOR_SIZE - 1u))

struct cdu_dma_ring {
    uint32_t base;            /* CDU_DMA_COMPRESS or CDU_DMA_DECOMPRESS */
    volatile uint8_t *memory; /* CDU_DMA_RING_BYTES(log2) bytes from a multiple of CDU_DMA_DESCRIPTOR_SIZE on */
    uint64_t address;         /* of that memory, as the engine sees it */
    uint32_t log2;
    uint32_t given, taken;    /* jobs, and their records; the driver counts */
};

/* Starts an empty ring, of which base, memory, address and log2 are set. */
enum cdu_dma_result cdu_dma_open(struct cdu_dma_ring *ring);

/* Gives a job to the engine; several may be under way. The tag comes back in its record. */
enum cdu_dma_result cdu_dma_submit(struct cdu_dma_ring *ring, const struct cdu_dma_job *job, uint32_t tag);

/* Waits for the end of the oldest job whose record was not taken yet, and takes it. */
enum cdu_dma_result cdu_dma_take(struct cdu_dma_ring *ring, struct cdu_dma_record *record);

/* Waits until what was given is done, and stops the ring. */
void cdu_dma_close(struct cdu_dma_ring *ring);

#endif
