package builtin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/internal/openfiles"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// HostPolicy decides which hosts a caller may reach.
type HostPolicy interface {
	// MayReach returns nil if by may send requests to a host now, otherwise an
	// error with the code host_blocked.
	MayReach(ctx context.Context, by identity.Principal, h hosts.Host) error
}

// NetworkPolicy limits what requests of all roles can reach and use. The zero
// policy allows no requests.
type NetworkPolicy struct {
	AllowHTTP    bool           // allow http in addition to https
	Private      []netip.Prefix // addresses that are allowed although they are not public
	Hosts        hosts.HostRule // applies to every role
	MaxBody      int64          // bytes of a response body, both as sent and decompressed
	MaxRedirects int
	Timeout      time.Duration // upper bound for the timeout of one call
}

// PublicNetwork returns the policy of an organization that configures none: HTTPS
// to public addresses.
func PublicNetwork() NetworkPolicy {
	return NetworkPolicy{Hosts: hosts.AnyHost(), MaxBody: workspace.MaxContent, MaxRedirects: 10, Timeout: 4 * time.Minute}
}

// maxRequests limits the requests of http_request at once, for the memory of their answers.
const maxRequests = 256

// newRequestSlots returns a semaphore for the requests of http_request at once. They leave
// files for everything else that the process opens.
func newRequestSlots() *fair.Semaphore {
	return fair.NewSemaphore(min(maxRequests, openfiles.MaxOutgoing()))
}

// networkTools returns http_request. A nil policy allows no requests.
func networkTools(h HostPolicy, a ArtifactStore, policy func() NetworkPolicy) ([]tool.Tool, error) {
	return (&httpClient{hosts: h, artifacts: a, policy: policy, slots: newRequestSlots(), conversions: newReadSlots()}).tools()
}

// tools returns http_request, handled by c.
func (c *httpClient) tools() ([]tool.Tool, error) {
	var s toolBuilder
	s.add(tool.New("http_request", httpRequestText, withErrorCode(c.send), toolOptions(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), httpRequestInput)))
	return s.tools, s.err
}

const httpRequestText = `Send an HTTP request. Returns status, headers and body. After a timeout, a change may have been made: check before you repeat it.`

const httpRequestInput = `{
	"type": "object",
	"properties": {
		"url": {
			"type": "string",
			"description": "An https address.",
			"pattern": "^[hH][tT][tT][pP][sS]?://",
			"minLength": 8,
			"maxLength": 8192
		},
		"method": {
			"type": "string",
			"description": "The method.",
			"enum": ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"],
			"default": "GET"
		},
		"headers": {
			"type": "object",
			"description": "Names and values.",
			"additionalProperties": {"type": "string", "maxLength": 8192},
			"maxProperties": 100
		},
		"body": {
			"type": ["string", "number", "boolean", "object", "array", "null"],
			"description": "For POST, PUT and PATCH: a text, or any JSON."
		},
		"timeoutMs": {
			"type": "integer",
			"description": "Give up after so many milliseconds.",
			"minimum": 1,
			"maximum": 240000,
			"default": 30000
		}
	},
	"required": ["url"],
	"additionalProperties": false
}`

// httpRequest holds the arguments of http_request.
type httpRequest struct {
	URL       string            `json:"url"`
	Method    string            `json:"method,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"`
	TimeoutMs int               `json:"timeoutMs,omitempty"`
}

// httpResponse is the result of http_request.
type httpResponse struct {
	Status     int               `json:"status"`
	StatusText string            `json:"statusText"`
	Headers    map[string]string `json:"headers"` // names in lower case
	Body       json.RawMessage   `json:"body"`
	Encoding   string            `json:"encoding,omitempty"` // base64 for a binary body
	URL        string            `json:"url,omitempty"`      // final URL after redirects
	LatencyMs  int64             `json:"latencyMs"`
	RequestID  string            `json:"requestId"`
}

// httpClient handles http_request. Every request has its own connection, so that
// calls and callers share no state.
type httpClient struct {
	hosts        HostPolicy
	artifacts    ArtifactStore
	policy       func() NetworkPolicy
	slots        *fair.Semaphore // held while a request is sent and its answer read
	conversions  *fair.Semaphore // held while a body is converted
	requestCount atomic.Uint64

	roots    *x509.CertPool // nil uses the system's
	resolver *net.Resolver  // nil uses the system's
}

// send handles http_request. It adds the request id and the latency to answers
// and errors.
func (c *httpClient) send(ctx context.Context, in httpRequest) (httpResponse, error) {
	start := time.Now()
	id := "req_" + strconv.FormatInt(start.UnixMilli(), 36) + "_" + strconv.FormatUint(c.requestCount.Add(1), 10)
	out, err := c.exchange(ctx, in)
	latency := time.Since(start).Milliseconds()
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return out, e.With("requestId", id).With("latencyMs", latency)
	}
	out.RequestID, out.LatencyMs = id, latency
	return out, err
}

// exchange sends a request. Its timeout covers everything up to the last byte of
// the answer.
func (c *httpClient) exchange(ctx context.Context, in httpRequest) (httpResponse, error) {
	if c.policy == nil {
		return httpResponse{}, errcode.New(errcode.ToolUnavailable, "http_request is not available: the operator allows no requests")
	}
	policy := c.policy()
	first, err := newHop(in, policy)
	if err != nil {
		return httpResponse{}, err
	}
	limit := min(in.timeout(), policy.Timeout)
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	release, err := c.slots.Acquire(timed, fairKey(currentCall(ctx)))
	if err != nil {
		return httpResponse{}, notSentError(ctx, err)
	}
	defer release()
	resp, data, last, err := c.fetch(timed, first, policy)
	if err != nil {
		return httpResponse{}, requestError(ctx, timed, limit, last, err)
	}
	out := httpResponse{Status: resp.StatusCode, StatusText: http.StatusText(resp.StatusCode), Headers: joinHeaders(resp.Header)}
	if last.url != first.url {
		out.URL = last.url.String()
	}
	out.Body, out.Encoding, err = c.content(ctx, resp.Header, data, last)
	return out, err
}

// notSentError returns the error of a request that did not get its turn.
func notSentError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errcode.Wrap(errcode.RequestAborted, err, "http_request: the call was cancelled before the request was sent")
	}
	return errcode.Wrap(errcode.RateLimited, err, "http_request: the request was not sent, because other requests took all places within its time limit; wait for your own requests to finish, then call again")
}

// timeout returns the requested timeout or its default.
func (in httpRequest) timeout() time.Duration {
	if in.TimeoutMs == 0 {
		return 30 * time.Second
	}
	return time.Duration(in.TimeoutMs) * time.Millisecond
}
