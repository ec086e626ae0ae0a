/*
 * Driver of a unit behind its DMA engine (docs/user/dma.md): one ring of descriptors for each direction.
 *
 * CDU_HEADER is the header of the unit, which `cdu generate` writes beside this file; define it to include another unit's. The
 * five functions below belong to the platform.
 */
#ifndef CDU_DMA_DRIVER_H
#define CDU_DMA_DRIVER_H

#ifndef CDU_HEADER
#define CDU_HEADER "tiny.h"
#endif
#include CDU_HEADER

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a cache line of the processor: a record has a line to itself in rings that say nothing else. */
#ifndef CDU_DMA_LINE
#define CDU_DMA_LINE 64u
#endif

/* Reads of STATUS for which cdu_dma_open and cdu_dma_close wait for the engine to stop. */
#ifndef CDU_DMA_STOP_POLLS
#define CDU_DMA_STOP_POLLS 1000000u
#endif

uint32_t cdu_read(uint32_t address);
void cdu_write(uint32_t address, uint32_t value);
void cdu_wait_interrupt(void); /* returns when the interrupt line is high */

/* Makes the program's writes to these bytes visible to the engine, before any register write that follows. */
void cdu_memory_publish(const volatile void *memory, uint32_t bytes);

/* Makes the engine's writes to these bytes, up to now, visible to the program. */
void cdu_memory_fetch(const volatile void *memory, uint32_t bytes);

enum cdu_dma_result {
    CDU_DMA_OK,
    CDU_DMA_NO_UNIT,  /* no unit with an engine, another major version of its registers, or registers that keep nothing */
    CDU_DMA_BAD_RING, /* base, memory, address, log2 or line is not allowed for a ring */
    CDU_DMA_FULL,     /* take the record of an earlier job first */
    CDU_DMA_FAILED,   /* the record tells the errors of the job; later jobs are not affected */
    CDU_DMA_LOST,     /* the job has no record: memory refused it or the descriptor, the ring was stopped, the unit was reset */
    CDU_DMA_EMPTY,    /* no job is under way whose record could be taken */
    CDU_DMA_BUSY,     /* the engine did not stop within CDU_DMA_STOP_POLLS reads: it waits for an answer of memory */
    CDU_DMA_REFUSED,  /* the engine refused TAIL or the ring and stopped, ERRORS tells the reason: open the ring again */
    CDU_DMA_NOT_OPEN, /* open the ring first */
    CDU_DMA_NULL      /* a pointer is null */
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

/* Result of a job; the members are those of a completion record. */
struct cdu_dma_record {
    uint32_t job, tag, errors, unit_errors, cycles, bytes;
};

/* A ring of 2**log2 places. The program sets the first five members, all others are the driver's; a ring begins as zeros. */
struct cdu_dma_ring {
    uint32_t base;            /* CDU_DMA_COMPRESS or CDU_DMA_DECOMPRESS */
    volatile uint8_t *memory; /* CDU_DMA_RING_BYTES(log2, line) bytes, from a multiple of CDU_DMA_RING_ALIGNMENT(line) on */
    uint64_t address;         /* of that memory, as the engine sees it, with as many zeros; the ring ends at 2**40 at the latest */
    uint32_t log2;            /* 0 to CDU_DMA_RING_LOG2_MAX */
    uint32_t line;            /* bytes from a record to the next, a power of two from 32 to 4096: a cache line; 0: CDU_DMA_LINE */
    uint32_t given, taken;    /* jobs, and their records */
    uint32_t is_open;
};

/* Bytes from a record to the next; descriptors and records each begin at a multiple of the alignment. */
#define CDU_DMA_RING_LINE(line) ((uint32_t)(line) ? (uint32_t)(line) : CDU_DMA_LINE)
#define CDU_DMA_RING_ALIGNMENT(line) \
    (CDU_DMA_RING_LINE(line) > CDU_DMA_DESCRIPTOR_SIZE ? CDU_DMA_RING_LINE(line) : CDU_DMA_DESCRIPTOR_SIZE)
#define CDU_DMA_RING_PADDED(bytes, line) (((bytes) + CDU_DMA_RING_ALIGNMENT(line) - 1u) & ~(CDU_DMA_RING_ALIGNMENT(line) - 1u))

/* Bytes from the beginning of a ring to its first record, and of the whole ring; rings may follow each other. */
#define CDU_DMA_RING_RECORDS(log2, line) CDU_DMA_RING_PADDED(CDU_DMA_DESCRIPTOR_SIZE << (log2), line)
#define CDU_DMA_RING_BYTES(log2, line) \
    (CDU_DMA_RING_RECORDS(log2, line) + CDU_DMA_RING_PADDED(CDU_DMA_RING_LINE(line) << (log2), line))

/*
 * Stops the engine, in whatever state it is, and starts an empty ring. Jobs of an earlier ring that were not fetched are not run.
 * A call that fails leaves the ring as it was; CDU_DMA_BUSY leaves the engine finishing what it has fetched, so keep the memory
 * of its ring, and call again.
 */
enum cdu_dma_result cdu_dma_open(struct cdu_dma_ring *ring);

/* Gives a job to the engine; several may be under way. The tag comes back in its record. A call that fails writes nothing. */
enum cdu_dma_result cdu_dma_submit(struct cdu_dma_ring *ring, const struct cdu_dma_job *job, uint32_t tag);

/*
 * Waits for the end of the oldest job that was not taken yet, and takes it: with CDU_DMA_OK, CDU_DMA_FAILED and CDU_DMA_LOST,
 * which leaves *record as it was; the next call is for the next job. Other results leave the ring as it was, too. A closed ring
 * has the records of the jobs that were run; the others are lost.
 */
enum cdu_dma_result cdu_dma_take(struct cdu_dma_ring *ring, struct cdu_dma_record *record);

/*
 * Closes the ring and stops it: jobs that the engine has fetched come to their end, those behind them are not run. CDU_DMA_BUSY
 * says that fetched jobs have not ended yet. The ring is closed all the same: cdu_dma_submit answers CDU_DMA_NOT_OPEN, while
 * cdu_dma_take goes on. Keep the memory of ring, tensors and payloads, and call again until CDU_DMA_OK.
 */
enum cdu_dma_result cdu_dma_close(struct cdu_dma_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
