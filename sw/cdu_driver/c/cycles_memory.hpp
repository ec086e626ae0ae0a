// The DMA engine and its memory in the performance model of cdu_cycles.hpp: segments to words, words to segments.

#ifndef CDU_CYCLES_MEMORY_HPP
#define CDU_CYCLES_MEMORY_HPP

#include "cdu_cycles_unit.hpp"

namespace cdu {

namespace detail {

constexpr uint64_t BURST_WORDS = 16, BOUNDARY = 4096, WRITE_WORDS = 32, SLICE_WORDS = 2, NEVER = ~uint64_t(0);

// Piece of memory: bytes from an address on, then padding that memory does not have.
struct Segment {
    uint64_t address, bytes, pad;
    bool last;
};

// The order in which the engine walks over a tensor (hw/cdu/dma/tensor_walk.py).
class TensorWalk {
  public:
    TensorWalk(const UnitTiming &unit, const ModeTiming &mode, const JobTiming &job, const Counts &counts, bool reads)
        : value_(unit.value_bytes), tiles_(mode.tiles), flat_(mode.flat), repeats_(mode.repeats && reads), w_(job.w),
          h_(job.h), base_(job.tensor), counts_(counts) {
        const uint64_t area = job.h * job.w;
        if (!tiles_) {
            const uint64_t columns = flat_ ? job.n * job.c * area : area;
            row_pad_ = counts.row_beats * ROW - columns;
            end_pad_ = counts.beats * ROW - (flat_ ? 1 : job.n * job.c) * counts.row_beats * ROW;
        }
    }

    bool next(Segment &segment) {
        if (done_) return false;
        if (!tiles_) {
            const bool ends = row_ + 1 == counts_.rows, fills = flat_ ? ends : (row_ + 1) % h_ == 0;
            const uint64_t pad = (fills ? row_pad_ : 0) + (ends ? end_pad_ : 0);
            segment = {base_ + row_ * w_ * value_, w_ * value_, pad * value_, ends};
            ++row_, done_ = ends;
            return true;
        }
        const uint64_t beats = std::min(counts_.row_beats - beat_, TILE_BLOCKS), row = strip_ + in_strip_;
        const uint64_t there = row < counts_.rows ? row : counts_.rows - 1, width = w_ - beat_ * ROW;
        const uint64_t values = row < counts_.rows || repeats_ ? std::min(width, TILE_BLOCKS * ROW) : 0;
        segment = {base_ + (there * w_ + beat_ * ROW) * value_, values * value_, (beats * ROW - values) * value_, false};
        if (++in_strip_ == BLOCK_ROWS) {
            in_strip_ = 0, beat_ += beats;
            if (beat_ == counts_.row_beats) beat_ = 0, strip_ += BLOCK_ROWS;
            segment.last = done_ = strip_ >= counts_.rows;
        }
        return true;
    }

  private:
    uint64_t value_, tiles_, flat_, repeats_, w_, h_, base_;
    Counts counts_;
    uint64_t row_pad_ = 0, end_pad_ = 0, row_ = 0, strip_ = 0, in_strip_ = 0, beat_ = 0;
    bool done_ = false;
};

// The scales of every sample, then those of groups that begin in the padding (hw/cdu/dma/scale_walk.py).
class ScaleWalk {
  public:
    ScaleWalk(const ModeTiming &mode, const JobTiming &job, const Counts &counts)
        : left_(counts.groups), channels_(mode.flat ? 1 : job.c), singly_(mode.repeats ? counts.groups % (job.n * job.c) : 0),
          bytes_(mode.scale_bytes), base_(job.scales) {}

    bool next(Segment &segment) {
        if (!left_) return false;
        const bool repeats = left_ <= singly_;  // the last channel again
        const uint64_t now = repeats ? 1 : std::min(left_, channels_);
        left_ -= now;
        segment = {base_ + (repeats ? (channels_ - 1) * bytes_ : 0), now * bytes_, 0, !left_};
        return true;
    }

  private:
    uint64_t left_, channels_, singly_, bytes_, base_;
};

// One segment.
class OneSegment {
  public:
    OneSegment(uint64_t address, uint64_t bytes) : address_(address), left_(bytes) {}

    bool next(Segment &segment) {
        if (!left_) return false;
        segment = {address_, left_, 0, true}, left_ = 0;
        return true;
    }

  private:
    uint64_t address_, left_;
};

// The channels AR and R: a request and a word per cycle.
class ReadPort {
  public:
    explicit ReadPort(uint64_t latency) : latency_(latency) {}

    void request(uint64_t now, unsigned reader, uint64_t words) { bursts_.push_back({now + 2 + latency_, reader, words}); }

    // The reader whose word comes in a cycle, or -1.
    int word(uint64_t now) {
        if (bursts_.empty() || bursts_.front().when > now) return -1;
        const int reader = int(bursts_.front().reader);
        if (!--bursts_.front().words) bursts_.pop_front();
        return reader;
    }

    // The cycle of the next word.
    uint64_t next() const { return bursts_.empty() ? NEVER : bursts_.front().when; }

  private:
    struct Burst {
        uint64_t when;
        unsigned reader;
        uint64_t words;
    };
    uint64_t latency_;
    std::deque<Burst> bursts_;
};

// A reader of memory: cutter, plan, words that have come, packer (hw/cdu/dma/memory_reader.py).
template <typename Walk>
class Reader {
  public:
    Reader(Walk walk, uint64_t size, uint64_t words, uint64_t bursts)
        : walk_(walk), size_(size), most_(std::min(BURST_WORDS, words)), free_(words), in_memory_(bursts >= 16),
          parts_(std::max<uint64_t>(2, bursts) + in_memory_), plan_latency_(in_memory_ ? 2 : 1) {}

    void arrives(uint64_t now) { arrived_.push_back(now + 2), ++moves; }
    bool asks() const { return burst_ && burst_ <= free_; }
    uint64_t wants() const { return burst_; }

    // A cycle. `granted`: the burst is taken; `sink.take(bytes, last, now)` moves packed bytes, or refuses.
    template <typename Sink>
    void step(uint64_t now, bool granted, Sink &sink) {
        uint64_t given_back = 0;
        bool takes_part = !active_;
        if (active_) {
            const bool memory = part_.bytes != 0;
            if (!memory || (!arrived_.empty() && arrived_.front() <= now)) {
                const uint64_t room = memory ? size_ - part_.offset : size_;
                const uint64_t count = std::min(room, memory ? part_.bytes : part_.pad);
                const bool final = memory ? part_.bytes <= room && !part_.pad : part_.pad <= room;
                if (sink.take(count, final && part_.last, now)) {
                    ++moves;
                    if (memory) part_.bytes -= count, arrived_.pop_front(), ++given_back;
                    else part_.pad -= count;
                    part_.offset = 0;
                    takes_part = final;
                }
            }
        }
        const uint64_t level = plan_.size();
        if (takes_part) {
            active_ = !plan_.empty() && plan_.front().when <= now;
            if (active_) part_ = plan_.front(), plan_.pop_front();
        }
        free_ += given_back - (granted ? burst_ : 0);
        cut(now, granted, level);
    }

    uint64_t moves = 0;  // words that have come, and pieces that the sink has taken

  private:
    struct Part {
        uint64_t when, offset, bytes, pad;
        bool last;
    };

    void cut(uint64_t now, bool granted, uint64_t level) {
        bool takes_segment = !held_;
        if (held_ && (!burst_ || granted) && level < parts_) {
            const uint64_t offset = segment_.address % size_, needed = up(offset + segment_.bytes, size_);
            const uint64_t limit = std::min(most_, (BOUNDARY - segment_.address / size_ * size_ % BOUNDARY) / size_);
            const bool whole = needed <= limit;
            const uint64_t bytes = whole ? segment_.bytes : limit * size_ - offset;
            plan_.push_back({now + plan_latency_, offset, bytes, whole ? segment_.pad : 0, whole && segment_.last});
            burst_ = segment_.bytes ? (whole ? needed : limit) : 0;
            segment_.address += bytes, segment_.bytes -= bytes;
            takes_segment = whole;
        } else if (granted) {
            burst_ = 0;
        }
        if (takes_segment) held_ = walk_.next(segment_);
    }

    Walk walk_;
    uint64_t size_, most_, free_;
    bool in_memory_;  // where the plan is: it holds one more then, and takes a cycle longer
    uint64_t parts_, plan_latency_;
    std::deque<uint64_t> arrived_;
    std::deque<Part> plan_;
    Segment segment_{};
    Part part_{};
    bool held_ = false, active_ = false;
    uint64_t burst_ = 0;
};

// Bytes to words of a port: the packer, a register slice of `room` words (0: none), and the converter behind it.
// `port.accept(bytes, last, now)` takes a word, or refuses.
template <typename Port>
class Words {
  public:
    Words(uint64_t size, uint64_t port_bytes, uint64_t room, Port &port)
        : size_(size), port_bytes_(port_bytes), room_(room), port_(port) {}

    // A piece for the packer, after `move` in the same cycle.
    bool take(uint64_t count, bool last, uint64_t now) {
        if (over_) return false;
        const uint64_t total = level_ + count;
        if (total < size_ && !last) {
            level_ = total;
            return true;
        }
        const bool ends = last && total <= size_;
        if (!give(std::min(total, size_), ends, now)) return false;
        level_ = ends ? 0 : total - size_;
        over_ = last && !ends;
        return true;
    }

    // A cycle: the word that the slice holds, and the rest of a packet behind the last piece.
    void move(uint64_t now) {
        full_ = slice_.size() == room_;
        if (!slice_.empty() && convert(slice_.front().bytes, slice_.front().last, now)) slice_.pop_front();
        if (over_ && give(level_, true, now)) over_ = false, level_ = 0;
    }

  private:
    struct Word {
        uint64_t bytes;
        bool last;
    };

    bool give(uint64_t bytes, bool last, uint64_t now) {
        if (!room_) return convert(bytes, last, now);
        if (full_) return false;
        slice_.push_back({bytes, last});
        return true;
    }

    bool convert(uint64_t bytes, bool last, uint64_t now) {
        if (size_ > port_bytes_) {
            const uint64_t left = bytes - std::min(bytes, cut_);
            if (!port_.accept(std::min(left, port_bytes_), last && left <= port_bytes_, now)) return false;
            cut_ = left <= port_bytes_ ? 0 : cut_ + port_bytes_;
            return cut_ == 0;
        }
        if (held_ + bytes < port_bytes_ && !last) {
            held_ += bytes;
            return true;
        }
        if (!port_.accept(held_ + bytes, last, now)) return false;
        held_ = 0;
        return true;
    }

    uint64_t size_, port_bytes_, room_;
    Port &port_;
    std::deque<Word> slice_;
    uint64_t level_ = 0, held_ = 0, cut_ = 0;
    bool over_ = false, full_ = false;
};

// A writer to memory, and the channels AW, W and B (hw/cdu/dma/memory_writer.py, burst_former.py).
template <typename Walk>
class Writer {
  public:
    Writer(Walk walk, uint64_t size, uint64_t unanswered, uint64_t latency, uint64_t opens)
        : walk_(walk), size_(size), most_(unanswered), latency_(latency), opens_(opens) {}

    // A cycle; whether the packet has ended. `unit` has bytes that are `ready`, and says whether it has `ended`.
    template <typename Unit>
    bool step(uint64_t now, Unit &unit) {
        for (; !words_.empty() && words_.front() < now; words_.pop_front()) {}
        for (; !answers_.empty() && answers_.front() < now; answers_.pop_front()) {}
        bool ends = false;
        if (active_) {
            const bool memory = segment_.bytes != 0;
            const uint64_t room = size_ - segment_.address % size_;
            const uint64_t wanted = memory ? std::min(room, segment_.bytes) : std::min(segment_.pad, size_);
            const uint64_t there = std::min(level_, wanted);
            const bool over = ended_ && level_ <= wanted, writes = memory && (there || open_);
            if ((level_ >= wanted || ended_) && (!writes || (words_.size() + open_ < WRITE_WORDS && answers_.size() < most_))) {
                level_ -= there, ++moves;
                const bool fits = segment_.bytes <= room;
                if (writes) put(now, over || fits, (BOUNDARY - segment_.address % BOUNDARY + size_ - 1) / size_ == 1);
                if (memory) segment_.address += wanted, segment_.bytes -= wanted;
                else segment_.pad -= wanted;
                ends = over || (memory ? fits && !segment_.pad : !segment_.pad);
                if (over) return true;
            }
        }
        if (!active_ || ends) active_ = now >= opens_ && walk_.next(segment_);
        // A word from the unit, which a register slice holds for a cycle
        if (slice_ && level_ < size_) level_ += slice_, slice_ = 0, ended_ = slice_last_;
        if (!slice_ && !slice_last_ && (unit.ready >= size_ || unit.ended)) {
            slice_ = std::min(unit.ready, size_), unit.ready -= slice_;
            slice_last_ = unit.ended && !unit.ready;
        }
        return false;
    }

    // The cycles of the next answer, and of the last one.
    uint64_t next() const { return answers_.empty() ? NEVER : answers_.front(); }
    uint64_t answered() const { return answer_; }

    uint64_t moves = 0;  // pieces of segments that are written or passed over

  private:
    void put(uint64_t now, bool last, bool boundary) {
        ++open_;
        if (!last && !boundary && open_ != BURST_WORDS) return;
        const uint64_t first = std::max(word_ + 1, now + 2);
        for (uint64_t place = 0; place < open_; ++place) words_.push_back(first + place);
        word_ = first + open_ - 1, open_ = 0;
        answer_ = std::max(answer_ + 1, word_ + 1 + latency_);
        answers_.push_back(answer_);
    }

    Walk walk_;
    uint64_t size_, most_, latency_, opens_;
    Segment segment_{};
    bool active_ = false, ended_ = false, slice_last_ = false;
    uint64_t level_ = 0, slice_ = 0, open_ = 0, word_ = 0, answer_ = 0;
    std::deque<uint64_t> words_, answers_;  // cycles in which the words leave, and the answers come
};

}  // namespace detail

}  // namespace cdu

#endif
