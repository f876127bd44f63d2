package wire

import (
	"errors"
	"strings"
)

// maxTokenBytes is the longest token, in bytes. Issuers put the groups of a user into it.
const maxTokenBytes = 16 << 10

// ValidToken reports whether a text has the form of a token: b64token of RFC
// 6750, section 2.1.
func ValidToken(token string) bool {
	body := strings.TrimRight(token, "=")
	return body != "" && len(token) <= maxTokenBytes && !strings.ContainsFunc(body, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~+/", r))
	})
}

// ErrInvalidToken marks errors about a token that was presented. WriteError
// answers them with error="invalid_token" in the WWW-Authenticate header.
var ErrInvalidToken = errors.New("invalid token")

// challenge returns the WWW-Authenticate header for an error (RFC 6750, section
// 3).
func challenge(err error) string {
	if errors.Is(err, ErrInvalidToken) {
		return `Bearer realm="rolecall", error="invalid_token"`
	}
	return `Bearer realm="rolecall"`
}
