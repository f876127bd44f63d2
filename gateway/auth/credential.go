package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/identity"
)

// removedCredential is the text of CredentialOf for a sender whose token is not as it was when the
// request was admitted. It is never active.
const removedCredential = "removed"

// CredentialOf returns a text for a configured token. The sender of an admitted request was
// authenticated with this token, or its session began with it. The text does not reveal the token.
// It is "" for senders without such a token. These are the owner of the data directory, the holder
// of the start-up token and users of issuers. If the token was removed or changed since, the text
// is never active.
func (t *TokenStore) CredentialOf(r *http.Request) string {
	sender := SenderOf(r).Holder()
	if stored, ok := t.tokenOf(r); ok && stored.holder() == sender {
		return stored.credential()
	}
	if sender == operator || t.isIssuerUser(sender.User) {
		return ""
	}
	return removedCredential
}

// tokenOf returns the configured token of a request, or of its session.
func (t *TokenStore) tokenOf(r *http.Request) (storedToken, bool) {
	token, present, err := parseBearer(r.Header)
	if err != nil || IsLocalOwner(r) && !present {
		return storedToken{}, false
	}
	digest := sha256.Sum256([]byte(token))
	if !present {
		_, one, _ := t.session(r) // no token has the zero digest
		digest = one.digest
	}
	return t.lookup(digest)
}

// isIssuerUser reports whether a user has a name that one of the issuers gives.
func (t *TokenStore) isIssuerUser(user identity.UserName) bool {
	return slices.ContainsFunc(t.ListIssuers(), func(i Issuer) bool { return strings.HasPrefix(string(user), i.Name+":") })
}

// IsActiveCredential reports whether a text of CredentialOf belongs to a token that is configured
// now and has not expired. The name, the scope and the role must be the same.
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
