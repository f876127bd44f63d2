package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// Limits of verifiedTokens.
const (
	maxVerified       = 4096 // tokens
	maxVerifiedOfUser = 16   // tokens of one user

	// verifiedFor is the longest time for which a signature is not checked again, so that a
	// withdrawn key is noticed. An issuer that is asked about a token is asked again sooner,
	// because it can revoke the token.
	verifiedFor     = 5 * time.Minute
	introspectedFor = time.Minute
)

// verifiedTokens remembers the principals of verified tokens by the tokens' digests. When it is
// full, the user with the most tokens loses the oldest. It is safe for concurrent use.
type verifiedTokens struct {
	mu     sync.Mutex // guards what follows
	tokens map[[sha256.Size]byte]verifiedToken
	users  map[identity.UserName]int // how many tokens each has
	added  uint64                    // tokens so far
}

// verifiedToken is what is remembered of a token.
type verifiedToken struct {
	holder  identity.Principal
	from    *issuerGuard
	version uint64    // of the issuer's keys when the verification began
	until   time.Time // the token is not valid at this time, or has to be verified again
	number  uint64    // in the order in which they were added
}

func newVerifiedTokens() verifiedTokens {
	return verifiedTokens{tokens: map[[sha256.Size]byte]verifiedToken{}, users: map[identity.UserName]int{}}
}

// find returns the holder of a token that was verified, unless it has to be verified again.
func (v *verifiedTokens) find(digest [sha256.Size]byte, now time.Time) (identity.Principal, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	token, ok := v.tokens[digest]
	if !ok {
		return identity.Principal{}, false
	}
	if !now.Before(token.until) || token.version != token.from.issuer.Verifier.KeyVersion() {
		v.remove(digest)
		return identity.Principal{}, false
	}
	return token.holder, true
}

// add remembers a token.
func (v *verifiedTokens) add(digest [sha256.Size]byte, token verifiedToken, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remove(digest)
	user := token.holder.User
	switch {
	case v.users[user] >= maxVerifiedOfUser:
		v.removeOldest(func(other verifiedToken) bool { return other.holder.User == user })
	case len(v.tokens) >= maxVerified:
		v.makeRoom(now)
	}
	v.added++
	token.number = v.added
	v.tokens[digest] = token
	v.users[user]++
}

// makeRoom removes the tokens that have ended, or else the oldest of the user with the most.
// It must be called with mu held.
func (v *verifiedTokens) makeRoom(now time.Time) {
	for digest, token := range v.tokens {
		if !now.Before(token.until) {
			v.remove(digest)
		}
	}
	if len(v.tokens) < maxVerified {
		return
	}
	most := 0
	for _, n := range v.users {
		most = max(most, n)
	}
	v.removeOldest(func(token verifiedToken) bool { return v.users[token.holder.User] == most })
}

// removeOldest removes the oldest of the tokens that among accepts. It must be called with mu
// held.
func (v *verifiedTokens) removeOldest(among func(verifiedToken) bool) {
	var victim [sha256.Size]byte
	oldest := v.added + 1
	for digest, token := range v.tokens {
		if token.number < oldest && among(token) {
			victim, oldest = digest, token.number
		}
	}
	v.remove(victim)
}

// remove forgets a token. It must be called with mu held.
func (v *verifiedTokens) remove(digest [sha256.Size]byte) {
	token, ok := v.tokens[digest]
	if !ok {
		return
	}
	delete(v.tokens, digest)
	if v.users[token.holder.User]--; v.users[token.holder.User] == 0 {
		delete(v.users, token.holder.User)
	}
}
