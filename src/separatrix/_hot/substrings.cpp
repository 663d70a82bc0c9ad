// Kernels that count substrings, by a suffix automaton of one string through which others walk.
//
// A state of the automaton stands for all substrings that end at the same places of its string: one of length
// `length` and its suffixes longer than the length of `link`, the state of the longest suffix that ends at more
// places. After each character a walking string knows the longest suffix read so far that occurs in the
// automaton's string; the sum over all its suffixes u of w(|u|) · occurrences(u) is then a look at a table. Time
// is linear in both lengths, whatever the strings and the alphabet.
#include <algorithm>
#include <vector>

#include "strings.hpp"

namespace separatrix {

namespace {

constexpr std::int64_t LARGEST_TABLE = 1 << 21;
constexpr int TOGETHER = 4;

class Automaton {
public:
    explicit Automaton(std::int64_t alphabet) : column_(static_cast<std::size_t>(alphabet)) {}

    // `expected`: characters that are going to walk.
    void build(const std::int32_t* text, std::int64_t length, const double* weights, std::int64_t expected) {
        const auto states = static_cast<std::size_t>(2 * length + 2);
        nodes_.clear();
        nodes_.reserve(states);
        edges_.clear();
        edges_.reserve(2 * states);
        std::size_t slots = 16;
        while (slots < 4 * states) slots *= 2;  // there are at most 3 · length edges
        slots_.assign(slots, Slot{-1, 0, 0});
        nodes_.push_back(Node{-1, 0, -1});
        gains_.assign(1, Gain{});
        std::int32_t last = 0;
        for (std::int64_t i = 0; i < length; ++i) last = extend(last, text[i]);
        count(length, weights);
        complete(text, length, expected);
    }

    // Sums of TOGETHER strings: none waits for memory alone. The longer ones end one by one.
    void walk(const std::int32_t* const* texts, const std::int64_t* lengths, int count, const double* weights,
              double* out) const {
        Walk walks[TOGETHER] = {};
        std::int64_t begin = 0;
        if (width_ && count == TOGETHER) {
            begin = *std::min_element(lengths, lengths + TOGETHER);
            for (std::int64_t i = 0; i < begin; ++i)
                for (int k = 0; k < TOGETHER; ++k) step_by_table(walks[k], texts[k][i], weights);
        }
        for (int k = 0; k < count; ++k) {
            for (std::int64_t i = begin; i < lengths[k]; ++i) {
                if (width_) step_by_table(walks[k], texts[k][i], weights);
                else step_by_edges(walks[k], texts[k][i], weights);
            }
            out[k] = walks[k].total;
        }
    }

private:
    struct Node {
        std::int32_t link, length, edges;
    };
    struct Edge {
        std::int32_t character, next;  // next edge of the same state
    };
    struct Slot {
        std::int32_t state, character, target;
    };
    // Σ w(|u|) · occurrences(u) over the suffixes u of a match of length m is rest + occurrences · weights[m].
    struct Gain {
        double rest = 0.0, occurrences = 0.0;
    };
    // Where a character leads, and how much of the match can be kept on the way; -1 if the character is unknown.
    struct Move {
        std::int32_t target, kept;
    };
    struct Walk {
        std::int32_t state, matched;
        double total;
    };

    void step_by_table(Walk& walk, std::int32_t c, const double* weights) const {
        const Move move = moves_[static_cast<std::size_t>(walk.state) * width_ +
                                 static_cast<std::size_t>(column_[static_cast<std::size_t>(c)])];
        walk.matched = std::min(walk.matched, move.kept) + 1;
        walk.state = move.target;
        const Gain& gain = gains_[static_cast<std::size_t>(walk.state)];
        walk.total += gain.rest + gain.occurrences * weights[walk.matched];
    }

    void step_by_edges(Walk& walk, std::int32_t c, const double* weights) const {
        std::int32_t next = target(walk.state, c);
        while (next < 0 && walk.state != 0) {
            walk.state = node(walk.state).link;
            walk.matched = node(walk.state).length;
            next = target(walk.state, c);
        }
        if (next < 0) return;
        walk.state = next;
        ++walk.matched;
        const Gain& gain = gains_[static_cast<std::size_t>(next)];
        walk.total += gain.rest + gain.occurrences * weights[walk.matched];
    }

    Node& node(std::int32_t state) { return nodes_[static_cast<std::size_t>(state)]; }
    const Node& node(std::int32_t state) const { return nodes_[static_cast<std::size_t>(state)]; }

    std::size_t place(std::int32_t state, std::int32_t c) const {
        const std::size_t mask = slots_.size() - 1;
        const std::uint64_t key = (static_cast<std::uint64_t>(state) << 32) | static_cast<std::uint64_t>(c);
        auto at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 32) & mask;
        while (slots_[at].state >= 0 && (slots_[at].state != state || slots_[at].character != c))
            at = (at + 1) & mask;
        return at;
    }

    std::int32_t target(std::int32_t state, std::int32_t c) const {
        const Slot& slot = slots_[place(state, c)];
        return slot.state < 0 ? -1 : slot.target;
    }

    void connect(std::int32_t state, std::int32_t c, std::int32_t to) {
        Slot& slot = slots_[place(state, c)];
        if (slot.state < 0) {
            edges_.push_back(Edge{c, node(state).edges});
            node(state).edges = static_cast<std::int32_t>(edges_.size()) - 1;
        }
        slot = Slot{state, c, to};
    }

    std::int32_t add(std::int32_t link, std::int32_t length, double occurrences) {
        nodes_.push_back(Node{link, length, -1});
        gains_.push_back(Gain{0.0, occurrences});
        return static_cast<std::int32_t>(nodes_.size()) - 1;
    }

    template <class Use>
    void for_edges(std::int32_t state, Use use) {
        for (std::int32_t e = node(state).edges; e >= 0; e = edges_[static_cast<std::size_t>(e)].next)
            use(edges_[static_cast<std::size_t>(e)].character);
    }

    // Blumer et al. (1985): one more character; `last` is the state of the whole string so far.
    std::int32_t extend(std::int32_t last, std::int32_t c) {
        const std::int32_t added = add(0, node(last).length + 1, 1.0);
        std::int32_t p = last, q = -1;
        for (; p >= 0 && (q = target(p, c)) < 0; p = node(p).link) connect(p, c, added);
        if (p < 0) return added;
        if (node(p).length + 1 == node(q).length) {
            node(added).link = q;
            return added;
        }
        const std::int32_t clone = add(node(q).link, node(p).length + 1, 0.0);
        for_edges(q, [&](std::int32_t via) { connect(clone, via, target(q, via)); });
        for (; p >= 0 && target(p, c) == q; p = node(p).link) connect(p, c, clone);
        node(q).link = node(added).link = clone;
        return added;
    }

    // Where a state's strings end, its link's end too: occurrences are summed up the links, gains down.
    void count(std::int64_t length, const double* weights) {
        std::vector<std::int32_t> begins(static_cast<std::size_t>(length) + 2);
        for (const Node& each : nodes_) ++begins[static_cast<std::size_t>(each.length) + 1];
        for (std::size_t l = 1; l < begins.size(); ++l) begins[l] += begins[l - 1];
        by_length_.resize(nodes_.size());
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            by_length_[static_cast<std::size_t>(begins[static_cast<std::size_t>(nodes_[i].length)]++)] =
                static_cast<std::int32_t>(i);
        for (std::size_t i = by_length_.size(); i-- > 1;)
            gain(node(by_length_[i]).link).occurrences += gain(by_length_[i]).occurrences;
        gain(0) = Gain{};
        for (std::size_t i = 1; i < by_length_.size(); ++i) {
            const Node& each = node(by_length_[i]);
            Gain& own = gain(by_length_[i]);
            const Gain& link = gain(each.link);
            const double upto = weights[node(each.link).length];
            own.rest = link.rest + (link.occurrences - own.occurrences) * upto;
        }
    }

    Gain& gain(std::int32_t state) { return gains_[static_cast<std::size_t>(state)]; }

    // For a small alphabet, all moves of all states: those of its link but for its own edges.
    void complete(const std::int32_t* text, std::int64_t length, std::int64_t expected) {
        for (const std::int32_t c : characters_) column_[static_cast<std::size_t>(c)] = 0;
        characters_.clear();
        for (std::int64_t i = 0; i < length; ++i)
            if (auto& column = column_[static_cast<std::size_t>(text[i])]; column == 0) {
                characters_.push_back(text[i]);
                column = static_cast<std::int32_t>(characters_.size());
            }
        width_ = characters_.size() + 1;
        const auto entries = static_cast<std::int64_t>(nodes_.size() * width_);
        if (entries > LARGEST_TABLE || entries > 4 * expected) {
            width_ = 0;
            return;
        }
        moves_.resize(static_cast<std::size_t>(entries));
        std::fill_n(moves_.begin(), width_, Move{0, -1});
        for (const std::int32_t state : by_length_) {
            Move* const own = &moves_[static_cast<std::size_t>(state) * width_];
            if (state > 0) std::copy_n(&moves_[static_cast<std::size_t>(node(state).link) * width_], width_, own);
            for_edges(state, [&](std::int32_t c) {
                own[column_[static_cast<std::size_t>(c)]] = Move{target(state, c), node(state).length};
            });
        }
    }

    std::vector<Node> nodes_;
    std::vector<Gain> gains_;
    std::vector<Edge> edges_;
    std::vector<Slot> slots_;
    std::vector<Move> moves_;
    std::vector<std::int32_t> column_;      // of each character of the text, from 1; 0 for all others
    std::vector<std::int32_t> characters_;  // those of the text
    std::vector<std::int32_t> by_length_;
    std::size_t width_ = 0;
};

}  // namespace

void substring_kernel(const Strings& strings, const StringPairs& pairs, std::int64_t alphabet, const double* weights,
                      double* out) {
    Automaton automaton(alphabet);
    for (std::int64_t begin = 0, end = 0; begin < pairs.count; begin = end) {
        const std::int64_t second = pairs.second[begin];
        std::int64_t expected = 0;
        for (; end < pairs.count && pairs.second[end] == second; ++end) expected += strings.length(pairs.first[end]);
        automaton.build(strings.text(second), strings.length(second), weights, expected);
        for (std::int64_t k = begin; k < end; k += TOGETHER) {
            const int count = static_cast<int>(std::min<std::int64_t>(TOGETHER, end - k));
            const std::int32_t* texts[TOGETHER] = {};
            std::int64_t lengths[TOGETHER] = {};
            for (int l = 0; l < count; ++l) {
                texts[l] = strings.text(pairs.first[k + l]);
                lengths[l] = strings.length(pairs.first[k + l]);
            }
            automaton.walk(texts, lengths, count, weights, out + k);
        }
    }
}

}  // namespace separatrix
