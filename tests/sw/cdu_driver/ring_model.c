/*
 * A model of what dma.c works with, and programs that use and misuse it: an engine as docs/user/dma.md describes it, and memory
 * behind a write-back cache that is not coherent with it.
 *
 * `traffic SEED CACHE_LINE RING_LINE LOG2 FIRST`: random jobs, records, lost records, restarts; CACHE_LINE 0 is a coherent machine,
 * FIRST the number of the first job. `misuse`: every call as it should not be made. The program ends with 1 and a sentence on the
 * first fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dma.h"

#define SIZE 8192u
#define PAGE 4096u
#define BASE CDU_DMA_DECOMPRESS
#define ADDRESS ((uint64_t)0x12 << 32 | 0x34000000u)
#define HALTS (CDU_DMA_ERRORS_TAIL | CDU_DMA_ERRORS_RING | CDU_DMA_ERRORS_OWNED)
#define CHECK(condition, text) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s\n", __LINE__, text); \
            exit(1); \
        } \
    } while (0)

/* Memory as the processor sees it, as it was when a line was last filled or written back, and as the engine sees it. */
static _Alignas(PAGE) uint8_t seen[SIZE];
static uint8_t filled[SIZE], memory[SIZE];
static uint32_t cache_line, state;

/* The engine: its registers, and the job under way. */
static struct {
    uint32_t id, control, errors, status, enable, low, high, size, tail, head, writes;
    uint32_t under_way, word, words[8];
    uint64_t completion;
    int hangs, absent, loses;
} engine;

static uint32_t draw(uint32_t bound)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
}

/* Returns the errors of a job with a tag: every fourth job has none. */
static uint32_t errors_of(uint32_t tag)
{
    return tag % 4u ? 0 : tag | 1u;
}

/* A word as the engine reaches it. */
static uint8_t *reach(uint64_t address)
{
    CHECK(address >= ADDRESS && address - ADDRESS <= SIZE - 4u, "the engine leaves its memory");
    return &(cache_line ? memory : seen)[address - ADDRESS];
}

static void store(uint64_t address, uint32_t word)
{
    memcpy(reach(address), &word, 4);
}

static uint32_t load(uint64_t address)
{
    uint32_t word;

    memcpy(&word, reach(address), 4);
    return word;
}

static void interrupt(uint32_t bits, uint32_t errors)
{
    engine.status |= bits;
    engine.errors |= errors;
}

/* The engine fetches a descriptor, or writes a word of a record: the last one is `done`. */
static void advance_engine(void)
{
    const uint64_t ring = (uint64_t)engine.high << 32 | engine.low;
    uint64_t place;
    uint32_t tag;

    if (engine.hangs)
        return;
    if (!engine.under_way) {
        if (!(engine.control & CDU_DMA_CONTROL_ENABLE)) {
            engine.head = 0;
            return;
        }
        if (engine.head == engine.tail || engine.errors & HALTS)
            return;
        if (engine.tail - engine.head > 1u << engine.size) {
            interrupt(CDU_DMA_INTERRUPT_STATUS_ERROR, CDU_DMA_ERRORS_TAIL);
            return;
        }
        place = ring + (engine.head & ((1u << engine.size) - 1u)) * CDU_DMA_DESCRIPTOR_SIZE;
        tag = load(place + CDU_DMA_DESCRIPTOR_TAG);
        engine.completion = load(place + CDU_DMA_DESCRIPTOR_COMPLETION)
                            | (uint64_t)load(place + CDU_DMA_DESCRIPTOR_COMPLETION + 4) << 32;
        engine.under_way = 1;
        engine.word = 0;
        memset(engine.words, 0, sizeof engine.words);
        engine.words[CDU_DMA_COMPLETION_JOB / 4] = engine.head;
        engine.words[CDU_DMA_COMPLETION_TAG / 4] = tag;
        engine.words[CDU_DMA_COMPLETION_ERRORS / 4] = errors_of(tag);
        engine.words[CDU_DMA_COMPLETION_UNIT_ERRORS / 4] = ~tag;
        engine.words[CDU_DMA_COMPLETION_CYCLES / 4] = tag + 1;
        engine.words[CDU_DMA_COMPLETION_BYTES / 4] = tag * 3;
        engine.words[CDU_DMA_COMPLETION_DONE / 4] = 1;
        return;
    }
    if (engine.loses && engine.words[CDU_DMA_COMPLETION_TAG / 4] % 8u == 7u) {
        interrupt(CDU_DMA_INTERRUPT_STATUS_ERROR, CDU_DMA_ERRORS_COMPLETION);
        engine.word = 8;
    } else {
        store(engine.completion + 4u * engine.word, engine.words[engine.word]);
        engine.word++;
    }
    if (engine.word == 8) {
        engine.under_way = 0;
        engine.head++;
        interrupt(CDU_DMA_INTERRUPT_STATUS_JOB_DONE, 0);
    }
}

static int is_dirty(uint32_t begin)
{
    return memcmp(seen + begin, filled + begin, cache_line) != 0;
}

/* The cache writes a line back, or drops one that was not written and reads it again. */
static void advance_cache(void)
{
    const uint32_t begin = draw(SIZE / cache_line) * cache_line;

    if (is_dirty(begin))
        memcpy(memory + begin, seen + begin, cache_line);
    else
        memcpy(seen + begin, memory + begin, cache_line);
    memcpy(filled + begin, seen + begin, cache_line);
}

static void step(void)
{
    uint32_t turns;

    for (turns = draw(4); turns; turns--)
        advance_engine();
    for (turns = cache_line ? draw(200) : 0; turns; turns--)
        advance_cache();
}

uint32_t cdu_read(uint32_t address)
{
    step();
    if (address == CDU_ID)
        return engine.id;
    if (address == CDU_VERSION)
        return CDU_VERSION_RESET;
    if (engine.absent)
        return 0;
    switch (address - BASE) {
    case CDU_DMA_CONTROL:
        return engine.control;
    case CDU_DMA_STATUS:
        return engine.under_way || engine.hangs;
    case CDU_DMA_ERRORS:
        return engine.errors;
    case CDU_DMA_INTERRUPT_STATUS:
        return engine.status;
    case CDU_DMA_INTERRUPT_ENABLE:
        return engine.enable;
    case CDU_DMA_RING_LOW:
        return engine.low;
    case CDU_DMA_RING_HIGH:
        return engine.high;
    case CDU_DMA_RING_SIZE:
        return engine.size;
    case CDU_DMA_TAIL:
        return engine.tail;
    case CDU_DMA_HEAD:
        return engine.head;
    default:
        CHECK(0, "a register is read that the driver has nothing to do with");
        return 0;
    }
}

/* A register that says where the ring is: kept where it is wrong or the engine uses it. */
static void move_ring(uint32_t *which, uint32_t value, int is_taken)
{
    if (engine.control || engine.under_way || engine.hangs)
        interrupt(CDU_DMA_INTERRUPT_STATUS_ERROR, CDU_DMA_ERRORS_OWNED);
    else if (!is_taken)
        interrupt(CDU_DMA_INTERRUPT_STATUS_ERROR, CDU_DMA_ERRORS_RING);
    else
        *which = value;
}

void cdu_write(uint32_t address, uint32_t value)
{
    step();
    engine.writes++;
    if (engine.absent)
        return;
    switch (address - BASE) {
    case CDU_DMA_CONTROL:
        engine.control = value & CDU_DMA_CONTROL_ENABLE;
        break;
    case CDU_DMA_ERRORS:
        engine.errors &= ~value;
        break;
    case CDU_DMA_INTERRUPT_STATUS:
        engine.status &= ~value;
        break;
    case CDU_DMA_INTERRUPT_ENABLE:
        engine.enable = value;
        break;
    case CDU_DMA_RING_LOW:
        move_ring(&engine.low, value, value % CDU_DMA_DESCRIPTOR_SIZE == 0);
        break;
    case CDU_DMA_RING_HIGH:
        move_ring(&engine.high, value, value >> 8 == 0);
        break;
    case CDU_DMA_RING_SIZE:
        move_ring(&engine.size, value, value <= CDU_DMA_RING_LOG2_MAX);
        break;
    case CDU_DMA_TAIL:
        engine.tail = value;
        break;
    default:
        CHECK(0, "a register is written that the driver has nothing to do with");
    }
    step();
}

void cdu_wait_interrupt(void)
{
    unsigned turns;

    for (turns = 0; !(engine.status & engine.enable); turns++) {
        CHECK(turns < 10000, "the driver waits for an interrupt that never comes");
        step();
    }
}

void cdu_memory_publish(const volatile void *place, uint32_t bytes)
{
    uint32_t begin = (uint32_t)((const volatile uint8_t *)place - seen);
    const uint32_t end = begin + bytes;

    step();
    for (begin -= cache_line ? begin % cache_line : 0; cache_line && begin < end; begin += cache_line)
        if (is_dirty(begin)) {
            memcpy(memory + begin, seen + begin, cache_line);
            memcpy(filled + begin, seen + begin, cache_line);
        }
}

/* Lines are dropped and filled again, word by word in any order while the engine goes on. */
void cdu_memory_fetch(const volatile void *place, uint32_t bytes)
{
    uint32_t begin = (uint32_t)((const volatile uint8_t *)place - seen);
    const uint32_t end = begin + bytes;

    step();
    for (begin -= cache_line ? begin % cache_line : 0; cache_line && begin < end; begin += cache_line) {
        const uint32_t first = draw(cache_line / 4), stride = 2 * draw(4) + 1;
        uint32_t word;

        CHECK(!is_dirty(begin), "a line is dropped that the program has written");
        for (word = 0; word < cache_line / 4; word++) {
            const uint32_t offset = begin + (first + word * stride) % (cache_line / 4) * 4;

            memcpy(seen + offset, memory + offset, 4);
            if (!draw(3))
                advance_engine();
        }
        memcpy(filled + begin, seen + begin, cache_line);
    }
}

/* Memory as an earlier program left it: records of jobs 0, 1, ... at every distance. */
static void begin(uint32_t seed, uint32_t line)
{
    uint32_t place;

    state = seed;
    cache_line = line;
    memset(&engine, 0, sizeof engine);
    engine.id = CDU_ID_RESET;
    for (place = 0; place < SIZE; place += CDU_DMA_COMPLETION_SIZE) {
        const uint32_t stale[8] = {draw(4), 0xdeadbeefu, 0, 0, 0, 0xdeadbeefu, 0, 1};

        memcpy(memory + place, stale, sizeof stale);
    }
    memcpy(seen, memory, SIZE);
    memcpy(filled, memory, SIZE);
}

static struct cdu_dma_ring ring_at(uint32_t offset, uint32_t log2, uint32_t line)
{
    struct cdu_dma_ring ring;

    memset(&ring, 0, sizeof ring);
    ring.base = BASE;
    ring.memory = seen + offset;
    ring.address = ADDRESS + offset;
    ring.log2 = log2;
    ring.line = line;
    return ring;
}

static const struct cdu_dma_job JOB = {.mode = 1, .n = 1, .c = 1, .h = 1, .w = 8};

/* Takes a record and compares it with the expected one of its job. */
static void take(struct cdu_dma_ring *ring, uint32_t tag)
{
    struct cdu_dma_record record = {0, 0, 0, 0, 0, 0};
    const uint32_t job = ring->taken;
    const enum cdu_dma_result result = cdu_dma_take(ring, &record);

    CHECK(ring->taken == job + 1, "a record was not counted");
    if (engine.loses && tag % 8u == 7u) {
        CHECK(result == CDU_DMA_LOST, "a lost record is not told");
        CHECK(!record.job && !record.tag && !record.bytes, "a record was written that there is not");
        return;
    }
    CHECK(result != CDU_DMA_LOST, "a record is called lost that the engine has written");
    CHECK(result == (errors_of(tag) ? CDU_DMA_FAILED : CDU_DMA_OK), "another result than that of the record");
    CHECK(record.job == job && record.tag == tag, "the record of another job");
    CHECK(record.errors == errors_of(tag) && record.unit_errors == ~tag, "errors of another job");
    CHECK(record.cycles == tag + 1 && record.bytes == tag * 3, "numbers of another job");
}

static void traffic(uint32_t ring_line, uint32_t log2, uint32_t first)
{
    static uint32_t number;
    uint32_t tags[64], given = 0, taken = 0, turns;
    struct cdu_dma_ring ring = ring_at(0, log2, ring_line);
    struct cdu_dma_record record;

    engine.loses = 1;
    CHECK(CDU_DMA_RING_BYTES(log2, ring_line) <= PAGE, "two rings do not fit into the model");
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open");
    ring.given = ring.taken = engine.head = engine.tail = first;
    for (turns = 0; turns < 4000; turns++) {
        if (!draw(100)) { /* the host starts anew, with a ring elsewhere or in the same place */
            ring = ring_at(draw(2) * PAGE, log2, ring_line);
            CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open while the engine runs");
            given = taken = 0;
        } else if (draw(2)) {
            const enum cdu_dma_result result = cdu_dma_submit(&ring, &JOB, number);

            CHECK(result == (given - taken == 1u << log2 ? CDU_DMA_FULL : CDU_DMA_OK), "submit");
            if (result == CDU_DMA_OK)
                tags[given++ % 64] = number++;
        } else if (given == taken) {
            CHECK(cdu_dma_take(&ring, &record) == CDU_DMA_EMPTY, "there is nothing to take");
        } else {
            take(&ring, tags[taken++ % 64]);
        }
    }
    while (taken != given)
        take(&ring, tags[taken++ % 64]);
    CHECK(!engine.errors, "an error that was told is still there");
    CHECK(cdu_dma_close(&ring) == CDU_DMA_OK && !engine.enable, "close");
}

/* Makes a call that must be refused without a write to the engine or to memory, and without a change of the ring. */
#define REFUSED(call, wanted, ring, writes_allowed) \
    do { \
        const struct cdu_dma_ring before = ring; \
        const uint32_t writes = engine.writes; \
        static uint8_t content[SIZE]; \
        memcpy(content, seen, SIZE); \
        CHECK((call) == (wanted), #call); \
        CHECK(engine.writes - writes <= (writes_allowed), #call " writes registers"); \
        CHECK(cache_line || !memcmp(content, seen, SIZE), #call " writes memory"); \
        CHECK(before.given == (ring).given && before.taken == (ring).taken && before.is_open == (ring).is_open, #call); \
    } while (0)

static void refused_rings(void)
{
    const uint64_t top = (uint64_t)1 << 40;
    const uint32_t bytes = CDU_DMA_RING_BYTES(1, 64);
    const uint32_t bases[] = {0, CDU_COMPRESS, CDU_DMA_COMPRESS + 4, 0xffffffffu};
    const uint32_t sizes[] = {17, 31, 32, 40, 0xffffffffu}, lines[] = {1, 16, 48, 96, 8192, 0x80000000u};
    const uint64_t addresses[] = {ADDRESS + 64, ADDRESS + 1, top, top + ADDRESS, top - bytes + 128, top - 128, ~(uint64_t)127};
    struct cdu_dma_ring ring;
    unsigned i;

#define EACH(values, member) \
    for (i = 0; i < sizeof values / sizeof *values; i++) { \
        ring = ring_at(0, 1, 64); \
        ring.member = values[i]; \
        REFUSED(cdu_dma_open(&ring), CDU_DMA_BAD_RING, ring, 0u); \
        REFUSED(cdu_dma_close(&ring), CDU_DMA_BAD_RING, ring, 0u); \
    }
    EACH(bases, base)
    EACH(sizes, log2)
    EACH(lines, line)
    EACH(addresses, address)
    ring = ring_at(0, 1, 64);
    ring.memory = NULL;
    REFUSED(cdu_dma_open(&ring), CDU_DMA_BAD_RING, ring, 0u);
    ring = ring_at(0, 1, 64);
    ring.memory += 32; /* an alias of the address with other lines */
    REFUSED(cdu_dma_open(&ring), CDU_DMA_BAD_RING, ring, 0u);
    ring = ring_at(256, 1, 512); /* a line of the processor is longer than a descriptor */
    REFUSED(cdu_dma_open(&ring), CDU_DMA_BAD_RING, ring, 0u);
    ring = ring_at(0, 1, 64);
    ring.address = top - bytes; /* the last one that fits */
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "the last ring below 2**40");
    CHECK(engine.high == 0xff && engine.low == (uint32_t)(top - bytes), "the address of the ring");
    CHECK(cdu_dma_close(&ring) == CDU_DMA_OK, "close");
}

static void misuse(void)
{
    struct cdu_dma_ring ring = ring_at(0, 2, 0), other = ring_at(PAGE, 2, 0);
    struct cdu_dma_record record = {9, 9, 9, 9, 9, 9};
    unsigned i;

    CHECK(cdu_dma_open(NULL) == CDU_DMA_NULL && cdu_dma_close(NULL) == CDU_DMA_NULL, "no ring");
    CHECK(cdu_dma_submit(NULL, &JOB, 1) == CDU_DMA_NULL && cdu_dma_take(NULL, &record) == CDU_DMA_NULL, "no ring");
    REFUSED(cdu_dma_submit(&ring, NULL, 1), CDU_DMA_NULL, ring, 0u);
    REFUSED(cdu_dma_take(&ring, NULL), CDU_DMA_NULL, ring, 0u);
    REFUSED(cdu_dma_submit(&ring, &JOB, 1), CDU_DMA_NOT_OPEN, ring, 0u);
    REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_EMPTY, ring, 0u);
    CHECK(cdu_dma_close(&ring) == CDU_DMA_OK, "a ring that was never opened is closed");
    refused_rings();

    engine.id = 0; /* no unit */
    REFUSED(cdu_dma_open(&ring), CDU_DMA_NO_UNIT, ring, 0u);
    engine.id = CDU_ID_RESET;
    engine.absent = 1; /* a unit without an engine: what is written is ignored */
    REFUSED(cdu_dma_open(&ring), CDU_DMA_NO_UNIT, ring, 5u);
    engine.absent = 0;

    /* Closes with nothing under way: at the beginning, and a lap later, with the records of the last one in memory. */
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open");
    REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_EMPTY, ring, 0u);
    for (i = 1; i <= 8; i++) {
        CHECK(cdu_dma_submit(&ring, &JOB, i) == CDU_DMA_OK, "submit");
        take(&ring, i);
        REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_EMPTY, ring, 0u);
    }

    /* The record of another job is not believed, though it is done. */
    engine.hangs = engine.loses = 1;
    CHECK(cdu_dma_submit(&ring, &JOB, 15) == CDU_DMA_OK, "submit");
    store(ring.address + CDU_DMA_RING_RECORDS(2, 0) + CDU_DMA_COMPLETION_JOB, 4);
    store(ring.address + CDU_DMA_RING_RECORDS(2, 0) + CDU_DMA_COMPLETION_DONE, 1);
    engine.hangs = 0;
    take(&ring, 15);
    engine.loses = 0;

    /* No more jobs than places; open twice: the jobs of the first time are done or forgotten. */
    for (i = 0; i < 4; i++)
        CHECK(cdu_dma_submit(&ring, &JOB, i) == CDU_DMA_OK, "submit");
    REFUSED(cdu_dma_submit(&ring, &JOB, 5), CDU_DMA_FULL, ring, 0u);
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK && !engine.tail && !engine.head, "a second open");
    REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_EMPTY, ring, 0u);
    CHECK(cdu_dma_submit(&ring, &JOB, 77) == CDU_DMA_OK, "submit");
    take(&ring, 77);

    /* A closed ring has the records of the jobs that were run; all other jobs are lost, and no call waits for them. */
    for (i = 1; i <= 3; i++)
        CHECK(cdu_dma_submit(&ring, &JOB, i) == CDU_DMA_OK, "submit");
    take(&ring, 1);
    CHECK(cdu_dma_close(&ring) == CDU_DMA_OK && cdu_dma_close(&ring) == CDU_DMA_OK, "close twice");
    REFUSED(cdu_dma_submit(&ring, &JOB, 5), CDU_DMA_NOT_OPEN, ring, 0u);
    for (i = 2; i <= 3; i++) {
        record.tag = i;
        CHECK(cdu_dma_take(&ring, &record) != CDU_DMA_EMPTY && record.tag == i, "a record after close");
    }
    REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_EMPTY, ring, 0u);

    /* A ring of which another one took the place. */
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open");
    engine.hangs = 1;
    CHECK(cdu_dma_submit(&ring, &JOB, 2) == CDU_DMA_OK, "submit");
    engine.hangs = 0;
    engine.tail = 0; /* the doorbell was not heard */
    CHECK(cdu_dma_open(&other) == CDU_DMA_OK, "another ring");
    CHECK(cdu_dma_take(&ring, &record) == CDU_DMA_LOST, "a job that was never run");

    /* An engine that was reset while a job was to come, and one that a stranger has stopped. */
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open");
    engine.hangs = 1;
    CHECK(cdu_dma_submit(&ring, &JOB, 3) == CDU_DMA_OK, "submit");
    memset(&engine, 0, sizeof engine);
    engine.id = CDU_ID_RESET;
    CHECK(cdu_dma_take(&ring, &record) == CDU_DMA_LOST, "a job that a reset took away");
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK && cdu_dma_submit(&ring, &JOB, 4) == CDU_DMA_OK, "open after a reset");
    take(&ring, 4);
    engine.hangs = 1;
    CHECK(cdu_dma_submit(&ring, &JOB, 5) == CDU_DMA_OK, "submit");
    engine.hangs = 0;
    engine.control = 0;
    CHECK(cdu_dma_take(&ring, &record) == CDU_DMA_LOST, "a job of a ring that was stopped");

    /* A refusal halts the engine: the call tells it, nothing is lost, and open goes on. */
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK, "open");
    engine.errors = CDU_DMA_ERRORS_OWNED;
    CHECK(cdu_dma_submit(&ring, &JOB, 6) == CDU_DMA_OK, "submit");
    REFUSED(cdu_dma_take(&ring, &record), CDU_DMA_REFUSED, ring, 0u);
    engine.errors = 0;
    take(&ring, 6);
    CHECK(cdu_dma_submit(&ring, &JOB, 8) == CDU_DMA_OK, "submit");
    engine.tail = 1000;
    cdu_read(BASE + CDU_DMA_TAIL);
    CHECK(cdu_dma_open(&ring) == CDU_DMA_OK && !engine.errors, "open after a refusal");
    CHECK(cdu_dma_submit(&ring, &JOB, 9) == CDU_DMA_OK, "submit");
    take(&ring, 9);

    /* An engine that never stops: calls that wait for it return, and it works again when it stops. */
    CHECK(cdu_dma_submit(&ring, &JOB, 10) == CDU_DMA_OK, "submit");
    while (!engine.under_way)
        step();
    engine.hangs = 1;
    REFUSED(cdu_dma_open(&other), CDU_DMA_BUSY, other, 1u);
    REFUSED(cdu_dma_open(&ring), CDU_DMA_BUSY, ring, 1u);
    CHECK(engine.low == (uint32_t)ring.address, "the ring was moved while the engine ran");
    CHECK(cdu_dma_close(&ring) == CDU_DMA_BUSY && cdu_dma_close(&ring) == CDU_DMA_BUSY, "close of an engine that hangs");
    REFUSED(cdu_dma_submit(&ring, &JOB, 11), CDU_DMA_NOT_OPEN, ring, 0u);
    CHECK(!ring.is_open && ring.given == ring.taken + 1 && engine.enable, "a close that is to be called again");
    engine.hangs = 0;
    take(&ring, 10);
    CHECK(cdu_dma_close(&ring) == CDU_DMA_OK && cdu_dma_open(&ring) == CDU_DMA_OK, "open when it goes on");
    CHECK(cdu_dma_submit(&ring, &JOB, 12) == CDU_DMA_OK, "submit");
    take(&ring, 12);
}

int main(int count, char **words)
{
    uint32_t number[5];
    int i;

    for (i = 0; i < 5; i++)
        number[i] = i + 2 < count ? (uint32_t)strtoul(words[i + 2], NULL, 0) : 0;
    begin(number[0], number[1]);
    if (count == 7 && !strcmp(words[1], "traffic"))
        traffic(number[2], number[3], number[4]);
    else if (count == 4 && !strcmp(words[1], "misuse"))
        misuse();
    else
        return 2;
    return 0;
}
