package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// lineTransport is the transport of stdio: one message per line, in each
// direction. It is both the sdk.Transport and the one Connection that it makes. It parses every
// line strictly before the SDK sees it. Malformed lines and calls over the
// limit are answered with an error.
type lineTransport struct {
	in          chan line
	reserve     func(bytes int) (*bodyReservation, error) // for a long line
	begin       func() (end func(), err error)            // counts a call of the sender, over all its connections
	acquireList func(context.Context) (func(), error)     // waits for the turn to encode a list of tools
	maxCalls    int                                       // calls in progress
	ids         idEncoder

	mu  sync.Mutex // guards out
	out io.Writer

	stateMu   sync.Mutex               // guards calls and answering
	calls     map[jsonrpc.ID]*lineCall // in progress; nil after the connection was closed
	answering int                      // calls whose answers are being written; their ids may be used again
	answered  chan struct{}

	ended  atomic.Bool // the input has ended, and calls in progress had their time
	once   sync.Once
	closed chan struct{}
	close  func()
}

// lineCall is a call in progress.
type lineCall struct {
	end     func()           // ends the call at the limiter of its sender
	body    *bodyReservation // of a long line
	endList func()           // ends the turn to encode a list; nil if it has none
}

// release releases all that the call holds.
func (c *lineCall) release() {
	c.end()
	c.body.release()
	if c.endList != nil {
		c.endList()
	}
}

// line is one line of input.
type line struct {
	text    []byte
	body    *bodyReservation // of a long line
	refused string           // the reason if the line was discarded; text is nil
}

// drainTimeout limits how long calls in progress may take after the end of the
// input.
const drainTimeout = 5 * time.Second

// newLineTransport returns a transport that reads in until it ends. A goroutine
// reads; it exits when in ends. close is called once, when the connection
// closes.
func newLineTransport(in io.Reader, out io.Writer, reserve func(int) (*bodyReservation, error), begin func() (func(), error), acquireList func(context.Context) (func(), error), maxCalls int, ids idEncoder, close func()) *lineTransport {
	l := &lineTransport{in: make(chan line), reserve: reserve, begin: begin, acquireList: acquireList, calls: map[jsonrpc.ID]*lineCall{}, maxCalls: maxCalls, ids: ids, out: out, answered: make(chan struct{}, 1), closed: make(chan struct{}), close: close}
	go l.scan(bufio.NewReaderSize(in, 64<<10))
	return l
}

// scan sends the non-empty lines of in to l.in, and closes l.in at the end of
// the input.
func (l *lineTransport) scan(in *bufio.Reader) {
	defer close(l.in)
	for {
		next, err := l.readLine(in)
		next.text = bytes.TrimSpace(next.text)
		if string(next.text) == wire.MCPEndOfInput {
			return
		}
		if len(next.text) > 0 || next.refused != "" {
			select {
			case l.in <- next:
			case <-l.closed:
				next.body.release()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line of at most maxBodyBytes. It discards the content of a longer line,
// and of a long line for which there is no room.
func (l *lineTransport) readLine(in *bufio.Reader) (next line, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if next.refused == "" {
			l.extend(&next, part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			next.body.shrink(len(next.text))
			return next, err
		}
	}
}

// extend appends a part to a line, or refuses the line.
func (l *lineTransport) extend(next *line, part []byte) {
	size := len(next.text) + len(part)
	var err error
	switch {
	case size > maxBodyBytes:
		next.refused = fmt.Sprintf("the message has more than %d bytes", maxBodyBytes)
	case size > smallBodyBytes && next.body == nil:
		if next.body, err = l.reserve(maxBodyBytes); err != nil {
			next.refused = errcode.Message(err)
		}
	}
	if next.refused != "" {
		next.text = nil
		return
	}
	next.text = append(next.text, part...)
}

// Connect implements sdk.Transport.
func (l *lineTransport) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID implements sdk.Connection. Lines have no session id.
func (l *lineTransport) SessionID() string { return "" }

// Read implements sdk.Connection. At the end of the input it waits up to
// drainTimeout for calls in progress before it returns io.EOF.
func (l *lineTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case got, open := <-l.in:
			if !open {
				l.waitIdle(ctx)
				l.ended.Store(true)
				return nil, io.EOF
			}
			if m := l.message(got); m != nil && l.awaitList(ctx, m) {
				return m, nil
			}
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// awaitList waits for the turn to encode a list, if m asks for one. It reports false if the
// connection ends first.
func (l *lineTransport) awaitList(ctx context.Context, m jsonrpc.Message) bool {
	call, ok := m.(*jsonrpc.Request)
	if !ok || !call.IsCall() || call.Method != methodListTools {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	release, err := l.acquireList(ctx)
	if err != nil {
		return false
	}
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	counted := l.calls[call.ID]
	if counted == nil { // closed
		release()
		return false
	}
	counted.endList = release
	return true
}

// message decodes a line. It returns nil for a line that it has answered with
// an error.
func (l *lineTransport) message(next line) jsonrpc.Message {
	kept := false
	defer func() {
		if !kept {
			next.body.release()
		}
	}()
	switch {
	case next.refused != "":
		l.writeError("", jsonrpc.CodeInvalidRequest, next.refused)
		return nil
	case next.text[0] == '[':
		l.writeError("", jsonrpc.CodeInvalidRequest, "batches are not supported on stdio")
		return nil
	}
	if err := strictjson.CheckObject(next.text, nil); err != nil {
		l.writeError("", jsonrpc.CodeParseError, "the message is malformed or ambiguous JSON: "+err.Error())
		return nil
	}
	if envelopeTooLarge(next.text) {
		l.writeError("", jsonrpc.CodeInvalidRequest, envelopeError)
		return nil
	}
	if q := readRequest(next.text); q.invalid != "" {
		l.writeError(q.id, jsonrpc.CodeInvalidParams, q.invalid)
		return nil
	}
	m, err := jsonrpc.DecodeMessage(l.ids.encode(next.text))
	if err != nil {
		l.writeError("", jsonrpc.CodeInvalidRequest, "the message is not valid JSON-RPC 2.0")
		return nil
	}
	if call, ok := m.(*jsonrpc.Request); ok && call.IsCall() {
		if refused := l.acquire(call.ID, next.body); refused != nil {
			_ = l.write(encodeError(string(marshal(call.ID.Raw())), refused))
			return nil
		}
		kept = true
	}
	return m
}

// acquire counts a call in progress, which keeps its body until it is answered. It returns an error if
// there are too many calls, here or of the sender, or if another call in progress has the id: the SDK
// would not answer the second.
func (l *lineTransport) acquire(id jsonrpc.ID, body *bodyReservation) *jsonrpc.Error {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	switch {
	case l.calls[id] != nil:
		return newRPCError(jsonrpc.CodeInvalidRequest, idInProgress)
	case l.calls == nil || len(l.calls)+l.answering >= l.maxCalls:
		return newRPCError(codeBusy, fmt.Sprintf("more than %d calls at once", l.maxCalls))
	}
	end, err := l.begin()
	if err != nil {
		return newRPCError(codeBusy, errcode.Message(err))
	}
	l.calls[id] = &lineCall{end: end, body: body}
	return nil
}

// beginAnswer removes a call that acquire counted, and ends its turn to encode a list. The call counts until
// endAnswer. It returns nil for an id without a call.
func (l *lineTransport) beginAnswer(id jsonrpc.ID) *lineCall {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	call := l.calls[id]
	if call == nil {
		return nil
	}
	delete(l.calls, id)
	l.answering++
	if call.endList != nil {
		call.endList()
		call.endList = nil
	}
	return call
}

// endAnswer ends a call whose answer was written.
func (l *lineTransport) endAnswer(call *lineCall) {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	l.answering--
	call.release()
	select {
	case l.answered <- struct{}{}:
	default:
	}
}

// endCalls ends the calls that will not be answered any more.
func (l *lineTransport) endCalls() {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	for _, call := range l.calls {
		call.release()
	}
	l.calls = nil
}

// waitIdle blocks until all calls are answered, at most drainTimeout.
func (l *lineTransport) waitIdle(ctx context.Context) {
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	for {
		l.stateMu.Lock()
		idle := len(l.calls)+l.answering == 0
		l.stateMu.Unlock()
		if idle {
			return
		}
		select {
		case <-l.answered:
		case <-timer.C:
			return
		case <-l.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Write implements sdk.Connection. A response ends a call that acquire counted. Its id may be used again when the
// client has read the response.
func (l *lineTransport) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if response, ok := m.(*jsonrpc.Response); ok {
		if call := l.beginAnswer(response.ID); call != nil {
			defer l.endAnswer(call)
		}
	}
	if err != nil {
		return err
	}
	return l.write(withErrorCodes(text))
}

// writeError answers a line with a JSON-RPC error.
func (l *lineTransport) writeError(id string, code int64, message string) {
	_ = l.write(encodeError(id, newRPCError(code, message))) // a write error means that the client has disconnected
}

// write writes one line. The SDK and Read call it concurrently.
func (l *lineTransport) write(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.out.Write(append(l.ids.decode(text), '\n'))
	return err
}

// isOpen reports whether the client is connected: a call that is cancelled now is cancelled by it.
func (l *lineTransport) isOpen() bool {
	select {
	case <-l.closed:
		return false
	default:
		return !l.ended.Load()
	}
}

// Close implements sdk.Connection.
func (l *lineTransport) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.close()
		l.endCalls()
	})
	return nil
}
