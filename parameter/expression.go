package parameter

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// special are the characters that make a text look like an expression.
const special = `\^$|?*+()[]{}`

// expression is a regular expression as it is configured.
type expression struct {
	*regexp.Regexp
	source string
}

// allowedText reads an entry of a string's allowed values: a literal, or an
// expression that matches whole values only.
func allowedText(entry string) (e *expression, literal bool, err error) {
	source, slashed := slashed(entry)
	if !slashed && !anchored(entry) {
		if strings.ContainsAny(entry, special) {
			return nil, false, fmt.Errorf("%q has a character of expressions and is neither between slashes nor from ^ to $", brief(entry))
		}
		return nil, true, nil
	}
	if _, err := regexp.Compile(source); err != nil { // alone, so that it closes what it opens
		return nil, false, fmt.Errorf("%q is no regular expression: %w", brief(source), err)
	}
	whole, err := regexp.Compile(`\A(?:` + source + `)\z`)
	if err != nil {
		return nil, false, fmt.Errorf("%q does not end what it begins: %w", brief(source), err)
	}
	return &expression{whole, source}, false, nil
}

// excludedText reads an entry of a string's excluded values: an expression
// that matches anywhere.
func excludedText(entry string) (*expression, error) {
	source, _ := slashed(entry)
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", brief(source), err)
	}
	return &expression{re, source}, nil
}

// slashed takes the slashes off an entry that is written between them.
func slashed(entry string) (source string, ok bool) {
	if len(entry) >= 2 && entry[0] == '/' && entry[len(entry)-1] == '/' {
		return entry[1 : len(entry)-1], true
	}
	return entry, false
}

// anchored says whether an entry is written from ^ to $. A dollar behind an
// odd number of backslashes is a character.
func anchored(entry string) bool {
	body, ok := strings.CutSuffix(entry, "$")
	escapes := len(body) - len(strings.TrimRight(body, `\`))
	return ok && strings.HasPrefix(body, "^") && escapes%2 == 0
}

// pattern gives the expression for a JSON schema, where it may match anywhere;
// "" if it is not written as other dialects have it too.
func (e *expression) pattern() string {
	if !portable(e.source) {
		return ""
	}
	tree, err := syntax.Parse(e.source, syntax.Perl)
	if err == nil && tree.Op == syntax.OpConcat && tree.Sub[0].Op == syntax.OpBeginText && tree.Sub[len(tree.Sub)-1].Op == syntax.OpEndText {
		return e.source
	}
	return "^(?:" + e.source + ")$"
}

// portable says whether an expression means the same to the validators of
// clients, which are mostly ECMAScript's: no flags, no classes by name, and
// only those escapes that all have.
func portable(source string) bool {
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
