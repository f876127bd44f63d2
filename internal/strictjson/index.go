package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// index finds the places of names. Of up to maxSlots names each has a slot of
// its own, so that one comparison decides; more are in the map alone.
type index struct {
	names   []string
	digests []uint64 // of names
	places  map[string]int
	slots   []uint8 // a name's place + 1, by its slot; 0 for none
	seed    uint64
	shift   int // of a 64-bit product, to a slot
}

const (
	maxSlots  = 64
	mostSeeds = 16 // before names that will not part go to the map
)

// add gives a name that is not there the next place.
func (x *index) add(name string) {
	if x.places == nil {
		x.places = map[string]int{}
	}
	x.places[name] = len(x.names)
	x.names = append(x.names, name)
	x.digests = append(x.digests, digest([]byte(name)))
	x.rehash()
}

// find gives the place of name, -1 if it has none.
func (x *index) find(name []byte) int {
	if len(x.slots) == 0 {
		return x.lookup(name)
	}
	sum := digest(name)
	at := int(x.slots[x.slot(sum)]) - 1
	if at < 0 || x.digests[at] != sum || len(x.names[at]) != len(name) {
		return -1
	}
	if len(name) > wholeDigest && x.names[at] != string(name) {
		return -1
	}
	return at
}

func (x *index) lookup(name []byte) int {
	if at, ok := x.places[string(name)]; ok {
		return at
	}
	return -1
}

// rehash looks for a seed that gives every name a slot of its own. There are
// twice as many slots as pairs of names, so that most seeds do.
func (x *index) rehash() {
	x.slots = nil
	n := len(x.names)
	if n > maxSlots {
		return
	}
	size := bits.Len(uint(n * n))
	x.shift = 64 - size
	for range mostSeeds {
		x.seed = x.seed*6364136223846793005 + 1442695040888963407
		if x.slots = x.assign(1 << size); x.slots != nil {
			return
		}
	}
}

// assign puts every name into its slot, or gives nil if two share one.
func (x *index) assign(size int) []uint8 {
	slots := make([]uint8, size)
	for at, sum := range x.digests {
		slot := x.slot(sum)
		if slots[slot] != 0 {
			return nil
		}
		slots[slot] = uint8(at + 1)
	}
	return slots
}

func (x *index) slot(sum uint64) uint64 { return sum * (x.seed | 1) >> x.shift }

// wholeDigest is up to which length the digests of two different names of the
// same length differ.
const wholeDigest = 8

// digest makes a number of a name's first and last bytes.
func digest(name []byte) uint64 {
	n := len(name)
	switch {
	case n > 8:
		head, tail := binary.LittleEndian.Uint64(name), binary.LittleEndian.Uint64(name[n-8:])
		return head ^ bits.RotateLeft64(tail, 29) + uint64(n)
	case n >= 4:
		head, tail := binary.LittleEndian.Uint32(name), binary.LittleEndian.Uint32(name[n-4:])
		return uint64(head)<<32 + uint64(tail)
	case n > 0:
		return uint64(name[0])<<16 | uint64(name[n/2])<<8 | uint64(name[n-1])
	}
	return 0
}
