/* Driver of a unit behind its DMA engine; see dma.h. */
#include "dma.h"

/* The least and the greatest distance of records: a record, and a page. */
#define LINE_MIN CDU_DMA_COMPLETION_SIZE
#define LINE_MAX 4096u

/* Errors that cost a job its record; after all other errors the engine stops. */
#define LOSSES (CDU_DMA_ERRORS_DESCRIPTOR | CDU_DMA_ERRORS_COMPLETION)

static uint32_t ring_read(const struct cdu_dma_ring *ring, uint32_t offset)
{
    return cdu_read(ring->base + offset);
}

static void ring_write(const struct cdu_dma_ring *ring, uint32_t offset, uint32_t value)
{
    cdu_write(ring->base + offset, value);
}

/* A number of a descriptor, little endian. */
static void put(volatile uint8_t *place, uint64_t value, unsigned bytes)
{
    for (; bytes; bytes--, value >>= 8)
        *place++ = (uint8_t)value;
}

/* A number of a record. */
static uint32_t get(const volatile uint8_t *place)
{
    return (uint32_t)place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
}

/* Offsets of a job's descriptor and record in the memory of its ring. */
static uint32_t descriptor_offset(const struct cdu_dma_ring *ring, uint32_t job)
{
    return (job & ((1u << ring->log2) - 1u)) * CDU_DMA_DESCRIPTOR_SIZE;
}

static uint32_t record_offset(const struct cdu_dma_ring *ring, uint32_t job)
{
    const uint32_t place = job & ((1u << ring->log2) - 1u);

    return CDU_DMA_RING_RECORDS(ring->log2, ring->line) + place * CDU_DMA_RING_LINE(ring->line);
}

/* Returns whether the engine may work with the ring as it is described. */
static int is_ring(const struct cdu_dma_ring *ring)
{
    const uint32_t line = CDU_DMA_RING_LINE(ring->line), alignment = CDU_DMA_RING_ALIGNMENT(line);
    const uint64_t end = (uint64_t)1 << CDU_DMA_ADDRESS_BITS;

    if (ring->base != CDU_DMA_COMPRESS && ring->base != CDU_DMA_DECOMPRESS)
        return 0;
    if (ring->log2 > CDU_DMA_RING_LOG2_MAX || line < LINE_MIN || line > LINE_MAX || (line & (line - 1u)))
        return 0;
    if (!ring->memory || (uintptr_t)ring->memory % alignment || ring->address % alignment)
        return 0;
    return ring->address < end && CDU_DMA_RING_BYTES(ring->log2, line) <= end - ring->address;
}

/* Returns whether the engine's registers hold this ring. */
static int holds_ring(const struct cdu_dma_ring *ring)
{
    return ring_read(ring, CDU_DMA_RING_LOW) == (uint32_t)ring->address
           && ring_read(ring, CDU_DMA_RING_HIGH) == (uint32_t)(ring->address >> 32)
           && ring_read(ring, CDU_DMA_RING_SIZE) == ring->log2;
}

/* Stops fetching descriptors and waits for the fetched jobs; returns whether all of them have ended. */
static int stop(const struct cdu_dma_ring *ring)
{
    uint32_t polls;

    ring_write(ring, CDU_DMA_CONTROL, 0);
    for (polls = 0; polls < CDU_DMA_STOP_POLLS; polls++)
        if (!(ring_read(ring, CDU_DMA_STATUS) & CDU_DMA_STATUS_BUSY))
            return 1;
    return 0;
}

/* Returns whether the record of the oldest job is in memory: a record of an earlier lap or another ring has another number. */
static int is_there(const struct cdu_dma_ring *ring)
{
    const volatile uint8_t *record = ring->memory + record_offset(ring, ring->taken);

    cdu_memory_fetch(record, CDU_DMA_RING_LINE(ring->line));
    return get(record + CDU_DMA_COMPLETION_DONE) != 0 && get(record + CDU_DMA_COMPLETION_JOB) == ring->taken;
}

/* Returns OK if the engine may still write the record of the oldest job, otherwise the reason why not. */
static enum cdu_dma_result outlook(const struct cdu_dma_ring *ring)
{
    const int is_next = ring_read(ring, CDU_DMA_HEAD) == ring->taken && holds_ring(ring);

    if (is_next && ring_read(ring, CDU_DMA_STATUS) & CDU_DMA_STATUS_BUSY)
        return CDU_DMA_OK;
    if (!is_next || !(ring_read(ring, CDU_DMA_CONTROL) & CDU_DMA_CONTROL_ENABLE))
        return CDU_DMA_LOST;
    return ring_read(ring, CDU_DMA_ERRORS) & ~LOSSES ? CDU_DMA_REFUSED : CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_open(struct cdu_dma_ring *ring)
{
    if (!ring)
        return CDU_DMA_NULL;
    if (!is_ring(ring))
        return CDU_DMA_BAD_RING;
    if (cdu_read(CDU_ID) != CDU_ID_RESET
        || CDU_VERSION_MAJOR_GET(cdu_read(CDU_VERSION)) != CDU_VERSION_MAJOR_GET(CDU_VERSION_RESET))
        return CDU_DMA_NO_UNIT;
    if (!stop(ring))
        return CDU_DMA_BUSY;
    ring_write(ring, CDU_DMA_RING_LOW, (uint32_t)ring->address);
    ring_write(ring, CDU_DMA_RING_HIGH, (uint32_t)(ring->address >> 32));
    ring_write(ring, CDU_DMA_RING_SIZE, ring->log2);
    ring_write(ring, CDU_DMA_TAIL, 0);
    if (!holds_ring(ring) || ring_read(ring, CDU_DMA_TAIL) || ring_read(ring, CDU_DMA_HEAD))
        return CDU_DMA_NO_UNIT;
    ring_write(ring, CDU_DMA_ERRORS, CDU_DMA_ERRORS_ALL);
    ring_write(ring, CDU_DMA_INTERRUPT_STATUS, CDU_DMA_INTERRUPT_STATUS_ALL);
    ring_write(ring, CDU_DMA_INTERRUPT_ENABLE, CDU_DMA_INTERRUPT_ENABLE_ALL);
    ring_write(ring, CDU_DMA_CONTROL, CDU_DMA_CONTROL_ENABLE);
    ring->given = ring->taken = 0;
    ring->is_open = 1;
    return CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_submit(struct cdu_dma_ring *ring, const struct cdu_dma_job *job, uint32_t tag)
{
    volatile uint8_t *descriptor, *record;
    unsigned i;

    if (!ring || !job)
        return CDU_DMA_NULL;
    if (!ring->is_open)
        return CDU_DMA_NOT_OPEN;
    if (ring->given - ring->taken >= 1u << ring->log2)
        return CDU_DMA_FULL;
    descriptor = ring->memory + descriptor_offset(ring, ring->given);
    record = ring->memory + record_offset(ring, ring->given);
    put(record + CDU_DMA_COMPLETION_DONE, 0, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_MODE, job->mode, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_VALUE_FORMAT, job->value_format, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_CODER, job->coder, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_POINT, job->point, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_TAG, tag, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_N, job->n, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_C, job->c, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_H, job->h, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_W, job->w, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_TENSOR, job->tensor, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_STRIDE_N, job->stride_n, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_STRIDE_C, job->stride_c, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_STRIDE_H, job->stride_h, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_SCALES, job->scales, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_PAYLOAD, job->payload, 8);
    put(descriptor + CDU_DMA_DESCRIPTOR_PAYLOAD_BYTES, job->payload_bytes, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_PAYLOAD_CRC, job->payload_crc, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_MX_CODING, job->mx_coding, 1);
    put(descriptor + CDU_DMA_DESCRIPTOR_QUANTIZER, job->quantizer, 2);
    put(descriptor + CDU_DMA_DESCRIPTOR_SEED, job->seed, 4);
    put(descriptor + CDU_DMA_DESCRIPTOR_COMPLETION, ring->address + record_offset(ring, ring->given), 8);
    for (i = 0; i < CDU_DMA_DESCRIPTOR_SHIFTS_SIZE; i++)
        descriptor[CDU_DMA_DESCRIPTOR_SHIFTS + i] = job->shifts ? job->shifts[i] : 0;
    cdu_memory_publish(descriptor, CDU_DMA_DESCRIPTOR_SIZE);
    cdu_memory_publish(record, CDU_DMA_RING_LINE(ring->line));
    ring_write(ring, CDU_DMA_TAIL, ++ring->given);
    return CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_take(struct cdu_dma_ring *ring, struct cdu_dma_record *record)
{
    const volatile uint8_t *found;

    if (!ring || !record)
        return CDU_DMA_NULL;
    if (ring->given == ring->taken)
        return CDU_DMA_EMPTY;
    while (!is_there(ring)) {
        const enum cdu_dma_result result = outlook(ring);

        /* A record is in memory before HEAD passes its job: a record that is missing by then never comes. */
        if (result == CDU_DMA_LOST && !is_there(ring)) {
            ring_write(ring, CDU_DMA_ERRORS, LOSSES);
            ring->taken++;
            return CDU_DMA_LOST;
        }
        if (result == CDU_DMA_REFUSED)
            return CDU_DMA_REFUSED;
        if (result == CDU_DMA_OK) {
            cdu_wait_interrupt();
            ring_write(ring, CDU_DMA_INTERRUPT_STATUS, CDU_DMA_INTERRUPT_STATUS_ALL);
        }
    }
    found = ring->memory + record_offset(ring, ring->taken);
    cdu_memory_fetch(found, CDU_DMA_RING_LINE(ring->line)); /* bytes that were read with `done` may be older than `done` */
    record->job = ring->taken;
    record->tag = get(found + CDU_DMA_COMPLETION_TAG);
    record->errors = get(found + CDU_DMA_COMPLETION_ERRORS);
    record->unit_errors = get(found + CDU_DMA_COMPLETION_UNIT_ERRORS);
    record->cycles = get(found + CDU_DMA_COMPLETION_CYCLES);
    record->bytes = get(found + CDU_DMA_COMPLETION_BYTES);
    ring->taken++;
    return record->errors ? CDU_DMA_FAILED : CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_close(struct cdu_dma_ring *ring)
{
    if (!ring)
        return CDU_DMA_NULL;
    if (!is_ring(ring))
        return CDU_DMA_BAD_RING;
    ring->is_open = 0;
    if (!stop(ring))
        return CDU_DMA_BUSY;
    ring_write(ring, CDU_DMA_INTERRUPT_ENABLE, 0);
    return CDU_DMA_OK;
}
