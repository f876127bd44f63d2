package builtin

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// maxHead is the most bytes a peer may send before an answer's body begins.
const maxHead = 64 << 10

var errHeadTooLong = errors.New("the answer's head is too long")

// fetch sends a hop, follows redirects and reads the last answer to its end.
// With an error it gives the hop that failed.
func (r *requests) fetch(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, []byte, httpHop, error) {
	answer, last, err := r.follow(ctx, h, p)
	if err != nil {
		return nil, nil, last, err
	}
	defer answer.Body.Close()
	data, err := readBody(answer, p.MaxBody)
	return answer, data, last, err
}

// follow sends a hop and those that redirects lead to, each only where the
// caller may go now. With an error it gives the hop that failed.
func (r *requests) follow(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, httpHop, error) {
	for n := 0; ; n++ {
		if err := r.hosts.MayReach(ctx, caller(ctx).By, h.host); err != nil {
			return nil, h, err
		}
		answer, err := r.roundTrip(ctx, h, p)
		if err != nil {
			return nil, h, err
		}
		next, redirected, err := h.next(answer, p)
		if !redirected {
			return answer, h, nil
		}
		answer.Body.Close()
		if err == nil && n == p.MaxRedirects {
			err = errcode.New(errcode.ToolExecutionFailed, "http_request: more than %d redirects, the last to %s", p.MaxRedirects, next.host)
		}
		if err != nil {
			return nil, h, err
		}
		h = next
	}
}

// roundTrip sends one hop on a connection of its own, which ends with the body.
func (r *requests) roundTrip(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), h.reader())
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidURL, err, "http_request: no request can be made of the url")
	}
	req.Header = h.header()
	var head atomic.Int64
	head.Store(maxHead)
	answer, err := r.transport(ctx, p, &head).RoundTrip(req)
	if err != nil && head.Load() < 0 { // the parser says what the cut made of it
		return nil, errHeadTooLong
	}
	head.Store(math.MaxInt64) // the body has a limit of its own
	return answer, err
}

// transport makes connections that are guarded, timed and used once. It knows
// no proxy, no cookies and HTTP/1.1 alone.
func (r *requests) transport(ctx context.Context, p NetworkPolicy, head *atomic.Int64) *http.Transport {
	dialer := net.Dialer{Control: hosts.NewDialGuard(p.Private).Control, Resolver: r.resolver}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { conn.Close() }) // nothing outlives the call
			return limitedReader{conn, head}, nil
		},
		TLSClientConfig:    &tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12},
		Protocols:          &protocols,
		DisableKeepAlives:  true,
		DisableCompression: true, // readBody unpacks, and counts
	}
}

// limitedReader is a connection that reads only so many bytes.
type limitedReader struct {
	net.Conn
	left *atomic.Int64 // below 0 when more was asked for
}

// Read implements io.Reader.
func (c limitedReader) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		c.left.Store(-1)
		return 0, errHeadTooLong
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// explain gives an error of the machinery the code and words a model can act
// on, without what resolver and sockets tell of the inside.
func explain(caller, timed context.Context, limit time.Duration, h httpHop, err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	fail := func(code errcode.Code, format string, args ...any) error {
		return errcode.Wrap(code, err, "http_request: "+format, args...)
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case caller.Err() != nil:
		return fail(errcode.RequestAborted, "the call was ended before the answer was complete%s", outcome(h.method))
	case timed.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded): // the dialer's clock may be ahead
		return fail(errcode.RequestTimeout, "the answer of %s was not complete after %d ms%s", h.host, limit.Milliseconds(), outcome(h.method))
	case errors.Is(err, hosts.ErrNotPublic):
		return fail(errcode.AddressBlocked, "%s leads to an address that is not public; the operator can list it in privateAddresses of kind: network", h.host)
	case errors.Is(err, errHeadTooLong):
		return fail(errcode.ResultTooLarge, "the headers of the answer are over the limit of %d bytes%s", maxHead, outcome(h.method))
	case unknown:
		return fail(errcode.ToolExecutionFailed, "the host %s cannot be found", h.host.Name)
	case untrusted:
		return fail(errcode.ToolExecutionFailed, "the certificate of %s is not valid for it", h.host)
	}
	return fail(errcode.ToolExecutionFailed, "the connection to %s was refused, or broke before the answer was complete%s", h.host, outcome(h.method))
}

// outcome warns of what may have happened all the same.
func outcome(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return ""
	}
	return "; whether the " + method + " was carried out is not known"
}
