package bounds

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/org/hosts"
)

// address holds for http and https URLs of a host below a path. The zero address holds for
// none.
type address struct {
	scheme string // "" is http or https
	host   hosts.HostPattern
	path   string // "" is any path
}

func newAddress(value any) (operator, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New(`want {"host": "api.example.com", "path": "/v1/"}`)
	}
	a := new(address)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, err := textOf(fields[name], "api.example.com or /v1/")
		if err == nil {
			err = a.set(name, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if a.host.Name == "" {
		return nil, errors.New("host is missing")
	}
	return a, nil
}

// set sets one field of a.
func (a *address) set(name, text string) (err error) {
	switch name {
	case "scheme":
		if text != "http" && text != "https" {
			return errors.New("want http or https")
		}
		a.scheme = text
	case "host":
		a.host, err = hosts.ParsePattern(text)
	case "path":
		if !isPlainPath(text) {
			return errors.New(`want a path that begins with "/", without "." and "..", escapes, query and fragment`)
		}
		a.path = text
	default:
		return errors.New("is not a part of a url: use scheme, host and path")
	}
	return err
}

// isPlainPath reports whether a path of a rule can be compared with the path of a URL.
func isPlainPath(text string) bool {
	return text[0] == '/' && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`\%?#;`, r) }) && !hasDotSegment(text)
}

func (*address) name() string { return "url" }

// maxURL is the maximum length in bytes of a URL that is checked.
const maxURL = 8192

func (a *address) holds(v jsonValue, e *evaluation) bool {
	if v.Type != gjson.String || len(v.Str) > maxURL || !e.spend(4*len(v.Str)) {
		return false
	}
	u, ok := parseURL(v.Str)
	if !ok || a.scheme != "" && a.scheme != u.Scheme {
		return false
	}
	host, err := hosts.FromURL(u)
	return err == nil && a.matchesHost(host, u.Scheme) && a.matchesPath(u.EscapedPath())
}

// parseURL parses a URL that all programs read alike. It reports false for one with user
// information, a backslash, characters beyond printable ASCII, a dot segment or an escaped
// delimiter in its path.
func parseURL(text string) (*url.URL, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Host == "" {
		return nil, false
	}
	return u, utf8.ValidString(u.Path) && !hasDotSegment(u.Path) && !hasEscapedDelimiter(u.EscapedPath())
}

// hasDotSegment reports whether a path has the segment "." or "..", also with parameters after
// a semicolon.
func hasDotSegment(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// hasEscapedDelimiter reports whether a path escapes a character that has a meaning in URLs, a
// dot, a backslash or a control character.
func hasEscapedDelimiter(escaped string) bool {
	for {
		_, rest, found := strings.Cut(escaped, "%")
		if !found || len(rest) < 2 {
			return found // url.Parse rejects incomplete escapes
		}
		if b := unhex(rest[0])<<4 | unhex(rest[1]); b < ' ' || b == 0x7f || strings.IndexByte(`:/?#[]@!$&'()*+,;=.\%`, b) >= 0 {
			return true
		}
		escaped = rest
	}
}

// unhex returns the value of a hexadecimal digit.
func unhex(b byte) byte {
	if b >= 'A' {
		return b&^0x20 - 'A' + 10
	}
	return b - '0'
}

// matchesHost reports whether a has a host. Without a port in the rule it is the default port
// of the scheme.
func (a *address) matchesHost(h hosts.Host, scheme string) bool {
	standard := h.Port == 80 && scheme == "http" || h.Port == 443 && scheme == "https"
	return a.host.MatchesHost(h) && (a.host.Port != 0 || standard)
}

// matchesPath reports whether a path, as it is written, is the path of a or below it.
func (a *address) matchesPath(text string) bool {
	rest, below := strings.CutPrefix(text, a.path)
	return below && (a.path == "" || strings.HasSuffix(a.path, "/") || rest == "" || rest[0] == '/')
}
