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

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// Network is what sources of type http may reach. The zero Network is the
// public addresses.
type Network struct {
	Private []netip.Prefix // reachable although not public
}

// The limits of a request.
const (
	defaultTimeout = 30 * time.Second
	defaultBody    = 4 << 20 // bytes of an answer
	maxHead        = 64 << 10
	maxRedirects   = 5
)

// newClient makes what requests of a source are sent with: to its host alone,
// past no proxy, at addresses that Network lets through at that moment.
func newClient(c Config) *client {
	network := c.Network
	if network == nil {
		network = func() Network { return Network{} }
	}
	conns := c.Source.MaxConns
	if conns <= 0 {
		conns = 8
	}
	return &client{
		CheckRedirect: sameHostOnly,
		Transport: &http.Transport{
			MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: maxHead, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, kind, addr string) (net.Conn, error) {
				dialer := net.Dialer{Timeout: 10 * time.Second, Control: hosts.NewDialGuard(network().Private).Control}
				return dialer.DialContext(ctx, kind, addr)
			},
		},
	}
}

// What keeps a redirect from being followed.
var (
	errOtherHost    = errors.New("the service redirects to another host")
	errRedirectLoop = errors.New("the service redirects too often")
)

// sameHostOnly follows redirects within one host: headers and query hold secrets.
func sameHostOnly(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return errOtherHost
	}
	if len(before) > maxRedirects {
		return errRedirectLoop
	}
	return nil
}

// base is where the requests of a source go, and what all of them carry.
type base struct {
	url     *url.URL
	query   url.Values
	headers http.Header
}

// newBase reads a source of type http. Errors: InvalidConfig.
func newBase(s config.Source) (*base, error) {
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errcode.New(errcode.InvalidConfig, "source %q: baseUrl must be an address, as https://host/path, without a password", s.Name)
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

func addHeaders(to http.Header, from map[string]config.Secret) error {
	for name, value := range from {
		if err := headerProblem(name); err != nil {
			return err
		}
		if !httpguts.ValidHeaderFieldValue(string(value)) {
			return errors.New("the value of header " + name + " holds characters that no header has")
		}
		to.Set(name, string(value))
	}
	return nil
}

// headerProblem says why a header cannot be set; those that belong to the
// connection are not the configuration's.
func headerProblem(name string) error {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "Te", "Proxy-Connection", "Keep-Alive", "Accept-Encoding", "Expect":
		return errors.New("header " + name + " belongs to the connection")
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("no header has such a name: " + strings.ToValidUTF8(name, "?"))
	}
	return nil
}
