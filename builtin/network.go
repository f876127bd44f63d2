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

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// Hosts knows which hosts a caller may reach.
type Hosts interface {
	// MayReach says whether requests of by may go to a host now; the error is
	// host_blocked when they may not.
	MayReach(ctx context.Context, by identity.Principal, h hosts.Host) error
}

// NetworkPolicy is what the operator lets all requests reach and use up. The
// zero policy lets nothing out.
type NetworkPolicy struct {
	AllowHTTP    bool           // http beside https
	Private      []netip.Prefix // reachable although not public
	Hosts        hosts.Rule     // bounds every role
	MaxBody      int64          // bytes of an answer's body, as sent and as unpacked
	MaxRedirects int
	Timeout      time.Duration // the most for one request, whatever it asks for
}

// PublicNetwork is the policy of an organization that says nothing of it:
// HTTPS to public addresses.
func PublicNetwork() NetworkPolicy {
	return NetworkPolicy{Hosts: hosts.Any(), MaxBody: maxContent, MaxRedirects: 10, Timeout: 4 * time.Minute}
}

// networkTools makes http_request. A nil policy lets nothing out.
func networkTools(h Hosts, a Artifacts, policy func() NetworkPolicy) ([]tool.Tool, error) {
	return (&requests{hosts: h, store: a, policy: policy}).tools()
}

func (r *requests) tools() ([]tool.Tool, error) {
	var s toolBuilder
	s.add(tool.New("http_request", httpRequestText, guarded(r.send), options(tool.Mutating, httpRequestInput)))
	return s.tools, s.err
}

const httpRequestText = `Send one HTTP request, to call a web API or to fetch a document, and get {status, statusText, headers, body, latencyMs, requestId}. ` +
	`A status of 400 or more is an answer, not an error: look at status. ` +
	`body is the value of a JSON answer, else its text; text over 262144 bytes and anything that is no text becomes an artifact of your task, and body says {artifactRef, size, mediaType}. ` +
	`Limits: https to public addresses, and the hosts your role may reach (host_blocked lists them), unless the operator set others; 8 MiB of body (result_too_large: ask for less, or for a part with the header range); ` +
	`no cookies or logins are kept between calls. Redirects are followed, url then says where the answer is from; your headers are not sent on to another host. ` +
	`After request_timeout or a broken connection a POST, PUT, PATCH or DELETE may have been carried out: look before you repeat it. ` +
	`Example: {"url":"https://example.com/items","method":"POST","headers":{"accept":"application/json"},"body":{"name":"a"}}`

const httpRequestInput = `{
	"type": "object",
	"properties": {
		"url": {
			"type": "string",
			"description": "Where to send the request: https://host/path?query, without user name and password. http only where the operator allows it.",
			"pattern": "^[hH][tT][tT][pP][sS]?://",
			"minLength": 8,
			"maxLength": 8192
		},
		"method": {
			"type": "string",
			"description": "The HTTP method.",
			"enum": ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"],
			"default": "GET"
		},
		"headers": {
			"type": "object",
			"description": "Header names and their values, as authorization or accept. Those that belong to the connection (host, content-length, transfer-encoding, connection, accept-encoding and the like) are set for you and refused here.",
			"additionalProperties": {"type": "string", "maxLength": 8192},
			"maxProperties": 100
		},
		"body": {
			"description": "Sent with POST, PUT and PATCH only: a string as it is (text/plain), any other value as JSON (application/json); the header content-type says otherwise."
		},
		"timeoutMs": {
			"type": "integer",
			"description": "After how many milliseconds to give up, counted to the last byte of the answer.",
			"minimum": 1,
			"maximum": 240000,
			"default": 30000
		}
	},
	"required": ["url"],
	"additionalProperties": false
}`

type httpRequest struct {
	URL       string            `json:"url"`
	Method    string            `json:"method,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"`
	TimeoutMs int               `json:"timeoutMs,omitempty"`
}

type httpResponse struct {
	Status     int               `json:"status"`
	StatusText string            `json:"statusText"`
	Headers    map[string]string `json:"headers"` // names in lower case
	Body       json.RawMessage   `json:"body"`
	Encoding   string            `json:"encoding,omitempty"` // of a body in base64
	URL        string            `json:"url,omitempty"`      // where redirects led
	LatencyMs  int64             `json:"latencyMs"`
	RequestID  string            `json:"requestId"`
}

// requests sends requests. Each has its own connections: nothing of one call
// or caller reaches another.
type requests struct {
	hosts  Hosts
	store  Artifacts
	policy func() NetworkPolicy
	sent   atomic.Uint64

	roots    *x509.CertPool // nil: the system's
	resolver *net.Resolver  // nil: the system's
}

func (r *requests) send(ctx context.Context, in httpRequest) (httpResponse, error) {
	began := time.Now()
	id := "req_" + strconv.FormatInt(began.UnixMilli(), 36) + "_" + strconv.FormatUint(r.sent.Add(1), 10)
	out, err := r.exchange(ctx, in)
	latency := time.Since(began).Milliseconds()
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return out, e.With("requestId", id).With("latencyMs", latency)
	}
	out.RequestID, out.LatencyMs = id, latency
	return out, err
}

// exchange carries a request out, within its time to the last byte.
func (r *requests) exchange(ctx context.Context, in httpRequest) (httpResponse, error) {
	if r.policy == nil {
		return httpResponse{}, errcode.New(errcode.ToolUnavailable, "http_request is not available: the operator lets no requests out")
	}
	policy := r.policy()
	first, err := newHop(in, policy)
	if err != nil {
		return httpResponse{}, err
	}
	limit := min(in.timeout(), policy.Timeout)
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, data, last, err := r.fetch(timed, first, policy)
	if err != nil {
		return httpResponse{}, explain(ctx, timed, limit, last, err)
	}
	out := httpResponse{Status: answer.StatusCode, StatusText: http.StatusText(answer.StatusCode), Headers: joinHeaders(answer.Header)}
	if last.url != first.url {
		out.URL = last.url.String()
	}
	out.Body, out.Encoding, err = r.content(ctx, answer.Header, data, last)
	return out, err
}

func (in httpRequest) timeout() time.Duration {
	if in.TimeoutMs == 0 {
		return 30 * time.Second
	}
	return time.Duration(in.TimeoutMs) * time.Millisecond
}
