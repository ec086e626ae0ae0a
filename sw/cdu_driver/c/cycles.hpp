// Cycles of a job of a unit, by shape, mode, payload and memory: a model without the RTL, in C++17 without dependencies.
//
// The model moves words as the RTL does: segments of the tensor are cut into bursts; words that have room are requested; the
// unit takes rows and gives blocks; bursts are written when all their words are there, as many as may be unanswered. It has no
// values: the number of bytes of the payload is an input, and all blocks count as equally long. The values of a tensor lie one
// behind the other, and no other job is under way. Memory takes a request of each channel per cycle, answers in order after
// `latency` cycles beyond the least, and moves a word per cycle each way.
//
// `cdu generate` writes NAME_timing.hpp with the numbers of a unit, which includes this file:
//
//     const cdu::JobTiming job{cdu::COMPRESS, 1, 2, 64, 1, 3136, 401408};  // sfpr, as the descriptor has it
//     const uint64_t cycles = cdu::cycles(cdu::NAME_timing, job, 40);

#ifndef CDU_CYCLES_HPP
#define CDU_CYCLES_HPP

#include "cdu_cycles_memory.hpp"
#include "cdu_cycles_unit.hpp"

namespace cdu {

namespace detail {

// Steps, each of a cycle or of a wait for memory, to which jobs are counted; the rest has the rate of the second half. Cycles
// without a move after which a job waits for memory alone: no way through a unit takes as many.
constexpr uint64_t MOST_STEPS = 1 << 19, QUIET = 512;

// The cycles of a long job, from its progress in MOST_STEPS / 2 steps that begin there or with its first progress. Where memory is
// waited for, they begin and end with a wait: they are a whole number of round trips.
class Progress {
  public:
    explicit Progress(uint64_t all, uint64_t latency = 0) : all_(all), latency_(latency) {}

    // Whether the rest is known without counting. `waits`: memory has been waited for up to this cycle.
    bool step(uint64_t now, uint64_t done, bool waits) {
        if (++steps_ < MOST_STEPS / 2 || !done) return false;
        if (!from_ || (waits && !trips_)) from_ = steps_, since_ = now, half_ = done, trips_ = waits;
        if (steps_ < from_ + (trips_ && !waits ? MOST_STEPS : MOST_STEPS / 2) || done == half_ || done == all_) return false;
        // The last answer comes on top, which a round trip has
        total = now + uint64_t(double(all_ - done) * double(now - since_) / double(done - half_)) + (waits ? 0 : latency_);
        return true;
    }

    uint64_t total = 0;

  private:
    uint64_t all_, latency_, steps_ = 0, from_ = 0, since_ = 0, half_ = 0;
    bool trips_ = false;
};

// Cycles of a block through the core, with the coder of the job.
inline uint64_t core(const ModeTiming &mode, const JobTiming &job) {
    return mode.passes[job.direction] + (job.gmc ? mode.gmc : 0);
}

template <typename Unit, typename Input, typename Output>
uint64_t through_memory(const UnitTiming &unit, const ModeTiming &mode, const JobTiming &job, const Counts &counts,
                        uint64_t latency, Input input, Output output, uint64_t port_bytes) {
    const uint64_t size = unit.memory_bytes, start = mode.start[job.direction], opens = start + mode.opens;
    const uint64_t end = unit.sender + unit.receiver;
    const Blocks blocks(unit, mode, job, counts);
    // Rows are counted from the port on when compressing, from the core on when decompressing.
    Scales scales(mode, counts, unit.port_rows, unit.planned, opens, unit.scales + (job.direction == DECOMPRESS ? end : 0));
    Unit inner(unit, mode, blocks, scales, opens, end + core(mode, job) + end - 1, true);
    ReadPort port(latency);
    const uint64_t bursts = job.direction == COMPRESS ? unit.tensor_bursts : unit.memory_words / 4;
    Reader<Input> data(input, size, unit.memory_words, bursts);
    Reader<ScaleWalk> scale_reader(ScaleWalk(mode, job, counts), size, unit.scale_words, unit.scale_words / 4);
    Words<Unit> words(size, port_bytes, SLICE_WORDS, inner);
    Words<Scales> scale_words(size, std::max<uint64_t>(1, mode.scale_bytes), 0, scales);
    Writer<Output> writer(output, size, unit.unanswered, latency, opens);
    Progress progress(counts.beats, latency);
    bool turn = false, waits = false;
    for (uint64_t now = 0, moved = opens, moves = 0;; ++now) {
        const int reader = port.word(now);
        if (reader == 0) data.arrives(now);
        if (reader == 1) scale_reader.arrives(now);
        const bool second = scale_reader.asks() && (turn || !data.asks()), first = data.asks() && !second;
        if (first) port.request(now, 0, data.wants()), turn = true;
        if (second) port.request(now, 1, scale_reader.wants()), turn = false;
        words.move(now), scale_words.move(now);
        data.step(now, first, words);
        scale_reader.step(now, second, scale_words);
        inner.step(now);
        if (writer.step(now, inner)) return std::max(writer.answered(), now + 1) + RESULT - start;
        if (progress.step(now, inner.rows(), waits)) return progress.total - start;
        const uint64_t all = data.moves + scale_reader.moves + writer.moves + inner.rows();
        if (all != moves) moved = now, moves = all;
        const uint64_t next = std::min(port.next(), writer.next());
        waits = now > moved + QUIET && next != NEVER && next > now + 1;
        if (waits) now = next - 1;
    }
}

template <typename Unit>
uint64_t without_memory(const UnitTiming &unit, const ModeTiming &mode, const JobTiming &job, const Counts &counts,
                        uint64_t left, uint64_t input_bytes, uint64_t output_bytes) {
    const Blocks blocks(unit, mode, job, counts);
    const uint64_t to_row = unit.scales + (job.direction == DECOMPRESS ? unit.receiver : 0);
    Scales scales(mode, counts, unit.port_rows, unit.planned, 0, to_row);
    Unit inner(unit, mode, blocks, scales, 0, unit.receiver + core(mode, job) + unit.sender - 1, false);
    Progress progress(counts.beats);
    for (uint64_t now = 0;; ++now) {
        inner.ready -= std::min(inner.ready, inner.ready >= output_bytes || inner.ended ? output_bytes : 0);
        if (inner.ended && !inner.ready) return now;
        if (counts.groups) scales.accept(mode.scale_bytes, false, now);
        const uint64_t bytes = std::min(left, input_bytes);
        if (bytes && inner.accept(bytes, bytes == left, now)) left -= bytes;
        inner.step(now);
        if (progress.step(now, inner.rows(), false)) return progress.total;
    }
}

// Values of the largest job.
constexpr double MOST_VALUES = 1 << 29;

// Whether a job can be computed: its mode is built, tensor and payload are neither empty nor more than registers count, and no
// blocks of GMC are decoded.
inline bool fits(const UnitTiming &unit, const JobTiming &job) {
    return job.direction <= DECOMPRESS && job.mode < 16 && unit.modes[job.mode].built && job.n && job.c && job.h && job.w &&
           double(job.n) * double(job.c) * double(job.h) * double(job.w) < MOST_VALUES && job.payload_bytes &&
           job.payload_bytes >> 32 == 0 && !(job.gmc && job.direction == DECOMPRESS);
}

}  // namespace detail

// Cycles of a job behind the DMA engine, the `cycles` of its record: from START, which follows the first request of the job, to
// its last byte in memory. `latency`: cycles beyond the least that memory takes to answer, below 2**32. 0 for a job that the
// unit does not have.
inline uint64_t cycles(const UnitTiming &unit, const JobTiming &job, uint64_t latency) {
    using namespace detail;
    if (!fits(unit, job) || !unit.memory_bytes) return 0;
    const ModeTiming &mode = unit.modes[job.mode];
    const Counts counts(mode, job);
    const OneSegment payload(job.payload, job.payload_bytes);
    if (job.direction == COMPRESS)
        return through_memory<Compressor>(unit, mode, job, counts, latency, TensorWalk(unit, mode, job, counts, true), payload,
                                          unit.port_rows * ROW * unit.value_bytes);
    return through_memory<Decompressor>(unit, mode, job, counts, latency, payload, TensorWalk(unit, mode, job, counts, false),
                                        unit.packed_bytes);
}

// Cycles of a job of the unit alone, from its first word to its last, when it has had its START and all ports move whenever the
// unit can. Returns 0 for a job that the unit does not have.
inline uint64_t cycles(const UnitTiming &unit, const JobTiming &job) {
    using namespace detail;
    if (!fits(unit, job)) return 0;
    const ModeTiming &mode = unit.modes[job.mode];
    const Counts counts(mode, job);
    const uint64_t values = ROW * unit.value_bytes, word = unit.port_rows * values, packed = unit.packed_bytes;
    if (job.direction == COMPRESS)
        return without_memory<Compressor>(unit, mode, job, counts, counts.beats * values, word, packed);
    return without_memory<Decompressor>(unit, mode, job, counts, job.payload_bytes, packed, word);
}

}  // namespace cdu

#endif
