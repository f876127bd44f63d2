package protocol

import (
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
// the keys of the service. The text has the JSON of the token and, for each key, the HMAC-SHA-256
// of the JSON. All parts are in unpadded base64url with dots between. A service needs one of the
// keys, so a new key can be rolled out while the old one is in use. A Signer does the same for many
// requests.
func (t Token) SignRequest(r Request, keys ...string) string {
	return NewSigner(keys...).SignRequest(t, r)
}

// SignRequest is Token.SignRequest with the keys of s.
func (s *Signer) SignRequest(t Token, r Request) string {
	t.Caller, t.Digest, t.ConfigDigest = r.User, digest(r.Arguments), digest(r.Config)
	return s.sign(contextToken, base64.RawURLEncoding.EncodeToString(t.appendJSON(make([]byte, 0, 512))))
}

// appendJSON appends the JSON of t.
func (t Token) appendJSON(to []byte) []byte {
	to = appendMember(append(to, '{'), "aud", t.Service)
	to = appendMember(to, "org", t.Organization)
	to = appendMember(to, "sub", t.Caller)
	if t.Agent != "" {
		to = appendMember(to, "agent", t.Agent)
	}
	if t.Role != "" {
		to = appendMember(to, "role", t.Role)
	}
	to = appendMember(to, "tool", t.Tool)
	to = appendMember(to, "call", t.CallID)
	to = appendMember(to, "args", t.Digest)
	to = appendMember(to, "conf", t.ConfigDigest)
	to = t.Expires.AppendFormat(append(appendName(to, "exp"), '"'), time.RFC3339Nano)
	return append(to, '"', '}')
}

// readFlatToken reads the JSON of a token that appendJSON writes. It reports false for another one.
func readFlatToken(data []byte) (t Token, ok bool) {
	expires := ""
	ok = readFlat(data, func(name []byte, v flatValue) bool {
		if string(name) == "exp" {
			return v.storeText(&expires)
		}
		to := t.field(string(name))
		return to != nil && v.storeText(to)
	})
	return t, ok && t.Expires.UnmarshalText([]byte(expires)) == nil
}

// field returns the text that a member of the JSON has; nil for another member.
func (t *Token) field(name string) *string {
	switch name {
	case "aud":
		return &t.Service
	case "org":
		return &t.Organization
	case "sub":
		return &t.Caller
	case "agent":
		return &t.Agent
	case "role":
		return &t.Role
	case "tool":
		return &t.Tool
	case "call":
		return &t.CallID
	case "args":
		return &t.Digest
	case "conf":
		return &t.ConfigDigest
	}
	return nil
}

// digest returns the SHA-256 of a text in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// Every text that a key signs begins with one of these. So a signature of one kind of text is not
// valid for the other kind.
const (
	contextToken        = "rolecall call token\n"
	contextAnnouncement = "rolecall announcement\n"
)

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
// for this service, this request and this time. A Signer does the same for many requests.
func VerifyToken(text, service string, r Request, now time.Time, keys ...string) (Token, error) {
	return NewSigner(keys...).VerifyToken(text, service, r, now)
}

// VerifyToken is the function VerifyToken with the keys of s.
func (s *Signer) VerifyToken(text, service string, r Request, now time.Time) (Token, error) {
	if text == "" {
		return Token{}, ErrTokenMissing
	}
	body, signatures, _ := strings.Cut(text, ".")
	if len(text) > maxTokenBytes || !s.hasSigned(contextToken, body, signatures) {
		return Token{}, ErrTokenInvalid
	}
	t, err := decodeToken(body)
	switch {
	case err != nil:
		return Token{}, ErrTokenInvalid
	case t.Service != service || t.Digest != digest(r.Arguments) || t.ConfigDigest != digest(r.Config) || t.Caller != r.User:
		return Token{}, ErrTokenOther
	case !now.Before(t.Expires):
		return Token{}, ErrTokenExpired
	}
	return t, nil
}

// decodeToken reads the first part of a token.
func decodeToken(body string) (t Token, err error) {
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Token{}, err
	}
	if t, ok := readFlatToken(data); ok {
		return t, nil
	}
	return t, json.Unmarshal(data, &t)
}
