package toolgroups

import (
	"hash/maphash"
	bits64 "math/bits"
)

// shards is the number of parts of a cowMap. An edit copies only the parts that it
// changes, so that registering a group stays fast with thousands of groups.
const shards = 256

// cowMap is an immutable map from names to values; edit returns a changed copy. It is
// optimized for lookups: get computes one hash and usually compares one name. The
// zero cowMap is empty.
type cowMap[V any] struct {
	seed  uint64 // of hash
	shard *[shards]shard[V]
	size  int
}

// shard is an open-addressing hash table with linear probing. Its length is a power
// of two and it is at most a quarter full. A nil shard is empty.
type shard[V any] []entry[V]

type entry[V any] struct {
	hash  uint64 // 0 if the entry is free
	name  string
	value V
}

// get returns the value of name. It does not allocate.
func (m *cowMap[V]) get(name string) (v V, ok bool) {
	if m.shard == nil {
		return v, false
	}
	h := hash(m.seed, name)
	s := m.shard[h>>56]
	if len(s) == 0 {
		return v, false
	}
	for i := h >> 8; ; i++ { // ends, because there is always a free entry
		e := &s[i&uint64(len(s)-1)]
		if e.hash == h && e.name == name {
			return e.value, true
		}
		if e.hash == 0 {
			return v, false
		}
	}
}

// hash returns a hash of name that depends on a secret seed: an owner must not be able
// to choose names that collide. It is never 0.
func hash(seed uint64, name string) uint64 {
	h := seed ^ uint64(len(name))
	for len(name) > 16 {
		h = mix(h, word(name))
		name = name[8:]
	}
	if len(name) >= 8 {
		return mix(h^word(name), word(name[len(name)-8:])) | 1
	}
	var rest uint64
	for i := range len(name) {
		rest = rest<<8 | uint64(name[i])
	}
	return mix(h, rest) | 1
}

// word returns the first eight bytes of s. The compiler turns it into one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// mix multiplies to 128 bits and folds the halves, as wyhash does.
func mix(a, b uint64) uint64 {
	hi, lo := bits64.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// withEdits returns a copy of m without the names in remove and with the values in set. A
// name may be in both; it is then set. The copy shares all unchanged shards with m.
func (m *cowMap[V]) withEdits(set map[string]V, remove []string) cowMap[V] {
	next := cowMap[V]{seed: m.seed, shard: new([shards]shard[V]), size: m.size}
	if m.shard == nil {
		next.seed = maphash.String(maphash.MakeSeed(), "")
	} else {
		*next.shard = *m.shard
	}
	for i, list := range next.editsByShard(set, remove) {
		entries := next.shard[i].entries()
		next.size -= len(entries)
		for _, e := range list {
			if e.removed {
				delete(entries, e.name)
			} else {
				entries[e.name] = e.value
			}
		}
		next.size += len(entries)
		next.shard[i] = next.newShard(entries)
	}
	return next
}

// mapEdit removes a name from a cowMap or sets its value.
type mapEdit[V any] struct {
	name    string
	value   V
	removed bool
}

// editsByShard groups the edits of withEdits by shard, in the order in which they apply.
func (m *cowMap[V]) editsByShard(set map[string]V, remove []string) map[uint64][]mapEdit[V] {
	byShard := map[uint64][]mapEdit[V]{}
	add := func(e mapEdit[V]) {
		i := hash(m.seed, e.name) >> 56
		byShard[i] = append(byShard[i], e)
	}
	for _, name := range remove {
		add(mapEdit[V]{name: name, removed: true})
	}
	for name, v := range set {
		add(mapEdit[V]{name: name, value: v})
	}
	return byShard
}

// newShard returns a shard with the given entries.
func (m *cowMap[V]) newShard(entries map[string]V) shard[V] {
	if len(entries) == 0 {
		return nil
	}
	size := 2
	for size < 4*len(entries) {
		size *= 2
	}
	s := make(shard[V], size)
	for name, v := range entries {
		h := hash(m.seed, name)
		i := h >> 8
		for s[i&uint64(size-1)].hash != 0 {
			i++
		}
		s[i&uint64(size-1)] = entry[V]{h, name, v}
	}
	return s
}

// entries returns the entries of a shard as a new map.
func (s shard[V]) entries() map[string]V {
	m := make(map[string]V, len(s)/2)
	for _, e := range s {
		if e.hash != 0 {
			m[e.name] = e.value
		}
	}
	return m
}

// values returns all values, in no particular order.
func (m *cowMap[V]) values() []V {
	list := make([]V, 0, m.size)
	if m.shard == nil {
		return list
	}
	for _, s := range m.shard {
		for _, e := range s {
			if e.hash != 0 {
				list = append(list, e.value)
			}
		}
	}
	return list
}
