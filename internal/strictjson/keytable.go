package strictjson

import "hash/maphash"

// keyTable is a set of keys. It has no copy of their names. It takes about 30 bytes for a key, a
// third of a map of names. Memory matters because a sender chooses how many keys there are.
type keyTable struct {
	seed   maphash.Seed // unknown to senders, who could otherwise choose names of one slot
	keys   []tableKey
	places []uint32 // by hash, with free ones between: an index of keys plus one, 0 for none. The length is a power of two
}

// tableKey is a key with its hash.
type tableKey struct {
	key
	hash uint32
}

func newKeyTable() *keyTable {
	return &keyTable{seed: maphash.MakeSeed(), places: make([]uint32, 128)}
}

// find returns the key that is the same as k, and adds k if there is none. id is the identity of k.
func (t *keyTable) find(id []byte, k key, same func(key) bool) (key, bool) {
	hash := uint32(maphash.Bytes(t.seed, id))
	at := t.free(hash, same)
	if n := t.places[at]; n != 0 {
		return t.keys[n-1].key, true
	}
	t.keys = append(t.keys, tableKey{k, hash})
	t.places[at] = uint32(len(t.keys))
	if 3*len(t.keys) > 2*len(t.places) {
		t.grow()
	}
	return key{}, false
}

// free returns the place of the key that same accepts, or else the first free one for a hash.
func (t *keyTable) free(hash uint32, same func(key) bool) int {
	mask := len(t.places) - 1
	at := int(hash) & mask
	for ; t.places[at] != 0; at = (at + 1) & mask {
		if k := t.keys[t.places[at]-1]; k.hash == hash && same(k.key) {
			break
		}
	}
	return at
}

// grow doubles the places, and the room for keys with them.
func (t *keyTable) grow() {
	t.places = make([]uint32, 2*len(t.places))
	t.keys = append(make([]tableKey, 0, 2*len(t.places)/3+1), t.keys...)
	for i, k := range t.keys {
		t.places[t.free(k.hash, func(key) bool { return false })] = uint32(i + 1)
	}
}
