package toolgroups

// bits is a set of ToolHandle indexes. An index beyond its width is not in the set.
type bits []uint64

func newBits(width uint32) bits { return make(bits, (width+63)/64) }

func (b bits) add(i uint32) { b[i>>6] |= 1 << (i & 63) }

func (b bits) has(i uint32) bool {
	word := i >> 6
	return word < uint32(len(b)) && b[word]&(1<<(i&63)) != 0
}
