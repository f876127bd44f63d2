package toolservice

import (
	"errors"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// inbox matches the responses of one link to its requests. Responses without a waiting request
// are dropped. They are late, or repeated, or for other callers. The zero inbox is ready to
// use. It is safe for concurrent use.
type inbox struct {
	mu      sync.Mutex // guards what follows, and the requests themselves
	waiting map[string]*request
}

// request is a request that waits for the end of its response.
type request struct {
	id      string
	most    int // largest number of bytes of the response
	text    strings.Builder
	answer  chan answer // buffered; receives exactly once
	started bool        // a response has arrived
}

// answer is the end of a request.
type answer struct {
	text string
	err  error // a *protocol.Error, or one of the errors below or of package broker
}

// Errors that end a request.
var (
	errLost      = errors.New("the connection to the broker was lost")
	errMalformed = errors.New("the response is not the JSON that a tool service writes")
	errOversized = errors.New("the response is too large")
)

// add returns a request with an id of its own, which waits until remove.
func (i *inbox) add(most int) *request {
	r := &request{id: uuid.NewString(), most: most, answer: make(chan answer, 1)}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting == nil {
		i.waiting = map[string]*request{}
	}
	i.waiting[r.id] = r
	return r
}

// remove forgets a request. Responses that arrive later are dropped.
func (i *inbox) remove(r *request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.waiting, r.id)
}

// receive takes one delivery of the link.
func (i *inbox) receive(d broker.Delivery) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if errors.Is(d.Err, broker.ErrUnavailable) && d.ID == "" {
		i.failAll()
		return
	}
	r := i.waiting[d.ID]
	if r == nil {
		return
	}
	if a, ended := r.take(d); ended {
		delete(i.waiting, r.id)
		r.answer <- a
	}
}

// failAll ends all requests: responses to them may be lost. It must be called with mu held.
func (i *inbox) failAll() {
	for id, r := range i.waiting {
		delete(i.waiting, id)
		r.answer <- answer{err: errLost}
	}
}

// take adds one response. It reports whether the request has ended.
func (r *request) take(d broker.Delivery) (a answer, ended bool) {
	switch {
	case d.Err != nil && r.started: // a notice that comes after a response is about another attempt
		return a, false
	case d.Err != nil:
		return answer{err: d.Err}, true
	case len(d.Body) > 2*r.most+maxEnvelope: // JSON of a text of this size
		return answer{err: errOversized}, true
	}
	r.started = true
	piece, err := protocol.DecodeResponse(d.Body)
	switch {
	case err != nil:
		return answer{err: errMalformed}, true
	case piece.Error != nil:
		return answer{err: piece.Error}, true
	case r.text.Len()+len(piece.Text) > r.most:
		return answer{err: errOversized}, true
	}
	if piece.EndOfStream && r.text.Len() == 0 { // most responses have one piece
		return answer{text: piece.Text}, true
	}
	r.text.WriteString(piece.Text)
	return answer{text: r.text.String()}, piece.EndOfStream
}

// maxEnvelope is the largest number of bytes of a response without its text.
const maxEnvelope = 4 << 10
