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
	if body == "" || len(token) > maxTokenBytes {
		return false
	}
	for i := range len(body) {
		if !tokenBytes[body[i]] {
			return false
		}
	}
	return true
}

// tokenBytes are the bytes of a token before the equal signs at its end. It is a table, because
// every request is checked.
var tokenBytes = func() (set [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		set[b] = true
	}
	return set
}()

// ErrInvalidToken marks errors about a token that was presented. WriteError
// answers them with error="invalid_token" in the WWW-Authenticate header.
var ErrInvalidToken = errors.New("invalid token")

// metadataError is an error that says where the metadata of the resource is.
type metadataError struct {
	error
	url string
}

// Unwrap returns the error itself.
func (e metadataError) Unwrap() error { return e.error }

// WithMetadata returns err with the URL of the metadata of the resource, for the
// WWW-Authenticate header (RFC 9728, section 5.1).
func WithMetadata(err error, url string) error { return metadataError{err, url} }

// challenge returns the WWW-Authenticate header for an error (RFC 6750, section
// 3).
func challenge(err error) string {
	header := `Bearer realm="rolecall"`
	if errors.Is(err, ErrInvalidToken) {
		header += `, error="invalid_token"`
	}
	if e, ok := errors.AsType[metadataError](err); ok {
		header += `, resource_metadata="` + e.url + `"`
	}
	return header
}
