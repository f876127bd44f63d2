package persist

import (
	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
)

// delayedIndex are the keys of delayed messages, by recipient: in the file they stand
// by when they are due.
type delayedIndex map[identity.AgentID]map[string]struct{}

func (h delayedIndex) add(to identity.AgentID, key []byte) {
	if h[to] == nil {
		h[to] = map[string]struct{}{}
	}
	h[to][string(key)] = struct{}{}
}

func (h delayedIndex) remove(to identity.AgentID, key []byte) {
	if delete(h[to], string(key)); len(h[to]) == 0 {
		delete(h, to)
	}
}

// load reads what a file holds. A message that is damaged is for nobody.
func (h delayedIndex) load(tx *bolt.Tx) {
	for key, value := range under(tx.Bucket(bucketDelayed), nil) {
		if payload, err := unframe(bucketDelayed, key, kindMessage, value); err == nil {
			h.add(identity.AgentID(gjson.GetBytes(payload, "to").Str), key)
		}
	}
}
