package toolgroups

import "maps"

// shards is how many maps a table is split into: a change copies one of them.
const shards = 256

// table is an immutable map from names. The zero table is empty.
type table[V any] struct {
	shard *[shards]map[string]V
	size  int
}

func (t table[V]) get(name string) (V, bool) {
	if t.shard == nil {
		var none V
		return none, false
	}
	v, ok := t.shard[shardOf(name)][name]
	return v, ok
}

// edit gives a copy of t with some names set and others removed.
func (t table[V]) edit(set map[string]V, remove []string) table[V] {
	next := table[V]{shard: new([shards]map[string]V), size: t.size}
	if t.shard != nil {
		*next.shard = *t.shard
	}
	var own [shards]bool
	touch := func(name string) map[string]V {
		i := shardOf(name)
		if !own[i] {
			own[i] = true
			next.shard[i] = maps.Clone(next.shard[i])
		}
		if next.shard[i] == nil {
			next.shard[i] = make(map[string]V)
		}
		return next.shard[i]
	}
	for _, name := range remove {
		shard := touch(name)
		next.size -= len(shard)
		delete(shard, name)
		next.size += len(shard)
	}
	for name, v := range set {
		shard := touch(name)
		next.size -= len(shard)
		shard[name] = v
		next.size += len(shard)
	}
	return next
}

// all yields every entry in no particular order.
func (t table[V]) all(yield func(string, V) bool) {
	if t.shard == nil {
		return
	}
	for _, shard := range t.shard {
		for name, v := range shard {
			if !yield(name, v) {
				return
			}
		}
	}
}

// shardOf spreads names by their ends and length, where tool names differ most.
func shardOf(name string) uint8 {
	n := len(name)
	if n == 0 {
		return 0
	}
	h := uint32(name[n-1])*31 + uint32(name[n/2])*17 + uint32(name[0])*7 + uint32(n)
	if n > 2 {
		h += uint32(name[n-2])*13 + uint32(name[n-3])*5
	}
	return uint8(h ^ h>>8)
}
