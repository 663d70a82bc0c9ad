// Kernels that count substrings, by a suffix automaton of one string through which the other walks.
//
// A state of the automaton stands for all substrings that end at the same places of the string; they are the
// suffixes, longer than len[link], of one of length len. After each character of the other string the walk knows
// the longest suffix read so far that occurs in the first: with it, the sum over all its suffixes u of
// w(|u|) · occurrences(u) is one look at a table. Time is linear in both lengths, whatever the strings and the
// alphabet.
#include <algorithm>
#include <vector>

#include "strings.hpp"

namespace separatrix {

namespace {

class Automaton {
public:
    void build(const std::int32_t* text, std::int64_t length, const double* weights) {
        const auto states = static_cast<std::size_t>(2 * length + 2);
        nodes_.clear();
        nodes_.reserve(states);
        edges_.clear();
        edges_.reserve(2 * states);
        std::size_t slots = 16;
        while (slots < 4 * states) slots *= 2;  // at most 3 · length edges
        table_.assign(slots, Slot{-1, 0, 0});
        mask_ = slots - 1;
        nodes_.push_back(Node{-1, 0, 0, -1, 0.0, 0.0});
        std::int32_t last = 0;
        for (std::int64_t i = 0; i < length; ++i) last = extend(last, text[i]);
        count(weights);
    }

    // Σ over all substrings of the walking text.
    double walk(const std::int32_t* text, std::int64_t length, const double* weights) const {
        double total = 0.0;
        std::int32_t state = 0;
        std::int64_t matched = 0;
        for (std::int64_t i = 0; i < length; ++i) {
            const std::int32_t c = text[i];
            std::int32_t next = target(state, c);
            while (next < 0 && state != 0) {
                state = nodes_[state].link;
                matched = nodes_[state].length;
                next = target(state, c);
            }
            if (next < 0) continue;
            state = next;
            ++matched;
            const Node& node = nodes_[state];
            total += node.shorter + node.occurrences * (weights[matched] - weights[nodes_[node.link].length]);
        }
        return total;
    }

private:
    struct Node {
        std::int32_t link, length, edges, order;
        double occurrences;
        double shorter;  // Σ w(|u|) · occurrences(u) over the suffixes u that belong to other states
    };
    struct Edge {
        std::int32_t character, target, next;  // next edge of the same state
    };
    struct Slot {
        std::int32_t state, character, target;
    };

    std::size_t place(std::int32_t state, std::int32_t c) const {
        const auto key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(state)) << 32) |
                         static_cast<std::uint32_t>(c);
        auto slot = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 32) & mask_;
        while (table_[slot].state >= 0 && (table_[slot].state != state || table_[slot].character != c))
            slot = (slot + 1) & mask_;
        return slot;
    }

    std::int32_t target(std::int32_t state, std::int32_t c) const {
        const Slot& slot = table_[place(state, c)];
        return slot.state < 0 ? -1 : slot.target;
    }

    void connect(std::int32_t state, std::int32_t c, std::int32_t to) {
        Slot& slot = table_[place(state, c)];
        if (slot.state < 0) {
            edges_.push_back(Edge{c, to, nodes_[state].edges});
            nodes_[state].edges = static_cast<std::int32_t>(edges_.size()) - 1;
        }
        slot = Slot{state, c, to};
    }

    // Blumer et al. (1985): add one character; `last` is the state of the whole string so far.
    std::int32_t extend(std::int32_t last, std::int32_t c) {
        const auto added = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back(Node{0, nodes_[last].length + 1, -1, 0, 1.0, 0.0});
        std::int32_t p = last, q = -1;
        while (p >= 0 && (q = target(p, c)) < 0) {
            connect(p, c, added);
            p = nodes_[p].link;
        }
        if (p < 0) return added;
        if (nodes_[p].length + 1 == nodes_[q].length) {
            nodes_[added].link = q;
            return added;
        }
        const auto clone = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back(Node{nodes_[q].link, nodes_[p].length + 1, -1, 0, 0.0, 0.0});
        for (std::int32_t e = nodes_[q].edges; e >= 0; e = edges_[e].next) {
            const std::int32_t via = edges_[e].character;
            connect(clone, via, target(q, via));
        }
        for (; p >= 0 && target(p, c) == q; p = nodes_[p].link) connect(p, c, clone);
        nodes_[q].link = nodes_[added].link = clone;
        return added;
    }

    // A place where a state's strings end is one where its link's end: occurrences go up the links, sums down.
    void count(const double* weights) {
        by_length_.resize(nodes_.size());
        for (std::size_t i = 0; i < nodes_.size(); ++i) by_length_[i] = static_cast<std::int32_t>(i);
        std::sort(by_length_.begin(), by_length_.end(), [this](std::int32_t a, std::int32_t b) {
            return nodes_[a].length < nodes_[b].length;
        });
        for (std::size_t i = by_length_.size(); i-- > 1;) {
            const Node& node = nodes_[by_length_[i]];
            nodes_[node.link].occurrences += node.occurrences;
        }
        for (std::size_t i = 1; i < by_length_.size(); ++i) {
            Node& node = nodes_[by_length_[i]];
            const Node& link = nodes_[node.link];
            if (node.link > 0)
                node.shorter = link.shorter +
                               link.occurrences * (weights[link.length] - weights[nodes_[link.link].length]);
        }
    }

    std::vector<Node> nodes_;
    std::vector<Edge> edges_;
    std::vector<Slot> table_;
    std::vector<std::int32_t> by_length_;
    std::size_t mask_ = 0;
};

}  // namespace

void substring_kernel(const Strings& strings, const StringPairs& pairs, const double* weights, double* out) {
    Automaton automaton;
    for (std::int64_t k = 0; k < pairs.count; ++k) {
        const std::int64_t second = pairs.second[k], first = pairs.first[k];
        if (k == 0 || second != pairs.second[k - 1])
            automaton.build(strings.text(second), strings.length(second), weights);
        out[k] = automaton.walk(strings.text(first), strings.length(first), weights);
    }
}

}  // namespace separatrix
