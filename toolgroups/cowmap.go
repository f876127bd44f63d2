package toolgroups

import (
	"hash/maphash"
	"maps"
	bits64 "math/bits"
)

// shards is how many parts a table is split into: a change copies one of them.
const shards = 256

// table is an immutable map from names, made for look-ups: one hash, and as a
// rule one comparison. The zero table is empty.
type table[V any] struct {
	seed  uint64
	shard *[shards]shard[V]
	size  int
}

// shard is an open-addressed hash table at most a quarter full; nil is empty.
type shard[V any] []entry[V]

type entry[V any] struct {
	hash  uint64 // never 0 in an entry that is taken
	name  string
	value V
}

func (t *table[V]) get(name string) (v V, ok bool) {
	if t.shard == nil {
		return v, false
	}
	h := hash(t.seed, name)
	s := t.shard[h>>56]
	if len(s) == 0 {
		return v, false
	}
	for i := h >> 8; ; i++ { // there is always an empty entry
		e := &s[i&uint64(len(s)-1)]
		if e.hash == h && e.name == name {
			return e.value, true
		}
		if e.hash == 0 {
			return v, false
		}
	}
}

// hash mixes the eight first bytes, the eight last and what lies between with
// a secret seed. It is never 0.
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

// word reads eight bytes; the compiler makes it one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func mix(a, b uint64) uint64 {
	hi, lo := bits64.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// edit gives a copy of t with some names set and others removed.
func (t *table[V]) edit(set map[string]V, remove []string) table[V] {
	next := table[V]{seed: t.seed, shard: new([shards]shard[V]), size: t.size}
	if t.shard == nil {
		next.seed = maphash.String(maphash.MakeSeed(), "")
	} else {
		*next.shard = *t.shard
	}
	for i, change := range next.changes(set, remove) {
		old := next.shard[i].entries()
		entries := maps.Clone(old)
		for name, v := range change {
			if v == nil {
				delete(entries, name)
			} else {
				entries[name] = *v
			}
		}
		next.size += len(entries) - len(old)
		next.shard[i] = next.build(entries)
	}
	return next
}

// changes sorts an edit by shard; nil stands for a removal.
func (t *table[V]) changes(set map[string]V, remove []string) map[uint64]map[string]*V {
	byShard := map[uint64]map[string]*V{}
	note := func(name string, v *V) {
		i := hash(t.seed, name) >> 56
		if byShard[i] == nil {
			byShard[i] = map[string]*V{}
		}
		byShard[i][name] = v
	}
	for _, name := range remove {
		note(name, nil)
	}
	for name, v := range set {
		note(name, &v)
	}
	return byShard
}

func (t *table[V]) build(entries map[string]V) shard[V] {
	if len(entries) == 0 {
		return nil
	}
	size := 2
	for size < 4*len(entries) {
		size *= 2
	}
	s := make(shard[V], size)
	for name, v := range entries {
		h := hash(t.seed, name)
		i := h >> 8
		for s[i&uint64(size-1)].hash != 0 {
			i++
		}
		s[i&uint64(size-1)] = entry[V]{h, name, v}
	}
	return s
}

func (s shard[V]) entries() map[string]V {
	m := make(map[string]V, len(s)/2)
	for _, e := range s {
		if e.hash != 0 {
			m[e.name] = e.value
		}
	}
	return m
}

// all yields every entry in no particular order.
func (t *table[V]) all(yield func(string, V) bool) {
	if t.shard == nil {
		return
	}
	for _, s := range t.shard {
		for _, e := range s {
			if e.hash != 0 && !yield(e.name, e.value) {
				return
			}
		}
	}
}
