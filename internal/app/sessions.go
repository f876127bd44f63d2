package app

import (
	"context"

	"github.com/rolecall/rolecall/modules"
)

// sessionOwner is the owner of the record with the sessions of browsers. No module has this name.
const sessionOwner = "gateway/sessions"

// sessionStore keeps the sessions of browsers in the organization's file. It implements
// auth.SessionStore.
type sessionStore struct{ modules.OwnerStore }

// LoadSessions implements auth.SessionStore.
func (s sessionStore) LoadSessions() ([]byte, error) {
	return s.ReadValue(context.Background(), sessionOwner)
}

// SaveSessions implements auth.SessionStore.
func (s sessionStore) SaveSessions(text []byte) error {
	return s.WriteValue(context.Background(), sessionOwner, text)
}
