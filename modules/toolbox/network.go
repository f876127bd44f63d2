package toolbox

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/openfiles"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// Network configures which addresses sources of type http may dial. They may dial public addresses,
// and listed addresses. The zero Network allows public addresses only.
type Network struct {
	Private []netip.Prefix // allowed although not public
}

// The limits of a request.
const (
	defaultTimeout = 30 * time.Second
	defaultBody    = 4 << 20  // bytes of a response
	maxHead        = 64 << 10 // bytes of response headers
	maxRedirects   = 5
)

// newClient returns the HTTP client of a source. It stays on the source's host, uses
// no proxy, and dials only addresses that Network and the source allow at that time.
func newClient(c Config) *http.Client {
	network := c.Network
	if network == nil {
		network = func() Network { return Network{} }
	}
	conns, narrower := maxConns(c), restrictionOf(c.Source)
	return &http.Client{
		CheckRedirect: sameHostOnly,
		Transport: &http.Transport{
			MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: maxHead, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, kind, addr string) (net.Conn, error) {
				dialer := net.Dialer{Timeout: 10 * time.Second, Control: hosts.NewDialGuard(network().Private).Restrict(narrower).Control}
				return dialer.DialContext(ctx, kind, addr)
			},
		},
	}
}

// restrictionOf returns how the fields of a source narrow what it may dial. They never widen
// what Network allows.
func restrictionOf(s toolboxfile.Source) hosts.Restriction {
	return hosts.Restriction{PublicOnly: s.PrivateNetworks != nil && !*s.PrivateNetworks, Blocked: s.BlockedRanges, Allowed: s.AllowedRanges}
}

// maxConns returns how many connections a source of type http may have.
func maxConns(c Config) int {
	if c.Source.MaxConns <= 0 {
		return 8
	}
	return min(c.Source.MaxConns, openfiles.MaxOutgoing())
}

// Reasons not to follow a redirect.
var (
	errOtherHost    = errors.New("the service redirects to another host")
	errRedirectLoop = errors.New("the service redirects too often")
)

// sameHostOnly allows redirects within one host only, since headers and query contain
// secrets, and within the bounds on the call.
func sameHostOnly(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return errOtherHost
	}
	if len(before) > maxRedirects {
		return errRedirectLoop
	}
	if v := bounds.CheckRedirect(next.Context(), next.URL); v != nil {
		return errcode.New(errcode.ArgumentNotGranted, "%s; the service redirects there", v.Error()).With("path", v.Path)
	}
	return nil
}

// base is the address of a source with the query and headers of all its requests.
type base struct {
	url     *url.URL
	query   url.Values
	headers http.Header
}

// newBase checks a source of type http and returns its base. Errors: InvalidConfig.
func newBase(s toolboxfile.Source) (*base, error) {
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errcode.New(errcode.InvalidConfig, "source %q: baseUrl must be an address such as https://host/path, without a password", s.Name)
	}
	b := &base{url: u, query: u.Query(), headers: http.Header{}}
	for name, value := range s.QueryParams {
		b.query.Set(name, string(value))
	}
	if err := addHeaders(b.headers, s.Headers); err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "source %q: %v", s.Name, err)
	}
	return b, nil
}

// redactor returns the Redactor of the secrets in the query of the source and in headers.
func (b *base) redactor(headers http.Header) *redact.Redactor {
	var secrets []string
	for _, values := range b.query {
		secrets = append(secrets, redact.ValueSecrets(values...)...)
	}
	one := map[string]string{}
	for name := range headers {
		one[name] = headers.Get(name)
	}
	return redact.New(append(secrets, redact.HeaderSecrets(one)...)...)
}

// addHeaders adds configured headers, after checking them.
func addHeaders(to http.Header, from map[string]yamldoc.Secret) error {
	for name, value := range from {
		if err := checkHeader(name); err != nil {
			return err
		}
		if !httpguts.ValidHeaderFieldValue(string(value)) {
			return errors.New("the value of header " + name + " contains characters that are not allowed in a header")
		}
		to.Set(name, string(value))
	}
	return nil
}

// checkHeader returns an error if a header cannot be configured, because its name is
// invalid or it belongs to the connection.
func checkHeader(name string) error {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "Te", "Proxy-Connection", "Keep-Alive", "Accept-Encoding", "Expect":
		return errors.New("header " + name + " belongs to the connection")
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("invalid header name: " + strings.ToValidUTF8(name, "?"))
	}
	return nil
}
