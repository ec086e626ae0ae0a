/*
 * Compresses a tensor in mode jpeg-act: programs the job, waits for its end, recovers from errors; in units with completions a
 * job that fails is lost alone.
 *
 * CDU_HEADER is the header of the unit, which `cdu generate` writes beside this file; define it to include another unit's. The
 * three functions below belong to the platform, as do the DMA engines that feed s_axis and empty m_axis: start them between
 * cdu_start() and cdu_finish().
 */
#ifndef CDU_HEADER
#define CDU_HEADER "tiny.h"
#endif
#include CDU_HEADER

/* Reads of STATUS for which cdu_open(), and all other calls after an error, wait for the rest of forgotten jobs. */
#ifndef CDU_STOP_POLLS
#define CDU_STOP_POLLS 1000000u
#endif

uint32_t cdu_read(uint32_t address);
void cdu_write(uint32_t address, uint32_t value);
void cdu_wait_interrupt(void); /* returns when the interrupt line is high */

enum cdu_result {
    CDU_OK,
    CDU_NO_UNIT,  /* no unit, another version, or one without mode jpeg-act */
    CDU_NO_SPACE, /* the queue is full, or jobs under way use the shift table */
    CDU_REFUSED,  /* the counts do not fit together, or there is no such coder or CRC in this unit */
    CDU_LOST,     /* an error in the data, or a timeout: all jobs are forgotten, start them again */
    CDU_FAILED,   /* an error in the data of this job: start it again; the next ones are not touched */
    CDU_BUSY,     /* all jobs are forgotten, but a source or sink has not ended its packet: let it end, then call cdu_open() */
    CDU_EMPTY     /* no job is under way, and no record waits */
};

struct cdu_job {
    uint32_t beats, row_beats, channel_rows; /* docs/reference/bitstream.md, section 2 */
    uint32_t bank;                           /* shift table, 0 or 1 */
    uint32_t scales;                         /* CDU_CHANNEL_MODE_SCALES_PORT, or _REGISTERS: then call cdu_give_scales() */
    uint8_t shifts[64];                      /* 0..7, in the order of the payload */
    uint8_t crc;                             /* 1: the payload has its CRC-32 as four more bytes, in units with payload_crc */
    uint8_t coder;                           /* CDU_CHANNEL_CODING_CODER_ZVC, or _GMC in units with coder gmc */
};

/* Result of a job, in units with completions. */
struct cdu_record {
    uint32_t job;    /* jobs started before it since reset, modulo 65536 */
    uint32_t bytes;  /* of its payload, without the CRC */
    uint32_t errors; /* bits of CDU_CHANNEL_COMPLETION_ERRORS */
};

static uint32_t channel_read(uint32_t offset)
{
    return cdu_read(CDU_COMPRESS + offset);
}

static void channel_write(uint32_t offset, uint32_t value)
{
    cdu_write(CDU_COMPRESS + offset, value);
}

static int has_records(void)
{
    return CDU_ARRAY_COMPLETIONS_GET(cdu_read(CDU_ARRAY)) != 0;
}

/* Errors after which all jobs are forgotten: no record tells them. */
static uint32_t fatal_errors(void)
{
    return CDU_CHANNEL_ERRORS_ALL & (has_records() ? ~CDU_CHANNEL_COMPLETION_ERRORS_ALL : ~(uint32_t)0);
}

/* Forgets all jobs, clears errors and interrupts; returns CDU_BUSY if that takes more than CDU_STOP_POLLS reads. */
static enum cdu_result forget_jobs(void)
{
    const uint32_t left = CDU_CHANNEL_STATUS_BUSY | CDU_CHANNEL_STATUS_FLUSHING | CDU_CHANNEL_STATUS_DRAINING;
    uint32_t polls;

    /* Stop the DMA engines here, but let the engine at m_axis take and discard the rest of a packet up to TLAST. */
    channel_write(CDU_CHANNEL_CONTROL, CDU_CHANNEL_CONTROL_ABORT | CDU_CHANNEL_CONTROL_FLUSH);
    for (polls = 0; channel_read(CDU_CHANNEL_STATUS) & left; polls++)
        if (polls == CDU_STOP_POLLS)
            return CDU_BUSY;
    channel_write(CDU_CHANNEL_INTERRUPT_STATUS, channel_read(CDU_CHANNEL_INTERRUPT_STATUS));
    channel_write(CDU_CHANNEL_ERRORS, channel_read(CDU_CHANNEL_ERRORS));
    return CDU_OK;
}

/* Opens a unit in any state: jobs and records of an earlier program are forgotten. */
enum cdu_result cdu_open(uint32_t watchdog_cycles)
{
    uint32_t records;

    if (cdu_read(CDU_ID) != CDU_ID_RESET
        || CDU_VERSION_MAJOR_GET(cdu_read(CDU_VERSION)) != CDU_VERSION_MAJOR_GET(CDU_VERSION_RESET))
        return CDU_NO_UNIT;
    if (!(cdu_read(CDU_MODES) & CDU_MODES_JPEG_ACT))
        return CDU_NO_UNIT;
    if (forget_jobs() != CDU_OK)
        return CDU_BUSY;
    channel_write(CDU_CHANNEL_WATCHDOG, watchdog_cycles);
    channel_write(CDU_CHANNEL_INTERRUPT_ENABLE,
                  CDU_CHANNEL_INTERRUPT_ENABLE_JOB_DONE | CDU_CHANNEL_INTERRUPT_ENABLE_ERROR);
    channel_write(CDU_CHANNEL_ERROR_ENABLE, fatal_errors());
    if (has_records()) {
        channel_write(CDU_CHANNEL_COMPLETION_KEEP, CDU_CHANNEL_COMPLETION_KEEP_KEEP);
        for (records = CDU_CHANNEL_COMPLETION_WAITING_GET(channel_read(CDU_CHANNEL_COMPLETION)); records; records--)
            channel_write(CDU_CHANNEL_COMPLETION_NEXT, CDU_CHANNEL_COMPLETION_NEXT_TAKE);
    }
    return CDU_OK;
}

/* Queues a job; a job may be under way already. */
enum cdu_result cdu_start(const struct cdu_job *job)
{
    const uint32_t refusals = CDU_CHANNEL_ERRORS_BAD_JOB | CDU_CHANNEL_ERRORS_QUEUE_FULL | CDU_CHANNEL_ERRORS_BUSY_WRITE;
    const uint32_t status = channel_read(CDU_CHANNEL_STATUS);
    const uint32_t has_crc = cdu_read(CDU_ARRAY) & CDU_ARRAY_PAYLOAD_CRC;
    const uint32_t built = cdu_read(CDU_MODES);
    uint32_t errors;
    unsigned entry;

    if (!CDU_CHANNEL_STATUS_QUEUE_SPACE_GET(status) || CDU_CHANNEL_STATUS_BANK_BUSY_GET(status) >> job->bank & 1u)
        return CDU_NO_SPACE;
    if ((job->crc && !has_crc) || !(built & (job->coder == CDU_CHANNEL_CODING_CODER_GMC ? CDU_MODES_GMC : CDU_MODES_ZVC)))
        return CDU_REFUSED;
    for (entry = 0; entry < 64; entry += 8) {
        uint32_t word = 0;
        unsigned place;
        for (place = 0; place < 8; place++)
            word |= (uint32_t)job->shifts[entry + place] << (4 * place);
        channel_write(job->bank ? CDU_CHANNEL_SHIFTS1(entry / 8) : CDU_CHANNEL_SHIFTS0(entry / 8), word);
    }
    channel_write(CDU_CHANNEL_MODE,
                  CDU_CHANNEL_MODE_MODE(CDU_CHANNEL_MODE_MODE_JPEG_ACT) | CDU_CHANNEL_MODE_BANK(job->bank)
                      | CDU_CHANNEL_MODE_SCALES(job->scales));
    channel_write(CDU_CHANNEL_BEATS, job->beats);
    channel_write(CDU_CHANNEL_ROW_BEATS, job->row_beats);
    channel_write(CDU_CHANNEL_CHANNEL_ROWS, job->channel_rows);
    if (built & CDU_MODES_GMC)
        channel_write(CDU_CHANNEL_CODING, CDU_CHANNEL_CODING_CODER(job->coder));
    if (has_crc)
        channel_write(CDU_CHANNEL_PAYLOAD_CRC, job->crc ? CDU_CHANNEL_PAYLOAD_CRC_PRESENT : 0);
    channel_write(CDU_CHANNEL_CONTROL, CDU_CHANNEL_CONTROL_START);
    errors = channel_read(CDU_CHANNEL_ERRORS) & refusals;
    channel_write(CDU_CHANNEL_ERRORS, errors);
    return errors ? CDU_REFUSED : CDU_OK;
}

/*
 * Hands over the scales (float32 patterns) of a job that takes them from registers; call it for such jobs in the order of their
 * starts. Not needed for jobs whose scales a DMA engine gives to s_axis_scale.
 */
void cdu_give_scales(const uint32_t *scales, uint32_t count)
{
    uint32_t space = 0, i;

    for (i = 0; i < count; i++, space--) {
        while (!space && !(space = CDU_CHANNEL_STATUS_SCALE_SPACE_GET(channel_read(CDU_CHANNEL_STATUS))))
            if (channel_read(CDU_CHANNEL_ERRORS) & fatal_errors())
                return; /* cdu_finish() and cdu_take() see to it */
        channel_write(i + 1 == count ? CDU_CHANNEL_SCALE_LAST : CDU_CHANNEL_SCALE, scales[i]);
    }
}

/*
 * In units without completions: waits until jobs have ended; *jobs_done is the number of them since reset. After an error all
 * jobs are forgotten, *errors says why; new ones may be started.
 */
enum cdu_result cdu_finish(uint32_t *jobs_done, uint32_t *errors)
{
    uint32_t reasons;

    do {
        cdu_wait_interrupt();
        reasons = channel_read(CDU_CHANNEL_INTERRUPT_STATUS);
        channel_write(CDU_CHANNEL_INTERRUPT_STATUS, reasons);
        *errors = channel_read(CDU_CHANNEL_ERRORS);
        *jobs_done = channel_read(CDU_CHANNEL_JOBS_DONE);
    } while (!*errors && !(reasons & CDU_CHANNEL_INTERRUPT_STATUS_JOB_DONE));
    if (!*errors)
        return CDU_OK;
    return forget_jobs() == CDU_OK ? CDU_LOST : CDU_BUSY;
}

/*
 * In units with completions: waits for the end of the oldest job whose record was not taken yet, and takes it. A job that has
 * failed has an output packet all the same, which is to be thrown away; values that are not finite are no failure.
 */
enum cdu_result cdu_take(struct cdu_record *record)
{
    uint32_t completion;

    while (!CDU_CHANNEL_COMPLETION_WAITING_GET(completion = channel_read(CDU_CHANNEL_COMPLETION))) {
        if (channel_read(CDU_CHANNEL_ERRORS) & fatal_errors())
            return forget_jobs() == CDU_OK ? CDU_LOST : CDU_BUSY;
        if (!(channel_read(CDU_CHANNEL_STATUS) & CDU_CHANNEL_STATUS_BUSY)
            && !CDU_CHANNEL_COMPLETION_WAITING_GET(channel_read(CDU_CHANNEL_COMPLETION)))
            return CDU_EMPTY;
        cdu_wait_interrupt();
        channel_write(CDU_CHANNEL_INTERRUPT_STATUS, channel_read(CDU_CHANNEL_INTERRUPT_STATUS));
    }
    record->job = CDU_CHANNEL_COMPLETION_JOB_GET(completion);
    record->bytes = channel_read(CDU_CHANNEL_COMPLETION_BYTES);
    record->errors = channel_read(CDU_CHANNEL_COMPLETION_ERRORS);
    channel_write(CDU_CHANNEL_COMPLETION_NEXT, CDU_CHANNEL_COMPLETION_NEXT_TAKE);
    return record->errors & ~(uint32_t)CDU_CHANNEL_COMPLETION_ERRORS_NONFINITE ? CDU_FAILED : CDU_OK;
}
