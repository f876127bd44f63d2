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
	Service      string    `json:"aud"`            // id of the service
	Organization string    `json:"org"`            // id of the organization
	Caller       string    `json:"sub"`            // an external caller, or "operator"
	Agent        string    `json:"agent,omitzero"` // id of the agent that calls, if one does
	Role         string    `json:"role,omitzero"`  // its name, of the agent or the caller
	Tool         string    `json:"tool"`           // name of the tool
	CallID       string    `json:"call"`           // the same for every repetition of one call
	Digest       string    `json:"args"`           // SHA-256 of the argument text as sent, in hex
	ConfigDigest string    `json:"conf"`           // SHA-256 of the config text as sent, in hex
	Expires      time.Time `json:"exp"`
}

// SignRequest returns the text of t for a request: with its digests and its caller, signed with
// the keys of the service. The text is the JSON of the token and, for each key, the HMAC-SHA-256 of
// that, all in unpadded base64url with dots between. A service needs one of the keys, so a new key
// can be rolled out while the old one is in use.
func (t Token) SignRequest(r Request, keys ...string) string {
	t.Caller, t.Digest, t.ConfigDigest = r.User, digest(r.Arguments), digest(r.Config)
	body, _ := json.Marshal(t) // texts and a time always marshal
	text := base64.RawURLEncoding.EncodeToString(body)
	signed := text
	for _, key := range keys {
		signed += "." + base64.RawURLEncoding.EncodeToString(signature(contextToken, key, text))
	}
	return signed
}

// digest returns the SHA-256 of a text in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// What a key signs begins with one of these, so that a signature of one is none of another.
const (
	contextToken        = "rolecall call token\n"
	contextAnnouncement = "rolecall announcement\n"
)

// signature returns the HMAC of the text of a token or an announcement.
func signature(context, key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(context))
	mac.Write([]byte(text))
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
func VerifyToken(text, service string, r Request, now time.Time, keys ...string) (Token, error) {
	if text == "" {
		return Token{}, ErrTokenMissing
	}
	body, signatures, _ := strings.Cut(text, ".")
	if len(text) > maxTokenBytes || !isSigned(contextToken, body, signatures, keys) {
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

// isSigned reports whether one of the signatures, with dots between, is that of one of the keys.
// An empty key signs nothing.
func isSigned(context, text, signatures string, keys []string) bool {
	for _, key := range keys {
		want := base64.RawURLEncoding.EncodeToString(signature(context, key, text))
		for signed := range strings.SplitSeq(signatures, ".") {
			if key != "" && hmac.Equal([]byte(signed), []byte(want)) {
				return true
			}
		}
	}
	return false
}
