// Cycles of a netlist of library cells without delays, with words played into its streams and every net's changes counted.
//
// Nets are bytes that are 0 or 1. Gates stand in an order in which each follows those that drive it, and are looked up in truth
// tables. A cycle: offer words, evaluate all gates once, count, transfer, clock the flip-flops.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

// A cell's output, or the next state of a flip-flop: entry (first pin is the most significant bit) of its truth table.
struct Lookup {
    uint32_t result, first_pin, pins, table;
};

struct Stream {
    const uint32_t *payload;  // its nets, bit 0 first
    uint8_t *words;           // `width` bytes of 0 or 1 for each word: to be sent, or room for what comes
    uint64_t count, moved;    // words, and how many of them were transferred
    uint32_t width, valid, ready, receives;
};

}  // namespace

struct Netlist {
    const Lookup *gates, *flip_flops;
    const uint32_t *pins;
    const uint8_t *tables;
    uint8_t *values;
    uint64_t gate_count, flip_flop_count, net_count;
};

struct Counts {
    uint64_t *toggles, *high;  // by net: changes from one cycle to the next, cycles at 1
};

namespace {

uint8_t look_up(const Netlist &netlist, const Lookup &what) {
    const uint32_t *pin = netlist.pins + what.first_pin;
    uint32_t entry = 0;
    for (uint32_t number = 0; number < what.pins; ++number) entry = entry << 1 | netlist.values[pin[number]];
    return netlist.tables[what.table + entry];
}

// The inputs of a cycle. A payload stays when there is nothing more to send.
void offer(const Netlist &netlist, const Stream &stream) {
    if (!stream.receives) {
        netlist.values[stream.ready] = 1;
        return;
    }
    netlist.values[stream.valid] = stream.moved < stream.count;
    if (stream.moved == stream.count) return;
    const uint8_t *word = stream.words + stream.moved * stream.width;
    for (uint32_t bit = 0; bit < stream.width; ++bit) netlist.values[stream.payload[bit]] = word[bit];
}

void transfer(const Netlist &netlist, Stream &stream) {
    if (!netlist.values[stream.valid] || !netlist.values[stream.ready]) return;
    if (!stream.receives && stream.moved < stream.count) {
        uint8_t *word = stream.words + stream.moved * stream.width;
        for (uint32_t bit = 0; bit < stream.width; ++bit) word[bit] = netlist.values[stream.payload[bit]];
    }
    ++stream.moved;
}

}  // namespace

// Runs cycles until all streams have moved their words, at most `cycles`; returns the number that passed. Counts changes into
// `counts` if given; the first cycle, which has none before it, counts none.
extern "C" uint64_t run(const Netlist *netlist, Stream *streams, uint32_t stream_count, uint64_t cycles, Counts *counts) {
    std::vector<uint8_t> before(netlist->net_count), next(netlist->flip_flop_count);
    uint64_t passed = 0;
    bool done = false;
    while (passed < cycles && !done) {
        for (uint32_t number = 0; number < stream_count; ++number) offer(*netlist, streams[number]);
        for (uint64_t number = 0; number < netlist->gate_count; ++number) {
            const Lookup &gate = netlist->gates[number];
            netlist->values[gate.result] = look_up(*netlist, gate);
        }
        if (counts) {
            for (uint64_t net = 0; net < netlist->net_count; ++net) {
                counts->toggles[net] += passed && netlist->values[net] != before[net];
                counts->high[net] += netlist->values[net];
            }
            std::memcpy(before.data(), netlist->values, netlist->net_count);
        }
        done = stream_count > 0;
        for (uint32_t number = 0; number < stream_count; ++number) {
            transfer(*netlist, streams[number]);
            done &= streams[number].moved >= streams[number].count;
        }
        for (uint64_t number = 0; number < netlist->flip_flop_count; ++number)
            next[number] = look_up(*netlist, netlist->flip_flops[number]);
        for (uint64_t number = 0; number < netlist->flip_flop_count; ++number)
            netlist->values[netlist->flip_flops[number].result] = next[number];
        ++passed;
    }
    return passed;
}
