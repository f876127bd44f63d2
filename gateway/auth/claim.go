package auth

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// maxUserBytes is the longest text of a claim that names a user.
const maxUserBytes = 256

// claimSet are the claims of a verified token.
type claimSet map[string]any

// parseClaims decodes claims. Numbers stay as they were written.
func parseClaims(raw json.RawMessage) (claimSet, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var set claimSet
	if err := d.Decode(&set); err != nil {
		return nil, err
	}
	return set, nil
}

// lookup returns the value at a JSON pointer, which leads through objects only. It returns nil if
// there is no value.
func (c claimSet) lookup(pointer string) any {
	var at any = map[string]any(c)
	for _, name := range strings.Split(pointer, "/")[1:] {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}

// matchesClaim reports whether the token's claim equals r.Value, or is a list that contains it.
// A claim of another type never matches.
func (r ClaimRule) matchesClaim(c claimSet) bool {
	switch claim := c.lookup(r.Claim).(type) {
	case string:
		return claim == r.Value
	case []any:
		for _, one := range claim {
			if text, ok := one.(string); ok && text == r.Value {
				return true
			}
		}
	}
	return false
}

// principalOf returns the principal of the holder of a verified token. The first rule that
// matches decides.
//
// Errors: InsufficientPermissions if no rule matches, or if the claims name no user.
func (i Issuer) principalOf(c claimSet) (identity.Principal, error) {
	user, ok := i.userName(c)
	if !ok {
		return identity.Principal{}, errcode.New(errcode.InsufficientPermissions,
			"the token's claim %s names no user: it must be a visible text of at most %d bytes", i.User, maxUserBytes)
	}
	for _, r := range i.Rules {
		switch {
		case !r.matchesClaim(c):
		case r.Scope == ScopeRole:
			return identity.ByCaller(user, r.Role), nil
		case r.Scope == ScopeOperator:
			return identity.ByOperator(user), nil
		default: // rejected when the issuers are set
			return identity.Principal{}, errcode.New(errcode.InsufficientPermissions, "a rule of issuer %s gives a scope that users cannot have", i.Name)
		}
	}
	return identity.Principal{}, errcode.New(errcode.InsufficientPermissions,
		"the token is valid, but no rule here gives its user a role; ask the operator for one, or sign in as another user")
}

// userName returns the name of a user: the name of the issuer, a colon, and the claim. The first
// colon ends the issuer's name, so no two users have the same name.
func (i Issuer) userName(c claimSet) (identity.UserName, bool) {
	text, ok := c[i.User].(string)
	if !ok || text == "" || len(text) > maxUserBytes || strings.TrimSpace(text) != text || strings.ContainsFunc(text, isHidden) {
		return "", false
	}
	return identity.UserName(i.Name + ":" + text), true
}

// isHidden reports whether a character cannot be seen, or changes how others are shown.
func isHidden(r rune) bool {
	return !unicode.IsPrint(r) || r == utf8.RuneError || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// remaining returns how long the token may be remembered: until it expires, at most longest.
// It is 0 if the claim exp is missing.
func (c claimSet) remaining(now time.Time, longest time.Duration) time.Duration {
	number, ok := c["exp"].(json.Number)
	if !ok {
		return 0
	}
	exp, err := number.Float64()
	left := exp - float64(now.UnixNano())/float64(time.Second)
	switch {
	case err != nil || !(left > 0):
		return 0
	case left >= longest.Seconds():
		return longest
	}
	return time.Duration(left * float64(time.Second))
}
