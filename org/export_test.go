package org

import "encoding/json"

// ReadFast says whether an agent's record is read as it is written, without
// encoding/json.
func ReadFast(a Agent) (bool, error) {
	doc, err := json.Marshal(a)
	s := scanner{rest: doc}
	s.header()
	return !s.failed && len(s.rest) == 0, err
}

// Slots counts the slots there are.
func (o *Org) Slots() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.slots.byKey)
}
