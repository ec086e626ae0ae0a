// Memory at the AXI4 port m_axi of a verilated unit: bytes of the caller, a latency, a word per cycle in each direction.
//
// Requests are taken in every cycle and answered in their order. The first word of a read, and the answer to a write, come
// `latency` cycles after the last thing that they need. An access outside of the memory is answered with SLVERR.

#ifndef CDU_MEMORY_H
#define CDU_MEMORY_H

#include <cstdint>
#include <cstring>
#include <deque>

template <unsigned WIDTH>  // bytes of a word
class Memory {
  public:
    // Sets the memory, which must live until another one is set.
    void place(uint8_t *bytes, uint64_t size, uint64_t base, uint64_t latency) {
        bytes_ = bytes, size_ = size, base_ = base, latency_ = latency;
    }

    // Drives the inputs of the unit in a cycle; returns whether one changes.
    template <typename Top>
    bool offer(Top &top, uint64_t cycle) {
        const bool before = top.m_axi_rvalid || top.m_axi_bvalid || !top.m_axi_arready;
        top.m_axi_arready = top.m_axi_awready = top.m_axi_wready = 1;
        top.m_axi_rvalid = !reads_.empty() && reads_.front().when <= cycle;
        top.m_axi_bvalid = !answers_.empty() && answers_.front().when <= cycle;
        if (top.m_axi_rvalid) {
            const Burst &burst = reads_.front();
            const uint8_t *const word = at(burst.address);
            auto *const data = reinterpret_cast<uint8_t *>(&top.m_axi_rdata);
            if (word) std::memcpy(data, word, WIDTH);
            else std::memset(data, 0, WIDTH);
            top.m_axi_rid = burst.id;
            top.m_axi_rresp = word ? OKAY : SLVERR;
            top.m_axi_rlast = burst.left == 1;
        }
        if (top.m_axi_bvalid) {
            top.m_axi_bid = answers_.front().id;
            top.m_axi_bresp = answers_.front().failed ? SLVERR : OKAY;
        }
        return before || top.m_axi_rvalid || top.m_axi_bvalid;
    }

    // Does the work of the clock's rising edge.
    template <typename Top>
    void edge(Top &top, uint64_t cycle) {
        if (top.m_axi_rvalid && top.m_axi_rready) {
            reads_.front().address += WIDTH;
            if (--reads_.front().left == 0) reads_.pop_front();
        }
        if (top.m_axi_bvalid && top.m_axi_bready) answers_.pop_front();
        if (top.m_axi_arvalid && top.m_axi_arready)
            reads_.push_back({top.m_axi_araddr, top.m_axi_arlen + 1u, top.m_axi_arid, false, cycle + 1 + latency_});
        if (top.m_axi_awvalid && top.m_axi_awready)
            writes_.push_back({top.m_axi_awaddr, top.m_axi_awlen + 1u, top.m_axi_awid, false, 0});
        if (top.m_axi_wvalid && top.m_axi_wready) {
            words_.push_back({});
            std::memcpy(words_.back().data, &top.m_axi_wdata, WIDTH);
            words_.back().strobe = top.m_axi_wstrb;
        }
        while (!writes_.empty() && !words_.empty()) write(cycle);
    }

    // Forgets everything but the place of the memory (reset).
    template <typename Top>
    void reset(Top &top) {
        reads_.clear(), writes_.clear(), answers_.clear(), words_.clear();
        top.m_axi_rvalid = top.m_axi_bvalid = top.m_axi_arready = top.m_axi_awready = top.m_axi_wready = 0;
    }

  private:
    enum Response : uint8_t { OKAY = 0, SLVERR = 2 };

    struct Burst {
        uint64_t address;  // of the next word
        unsigned left;     // words
        unsigned id;
        bool failed;
        uint64_t when;  // the first cycle in which it may be answered
    };

    struct Word {
        uint8_t data[WIDTH];
        uint64_t strobe;
    };

    // Returns a word's bytes, or none outside of the memory.
    uint8_t *at(uint64_t address) const {
        const uint64_t place = address - base_;
        return address >= base_ && size_ >= WIDTH && place <= size_ - WIDTH ? bytes_ + place : nullptr;
    }

    void write(uint64_t cycle) {
        Burst &burst = writes_.front();
        uint8_t *const place = at(burst.address);
        burst.failed |= !place;
        for (unsigned byte = 0; place && byte < WIDTH; ++byte)
            if (words_.front().strobe >> byte & 1) place[byte] = words_.front().data[byte];
        burst.address += WIDTH;
        words_.pop_front();
        if (--burst.left) return;
        burst.when = cycle + 1 + latency_;
        answers_.push_back(burst);
        writes_.pop_front();
    }

    uint8_t *bytes_ = nullptr;
    uint64_t size_ = 0, base_ = 0, latency_ = 0;
    std::deque<Burst> reads_, writes_, answers_;
    std::deque<Word> words_;
};

#endif
