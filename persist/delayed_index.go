package persist

import (
	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
)

// delayedIndex holds the keys of delayed messages by recipient. In the file they are sorted
// by the time they are due, and purging an agent must find its messages.
type delayedIndex map[identity.AgentID]map[string]struct{}

func (x delayedIndex) add(to identity.AgentID, key []byte) {
	if x[to] == nil {
		x[to] = map[string]struct{}{}
	}
	x[to][string(key)] = struct{}{}
}

func (x delayedIndex) remove(to identity.AgentID, key []byte) {
	if delete(x[to], string(key)); len(x[to]) == 0 {
		delete(x, to)
	}
}

// load reads the keys from a file. It ignores damaged messages, whose recipient is unknown.
func (x delayedIndex) load(tx *bolt.Tx) {
	for key, value := range withPrefix(tx.Bucket(bucketDelayed), nil) {
		if payload, err := unframe(bucketDelayed, key, kindMessage, value); err == nil {
			x.add(identity.AgentID(gjson.GetBytes(payload, "to").Str), key)
		}
	}
}
