package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/gateway/wire"
)

// parseBearer reads the token in an Authorization header: "Bearer" in any case,
// one or more spaces, and the token. present reports whether there is such a
// header.
//
// It returns an error if the header contains no token: another scheme, two
// headers, or characters that RFC 6750 does not allow.
func parseBearer(h http.Header) (token string, present bool, err error) {
	list := h.Values("Authorization")
	if len(list) == 0 {
		return "", false, nil
	}
	if len(list) > 1 {
		return "", true, fmt.Errorf("%d Authorization headers", len(list))
	}
	scheme, token, ok := strings.Cut(list[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", true, errors.New("the scheme of the Authorization header is not Bearer")
	case !wire.ValidToken(token):
		return "", true, errors.New("the Authorization header contains no valid token")
	}
	return token, true, nil
}

// audience is the resource that a token is valid for (RFC 8707): a URL and all
// paths below it. The zero audience covers every resource.
type audience struct {
	host string // lower case, without the default port of the scheme
	path string // escaped, without a slash at the end
}

// parseAudience parses an audience: a URL of scheme, host and path.
func parseAudience(text string) (audience, error) {
	if text == "" {
		return audience{}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || hasDotSegments(u) {
		return audience{}, fmt.Errorf("invalid audience %q; want a URL of scheme, host and path", text)
	}
	return audience{host: hostWithoutDefaultPort(u.Host), path: strings.TrimRight(u.EscapedPath(), "/")}, nil
}

// covers reports whether a request is for the audience. The scheme is not
// compared, because a proxy may terminate TLS.
func (a audience) covers(r *http.Request) bool {
	if a.host == "" {
		return true
	}
	path := r.URL.EscapedPath()
	under := path == a.path || strings.HasPrefix(path, a.path+"/")
	return under && !hasDotSegments(r.URL) && hostWithoutDefaultPort(r.Host) == a.host
}

// hasDotSegments reports whether a path has segments "." or "..".
func hasDotSegments(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." })
}

// hostWithoutDefaultPort returns a host in lower case without the default port
// of http or https.
func hostWithoutDefaultPort(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		host = strings.TrimSuffix(host, port)
	}
	return host
}
