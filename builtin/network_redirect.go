package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// httpHop is one request of a call: the first, or one that a redirect led to. It
// is never changed.
type httpHop struct {
	method  string
	url     *url.URL // with its host as hosts spells it
	host    hosts.Host
	headers http.Header // the model's
	body    []byte      // nil is none
	kind    string      // the body's content type
}

// newHop makes the first request of what a model asks for.
func newHop(in httpRequest, p NetworkPolicy) (httpHop, error) {
	u, err := url.Parse(escaped(in.URL))
	if err != nil {
		return httpHop{}, errcode.Wrap(errcode.InvalidURL, err, "http_request: the url cannot be read; write https://host/path?query, with special characters %%-encoded")
	}
	h := httpHop{method: cmp.Or(in.Method, http.MethodGet)}
	if h.headers, err = headersOf(in.Headers); err != nil {
		return httpHop{}, err
	}
	return h.withBody(in.Body).to(u, p)
}

// escaped gives a URL with the characters %-encoded that no URL holds but
// people write: browsers do so too.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c == ' ' || c == '"' || c == '<' || c == '>' || c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// maxTarget is the most bytes of path and query; servers take no more.
const maxTarget = 8192

// to gives the hop with another target, if it may go there as far as the URL says.
func (h httpHop) to(u *url.URL, p NetworkPolicy) (httpHop, error) {
	switch {
	case u.Scheme != "https" && !(u.Scheme == "http" && p.AllowHTTP):
		return h, errcode.New(errcode.OnlyHTTPS, "http_request: only https is allowed, not %.20q; the operator can allow http with allowHTTP in kind: network", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return h, errcode.New(errcode.InvalidURL, "http_request: the url names no host; write https://host/path")
	case len(u.RequestURI()) > maxTarget:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url has more than %d bytes of path and query", maxTarget)
	case u.User != nil:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url holds a user name; send what the host asks for in the header authorization")
	}
	host, err := hosts.FromURL(u)
	switch {
	case err != nil:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url: %v", err)
	case hosts.IsNonHTTPPort(host.Port):
		return h, errcode.New(errcode.InvalidURL, "http_request: port %d belongs to another protocol than HTTP", host.Port)
	case !p.Hosts.Allows(host):
		return h, errcode.New(errcode.HostBlocked, "http_request: the operator allows no requests to %s", host)
	}
	h.host = host
	h.url = &url.URL{Scheme: u.Scheme, Host: authority(u.Scheme, host), Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return h, nil
}

// authority gives a host as URLs and the header Host have it.
func authority(scheme string, h hosts.Host) string {
	usual := scheme == "https" && h.Port == 443 || scheme == "http" && h.Port == 80
	text := h.String()
	if usual {
		text = strings.TrimSuffix(text, ":"+strconv.Itoa(int(h.Port)))
	}
	return text
}

// headersOf checks the headers a model set.
func headersOf(set map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		key := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(set[name]):
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %.100q has a character that no header may have", name)
		case slices.Contains(ownHeaders, key) || strings.HasPrefix(key, "Proxy-"):
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %s belongs to the connection and is set for you; leave it out", key)
		case h[key] != nil:
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %s is there twice, in different letters", key)
		}
		h[key] = []string{set[name]}
	}
	return h, nil
}

// ownHeaders say how a request is sent, not what it asks for.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// withBody gives the hop with a body, if its method has one.
func (h httpHop) withBody(body json.RawMessage) httpHop {
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, h.method) || len(body) == 0 || string(body) == "null" {
		return h
	}
	var text string
	h.body, h.kind = body, "application/json"
	if json.Unmarshal(body, &text) == nil {
		h.body, h.kind = []byte(text), "text/plain; charset=utf-8"
	}
	h.kind = cmp.Or(h.headers.Get("Content-Type"), h.kind)
	h.headers.Del("Content-Type") // it goes where the body goes
	return h
}

// next gives the hop that an answer redirects to, made as browsers make it;
// false when the answer is no redirect.
func (h httpHop) next(answer *http.Response, p NetworkPolicy) (httpHop, bool, error) {
	location := answer.Header.Get("Location")
	if !slices.Contains([]int{301, 302, 303, 307, 308}, answer.StatusCode) || location == "" {
		return h, false, nil
	}
	u, err := h.url.Parse(escaped(location))
	if err != nil {
		return h, true, errcode.Wrap(errcode.InvalidURL, err, "http_request: %s redirects to something that is no URL", h.host)
	}
	next, err := h.to(u, p)
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		e.Message += "; " + h.host.String() + " redirects there"
		return h, true, e
	}
	if becomesGET(answer.StatusCode, h.method) {
		next.method, next.body, next.kind = http.MethodGet, nil, ""
	}
	if next.host != h.host || next.url.Scheme != h.url.Scheme {
		next.headers = http.Header{} // they were meant for the first host
	}
	return next, true, nil
}

func becomesGET(status int, method string) bool {
	if status == http.StatusSeeOther {
		return method != http.MethodHead
	}
	return method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound)
}

// header gives all that is sent.
func (h httpHop) header() http.Header {
	out := h.headers.Clone()
	out.Set("Accept-Encoding", "gzip")
	if out.Get("Range") != "" { // a part of what is packed cannot be unpacked
		out.Set("Accept-Encoding", "identity")
	}
	if out.Get("User-Agent") == "" {
		out.Set("User-Agent", "rolecall")
	}
	if h.kind != "" {
		out.Set("Content-Type", h.kind)
	}
	return out
}

func (h httpHop) reader() io.Reader {
	if h.body == nil {
		return nil
	}
	return bytes.NewReader(h.body)
}
