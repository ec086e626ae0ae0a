// The unit in the performance model of cdu_cycles.hpp: numbers of a unit and of a job, and words through its ports.

#ifndef CDU_CYCLES_UNIT_HPP
#define CDU_CYCLES_UNIT_HPP

#include <algorithm>
#include <cstdint>
#include <deque>

namespace cdu {

enum Direction : uint32_t { COMPRESS = 0, DECOMPRESS = 1 };

// A mode of a unit. Members with two numbers have one for each direction.
struct ModeTiming {
    uint32_t built;        // 0: the unit does not have the mode
    uint32_t tiles;        // the engine walks over tiles of 8 rows
    uint32_t flat;         // the tensor is one sequence of values
    uint32_t gathers;      // the unit turns tiles of 8 rows into blocks
    uint32_t repeats;      // rows below the tensor are read: its last row again
    uint32_t scale_bytes;  // bytes of a scale in memory; 0: there are none
    uint32_t whole_rows;   // the job is filled up to so many rows of 8 values
    uint32_t pass_rows;    // rows that pass at once beside the CDUs; 0: the CDUs take blocks of 8 rows
    uint32_t slice_bytes;  // bytes that pass the packed side per cycle
    uint32_t looks;        // bytes of a block that tell its length
    uint32_t start[2];     // cycles from the first request to START
    uint32_t opens;        // cycles from START to the first word that the unit may take
    uint32_t passes[2];    // cycles of a block through the core, without those in its lane and of its tile
    uint32_t gmc;          // cycles that coder GMC takes longer, when compressing
    uint32_t to_values;    // cycles of `passes` from a row that has its scale, when decompressing
};

// Numbers of a unit.
struct UnitTiming {
    uint32_t cdus;
    uint32_t buffered;      // blocks pass an alignment buffer
    uint32_t value_bytes;   // bytes of a value
    uint32_t port_rows;     // rows of 8 values in a word of the port of values
    uint32_t packed_bytes;  // bytes of a word of the packed port
    uint32_t memory_bytes;  // bytes of a word of memory; 0: there is no DMA engine
    uint32_t memory_words;  // words that a direction may have requested
    uint32_t tensor_bursts; // bursts of a tensor that may have been requested
    uint32_t scale_words;   // words of scales that a direction may have requested
    uint32_t unanswered;    // bursts that a direction may have written without an answer
    uint32_t sender;        // cycles through the end of a port that sends
    uint32_t receiver;      // cycles through the end that receives, from a word's successor on
    uint32_t scales;        // cycles from a scale at the core to its row
    uint32_t planned;       // words whose scales are known before the word comes
    ModeTiming modes[16];   // by the number in register MODE
};

// A job, with the extents and addresses of its descriptor. `payload_bytes` is the length of the payload, with its CRC if it has
// one; `gmc`: coder GMC is used, for which only compression is known.
struct JobTiming {
    uint32_t direction;
    uint32_t mode;
    uint64_t n, c, h, w;
    uint64_t payload_bytes;
    uint64_t tensor = 0, payload = 0, scales = 0;
    uint32_t gmc = 0;
};

namespace detail {

constexpr uint64_t ROW = 8, BLOCK_ROWS = 8, TILE_BLOCKS = 4, MASK = 8;
// Words that wait at both ends of a port, scales that wait between their port and the windows, and cycles from the last answer
// of memory to the result of a packet.
constexpr uint64_t PORT_WORDS = 3, WAITING_SCALES = 5, RESULT = 2;

inline uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

// Rows of 8 values, blocks and scales of a job.
struct Counts {
    uint64_t rows, row_beats, beats, groups, group_beats;
    uint64_t whole;  // rows of 8 values before the padding at the end

    Counts(const ModeTiming &mode, const JobTiming &job) {
        const uint64_t maps = job.n * job.c, area = job.h * job.w;
        rows = maps * job.h;
        if (mode.tiles) {
            row_beats = up(job.w, ROW), beats = up(rows, BLOCK_ROWS) * BLOCK_ROWS * row_beats;
            group_beats = job.h * row_beats;
            whole = beats;
        } else {
            row_beats = up(mode.flat ? maps * area : area, ROW);
            beats = up((mode.flat ? 1 : maps) * row_beats, mode.whole_rows) * mode.whole_rows;
            group_beats = mode.flat ? beats : row_beats;
            whole = (mode.flat ? 1 : maps) * row_beats;
        }
        groups = mode.scale_bytes ? up(beats, group_beats) : 0;
    }
};

// Scales that have come, and when. The rows of a strip of 8 rows of a tile, and those of a word, wait for all their scales; a
// scale waits at the port for the next one.
class Scales {
  public:
    // `passes`: cycles from a scale to the first row that has it; `span`: rows of 8 values in a word.
    Scales(const ModeTiming &mode, const Counts &counts, uint64_t span, uint64_t planned,
           uint64_t opens, uint64_t passes)
        : opens_(opens), passes_(passes), beats_(counts.beats), group_beats_(counts.group_beats),
          windows_(2 + (mode.tiles ? 0 : planned)), span_(mode.tiles ? BLOCK_ROWS * counts.row_beats : span),
          all_(counts.groups) {}

    bool accept(uint64_t, bool, uint64_t now) {
        if (now < opens_ || accepted_ >= std::min(all_, groups(begun_ + windows_ * span_) + WAITING_SCALES)) return false;
        if (accepted_++) came_.push_back(now);
        if (accepted_ == all_) came_.push_back(now + 1);
        return true;
    }
    // Whether a row may pass.
    bool has(uint64_t row, uint64_t now) {
        if (!all_) return true;
        begun_ = row / span_ * span_;
        const uint64_t needed = groups(begun_ + span_);
        return came_.size() >= needed && came_[needed - 1] + passes_ <= now;
    }

  private:
    uint64_t opens_, passes_, beats_, group_beats_, windows_, span_, all_, begun_ = 0, accepted_ = 0;
    std::deque<uint64_t> came_;

    // Scales of so many rows.
    uint64_t groups(uint64_t rows) const { return up(std::min(rows, beats_), group_beats_); }
};

// Blocks of a job and their bytes.
class Blocks {
  public:
    Blocks(const UnitTiming &unit, const ModeTiming &mode, const JobTiming &job, const Counts &counts)
        : lanes(mode.pass_rows ? 1 : unit.cdus), rows(mode.pass_rows ? mode.pass_rows : BLOCK_ROWS),
          slice(mode.slice_bytes), beats(counts.beats), payload(job.payload_bytes),
          number(up(beats, rows)), in_lanes(!mode.pass_rows), gathers(mode.gathers), counts_(counts),
          row_beats_(mode.flat ? TILE_BLOCKS : counts.row_beats), masks_(mode.gathers ? 0 : mode.looks) {}

    // Rows up to the end of a block, counting from 1, and in modes that gather to the end of its tile.
    uint64_t rows_to(uint64_t blocks) const { return std::min(beats, blocks * rows); }
    uint64_t rows_of(uint64_t block) const { return in_lanes ? rows_to(block + 1) - rows_to(block) : 1; }
    uint64_t rows_needed(uint64_t block) const {
        return gathers ? BLOCK_ROWS * (last_of_tile(block) + 1) : rows_to(block + 1);
    }
    uint64_t last_of_tile(uint64_t block) const {
        if (!gathers) return block;
        const uint64_t strip = block / row_beats_, place = block % row_beats_;
        return strip * row_beats_ + std::min(row_beats_, (place / TILE_BLOCKS + 1) * TILE_BLOCKS) - 1;
    }
    // Bytes of so many blocks; of a block with a mask that is not transformed the padding has none but those of the mask.
    uint64_t bytes_to(uint64_t blocks) const {
        const uint64_t masks = masks_ * blocks, others = payload - std::min(payload, masks_ * number);
        return std::min(payload, masks + uint64_t(others * filled(rows_to(blocks)) / filled(beats) + 0.5L));
    }
    uint64_t slices(uint64_t block) const { return std::max<uint64_t>(1, up(bytes_to(block + 1) - bytes_to(block), slice)); }

    const uint64_t lanes, rows, slice, beats, payload, number;
    const bool in_lanes, gathers;

  private:
    const Counts counts_;
    const uint64_t row_beats_, masks_;

    // Rows that are not padding at the end.
    long double filled(uint64_t rows) const { return masks_ ? std::min(rows, counts_.whole) : rows; }
};

// When the last blocks of each lane end.
class Lanes {
  public:
    explicit Lanes(uint64_t lanes) : ends_(lanes, 0) {}
    // A block that may begin at a time and takes so many cycles; its end.
    uint64_t add(uint64_t from, uint64_t cycles) {
        const uint64_t end = std::max(from, ends_.front() + cycles);
        ends_.pop_front(), ends_.push_back(end);
        return end;
    }
    uint64_t next() const { return ends_.front(); }

  private:
    std::deque<uint64_t> ends_;
};

// The unit when it compresses: rows in, bytes out. `passes`: cycles from the port to what takes the packed words; a word waits
// for the next one at the unit's port, and if it `waits` at the other end as well.
class Compressor {
  public:
    Compressor(const UnitTiming &unit, const ModeTiming &mode, const Blocks &blocks, Scales &scales, uint64_t opens,
               uint64_t passes, bool waits)
        : blocks_(blocks), scales_(scales), lanes_(blocks.lanes), opens_(opens), buffered_(unit.buffered),
          port_rows_(unit.port_rows), rate_(mode.pass_rows ? mode.pass_rows : unit.cdus), row_bytes_(ROW * unit.value_bytes),
          word_(unit.packed_bytes), passes_(passes), waits_(waits) {}

    // A word at the port.
    bool accept(uint64_t bytes, bool last, uint64_t now) {
        if (now < opens_ || words_.size() >= PORT_WORDS || is_behind(now)) return false;
        words_.push_back(up(bytes, row_bytes_)), came_ = last;
        return true;
    }

    uint64_t rows() const { return rows_; }
    void step(uint64_t now) {
        if (words_.size() > !came_ && now >= busy_ && scales_.has(rows_, now)) {
            rows_ += words_.front(), busy_ = now + up(words_.front(), rate_), words_.pop_front();
            code(now);
        }
        for (; !slices_.empty() && slices_.front().when <= now; slices_.pop_front()) level_ += slices_.front().bytes;
        ended = block_ == blocks_.number && slices_.empty();
        const uint64_t full = level_ / word_, given = ended ? level_ : (full - std::min(full, waits_)) * word_;
        ready += given, level_ -= given;
    }

    uint64_t ready = 0;  // bytes
    bool ended = false;

  private:
    struct Slice {
        uint64_t when, bytes;
    };
    const Blocks &blocks_;
    Scales &scales_;
    Lanes lanes_;
    const uint64_t opens_, buffered_, port_rows_, rate_, row_bytes_, word_, passes_, waits_;
    bool came_ = false;  // the last word
    uint64_t busy_ = 0, rows_ = 0, block_ = 0, dealt_ = 0, collected_ = 0, level_ = 0;
    std::deque<uint64_t> words_;  // their rows
    std::deque<Slice> slices_;

    // Blocks whose rows are there, through their lanes and the collector.
    void code(uint64_t now) {
        for (; block_ < blocks_.number && blocks_.rows_needed(block_) <= rows_; ++block_) {
            const uint64_t rows = blocks_.rows_of(block_), words = up(rows, port_rows_);
            // The words of the block leave the alignment buffer behind those of the block before, then its rows pass the lane.
            dealt_ = buffered_ && blocks_.in_lanes ? std::max(dealt_, now) + words : now;
            const uint64_t end = lanes_.add(blocks_.in_lanes ? dealt_ - words + rows : now, rows);
            collected_ = std::max(end + passes_, collected_);
            uint64_t left = blocks_.bytes_to(block_ + 1) - blocks_.bytes_to(block_);
            for (uint64_t slices = blocks_.slices(block_); slices--;) {
                const uint64_t bytes = slices ? std::min(left, blocks_.slice) : left;
                slices_.push_back({++collected_, bytes}), left -= bytes;
            }
        }
    }

    // Whether blocks wait for collector or memory.
    bool is_behind(uint64_t now) const {
        return ready > 4 * blocks_.slice + 256 || collected_ > now + passes_ + 4 * TILE_BLOCKS * BLOCK_ROWS;
    }
};

// The unit when it decompresses: bytes in, rows out. `passes` and `waits`: see Compressor.
class Decompressor {
  public:
    Decompressor(const UnitTiming &unit, const ModeTiming &mode, const Blocks &blocks, Scales &scales, uint64_t opens,
                 uint64_t passes, bool waits)
        : blocks_(blocks), scales_(scales), lanes_(blocks.lanes), opens_(opens), buffered_(unit.buffered),
          port_rows_(unit.port_rows), row_bytes_(ROW * unit.value_bytes), looks_(mode.looks),
          room_(blocks.slice + MASK + (PORT_WORDS + (unit.cdus > 1)) * unit.packed_bytes),
          to_end_(mode.to_values + unit.sender + waits * unit.receiver), passes_(passes - to_end_), waits_(waits),
          most_((to_end_ + waits) * port_rows_ * row_bytes_ +
                std::max<uint64_t>(waits * unit.memory_bytes, port_rows_ * row_bytes_)),
          ahead_((unit.buffered ? 2 * TILE_BLOCKS : 0) + 2 * blocks.lanes + up(passes_ * blocks.lanes, blocks.rows)),
          shows_late_(blocks.in_lanes && unit.cdus < BLOCK_ROWS), found_(!mode.looks) {}

    // A word at the port.
    bool accept(uint64_t bytes, bool last, uint64_t now) {
        if (now < opens_ || came_ + waiting_ >= taken_ + room_) return false;
        came_ += waiting_ + (last ? bytes : 0), waiting_ = last ? 0 : bytes;
        return true;
    }

    uint64_t rows() const { return given_; }
    void step(uint64_t now) {
        take(now);
        for (; !tiles_.empty() && tiles_.front().when <= now; tiles_.pop_front()) there_ = tiles_.front().rows;
        for (; !words_.empty() && words_.front().when <= now; words_.pop_front()) level_ += words_.front().rows * row_bytes_;
        const uint64_t rows = std::min(port_rows_, blocks_.beats - given_), word = port_rows_ * row_bytes_;
        if (rows && there_ >= given_ + rows && words_.size() * word + ready + level_ < most_ && scales_.has(given_, now))
            given_ += rows, words_.push_back({now + to_end_, rows});
        ended = given_ == blocks_.beats && words_.empty();
        const uint64_t given = ended ? level_ : level_ - std::min(level_, waits_ * word);
        ready += given, level_ -= given;
    }

    uint64_t ready = 0;
    bool ended = false;

  private:
    struct Rows {
        uint64_t when, rows;
    };
    const Blocks &blocks_;
    Scales &scales_;
    Lanes lanes_;
    const uint64_t opens_, buffered_, port_rows_, row_bytes_, looks_, room_, to_end_, passes_, waits_, most_, ahead_;
    const bool shows_late_;  // a slice that is a whole block
    bool found_;             // the length of the next block is known
    uint64_t came_ = 0, waiting_ = 0, level_ = 0, taken_ = 0, block_ = 0, there_ = 0, given_ = 0;
    std::deque<Rows> tiles_, words_;

    // Whether so many bytes wait, or all that are left.
    bool has(uint64_t bytes) const { return came_ >= taken_ + bytes || came_ == blocks_.payload; }

    // A slice, which the splitter gives when as many bytes wait and its lane has room; with a block's last one it looks for the
    // next block.
    void take(uint64_t now) {
        if (!found_) {
            found_ = has(looks_);
            return;
        }
        if (block_ == blocks_.number || !has(blocks_.slice) || lanes_.next() > now + BLOCK_ROWS ||
            blocks_.rows_to(block_) > given_ + ahead_ * blocks_.rows)
            return;
        const uint64_t begin = blocks_.bytes_to(block_), end = blocks_.bytes_to(block_ + 1);
        const bool whole = taken_ == begin && taken_ + blocks_.slice >= end;
        taken_ = std::min(taken_ + blocks_.slice, end);
        if (taken_ < end) return;
        const uint64_t rows = blocks_.rows_of(block_), words = up(rows, port_rows_);
        const uint64_t ends = lanes_.add(now + rows + (whole && shows_late_), rows) - (buffered_ ? 0 : words - 1);
        if (blocks_.last_of_tile(block_) == block_) tiles_.push_back({ends + passes_, blocks_.rows_to(block_ + 1)});
        ++block_, found_ = has(looks_);
    }
};

}  // namespace detail

}  // namespace cdu

#endif
