// Package fair provides limits that are shared by key. It has a mutex per key
// (KeyedMutex), a rate per key (RateTable), and a counting semaphore that is
// fair among keys (Semaphore).
//
//	var locks fair.KeyedMutex
//	unlock, err := locks.Lock(ctx, "ann")
//	if err != nil {
//		return err // ctx has ended
//	}
//	defer unlock()
//
// The locks are in memory: they do not exclude other processes.
package fair

import (
	"context"
	"sync"
)

// KeyedMutex is a set of mutexes, one for each key in use. The zero KeyedMutex is ready
// to use. It is safe for concurrent use.
type KeyedMutex struct {
	mu    sync.Mutex // guards what follows
	locks map[string]*keyLock
}

// keyLock is the mutex of one key. It exists while a caller holds it or waits for it.
type keyLock struct {
	held  chan struct{} // holds a token while a caller has the lock
	users int           // callers that have the lock or wait for it
}

// Lock waits for the lock of key. The caller calls unlock once. The error is ctx's cause.
func (m *KeyedMutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l := m.addUser(key)
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; m.removeUser(key, l) }, nil
	case <-ctx.Done():
		m.removeUser(key, l)
		return nil, context.Cause(ctx)
	}
}

// addUser returns the lock of key, and counts the caller as its user.
func (m *KeyedMutex) addUser(key string) *keyLock {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.locks[key]
	if !ok {
		l = &keyLock{held: make(chan struct{}, 1)}
		if m.locks == nil {
			m.locks = map[string]*keyLock{}
		}
		m.locks[key] = l
	}
	l.users++
	return l
}

// removeUser removes the lock of key when it has no users any more.
func (m *KeyedMutex) removeUser(key string, l *keyLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(m.locks, key)
	}
}
