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

// errBrowserGone: the browser is gone.
var errBrowserGone = errors.New("the browser ended")

// errTooManyMessages: nothing is read from us any more.
var errTooManyMessages = errors.New("the browser takes no more messages")

// conn speaks the DevTools protocol with one browser, over its pipe. Only what
// is subscribed to comes in: a page decides how much that is.
type conn struct {
	transport chromedp.Transport
	out       chan *cdproto.Message
	event     func(*cdproto.Message) // called one at a time; may post, may not call
	lost      chan struct{}          // closed when the browser is gone
	ended     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	next    int64
	pending map[int64]chan *cdproto.Message
	gone    bool
}

// newConn takes over r and w, and tells event what happens.
func newConn(r io.ReadCloser, w io.WriteCloser, event func(*cdproto.Message)) *conn {
	c := &conn{
		transport: chromedp.NewPipeConn(newFrames(r), w), event: event,
		out: make(chan *cdproto.Message, 4096), lost: make(chan struct{}), pending: make(map[int64]chan *cdproto.Message),
	}
	c.ended.Go(c.read)
	c.ended.Go(c.write)
	return c
}

// close ends the connection, and returns when nothing of it runs.
func (c *conn) close() {
	c.transport.Close()
	c.ended.Wait()
}

func (c *conn) read() {
	defer c.fail()
	for {
		m := new(cdproto.Message)
		if err := c.transport.Read(context.Background(), m); err != nil {
			return
		}
		if m.ID == 0 {
			c.event(m)
			continue
		}
		if reply := c.take(m.ID); reply != nil {
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

func (c *conn) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	close(c.lost)
	c.transport.Close()
}

// take gives where the reply to a message is waited for, once.
func (c *conn) take(id int64) chan *cdproto.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	reply := c.pending[id]
	delete(c.pending, id)
	return reply
}

// send puts a message on its way without waiting; reply may be nil.
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
	c.next++
	m := &cdproto.Message{ID: c.next, SessionID: to, Method: cdproto.MethodType(method), Params: data}
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

// session is one target's, or the browser's when id is "".
type session struct {
	*conn
	id target.SessionID
}

// post sends a command and passes its reply over.
func post[P, R any](s session, cmd cdp.Command[P, R], params P) error {
	_, err := s.send(s.id, cmd.Method, params, nil)
	return err
}

// call sends a command and waits for its reply. The error is errBrowserGone when the
// browser is gone, a *cdproto.Error when it refuses, or ctx's.
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
		s.take(id)
		return result, context.Cause(ctx)
	}
}

// decode reads the parameters of an event; false when it is none.
func decode[E any](m *cdproto.Message) (e E, ok bool) {
	err := jsonv2.Unmarshal(m.Params, &e, chromedp.DefaultUnmarshalOptions)
	return e, err == nil
}
