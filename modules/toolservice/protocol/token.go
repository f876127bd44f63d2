package protocol

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Token says who calls and what. The runtime signs it with the key of one service, so another
// service cannot make one, and the model never sees it.
type Token struct {
	KeyID        string    `json:"kid"`            // which key of the service signed it
	Service      string    `json:"aud"`            // id of the service
	Organization string    `json:"org"`            // id of the organization
	Caller       string    `json:"sub"`            // an external caller, or "operator"
	Agent        string    `json:"agent,omitzero"` // id of the agent that calls, if one does
	Role         string    `json:"role,omitzero"`  // of the agent or the caller
	Tool         string    `json:"tool"`           // name of the tool
	CallID       string    `json:"call"`           // the same for every repetition of one call
	Digest       string    `json:"args"`           // SHA-256 of the argument text as sent, in hex
	ConfigDigest string    `json:"conf"`           // SHA-256 of the config text as sent, in hex
	Expires      time.Time `json:"exp"`
}

// SignRequest returns the text of t for a request: with its digests and its caller, signed with a
// key of the service.
func (t Token) SignRequest(r Request, key []byte) string {
	t.Caller, t.Digest, t.ConfigDigest = r.User, digest(r.Arguments), digest(r.Config)
	return t.sign(key)
}

// digest returns the SHA-256 of a text in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sign returns the text of the token, signed with a key of the service: its JSON and the
// HMAC-SHA-256 of that, both in unpadded base64url, with a dot between.
func (t Token) sign(key []byte) string {
	body, _ := json.Marshal(t) // texts and a time always marshal
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature(key, text))
}

// signature returns the HMAC of the text of a token.
func signature(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("rolecall call token\n" + text))
	return mac.Sum(nil)
}

// Errors of VerifyToken.
var (
	ErrTokenMissing = errors.New("the request has no call token")
	ErrTokenInvalid = errors.New("the call token is not signed with the key of the service")
	ErrTokenExpired = errors.New("the call token has expired")
	ErrTokenOther   = errors.New("the call token is of another service or of another request")
)

// maxTokenBytes is the largest number of bytes of a token that is read.
const maxTokenBytes = 8 << 10

// VerifyToken returns the token of a request to a service. keys are the valid keys of the
// service, at least one. It returns one of the errors above for a token that is not valid
// for this service, this request and this time.
func VerifyToken(text, service string, r Request, now time.Time, keys ...[]byte) (Token, error) {
	if text == "" {
		return Token{}, ErrTokenMissing
	}
	body, signed, found := strings.Cut(text, ".")
	mac, err := base64.RawURLEncoding.Strict().DecodeString(signed)
	if len(text) > maxTokenBytes || !found || err != nil || !isSigned(body, mac, keys) {
		return Token{}, ErrTokenInvalid
	}
	var t Token
	data, err := base64.RawURLEncoding.DecodeString(body)
	switch {
	case err != nil || json.Unmarshal(data, &t) != nil:
		return Token{}, ErrTokenInvalid
	case t.Service != service || t.Digest != digest(r.Arguments) || t.ConfigDigest != digest(r.Config) || t.Caller != r.User:
		return Token{}, ErrTokenOther
	case !now.Before(t.Expires):
		return Token{}, ErrTokenExpired
	}
	return t, nil
}

// isSigned reports whether one of the keys has signed a text. An empty key signs nothing.
func isSigned(text string, mac []byte, keys [][]byte) bool {
	for _, key := range keys {
		if len(key) > 0 && hmac.Equal(mac, signature(key, text)) {
			return true
		}
	}
	return false
}
