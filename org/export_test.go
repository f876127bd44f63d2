package org

import "encoding/json"

// DecodesFast reports whether the record of an agent is decoded without encoding/json.
func DecodesFast(a Agent) (bool, error) {
	doc, err := json.Marshal(a)
	s := scanner{rest: doc}
	s.header()
	return !s.failed && len(s.rest) == 0, err
}

// ScopeCount returns the number of scopes.
func (o *Org) ScopeCount() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.scopes.byKey)
}
