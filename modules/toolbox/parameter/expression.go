package parameter

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// special are the characters that have a meaning in an expression.
const special = `\^$|?*+()[]{}`

// expression is a compiled regular expression with its configured source.
type expression struct {
	*regexp.Regexp
	source string
}

// isAmbiguous reports whether an entry of a string's allowedValues could be a literal or an
// expression.
func isAmbiguous(entry string) bool {
	_, slashed := trimSlashes(entry)
	return !slashed && !isAnchored(entry) && strings.ContainsAny(entry, special)
}

// parseAllowed parses an entry of a string's allowedValues. It returns an expression
// that matches whole values only, or reports that the entry is a literal. With anchor an
// ambiguous entry is an expression too.
func parseAllowed(entry string, anchor bool) (e *expression, literal bool, err error) {
	source, slashed := trimSlashes(entry)
	if ambiguous := isAmbiguous(entry); !slashed && !isAnchored(entry) && !(ambiguous && anchor) {
		if ambiguous {
			return nil, false, fmt.Errorf("%q contains a character of expressions and is neither between slashes nor written from ^ to $", textutil.Truncate(entry, maxQuote))
		}
		return nil, true, nil
	}
	if _, err := regexp.Compile(source); err != nil { // by itself, so that it cannot close the group below
		return nil, false, fmt.Errorf("%q is not a regular expression: %w", textutil.Truncate(source, maxQuote), err)
	}
	whole, err := regexp.Compile(`\A(?:` + source + `)\z`)
	if err != nil {
		return nil, false, fmt.Errorf("%q has an unclosed quote or group: %w", textutil.Truncate(source, maxQuote), err)
	}
	return &expression{whole, source}, false, nil
}

// parseExcluded parses an entry of a string's excludedValues: an expression that
// matches anywhere.
func parseExcluded(entry string) (*expression, error) {
	source, _ := trimSlashes(entry)
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", textutil.Truncate(source, maxQuote), err)
	}
	return &expression{re, source}, nil
}

// trimSlashes returns an entry without the slashes around it, and reports whether it
// has them.
func trimSlashes(entry string) (source string, ok bool) {
	if len(entry) >= 2 && entry[0] == '/' && entry[len(entry)-1] == '/' {
		return entry[1 : len(entry)-1], true
	}
	return entry, false
}

// isAnchored reports whether an entry is written from ^ to $. A dollar after an odd
// number of backslashes is an ordinary character.
func isAnchored(entry string) bool {
	body, ok := strings.CutSuffix(entry, "$")
	escapes := len(body) - len(strings.TrimRight(body, `\`))
	return ok && strings.HasPrefix(body, "^") && escapes%2 == 0
}

// pattern returns the expression as the pattern of a JSON schema, which may match
// anywhere. It returns "" if other dialects would read the expression differently.
func (e *expression) pattern() string {
	if !isPortable(e.source) {
		return ""
	}
	tree, err := syntax.Parse(e.source, syntax.Perl)
	if err == nil && tree.Op == syntax.OpConcat && tree.Sub[0].Op == syntax.OpBeginText && tree.Sub[len(tree.Sub)-1].Op == syntax.OpEndText {
		return e.source
	}
	return "^(?:" + e.source + ")$"
}

// isPortable reports whether an expression means the same to the validators of
// clients, which mostly use ECMAScript's dialect. Such an expression has no flags
// and no named classes. It has only escapes that all dialects share.
func isPortable(source string) bool {
	const escapes = `dDwWsSbBtnrfv/-.` + special
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		if strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") || strings.HasPrefix(rest, "[[:") {
			return false
		}
		if source[i] == '\\' {
			if i++; i == len(source) || !strings.Contains(escapes, source[i:i+1]) {
				return false
			}
		}
	}
	return true
}
