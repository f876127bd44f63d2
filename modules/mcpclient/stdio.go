package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"
)

// What a server may send and how long it may leave us waiting to send.
const (
	maxMessage    = 16 << 20 // bytes of one message
	maxRequests   = 5000     // requests and notifications a second; answers are not counted
	writePatience = 10 * time.Second
)

var errTooLong = fmt.Errorf("a message of more than %d MiB", maxMessage>>20)

// stdioTransport speaks JSON-RPC with a program, one message a line. What is no message
// ends it. It implements sdk.Connection.
type stdioTransport struct {
	in   *bufio.Reader
	out  *os.File
	pace *rate.Limiter // of requests and notifications
	end  func() error  // ends the program; called once

	writing chan struct{} // holds a token while nobody writes

	once sync.Once
	err  error // of end

	mu    sync.Mutex // guards fault
	fault error      // what the program did wrong first
}

// newLimiter returns a limiter that allows n events a second, and a burst of as
// many. Its Wait makes the reader wait, so that a server that floods is slowed down
// by its own full pipe or connection.
func newLimiter(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n), n) }

func newPipe(in io.Reader, out *os.File, end func() error) *stdioTransport {
	p := &stdioTransport{in: bufio.NewReaderSize(in, 8<<10), out: out, end: end, pace: newLimiter(maxRequests), writing: make(chan struct{}, 1)}
	p.writing <- struct{}{}
	return p
}

// SessionID implements sdk.Connection.
func (p *stdioTransport) SessionID() string { return "" }

// Read implements sdk.Connection.
func (p *stdioTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	line, err := p.line()
	if err != nil {
		return nil, p.failed(err)
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, p.failed(fmt.Errorf("a line that is no message: %q", oneLine(string(line[:min(len(line), 400)]), 200)))
	}
	if _, ok := msg.(*jsonrpc.Request); ok {
		if err := p.pace.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return msg, nil
}

// line reads the next line that is not empty.
func (p *stdioTransport) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := p.in.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxMessage {
			return nil, errTooLong
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(bytes.TrimSpace(line)) > 0 && errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// failed keeps the first fault.
func (p *stdioTransport) failed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
	return err
}

// Fault gives what ended the connection; nil when nothing did.
func (p *stdioTransport) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// Write implements sdk.Connection. A message that could not be written whole
// ends the connection.
func (p *stdioTransport) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	select {
	case <-p.writing:
		defer func() { p.writing <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.send(ctx, append(data, '\n'))
}

func (p *stdioTransport) send(ctx context.Context, line []byte) error {
	if err := p.out.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.out.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := p.out.Write(line)
	setSent(ctx, n > 0)
	if err != nil {
		return p.failed(errors.Join(err, p.Close()))
	}
	return nil
}

// Close implements sdk.Connection: it ends the program.
func (p *stdioTransport) Close() error {
	p.once.Do(func() { p.err = p.end() })
	return p.err
}
