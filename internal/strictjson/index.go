package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// KeyIndex numbers names in the order in which they are added, from 0 on. The zero KeyIndex is empty.
// It is safe for concurrent use once no more names are added.
//
// Up to maxSlots names are in a perfect hash table. So a lookup takes one comparison and no
// memory. More names are in the map only.
type KeyIndex struct {
	names   []string
	digests []uint64       // of names
	numbers map[string]int // by name
	slots   []uint8        // by slot: a name's number + 1, 0 for none
	seed    uint64
	shift   int // from a 64-bit product to a slot
}

const (
	maxSlots = 64
	maxSeeds = 16 // that are tried before the map is used
)

// Add adds a name that is not in the index.
func (x *KeyIndex) Add(name string) {
	if x.numbers == nil {
		x.numbers = map[string]int{}
	}
	x.numbers[name] = len(x.names)
	x.names = append(x.names, name)
	x.digests = append(x.digests, digest([]byte(name)))
	x.rehash()
}

// Find returns the number of name, -1 if it is not in the index.
func (x *KeyIndex) Find(name []byte) int {
	if len(x.slots) == 0 {
		return x.lookup(name)
	}
	sum := digest(name)
	at := int(x.slots[x.slot(sum)]) - 1
	if at < 0 || x.digests[at] != sum || len(x.names[at]) != len(name) {
		return -1
	}
	if len(name) > maxExact && x.names[at] != string(name) {
		return -1
	}
	return at
}

// lookup finds a name in the map.
func (x *KeyIndex) lookup(name []byte) int {
	if at, ok := x.numbers[string(name)]; ok {
		return at
	}
	return -1
}

// rehash looks for a seed without collisions. There are more slots than pairs of names, so
// most seeds have none.
func (x *KeyIndex) rehash() {
	x.slots = nil
	n := len(x.names)
	if n > maxSlots {
		return
	}
	size := bits.Len(uint(n * n))
	x.shift = 64 - size
	for range maxSeeds {
		x.seed = x.seed*6364136223846793005 + 1442695040888963407
		if x.slots = x.assign(1 << size); x.slots != nil {
			return
		}
	}
}

// assign returns the slots of all names, nil if two names collide.
func (x *KeyIndex) assign(size int) []uint8 {
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

// slot returns the slot of a digest.
func (x *KeyIndex) slot(sum uint64) uint64 { return sum * (x.seed | 1) >> x.shift }

// maxExact is the length up to which two different names of equal length have different
// digests.
const maxExact = 8

// digest returns a hash of the first and last bytes of a name.
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
