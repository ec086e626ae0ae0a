/* Driver of a unit behind its DMA engine; see dma.h. */
#include "dma.h"

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

/* Where the record of a job lies in the memory of its ring: behind the descriptors. */
static uint32_t record_offset(const struct cdu_dma_ring *ring, uint32_t job)
{
    const uint32_t place = job & ((1u << ring->log2) - 1u);

    return (CDU_DMA_DESCRIPTOR_SIZE << ring->log2) + place * CDU_DMA_COMPLETION_SIZE;
}

static int is_done(const struct cdu_dma_ring *ring, uint32_t job)
{
    cdu_memory_barrier();
    return get(ring->memory + record_offset(ring, job) + CDU_DMA_COMPLETION_DONE) != 0;
}

enum cdu_dma_result cdu_dma_open(struct cdu_dma_ring *ring)
{
    if (cdu_read(CDU_ID) != CDU_ID_RESET
        || CDU_VERSION_MAJOR_GET(cdu_read(CDU_VERSION)) != CDU_VERSION_MAJOR_GET(CDU_VERSION_RESET))
        return CDU_DMA_NO_UNIT;
    if (ring->address % CDU_DMA_DESCRIPTOR_SIZE)
        return CDU_DMA_BAD_RING;
    ring->given = ring->taken = 0;
    ring_write(ring, CDU_DMA_RING_LOW, (uint32_t)ring->address);
    ring_write(ring, CDU_DMA_RING_HIGH, (uint32_t)(ring->address >> 32));
    ring_write(ring, CDU_DMA_RING_SIZE, ring->log2);
    ring_write(ring, CDU_DMA_TAIL, 0);
    ring_write(ring, CDU_DMA_ERRORS, CDU_DMA_ERRORS_DESCRIPTOR | CDU_DMA_ERRORS_COMPLETION);
    ring_write(ring, CDU_DMA_INTERRUPT_STATUS, CDU_DMA_INTERRUPT_STATUS_JOB_DONE | CDU_DMA_INTERRUPT_STATUS_ERROR);
    ring_write(ring, CDU_DMA_INTERRUPT_ENABLE, CDU_DMA_INTERRUPT_ENABLE_JOB_DONE | CDU_DMA_INTERRUPT_ENABLE_ERROR);
    ring_write(ring, CDU_DMA_CONTROL, CDU_DMA_CONTROL_ENABLE);
    return CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_submit(struct cdu_dma_ring *ring, const struct cdu_dma_job *job, uint32_t tag)
{
    const uint32_t record = record_offset(ring, ring->given);
    volatile uint8_t *descriptor;
    unsigned i;

    if (ring->given - ring->taken == 1u << ring->log2)
        return CDU_DMA_FULL;
    put(ring->memory + record + CDU_DMA_COMPLETION_DONE, 0, 4);
    descriptor = ring->memory + (ring->given & ((1u << ring->log2) - 1u)) * CDU_DMA_DESCRIPTOR_SIZE;
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
    put(descriptor + CDU_DMA_DESCRIPTOR_COMPLETION, ring->address + record, 8);
    for (i = 0; i < CDU_DMA_DESCRIPTOR_SHIFTS_SIZE; i++)
        descriptor[CDU_DMA_DESCRIPTOR_SHIFTS + i] = job->shifts ? job->shifts[i] : 0;
    cdu_memory_barrier();
    ring_write(ring, CDU_DMA_TAIL, ++ring->given);
    return CDU_DMA_OK;
}

enum cdu_dma_result cdu_dma_take(struct cdu_dma_ring *ring, struct cdu_dma_record *record)
{
    const volatile uint8_t *found = ring->memory + record_offset(ring, ring->taken);

    while (!is_done(ring, ring->taken)) {
        /* A record is in memory before HEAD passes its job: one that is not there then never comes. */
        if (ring_read(ring, CDU_DMA_HEAD) != ring->taken && !is_done(ring, ring->taken)) {
            ring_write(ring, CDU_DMA_ERRORS, ring_read(ring, CDU_DMA_ERRORS));
            ring->taken++;
            return CDU_DMA_LOST;
        }
        cdu_wait_interrupt();
        ring_write(ring, CDU_DMA_INTERRUPT_STATUS, CDU_DMA_INTERRUPT_STATUS_JOB_DONE | CDU_DMA_INTERRUPT_STATUS_ERROR);
    }
    record->job = get(found + CDU_DMA_COMPLETION_JOB);
    record->tag = get(found + CDU_DMA_COMPLETION_TAG);
    record->errors = get(found + CDU_DMA_COMPLETION_ERRORS);
    record->unit_errors = get(found + CDU_DMA_COMPLETION_UNIT_ERRORS);
    record->cycles = get(found + CDU_DMA_COMPLETION_CYCLES);
    record->bytes = get(found + CDU_DMA_COMPLETION_BYTES);
    ring->taken++;
    return record->errors ? CDU_DMA_FAILED : CDU_DMA_OK;
}

void cdu_dma_close(struct cdu_dma_ring *ring)
{
    ring_write(ring, CDU_DMA_CONTROL, 0);
    while (ring_read(ring, CDU_DMA_STATUS) & CDU_DMA_STATUS_BUSY)
        ;
}
