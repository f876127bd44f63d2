package mcpserver

import (
	"bytes"
	"io"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// The limits of the bodies of requests in progress. Checking, running and recording a call
// takes several times the size of its body.
const (
	smallBodyBytes     = 64 << 10 // a body of this size is not counted
	maxBodyBytesOfOne  = 32 << 20 // of one sender
	maxBodyBytesOfAll  = 128 << 20
	bodiesBusyMessage  = "the requests in progress of this sender have %d MiB, which leaves no room for this one; wait for one of them to finish"
	bodiesBusyOfOthers = "the requests in progress of all senders leave no room for this one; call again later"
)

// bodyBudget counts the bytes of large bodies in progress. The zero bodyBudget is ready to
// use. It is safe for concurrent use.
type bodyBudget struct {
	mu    sync.Mutex // guards what follows
	total int
	held  map[identity.Principal]int // senders without bytes are removed
}

// reserve counts n bytes of sender until release is called. A sender gets at most its limit,
// and no more than it leaves free for the others.
//
// Errors: RateLimited.
func (b *bodyBudget) reserve(sender identity.Principal, n int) (*bodyReservation, error) {
	sender = sender.Holder()
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.held[sender] + n
	switch {
	case held > maxBodyBytesOfOne:
		return nil, errcode.New(errcode.RateLimited, bodiesBusyMessage, b.held[sender]>>20)
	case held > maxBodyBytesOfAll-b.total:
		return nil, errcode.New(errcode.RateLimited, bodiesBusyOfOthers)
	}
	if b.held == nil {
		b.held = map[identity.Principal]int{}
	}
	b.held[sender] = held
	b.total += n
	return &bodyReservation{budget: b, sender: sender, bytes: n}, nil
}

// bodyReservation is a part of a bodyBudget. A nil one has no bytes. Its methods must not be
// called concurrently.
type bodyReservation struct {
	budget *bodyBudget
	sender identity.Principal
	bytes  int
}

// release returns all bytes to the budget. It may be called twice.
func (r *bodyReservation) release() { r.shrink(0) }

// shrink returns what is over n bytes to the budget.
func (r *bodyReservation) shrink(n int) {
	if r == nil || r.bytes <= n {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.budget.total -= r.bytes - n
	r.budget.held[r.sender] -= r.bytes - n
	r.bytes = n
	if r.budget.held[r.sender] == 0 {
		delete(r.budget.held, r.sender)
	}
}

// ReadBody reads a body of sender until its end. size is its length, -1 if that is not
// known; limit is the most that body returns. Large bodies are counted until release is
// called. The caller calls release once, also after an error.
//
// Errors: RateLimited if the sender, or all together, have too many bytes in progress. Other
// errors are errors of body.
func (l *ConcurrencyLimiter) ReadBody(body io.Reader, sender identity.Principal, size int64, limit int) (data []byte, release func(), err error) {
	buffer := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), smallBodyBytes)+bytes.MinRead))
	n, err := buffer.ReadFrom(io.LimitReader(body, smallBodyBytes))
	if err != nil || n < smallBodyBytes {
		return buffer.Bytes(), func() {}, err
	}
	if size < 0 || size > int64(limit) {
		size = int64(limit)
	}
	reservation, err := l.bodies.reserve(sender, int(size))
	if err != nil {
		return nil, func() {}, err
	}
	buffer.Grow(int(size) - buffer.Len() + bytes.MinRead)
	_, err = buffer.ReadFrom(body)
	reservation.shrink(buffer.Len())
	return buffer.Bytes(), reservation.release, err
}
