package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Token is a bearer token of the gateway. It contains the hash of the token, never
// the token.
type Token struct {
	Name      string         // name of the holder
	SHA256    string         // of the token's bytes, in 64 lower-case hexadecimal digits
	Scope     TokenScope     // what the holder may ask for
	Role      string         // of RoleScope: a role of this configuration
	Audience  string         // the token is valid for this URL and URLs below it; "" is the whole gateway
	Expires   time.Time      // the token is valid before this time; zero means it does not expire
	Workspace WorkspaceField `json:",omitzero"` // of its holder
	Pos       yamldoc.Pos
}

// TokenScope is what the holder of a token may ask a gateway for.
type TokenScope string

// The scopes of tokens. In a document, role: NAME stands for the first and operator: true
// for the second.
const (
	RoleScope     TokenScope = "role"
	OperatorScope TokenScope = "operator"
	MetricsScope  TokenScope = "metrics"
)

// maxTokens is the largest number of tokens in a configuration.
const maxTokens = 1000

// tokenList reads the list of tokens and rejects duplicate names and hashes.
// Errors have no excerpt, because a line may contain a token in clear text.
func tokenList(it item, to *[]Token) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddRedactedError("must be a list of tokens", `"rolecall token create NAME --role ROLE" makes one`)
			return
		}
		if n := len(v.Node.Content); n > maxTokens {
			v.AddError(fmt.Sprintf("has %d tokens; the limit is %d", n, maxTokens), "")
			return
		}
		names, hashes := map[string]yamldoc.Pos{}, map[string]yamldoc.Pos{}
		for _, entry := range v.ListItems() {
			token, ok := it.readToken(entry)
			if !ok {
				continue
			}
			if first, taken := names[token.Name]; taken {
				entry.AddRedactedError(fmt.Sprintf("token %s is listed twice; the first is at %s", yamldoc.QuoteText(token.Name), first), "")
			}
			if first, taken := hashes[token.SHA256]; taken {
				entry.AddRedactedError(fmt.Sprintf("has the same sha256 as the token at %s", first), "create a token for each holder")
			}
			names[token.Name], hashes[token.SHA256] = token.Pos, token.Pos
			*to = append(*to, token)
		}
	}
}

// readToken reads one token. It returns false if it has reported an error.
func (it item) readToken(v yamldoc.Value) (token Token, ok bool) {
	if !v.IsMapping() {
		v.AddRedactedError("must be a mapping of name, sha256, and role, operator or scope", "")
		return token, false
	}
	before := v.ErrorCount()
	token.Pos = v.Pos
	var operator bool
	v.ReadFields(yamldoc.Fields{
		"name":      tokenNameField(&token.Name),
		"sha256":    sha256Field(&token.SHA256),
		"role":      it.ReferenceField("role", &token.Role),
		"operator":  yamldoc.BoolField(&operator),
		"scope":     scopeField(&token.Scope),
		"audience":  audienceField(&token.Audience),
		"expires":   timeField(&token.Expires),
		"workspace": it.workspaceField(&token.Workspace),
	})
	for _, name := range []string{"name", "sha256"} {
		if _, there := v.FindField(name); !there {
			v.MissingField(name).AddRedactedError("is missing", `"rolecall token create NAME --role ROLE" prints the entry to write`)
		}
	}
	if v.ErrorCount() == before && !token.setScope(operator) {
		v.AddRedactedError("needs one of role, operator: true and scope: metrics", "a token has one scope")
	}
	if token.Scope == MetricsScope && token.Workspace != (WorkspaceField{}) {
		v.AddRedactedError("has scope: metrics and a workspace", "its holder has no workspace")
	}
	return token, v.ErrorCount() == before
}

// setScope sets the scope of a token from its three fields. It reports false unless exactly
// one of them is set.
func (t *Token) setScope(operator bool) bool {
	given := 0
	if t.Scope != "" {
		given++
	}
	if t.Role != "" {
		t.Scope = RoleScope
		given++
	}
	if operator {
		t.Scope = OperatorScope
		given++
	}
	return given == 1
}

// CheckTokenScope returns an error if text is not a scope that a token names itself.
func CheckTokenScope(text string) error {
	switch TokenScope(text) {
	case MetricsScope:
		return nil
	case RoleScope:
		return errors.New("must be metrics; a token that names its role has that scope")
	case OperatorScope:
		return errors.New("must be metrics; the operator's token is marked as operator")
	case "approver":
		return errors.New("must be metrics; approver is reserved, because approvers are callers in a role")
	}
	return errors.New("must be metrics")
}

// scopeField reads the scope of a token.
func scopeField(to *TokenScope) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if err := CheckTokenScope(text); err != nil {
			v.AddRedactedError(err.Error(), "for example scope: metrics, role: reader or operator: true")
			return
		}
		*to = TokenScope(text)
	}
}

// CheckTokenName returns an error if name cannot be the name of a token's holder.
func CheckTokenName(name string) error {
	if name == "" {
		return errors.New("the name of a token must not be empty")
	}
	if problem := holderProblem(name); problem != "" {
		return fmt.Errorf("the name of a token %s", problem)
	}
	return nil
}

// holderProblem returns why name cannot be the name of a token's holder, or "".
func holderProblem(name string) string {
	if name == "operator" {
		return `must not be "operator": records use that name for the owner of the data directory`
	}
	if identity.UserName(name).IsTrigger() {
		return `must not begin with "trigger:": records name triggers so`
	}
	return yamldoc.NameProblem(name)
}

// tokenNameField reads the name of a token's holder.
func tokenNameField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if problem := holderProblem(text); problem != "" {
			v.AddError(problem, "")
			return
		}
		*to = text
	}
}

// sha256Field reads a SHA-256. Its errors have no excerpt: an invalid value may be
// the token itself.
func sha256Field(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		const want, hint = "must be the SHA-256 of the token in 64 lower-case hexadecimal digits", `"rolecall token create NAME --role ROLE" prints it`
		if !v.IsScalar() || v.Node.Tag == "!!null" {
			v.AddRedactedError(want, hint)
			return
		}
		text := v.Node.Value // the YAML parser reads digits alone as a number
		if v.HasVariable() {
			var ok bool
			if text, ok = v.ReadText(); !ok {
				return
			}
		}
		if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" || strings.Trim(text, "0") == "" {
			v.AddRedactedError(want, hint)
			return
		}
		*to = text
	}
}

// CheckAudience returns an error if text cannot be the audience of a token. An audience is an http
// or https URL without user, query, fragment and dot segments.
func CheckAudience(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(u.Path, "/.") {
		return errors.New("must be a URL of scheme, host and path")
	}
	return nil
}

// audienceField reads the URL that a token is valid for.
func audienceField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if err := CheckAudience(text); err != nil {
			v.AddRedactedError(err.Error(), "for example http://127.0.0.1:7464/mcp")
			return
		}
		*to = text
	}
}

// ParseMoment parses a date, which means its beginning in UTC, or a time in the
// format of RFC 3339. It returns the time in UTC.
func ParseMoment(text string) (time.Time, error) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil && !t.IsZero() {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is neither a date, as 2027-01-31, nor a time, as 2027-01-31T18:00:00Z", yamldoc.QuoteText(text))
}

// timeField reads a date or a time.
func timeField(to *time.Time) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		t, err := ParseMoment(text)
		if err != nil {
			v.AddTypeError("a date or a time", "for example 2027-01-31 or 2027-01-31T18:00:00Z")
			return
		}
		*to = t
	}
}
