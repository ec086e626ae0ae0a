// A verilated unit behind a C interface: register accesses, and packets that move through its stream ports while it is clocked.
//
// ports.h, written from the unit's manifest, says what the unit looks like:
//   CDU_HEADER           header of the verilated model
//   CDU_TOP              its class
//   CDU_SOURCES(F)       F(name, bytes) for each AXI4-Stream port that receives
//   CDU_SINKS(F)         F(name, bytes) for each AXI4-Stream port that sends
//   CDU_INTERRUPT        name of the interrupt output, if there is one
//   CDU_PARTS(F)         F(name) for each part with a clock of its own (gates.py): input clock_NAME, output watch_NAME
//   CDU_ROOT             class of the model's signals, and CDU_ROOT_HEADER with it
//   CDU_MEMORY           bytes of a word of the port to memory, m_axi, if there is one
// The registers are an AXI4-Lite port called s_axil. An input counts from an edge of its drive clock on (gates.py): drive_NAME
// and drive_NAME_tkeep for a stream port, drive for the registers and the reset.

#include "ports.h"

#include CDU_HEADER
#include CDU_ROOT_HEADER
#include "memory.h"
#include "verilated.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum State : uint32_t { WAITS = 0, ENDED = 1, OVERFLOWED = 2, HOLES = 4 };

}  // namespace

// One packet of a stream. It and its bytes belong to the caller and must live until it has ended or was cancelled.
struct Packet {
    uint8_t *bytes;  // what to send, or room for what comes
    uint64_t size;   // bytes to send, or room in bytes
    uint64_t moved;  // bytes that were transferred so far
    uint32_t last;   // sending: whether the packet ends with TLAST
    uint32_t state;  // a set of State
};

namespace {

// Signals of up to 64 bits are integers, wider ones are arrays of 32-bit words. Both hold their bytes in order on the
// little-endian machines that this is for.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "signals are copied as little-endian bytes");

template <typename Signal>
uint8_t *bytes_of(Signal &signal) {
    return reinterpret_cast<uint8_t *>(&signal);
}

// Sets a signal to `count` ones from bit 0 on.
template <typename Signal>
void set_ones(Signal &signal, unsigned count) {
    if constexpr (std::is_integral_v<Signal>) {
        signal = count >= 8 * sizeof(Signal) ? static_cast<Signal>(~Signal{0}) : static_cast<Signal>((Signal{1} << count) - 1);
    } else {
        for (size_t word = 0; word < sizeof(Signal) / sizeof(EData); ++word) {
            const unsigned ones = count <= 32 * word ? 0 : std::min<unsigned>(count - 32 * word, 32);
            signal[word] = ones == 32 ? ~EData{0} : (EData{1} << ones) - 1;
        }
    }
}

// Returns the number of ones of a signal; `holes` tells whether they are not its lowest bits.
template <typename Signal>
unsigned count_ones(const Signal &signal, bool &holes) {
    unsigned ones = 0;
    if constexpr (std::is_integral_v<Signal>) {
        const uint64_t value = signal;
        ones = __builtin_popcountll(value);
        holes = (value & (value + 1)) != 0;
    } else {
        bool ended = false;
        holes = false;
        for (size_t word = 0; word < sizeof(Signal) / sizeof(EData); ++word) {
            const uint32_t value = signal[word];
            holes |= (value & (value + 1)) != 0 || (ended && value);
            ended |= value != ~uint32_t{0};
            ones += __builtin_popcount(value);
        }
    }
    return ones;
}

// Drives a port that receives. A word that was offered stays until it is taken.
template <unsigned WIDTH>
class Source {
  public:
    std::deque<Packet *> packets;

    // Returns whether a signal changes; `drive_keep` tells whether TKEEP does.
    template <typename Data, typename Keep>
    bool offer(Data &data, Keep &keep, CData &last, CData &valid, CData &drive_keep) {
        const bool before = valid;
        if (offered_) return false;
        valid = !packets.empty();
        if (!valid) return before;
        const Packet &packet = *packets.front();
        const uint64_t left = packet.size - packet.moved;
        count_ = static_cast<unsigned>(std::min<uint64_t>(left, WIDTH));
        if (count_ < WIDTH) std::memset(bytes_of(data), 0, sizeof data);
        std::memcpy(bytes_of(data), packet.bytes + packet.moved, count_ == WIDTH ? WIDTH : count_);
        if (count_ != kept_) {
            set_ones(keep, kept_ = count_);
            drive_keep = 1;
        }
        ends_ = left <= WIDTH;
        last = ends_ && packet.last;
        return offered_ = true;
    }

    // Moves a word; returns whether a packet ended with it.
    bool taken() {
        offered_ = false;
        Packet &packet = *packets.front();
        packet.moved += count_;
        if (!ends_) return false;
        packet.state |= ENDED;
        packets.pop_front();
        return true;
    }

    bool offered() const { return offered_; }

    // Forgets packets that have not begun.
    void cancel() {
        const bool begun = offered_ || (!packets.empty() && packets.front()->moved);
        packets.resize(begun);
    }

    void reset(CData &valid) {
        packets.clear();
        offered_ = false;
        valid = 0;
    }

  private:
    unsigned count_ = 0;         // bytes of the word that is offered
    unsigned kept_ = ~0u;        // what TKEEP was set for
    bool ends_ = false;          // it is the last one of its packet
    bool offered_ = false;
};

// Takes from a port that sends, whenever there is a packet to fill.
template <unsigned WIDTH>
class Sink {
  public:
    std::deque<Packet *> packets;

    // Returns whether the signal changes.
    bool offer(CData &ready) {
        const bool before = ready;
        ready = discards_ || !packets.empty();
        return ready != before;
    }

    // Moves a word; returns whether a packet ended with it.
    template <typename Data, typename Keep>
    bool taken(Data &data, const Keep &keep, CData last) {
        inside_ = !last;
        if (discards_) {
            discards_ = !last;
            return false;
        }
        Packet &packet = *packets.front();
        bool holes;
        const unsigned count = count_ones(keep, holes);
        if (holes) packet.state |= HOLES;
        const uint64_t room = packet.size - packet.moved;
        if (count == WIDTH && room >= WIDTH) {
            std::memcpy(packet.bytes + packet.moved, bytes_of(data), WIDTH);
            packet.moved += WIDTH;
        } else {
            const uint64_t kept = std::min<uint64_t>(count, room);
            if (kept < count) packet.state |= OVERFLOWED;
            std::memcpy(packet.bytes + packet.moved, bytes_of(data), kept);
            packet.moved += kept;
        }
        if (!last) return false;
        packet.state |= ENDED;
        packets.pop_front();
        return true;
    }

    // Drops all packets, and the rest of one that has begun or is offered.
    void cancel(CData valid) {
        packets.clear();
        discards_ = inside_ || valid;
    }

    void reset() {
        packets.clear();
        discards_ = inside_ = false;
    }

  private:
    bool inside_ = false;    // a packet has begun and not ended
    bool discards_ = false;  // up to its end
};

// A part of the unit that is clocked only when that can change something in it.
//
// It falls asleep when an edge of its clock is seen to change nothing, and wakes when one of its inputs is another than before.
class Part {
  public:
    bool awake() const { return awake_; }

    // Looks at the inputs, once in a cycle; returns whether to try if the part may sleep.
    template <typename Signal>
    bool look(const Signal &inputs) {
        static_assert(sizeof inputs <= MOST_INPUTS);
        if (std::memcmp(last_, &inputs, sizeof inputs) == 0) return awake_ && ++calm_ >= patience_;
        std::memcpy(last_, &inputs, sizeof inputs);
        calm_ = 0;
        if (!awake_) patience_ = LEAST_PATIENCE;
        awake_ = true;
        return false;
    }

    void tried(bool nothing_changed) {
        awake_ = !nothing_changed;
        calm_ = 0;
        if (awake_) patience_ = std::min(2 * patience_, MOST_PATIENCE);
    }

  private:
    // Cycles with the same inputs before a trial, which takes as long as a few cycles: more after each that failed.
    static constexpr unsigned LEAST_PATIENCE = 32, MOST_PATIENCE = 4096;
    static constexpr unsigned MOST_INPUTS = 4096;  // bytes

    bool awake_ = true;
    unsigned calm_ = 0;
    unsigned patience_ = LEAST_PATIENCE;
    uint8_t last_[MOST_INPUTS] = {};
};

class Unit {
  public:
    Unit() : context_{std::make_unique<VerilatedContext>()}, top_{std::make_unique<CDU_TOP>(context_.get())} {
        // Clocks that are high from the beginning have no edge.
        top_->eval();
        reset();
    }

    ~Unit() { top_->final(); }

    // Drops all packets and holds the reset for some cycles.
    void reset() {
#define F(name, bytes) name##_.reset(top_->name##_tvalid);
        CDU_SOURCES(F)
#undef F
#define F(name, bytes) name##_.reset();
        CDU_SINKS(F)
#undef F
#ifdef CDU_MEMORY
        memory_.reset(*top_);
#endif
        top_->s_axil_awvalid = top_->s_axil_wvalid = top_->s_axil_arvalid = 0;
        top_->s_axil_bready = top_->s_axil_rready = 0;
        top_->rst = driven_ = true;
        for (int cycle = 0; cycle < 4; ++cycle) step();
        top_->rst = 0;
        driven_ = true;
        step();
    }

    // Ports are numbered sources first, in the order of ports.h.
    bool queue(unsigned port, Packet *packet) {
        packet->moved = 0;
        packet->state = WAITS;
        unsigned number = 0;
#define F(name, bytes) \
    if (number++ == port) return name##_.packets.push_back(packet), true;
        CDU_SOURCES(F)
        CDU_SINKS(F)
#undef F
        return false;
    }

    bool cancel(unsigned port) {
        unsigned number = 0;
#define F(name, bytes) \
    if (number++ == port) return name##_.cancel(), true;
        CDU_SOURCES(F)
#undef F
#define F(name, bytes) \
    if (number++ == port) return name##_.cancel(top_->name##_tvalid), true;
        CDU_SINKS(F)
#undef F
        return false;
    }

    // Places bytes in the memory; returns whether the unit has a port for one.
    bool place(uint8_t *bytes, uint64_t size, uint64_t base, uint64_t latency) {
#ifdef CDU_MEMORY
        memory_.place(bytes, size, base, latency);
        return true;
#else
        return false;
#endif
    }

    // Clocks until a packet ends, the interrupt is high (when asked for), or for `cycles`. Returns the cycles that passed.
    uint64_t run(uint64_t cycles, bool until_packet, bool until_interrupt) {
        uint64_t passed = 0;
        while (passed < cycles) {
            ++passed;
            const bool ended = step();
            if (ended && until_packet) break;
            if (until_interrupt && interrupt()) break;
        }
        return passed;
    }

    bool interrupt() const {
#ifdef CDU_INTERRUPT
        return top_->CDU_INTERRUPT;
#else
        return false;
#endif
    }

    // Returns the response of AXI4-Lite, or -1 when there is none within `patience` cycles.
    int write(uint32_t address, uint32_t value, uint64_t patience) {
        top_->s_axil_awaddr = address;
        top_->s_axil_wdata = value;
        top_->s_axil_wstrb = 0xf;
        top_->s_axil_awvalid = top_->s_axil_wvalid = top_->s_axil_bready = 1;
        int response = -1;
        while (response < 0 && patience--) {
            driven_ = true;
            settle();
            const bool address_taken = top_->s_axil_awvalid && top_->s_axil_awready;
            const bool data_taken = top_->s_axil_wvalid && top_->s_axil_wready;
            if (top_->s_axil_bvalid) response = top_->s_axil_bresp;
            edge();
            if (address_taken) top_->s_axil_awvalid = 0;
            if (data_taken) top_->s_axil_wvalid = 0;
        }
        top_->s_axil_bready = 0;
        driven_ = true;
        return response;
    }

    int read(uint32_t address, uint32_t *value, uint64_t patience) {
        top_->s_axil_araddr = address;
        top_->s_axil_arvalid = top_->s_axil_rready = 1;
        int response = -1;
        while (response < 0 && patience--) {
            driven_ = true;
            settle();
            const bool address_taken = top_->s_axil_arvalid && top_->s_axil_arready;
            if (top_->s_axil_rvalid) {
                response = top_->s_axil_rresp;
                *value = top_->s_axil_rdata;
            }
            edge();
            if (address_taken) top_->s_axil_arvalid = 0;
        }
        top_->s_axil_rready = 0;
        driven_ = true;
        return response;
    }

    uint64_t cycle() const { return cycle_; }

    // Clock edges that parts of the unit did not get since nothing would have changed.
    uint64_t rested() const { return rested_; }

  private:
    // Returns whether a clock edge in one part alone leaves every signal of the unit unchanged; otherwise undoes the edge.
    //
    // The edge of one part shows what the part would do at an edge of all: it is computed from the same registers.
    template <typename Clock>
    bool rests(Clock &clock) {
        auto *const signals = reinterpret_cast<uint8_t *>(top_->rootp);
        std::memcpy(saved_.data(), signals, saved_.size());
        clock = 1;
        top_->eval();
        clock = 0;
        top_->eval();
        const bool same = std::memcmp(saved_.data(), signals, saved_.size()) == 0;
        if (!same) std::memcpy(signals, saved_.data(), saved_.size());
        return same;
    }

    // Drives the inputs of a cycle and lets the outputs follow.
    void settle() {
#define F(name, bytes) \
    top_->drive_##name = name##_.offer(top_->name##_tdata, top_->name##_tkeep, top_->name##_tlast, top_->name##_tvalid, \
                                       top_->drive_##name##_tkeep) || \
                         top_->rst;
        CDU_SOURCES(F)
#undef F
#define F(name, bytes) top_->drive_##name = name##_.offer(top_->name##_tready) || top_->rst;
        CDU_SINKS(F)
#undef F
#ifdef CDU_MEMORY
        driven_ |= !top_->rst && memory_.offer(*top_, cycle_);
#endif
        top_->drive = driven_;
        driven_ = false;
        top_->clk = 0;
#define F(name) top_->clock_##name = 0;
        CDU_PARTS(F)
#undef F
        top_->eval();
#define F(name) \
    if (name##_.look(top_->watch_##name)) name##_.tried(rests(top_->clock_##name));
        CDU_PARTS(F)
#undef F
    }

    // Does the work of the clock's rising edge; returns whether a packet ended.
    bool edge() {
        bool ended = false;
#define F(name, bytes) \
    if (name##_.offered() && top_->name##_tready) ended |= name##_.taken();
        CDU_SOURCES(F)
#undef F
#define F(name, bytes) \
    if (top_->name##_tvalid && top_->name##_tready) \
        ended |= name##_.taken(top_->name##_tdata, top_->name##_tkeep, top_->name##_tlast);
        CDU_SINKS(F)
#undef F
#ifdef CDU_MEMORY
        if (!top_->rst) memory_.edge(*top_, cycle_);
#endif
        top_->clk = 1;
        top_->drive = 0;
#define F(name, bytes) top_->drive_##name = top_->drive_##name##_tkeep = 0;
        CDU_SOURCES(F)
#undef F
#define F(name, bytes) top_->drive_##name = 0;
        CDU_SINKS(F)
#undef F
#define F(name) rested_ += !(top_->clock_##name = name##_.awake());
        CDU_PARTS(F)
#undef F
        top_->eval();
        ++cycle_;
        return ended;
    }

    bool step() {
        settle();
        return edge();
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<CDU_TOP> top_;
    uint64_t cycle_ = 0, rested_ = 0;
    bool driven_ = true;  // a signal of the registers' port, or the reset, is another than in the cycle before
    std::vector<uint8_t> saved_ = std::vector<uint8_t>(sizeof(CDU_ROOT));
#define F(name) Part name##_;
    CDU_PARTS(F)
#undef F
#define F(name, bytes) Source<bytes> name##_;
    CDU_SOURCES(F)
#undef F
#define F(name, bytes) Sink<bytes> name##_;
    CDU_SINKS(F)
#undef F
#ifdef CDU_MEMORY
    Memory<CDU_MEMORY> memory_;
#endif
};

}  // namespace

EXPORT Unit *cdu_create() { return new Unit; }
EXPORT void cdu_destroy(Unit *unit) { delete unit; }
EXPORT void cdu_reset(Unit *unit) { unit->reset(); }
EXPORT int cdu_queue(Unit *unit, unsigned port, Packet *packet) { return unit->queue(port, packet); }
EXPORT int cdu_cancel(Unit *unit, unsigned port) { return unit->cancel(port); }
EXPORT int cdu_memory(Unit *unit, uint8_t *bytes, uint64_t size, uint64_t base, uint64_t latency) {
    return unit->place(bytes, size, base, latency);
}
EXPORT uint64_t cdu_run(Unit *unit, uint64_t cycles, int until_packet, int until_interrupt) {
    return unit->run(cycles, until_packet, until_interrupt);
}
EXPORT int cdu_write(Unit *unit, uint32_t address, uint32_t value, uint64_t patience) {
    return unit->write(address, value, patience);
}
EXPORT int cdu_read(Unit *unit, uint32_t address, uint32_t *value, uint64_t patience) {
    return unit->read(address, value, patience);
}
EXPORT int cdu_interrupt(Unit *unit) { return unit->interrupt(); }
EXPORT uint64_t cdu_cycle(Unit *unit) { return unit->cycle(); }
EXPORT uint64_t cdu_rested(Unit *unit) { return unit->rested(); }
