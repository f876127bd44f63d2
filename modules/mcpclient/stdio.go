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

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
)

// The limits of a connection.
const (
	maxMessage   = 16 << 20         // bytes of one message
	maxRequests  = 1000             // requests and notifications of a server per second; responses are not limited
	maxBurst     = 5                // seconds whose requests may come at once
	writeTimeout = 10 * time.Second // for one message to a server
)

// What a server may send that ends the connection.
var (
	errMessageTooLong = fmt.Errorf("a message of more than %d MiB", maxMessage>>20)
	errNotMessage     = errors.New("a line that is not a message")
)

// stdioTransport exchanges JSON-RPC messages with a program, one per line. A line that is
// not a message ends the connection. It implements sdk.Connection.
type stdioTransport struct {
	in      *bufio.Reader
	out     *os.File
	limiter *rate.Limiter // of requests and notifications
	secrets *redact.Redactor
	stop    func() error // ends the program; called once

	writeSem chan struct{} // holds a token while no goroutine writes

	closeOnce sync.Once
	closeErr  error // of stop

	mu    sync.Mutex // guards fault
	fault error      // the first error of the connection
}

// newLimiter returns a limiter of n events per second, with bursts of up to n*maxBurst. The reader
// calls Wait, so that a server that floods is slowed down by its own full pipe or
// connection.
func newLimiter(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n), n*maxBurst) }

func newStdioTransport(in io.Reader, out *os.File, secrets *redact.Redactor, end func() error) *stdioTransport {
	p := &stdioTransport{secrets: secrets, in: bufio.NewReaderSize(in, 8<<10), out: out, stop: end, limiter: newLimiter(maxRequests), writeSem: make(chan struct{}, 1)}
	p.writeSem <- struct{}{}
	return p
}

// SessionID implements sdk.Connection.
func (p *stdioTransport) SessionID() string { return "" }

// Read implements sdk.Connection.
func (p *stdioTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	line, err := p.readLine()
	if err != nil {
		return nil, p.setFault(err)
	}
	if !new(valueCounter).add(line) {
		return nil, p.setFault(errTooManyValues)
	}
	line = p.secrets.RedactJSON(line)
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, p.setFault(fmt.Errorf("%w: %q", errNotMessage, quote(line)))
	}
	if _, ok := msg.(*jsonrpc.Request); ok {
		if err := p.limiter.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return msg, nil
}

// quote returns the beginning of a line that is not a message.
func quote(line []byte) string {
	text := textutil.RemoveInvisible(string(line))
	return visibleLine(text[:min(len(text), 400)], 200)
}

// readLine reads the next line that is not empty. The error is io.EOF at the end of the
// output, io.ErrUnexpectedEOF within a line.
func (p *stdioTransport) readLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := p.in.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxMessage {
			return nil, errMessageTooLong
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

// setFault records err if it is the first error, and returns it.
func (p *stdioTransport) setFault(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
	return err
}

// Fault returns the error that ended the connection, nil while it is open.
func (p *stdioTransport) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// Write implements sdk.Connection. A message that could not be written completely ends the
// connection.
func (p *stdioTransport) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	select {
	case <-p.writeSem:
		defer func() { p.writeSem <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.send(ctx, append(data, '\n'))
}

// send writes one line, until ctx has ended or writeTimeout has passed. It must be called
// with the token of writeSem.
func (p *stdioTransport) send(ctx context.Context, line []byte) error {
	if err := p.out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.out.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := p.out.Write(line)
	setSent(ctx, n > 0)
	if err != nil {
		return p.setFault(errors.Join(err, p.Close()))
	}
	return nil
}

// Close implements sdk.Connection: it ends the program.
func (p *stdioTransport) Close() error {
	p.closeOnce.Do(func() { p.closeErr = p.stop() })
	return p.closeErr
}
