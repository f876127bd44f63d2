package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
)

// CredentialOf returns a text for the configured token with which the sender of a request was
// authenticated, or with which its session began. The text does not reveal the token. It is "" for
// the owner of the data directory, the start-up token and tokens of issuers.
func (t *TokenStore) CredentialOf(r *http.Request) string {
	token, present, err := parseBearer(r.Header)
	if err != nil || IsLocalOwner(r) && !present {
		return ""
	}
	digest := sha256.Sum256([]byte(token))
	if !present {
		_, one, ok := t.session(r, false)
		if !ok || one.issuer != "" {
			return ""
		}
		digest = one.digest
	}
	stored, ok := t.lookup(digest)
	if !ok {
		return ""
	}
	return stored.credential()
}

// IsActiveCredential reports whether a text of CredentialOf is that of a configured token now,
// with the same name, scope and role, which has not expired.
func (t *TokenStore) IsActiveCredential(text string) bool {
	return slices.ContainsFunc(t.ListTokens(), func(token Token) bool {
		return subtle.ConstantTimeCompare([]byte(token.credential()), []byte(text)) == 1 && !t.expired(token)
	})
}

// credential returns the text of CredentialOf.
func (t Token) credential() string {
	sum := sha256.Sum256(slices.Concat(t.Digest[:], []byte(strconv.Quote(t.Name)+t.Scope.String()+" "+string(t.Role))))
	return hex.EncodeToString(sum[:])
}
