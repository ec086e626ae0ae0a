/*
 * Runs tasks that lie in memory through the delivered driver. Each: a tensor is compressed, its payload is damaged and
 * decompressed, which has to fail, and decompressed as it is. Everything waits for the interrupt.
 */
#include "dma.h"
#include "tasks.h"

#include <stddef.h>

#define LOG2 1

volatile uint32_t interrupts; /* the handler counts */
static uint8_t memory[2][CDU_DMA_RING_BYTES(LOG2, 0)] __attribute__((aligned(CDU_DMA_DESCRIPTOR_SIZE)));

/* The compiler may call memset or memcpy, and there is no library. */
void *memset(void *place, int value, size_t bytes)
{
    uint8_t *next = place;

    while (bytes--)
        *next++ = (uint8_t)value;
    return place;
}

uint32_t cdu_read(uint32_t address)
{
    return *(volatile uint32_t *)(REGISTERS + address);
}

void cdu_write(uint32_t address, uint32_t value)
{
    *(volatile uint32_t *)(REGISTERS + address) = value;
}

/* Order of accesses is enough: there is no cache between the processor and the memory that the engine sees. */
void cdu_memory_publish(const volatile void *place, uint32_t bytes)
{
    (void)place, (void)bytes;
    __asm__ volatile("fence" ::: "memory");
}

void cdu_memory_fetch(const volatile void *place, uint32_t bytes)
{
    (void)place, (void)bytes;
    __asm__ volatile("fence" ::: "memory");
}

/* The handler closes the mask of VexRiscv's interrupt lines (CSR 0xbc0), which is opened here. */
void cdu_wait_interrupt(void)
{
    const uint32_t before = interrupts;

    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrw 0xbc0, %0\n.option pop" ::"r"(1) : "memory");
    while (interrupts == before)
        ;
}

static enum cdu_dma_result run(struct cdu_dma_ring *ring, const struct cdu_dma_job *job, struct cdu_dma_record *record)
{
    static uint32_t tag;
    const enum cdu_dma_result given = cdu_dma_submit(ring, job, tag++);

    return given ? given : cdu_dma_take(ring, record);
}

static void work(struct cdu_dma_ring *compress, struct cdu_dma_ring *decompress, struct task *task)
{
    struct cdu_dma_record record = {0, 0, 0, 0, 0, 0};
    struct cdu_dma_job job = {
        .mode = (uint8_t)task->mode,
        .value_format = (uint8_t)task->value_format,
        .coder = (uint8_t)task->coder,
        .quantizer = (uint16_t)task->quantizer,
        .seed = task->seed,
        .mx_coding = (uint8_t)task->mx_coding,
        .n = task->n,
        .c = task->c,
        .h = task->h,
        .w = task->w,
        .tensor = task->tensor,
        .stride_n = task->stride_n,
        .stride_c = task->stride_c,
        .stride_h = task->stride_h,
        .scales = task->multipliers,
        .payload = task->payload,
        .payload_bytes = task->room,
        .shifts = (const uint8_t *)task->shifts,
    };

    task->compressed = run(compress, &job, &record) == CDU_DMA_OK;
    task->payload_bytes = record.bytes;
    task->compress_cycles = record.cycles;
    job.point = (uint8_t)task->point;
    job.tensor = task->restored;
    job.scales = task->reciprocals;
    job.payload_bytes = task->payload_bytes - 1; /* the last byte is missing */
    task->refused = run(decompress, &job, &record) == CDU_DMA_FAILED;
    task->errors = record.errors;
    task->unit_errors = record.unit_errors;
    job.payload_bytes = task->payload_bytes;
    task->decompressed = run(decompress, &job, &record) == CDU_DMA_OK;
    task->decompress_cycles = record.cycles;
    task->interrupts = interrupts;
}

/* Returns 0 when all tasks were run; their memory holds the results. */
int main(void)
{
    struct cdu_dma_ring compress = {
        .base = CDU_DMA_COMPRESS, .memory = memory[0], .address = (uintptr_t)memory[0], .log2 = LOG2};
    struct cdu_dma_ring decompress = {
        .base = CDU_DMA_DECOMPRESS, .memory = memory[1], .address = (uintptr_t)memory[1], .log2 = LOG2};
    struct task *task;

    if (cdu_dma_open(&compress) != CDU_DMA_OK || cdu_dma_open(&decompress) != CDU_DMA_OK)
        return 1;
    for (task = (struct task *)TASKS; task->mode; task++)
        work(&compress, &decompress, task);
    return cdu_dma_close(&compress) != CDU_DMA_OK || cdu_dma_close(&decompress) != CDU_DMA_OK;
}
