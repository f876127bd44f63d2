package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// lineTransport is the transport of stdio: a message a line, each way. What comes in
// has passed the one strict reading before the SDK sees it; what did not is
// answered with the protocol's error, and so is a call too many. It is an
// sdk.Transport and its Connection.
type lineTransport struct {
	in   chan line
	most int // calls under way
	ids  idEncoder

	mu  sync.Mutex // guards out
	out io.Writer

	state    sync.Mutex // guards calls
	calls    int        // under way
	answered chan struct{}

	once   sync.Once
	closed chan struct{}
	close  func()
}

// line is what was read: a message, or why there is none.
type line struct {
	text []byte
	long bool
}

// EndOfInput is a line that ends the input while the answers go on: what
// carries it may have no other way to say so. It is never a message.
const EndOfInput = "\x04"

// settling is how long calls may go on when the input has ended.
const settling = 5 * time.Second

// newLines reads in until it ends, in a goroutine that ends with it. close is
// called once, when the connection ends.
func newLines(in io.Reader, out io.Writer, most int, ids idEncoder, close func()) *lineTransport {
	l := &lineTransport{in: make(chan line), most: most, ids: ids, out: out, answered: make(chan struct{}, 1), closed: make(chan struct{}), close: close}
	go l.scan(bufio.NewReaderSize(in, 64<<10))
	return l
}

func (l *lineTransport) scan(in *bufio.Reader) {
	defer close(l.in)
	for {
		text, long, err := readLine(in)
		text = bytes.TrimSpace(text)
		if string(text) == EndOfInput {
			return
		}
		if len(text) > 0 || long {
			select {
			case l.in <- line{text, long}:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line of at most maxBody bytes; of a longer one nothing is
// kept.
func readLine(in *bufio.Reader) (text []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxBody; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, long, err
		}
	}
}

// Connect implements sdk.Transport.
func (l *lineTransport) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID implements sdk.Connection: there is none.
func (l *lineTransport) SessionID() string { return "" }

// Read implements sdk.Connection. When the input has ended, calls under way may
// still be answered for a moment.
func (l *lineTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case got, open := <-l.in:
			if !open {
				l.settle(ctx)
				return nil, io.EOF
			}
			if m := l.message(got); m != nil {
				return m, nil
			}
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// message reads a line; nil when it was answered here.
func (l *lineTransport) message(got line) jsonrpc.Message {
	switch {
	case got.long:
		l.refuse("", jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message has more than %d bytes", maxBody))
		return nil
	case got.text[0] == '[':
		l.refuse("", jsonrpc.CodeInvalidRequest, "batches are not taken here")
		return nil
	}
	if err := strictjson.Object(got.text, nil); err != nil {
		l.refuse("", jsonrpc.CodeParseError, "the message is no JSON that is safe to read: "+err.Error())
		return nil
	}
	m, err := jsonrpc.DecodeMessage(l.ids.encode(got.text))
	if err != nil {
		l.refuse("", jsonrpc.CodeInvalidRequest, "the message is none of JSON-RPC 2.0")
		return nil
	}
	if call, ok := m.(*jsonrpc.Request); ok && call.IsCall() && !l.enter() {
		l.refuse(string(marshal(call.ID.Raw())), codeBusy, fmt.Sprintf("more than %d calls at once", l.most))
		return nil
	}
	return m
}

func (l *lineTransport) enter() bool {
	l.state.Lock()
	defer l.state.Unlock()
	if l.calls >= l.most {
		return false
	}
	l.calls++
	return true
}

// settle waits until all calls are answered, for a moment.
func (l *lineTransport) settle(ctx context.Context) {
	timer := time.NewTimer(settling)
	defer timer.Stop()
	for {
		l.state.Lock()
		quiet := l.calls == 0
		l.state.Unlock()
		if quiet {
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

// Write implements sdk.Connection.
func (l *lineTransport) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = l.write(text)
	if _, ok := m.(*jsonrpc.Response); ok {
		l.state.Lock()
		l.calls--
		l.state.Unlock()
		select {
		case l.answered <- struct{}{}:
		default:
		}
	}
	return err
}

func (l *lineTransport) refuse(id string, code int64, message string) {
	_ = l.write(errorAnswer(id, protocolError(code, message))) // who cannot be told finds out by itself
}

func (l *lineTransport) write(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.out.Write(append(l.ids.decode(text), '\n'))
	return err
}

// Close implements sdk.Connection.
func (l *lineTransport) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.close()
	})
	return nil
}
