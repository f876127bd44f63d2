package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Token is a bearer token of the gateway. It contains the hash of the token, never
// the token. Either Role or Operator is set.
type Token struct {
	Name     string    // name of the holder
	SHA256   string    // of the token's bytes, in 64 lower-case hexadecimal digits
	Role     string    // a role of this configuration
	Operator bool      // the holder is the operator
	Audience string    // the token is valid for this URL and URLs below it; "" is the whole gateway
	Expires  time.Time // the token is valid before this time; zero means it does not expire
	Pos      Pos
}

// maxTokens is the largest number of tokens in a configuration.
const maxTokens = 1000

// tokenList reads the list of tokens and rejects duplicate names and hashes.
// Errors have no excerpt, because a line may contain a token in clear text.
func tokenList(to *[]Token) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failRedacted("must be a list of tokens", `"rolecall token NAME --role ROLE" makes one`)
			return
		}
		if n := len(v.node.Content); n > maxTokens {
			v.fail(fmt.Sprintf("has %d tokens; the limit is %d", n, maxTokens), "")
			return
		}
		names, hashes := map[string]Pos{}, map[string]Pos{}
		for _, item := range v.items() {
			token, ok := item.readToken()
			if !ok {
				continue
			}
			if first, taken := names[token.Name]; taken {
				item.failRedacted(fmt.Sprintf("token %s is listed twice; the first is at %s", quote(token.Name), first), "")
			}
			if first, taken := hashes[token.SHA256]; taken {
				item.failRedacted(fmt.Sprintf("has the same sha256 as the token at %s", first), "give each holder its own token")
			}
			names[token.Name], hashes[token.SHA256] = token.Pos, token.Pos
			*to = append(*to, token)
		}
	}
}

// readToken reads one token. It returns false if it has reported an error.
func (v value) readToken() (token Token, ok bool) {
	if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
		v.failRedacted("must be a mapping of name, sha256, and role or operator", "")
		return token, false
	}
	before := len(v.doc.errs)
	token.Pos = v.pos
	v.fields([]field{
		{"name", tokenNameField(&token.Name)},
		{"sha256", sha256Field(&token.SHA256)},
		{"role", referenceField("role", &token.Role)},
		{"operator", boolField(&token.Operator)},
		{"audience", audienceField(&token.Audience)},
		{"expires", timeField(&token.Expires)},
	})
	for _, name := range []string{"name", "sha256"} {
		if _, there := v.child(name); !there {
			v.missing(name).failRedacted("is missing", `"rolecall token NAME --role ROLE" prints the entry to write`)
		}
	}
	if len(v.doc.errs) == before && (token.Role != "") == token.Operator {
		v.failRedacted("needs either a role or operator: true", "a token authenticates one or the other")
	}
	return token, len(v.doc.errs) == before
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
	return nameProblem(name)
}

// tokenNameField reads the name of a token's holder.
func tokenNameField(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		if problem := holderProblem(text); problem != "" {
			v.fail(problem, "")
			return
		}
		*to = text
	}
}

// sha256Field reads a SHA-256. Its errors have no excerpt: an invalid value may be
// the token itself.
func sha256Field(to *string) func(value) {
	return func(v value) {
		const want, hint = "must be the SHA-256 of the token in 64 lower-case hexadecimal digits", `"rolecall token NAME --role ROLE" prints it`
		if v.node.Kind != yaml.ScalarNode || v.node.Tag == "!!null" {
			v.failRedacted(want, hint)
			return
		}
		text := v.node.Value // the YAML parser reads digits alone as a number
		if v.hasVariable() {
			var ok bool
			if text, ok = v.text(); !ok {
				return
			}
		}
		if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" || strings.Trim(text, "0") == "" {
			v.failRedacted(want, hint)
			return
		}
		*to = text
	}
}

// CheckAudience returns an error if text cannot be the audience of a token: it
// must be an http or https URL without user, query, fragment and dot segments.
func CheckAudience(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(u.Path, "/.") {
		return errors.New("must be a URL of scheme, host and path")
	}
	return nil
}

// audienceField reads the URL that a token is valid for.
func audienceField(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		if err := CheckAudience(text); err != nil {
			v.failRedacted(err.Error(), "for example http://127.0.0.1:7464/mcp")
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
	return time.Time{}, fmt.Errorf("%s is neither a date, as 2027-01-31, nor a time, as 2027-01-31T18:00:00Z", quote(text))
}

// timeField reads a date or a time.
func timeField(to *time.Time) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		t, err := ParseMoment(text)
		if err != nil {
			v.failType("a date or a time", "for example 2027-01-31 or 2027-01-31T18:00:00Z")
			return
		}
		*to = t
	}
}
