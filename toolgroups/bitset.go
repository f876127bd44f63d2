package toolgroups

import (
	mathbits "math/bits"
	"slices"
)

// bits is a set of ToolHandle indexes. An index beyond its width is not in the set.
type bits []uint64

func newBits(width uint32) bits { return make(bits, (width+63)/64) }

func (b bits) add(i uint32) { b[i>>6] |= 1 << (i & 63) }

func (b bits) has(i uint32) bool {
	word := i >> 6
	return word < uint32(len(b)) && b[word]&(1<<(i&63)) != 0
}

// addTool adds a tool under its own name, whichever of its names h has.
func (b bits) addTool(h *ToolHandle) {
	if h.original != nil {
		h = h.original
	}
	b.add(h.index)
}

// addAll adds the members of another set, which is not wider.
func (b bits) addAll(other bits) {
	for i, word := range other {
		b[i] |= word
	}
}

// union returns the union with another set, which is not wider.
func (b bits) union(other bits) bits {
	union := slices.Clone(b)
	union.addAll(other)
	return union
}

// hasAll reports whether b contains another set of the same width.
func (b bits) hasAll(other bits) bool { return other.countBeyond(b) == 0 }

// count returns the number of members.
func (b bits) count() int { return b.countBeyond(nil) }

// countBeyond returns the number of members that another set does not have.
func (b bits) countBeyond(other bits) (n int) {
	for i, word := range b {
		if i < len(other) {
			word &^= other[i]
		}
		n += mathbits.OnesCount64(word)
	}
	return n
}
