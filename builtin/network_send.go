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
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// maxHeaderBytes is the maximum number of bytes before the body of a response,
// including interim responses.
const maxHeaderBytes = 64 << 10

var errHeaderTooLong = errors.New("response header too large")

// fetch sends a hop, follows redirects and reads the body of the last response. It
// returns the last hop, which is the one that failed if there is an error.
func (c *httpClient) fetch(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, []byte, httpHop, error) {
	resp, last, err := c.follow(ctx, h, p)
	if err != nil {
		return nil, nil, last, err
	}
	defer resp.Body.Close()
	data, err := readBody(resp, bodyLimit(ctx, p))
	return resp, data, last, err
}

// follow sends a hop and follows redirects. Before each hop it checks that the
// caller may reach the host, and that a redirect stays within the bounds on the call. It returns the last hop, which is the one that
// failed if there is an error.
func (c *httpClient) follow(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, httpHop, error) {
	for n := 0; ; n++ {
		if err := c.hosts.MayReach(ctx, currentCall(ctx).By, h.host); err != nil {
			return nil, h, err
		}
		if err := checkRedirect(ctx, n, h); err != nil {
			return nil, h, err
		}
		resp, err := c.roundTrip(ctx, h, p)
		if err != nil {
			return nil, h, err
		}
		next, redirected, err := h.next(resp, p)
		if !redirected {
			return resp, h, nil
		}
		resp.Body.Close()
		if err == nil && n == p.MaxRedirects {
			err = errcode.New(errcode.ToolExecutionFailed, "http_request: more than %d redirects, the last to %s", p.MaxRedirects, next.host)
		}
		if err != nil {
			return nil, h, err
		}
		h = next
	}
}

// checkRedirect returns an error if a redirect, a hop after the first, leads out of the bounds
// on the call. The gate has checked the first URL, as it was written.
func checkRedirect(ctx context.Context, n int, h httpHop) error {
	if n == 0 {
		return nil
	}
	if v := bounds.CheckRedirect(ctx, h.url); v != nil {
		return errcode.New(errcode.ArgumentNotGranted, "http_request: %s; the server redirects there", v.Error()).With("path", v.Path)
	}
	return nil
}

// roundTrip sends one hop on a new connection, which is closed with the body.
func (c *httpClient) roundTrip(ctx context.Context, h httpHop, p NetworkPolicy) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), h.bodyReader())
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidURL, err, "http_request: invalid url")
	}
	req.Header = h.requestHeader()
	var left atomic.Int64
	left.Store(maxHeaderBytes)
	resp, err := c.transport(ctx, p, &left).RoundTrip(req)
	if err != nil && left.Load() < 0 { // err describes the truncated header
		return nil, errHeaderTooLong
	}
	left.Store(math.MaxInt64) // readBody limits the body
	return resp, err
}

// transport returns a transport for one request. It dials only addresses that the
// policy allows, closes the connection when ctx ends, and reads at most left
// bytes until roundTrip lifts the limit. It uses HTTP/1.1 without proxy and cookies.
func (c *httpClient) transport(ctx context.Context, p NetworkPolicy, left *atomic.Int64) *http.Transport {
	dialer := net.Dialer{Control: hosts.NewDialGuard(p.Private).Control, Resolver: c.resolver}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { conn.Close() }) // no connection outlives the call
			return limitedConn{conn, left}, nil
		},
		TLSClientConfig:    &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12},
		Protocols:          &protocols,
		DisableKeepAlives:  true,
		DisableCompression: true, // readBody decompresses and limits the size
	}
}

// limitedConn is a connection that reads at most left bytes.
type limitedConn struct {
	net.Conn
	left *atomic.Int64 // negative once the limit was exceeded
}

// Read implements io.Reader.
func (c limitedConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		c.left.Store(-1)
		return 0, errHeaderTooLong
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// requestError returns err with a code and text that a model can act on. The text
// omits addresses and other details of the internal network. ctx is the context
// of the call and timed the one with the timeout of limit.
func requestError(ctx, timed context.Context, limit time.Duration, h httpHop, err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	fail := func(code errcode.Code, format string, args ...any) error {
		return errcode.Wrap(code, err, "http_request: "+format, args...)
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return fail(errcode.RequestAborted, "the call was cancelled before the answer was complete%s", unknownOutcomeHint(h.method))
	case timed.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded): // the dialer may notice the deadline first
		return fail(errcode.RequestTimeout, "the answer of %s was not complete after %d ms%s", h.host, limit.Milliseconds(), unknownOutcomeHint(h.method))
	case errors.Is(err, hosts.ErrNotPublic):
		return fail(errcode.AddressBlocked, "%s leads to an address that is not public; the operator can list it in privateAddresses of kind: network", h.host)
	case errors.Is(err, errHeaderTooLong):
		return fail(errcode.ResultTooLarge, "the headers of the answer are over the limit of %d bytes%s", maxHeaderBytes, unknownOutcomeHint(h.method))
	case unknown:
		return fail(errcode.ToolExecutionFailed, "the host %s cannot be found", h.host.Name)
	case untrusted:
		return fail(errcode.ToolExecutionFailed, "the certificate of %s is not valid for it", h.host)
	}
	return fail(errcode.ToolExecutionFailed, "the connection to %s was refused, or broke before the answer was complete%s", h.host, unknownOutcomeHint(h.method))
}

// unknownOutcomeHint returns a warning that a request may have had an effect, ""
// for methods without one.
func unknownOutcomeHint(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return ""
	}
	return "; whether the " + method + " was carried out is not known"
}
