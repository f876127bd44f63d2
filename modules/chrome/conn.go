package chrome

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// errBrowserGone is the error of calls when the browser has ended.
var errBrowserGone = errors.New("the browser ended")

// errTooManyMessages is the error when the browser does not read its messages any more.
var errTooManyMessages = errors.New("the browser does not read its messages")

// conn is a connection to a browser over its pipe, with the DevTools protocol. The browser
// sends only the events that were enabled: a page decides how many there are.
type conn struct {
	transport  chromedp.Transport
	out        chan *cdproto.Message
	onEvent    func(*cdproto.Message) // called one at a time; may post, must not call
	lost       chan struct{}          // closed when the connection has ended
	goroutines sync.WaitGroup

	mu      sync.Mutex // guards what follows
	lastID  int64
	pending map[int64]chan *cdproto.Message // calls that wait for their reply
	gone    bool                            // the connection has ended
}

// newConn returns a connection over r and w, which it closes.
func newConn(r io.ReadCloser, w io.WriteCloser, onEvent func(*cdproto.Message)) *conn {
	c := &conn{
		transport: chromedp.NewPipeConn(newMessageReader(r), w), onEvent: onEvent,
		out: make(chan *cdproto.Message, 4096), lost: make(chan struct{}), pending: make(map[int64]chan *cdproto.Message),
	}
	c.goroutines.Go(c.read)
	c.goroutines.Go(c.write)
	return c
}

// close ends the connection and waits for its goroutines.
func (c *conn) close() {
	c.transport.Close()
	c.goroutines.Wait()
}

func (c *conn) read() {
	defer c.onClosed()
	for {
		m := new(cdproto.Message)
		if err := c.transport.Read(context.Background(), m); err != nil {
			return
		}
		if m.ID == 0 {
			c.onEvent(m)
			continue
		}
		if reply := c.takePending(m.ID); reply != nil {
			reply <- m
		}
	}
}

func (c *conn) write() {
	for {
		select {
		case m := <-c.out:
			if err := c.transport.Write(context.Background(), m); err != nil {
				c.transport.Close()
				return
			}
		case <-c.lost:
			return
		}
	}
}

// onClosed ends the connection after the last message was read.
func (c *conn) onClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	close(c.lost)
	c.transport.Close()
}

// takePending removes and returns the channel for the reply to a message, nil if there is
// none.
func (c *conn) takePending(id int64) chan *cdproto.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	reply := c.pending[id]
	delete(c.pending, id)
	return reply
}

// send queues a message and returns its id. reply receives the reply; it may be nil.
func (c *conn) send(to target.SessionID, method string, params any, reply chan *cdproto.Message) (int64, error) {
	data, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return 0, errBrowserGone
	}
	c.lastID++
	m := &cdproto.Message{ID: c.lastID, SessionID: to, Method: cdproto.MethodType(method), Params: data}
	select {
	case c.out <- m:
	default:
		c.transport.Close()
		return 0, errTooManyMessages
	}
	if reply != nil {
		c.pending[m.ID] = reply
	}
	return m.ID, nil
}

// session addresses one target, or the browser when id is "".
type session struct {
	*conn
	id target.SessionID
}

// post sends a command and ignores its reply.
func post[P, R any](s session, cmd cdp.Command[P, R], params P) error {
	_, err := s.send(s.id, cmd.Method, params, nil)
	return err
}

// call sends a command and waits for its reply. The error is errBrowserGone when the browser
// has ended, a *cdproto.Error when it rejects the command, or ctx's cause.
func call[P, R any](ctx context.Context, s session, cmd cdp.Command[P, R], params P) (result R, err error) {
	reply := make(chan *cdproto.Message, 1)
	id, err := s.send(s.id, cmd.Method, params, reply)
	if err != nil {
		return result, err
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return result, m.Error
		}
		return result, jsonv2.Unmarshal(m.Result, &result, chromedp.DefaultUnmarshalOptions)
	case <-s.lost:
		return result, errBrowserGone
	case <-ctx.Done():
		s.takePending(id)
		return result, context.Cause(ctx)
	}
}

// decode decodes the parameters of an event and reports whether they are valid.
func decode[E any](m *cdproto.Message) (e E, ok bool) {
	err := jsonv2.Unmarshal(m.Params, &e, chromedp.DefaultUnmarshalOptions)
	return e, err == nil
}
