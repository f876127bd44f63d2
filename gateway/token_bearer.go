package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxBearer is the most bytes a token may have.
const maxBearer = 4096

// bearerOf reads the token of an Authorization header: "Bearer" in any case, one
// space or more, and the token. given says whether there is a header at all.
//
// The error says why a header that is there holds no token: another scheme, two
// headers, or what RFC 6750 does not let a token be.
func bearerOf(h http.Header) (token string, given bool, err error) {
	list := h.Values("Authorization")
	if len(list) == 0 {
		return "", false, nil
	}
	if len(list) > 1 {
		return "", true, fmt.Errorf("there are %d Authorization headers", len(list))
	}
	scheme, token, ok := strings.Cut(list[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", true, errors.New("the Authorization header is of another scheme than Bearer")
	case !isBearer(token):
		return "", true, errors.New("the Authorization header holds no token")
	}
	return token, true, nil
}

// isBearer says whether a text can be a token: b64token of RFC 6750 §2.1.
func isBearer(token string) bool {
	body := strings.TrimRight(token, "=")
	return body != "" && len(token) <= maxBearer && !strings.ContainsFunc(body, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~+/", r))
	})
}

// audience is the resource a token is for (RFC 8707): a URL and what is below
// it. The zero audience is every resource.
type audience struct {
	host string // lower case, without the port that the scheme implies
	path string // escaped, without a slash at its end
}

// audienceOf reads an audience: scheme, host and path.
func audienceOf(text string) (audience, error) {
	if text == "" {
		return audience{}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || hasDotSegments(u) {
		return audience{}, fmt.Errorf("the audience %q is no URL of scheme, host and path", text)
	}
	return audience{host: bareHost(u.Host), path: strings.TrimRight(u.EscapedPath(), "/")}, nil
}

// holds says whether a request is for the audience. The scheme is not looked
// at: a proxy may end TLS before us.
func (a audience) holds(r *http.Request) bool {
	if a.host == "" {
		return true
	}
	path := r.URL.EscapedPath()
	under := path == a.path || strings.HasPrefix(path, a.path+"/")
	return under && !hasDotSegments(r.URL) && bareHost(r.Host) == a.host
}

// hasDotSegments says whether a path has segments that lead elsewhere than they stand.
func hasDotSegments(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." })
}

// bareHost gives a host without the ports that schemes imply, in lower case.
func bareHost(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		host = strings.TrimSuffix(host, port)
	}
	return host
}
