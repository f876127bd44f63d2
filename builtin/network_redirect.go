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

// httpHop is one request of a call: the first request, or a request that follows a redirect. It is
// immutable once it was returned.
type httpHop struct {
	method      string
	url         *url.URL // host as package hosts normalizes it
	host        hosts.Host
	headers     http.Header // set by the model
	body        []byte      // nil without a body
	contentType string      // of the body
}

// newHop returns the first request for the arguments of a call.
func newHop(in httpRequest, p NetworkPolicy) (httpHop, error) {
	u, err := url.Parse(escapeURL(in.URL))
	if err != nil {
		return httpHop{}, errcode.Wrap(errcode.InvalidURL, err, "http_request: the url cannot be read; write https://host/path?query, with special characters %%-encoded")
	}
	h := httpHop{method: cmp.Or(in.Method, http.MethodGet)}
	if h.headers, err = parseHeaders(in.Headers); err != nil {
		return httpHop{}, err
	}
	return h.withBody(in.Body).withTarget(u, p)
}

// escapeURL percent-encodes characters that are invalid in a URL but common in
// handwritten ones, as browsers do.
func escapeURL(text string) string {
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

// maxTarget is the maximum size in bytes of path and query; servers accept no more.
const maxTarget = 8192

// withTarget returns the hop with another URL. It rejects URLs that are invalid or
// that the policy does not allow; the address is checked when it is dialled.
func (h httpHop) withTarget(u *url.URL, p NetworkPolicy) (httpHop, error) {
	switch {
	case u.Scheme != "https" && !(u.Scheme == "http" && p.AllowHTTP):
		return h, errcode.New(errcode.OnlyHTTPS, "http_request: only https is allowed, not %.20q; the operator can allow http with allowHTTP in kind: network", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return h, errcode.New(errcode.InvalidURL, "http_request: the url names no host; write https://host/path")
	case len(u.RequestURI()) > maxTarget:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url has more than %d bytes of path and query", maxTarget)
	case u.User != nil:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url contains a user name; send credentials in the header authorization")
	}
	host, err := hosts.FromURL(u)
	switch {
	case err != nil:
		return h, errcode.New(errcode.InvalidURL, "http_request: the url: %v", err)
	case hosts.IsNonHTTPPort(host.Port):
		return h, errcode.New(errcode.InvalidURL, "http_request: port %d is reserved for a protocol other than HTTP", host.Port)
	case !p.Hosts.AllowsHost(host):
		return h, errcode.New(errcode.HostBlocked, "http_request: the operator allows no requests to %s", host)
	}
	h.host = host
	h.url = &url.URL{Scheme: u.Scheme, Host: authority(u.Scheme, host), Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return h, nil
}

// authority returns host and port as in a URL and the Host header: without the
// default port.
func authority(scheme string, h hosts.Host) string {
	isDefault := scheme == "https" && h.Port == 443 || scheme == "http" && h.Port == 80
	text := h.String()
	if isDefault {
		text = strings.TrimSuffix(text, ":"+strconv.Itoa(int(h.Port)))
	}
	return text
}

// parseHeaders validates the headers that a model set and returns them.
func parseHeaders(set map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		key := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(set[name]):
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %.100q contains an invalid character", name)
		case slices.Contains(reservedHeaders, key) || strings.HasPrefix(key, "Proxy-"):
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %s belongs to the connection and is set for you; leave it out", key)
		case h[key] != nil:
			return nil, errcode.New(errcode.InvalidArguments, "http_request: header %s occurs twice with different letter case", key)
		}
		h[key] = []string{set[name]}
	}
	return h, nil
}

// reservedHeaders are headers that control the transfer and are set by httpClient.
var reservedHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// withBody returns the hop with a body if its method has one.
func (h httpHop) withBody(body json.RawMessage) httpHop {
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, h.method) || len(body) == 0 || string(body) == "null" {
		return h
	}
	var text string
	h.body, h.contentType = body, "application/json"
	if json.Unmarshal(body, &text) == nil {
		h.body, h.contentType = []byte(text), "text/plain; charset=utf-8"
	}
	h.contentType = cmp.Or(h.headers.Get("Content-Type"), h.contentType)
	h.headers.Del("Content-Type") // contentType is sent only with the body
	return h
}

// next returns the hop that a response redirects to, with the method that browsers
// use. It reports false if the response is not a redirect. Headers of the model
// are dropped when host or scheme change, since they may contain credentials.
func (h httpHop) next(resp *http.Response, p NetworkPolicy) (httpHop, bool, error) {
	location := resp.Header.Get("Location")
	if !slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) || location == "" {
		return h, false, nil
	}
	u, err := h.url.Parse(escapeURL(location))
	if err != nil {
		return h, true, errcode.Wrap(errcode.InvalidURL, err, "http_request: %s redirects to an invalid URL", h.host)
	}
	next, err := h.withTarget(u, p)
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		e.Message += "; " + h.host.String() + " redirects there"
		return h, true, e
	}
	if becomesGET(resp.StatusCode, h.method) {
		next.method, next.body, next.contentType = http.MethodGet, nil, ""
	}
	if next.host != h.host || next.url.Scheme != h.url.Scheme {
		next.headers = http.Header{} // they were intended for the first host
	}
	return next, true, nil
}

// becomesGET reports whether a redirect changes the method to GET.
func becomesGET(status int, method string) bool {
	if status == http.StatusSeeOther {
		return method != http.MethodHead
	}
	return method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound)
}

// requestHeader returns the complete headers of the request.
func (h httpHop) requestHeader() http.Header {
	out := h.headers.Clone()
	out.Set("Accept-Encoding", "gzip")
	if out.Get("Range") != "" { // a part of compressed data cannot be decompressed
		out.Set("Accept-Encoding", "identity")
	}
	if out.Get("User-Agent") == "" {
		out.Set("User-Agent", "rolecall")
	}
	if h.contentType != "" {
		out.Set("Content-Type", h.contentType)
	}
	return out
}

// bodyReader returns a reader of the body, nil without one.
func (h httpHop) bodyReader() io.Reader {
	if h.body == nil {
		return nil
	}
	return bytes.NewReader(h.body)
}
