package bounds

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
)

// glob holds for a text that has its parts in order, with what "*" matches between them.
type glob struct{ parts []string }

// newGlob parses a glob. It has no escapes: every "*" stands for characters.
func newGlob(value any) (operator, error) {
	text, err := textOf(value, "*@example.com")
	if err != nil {
		return nil, err
	}
	if !strings.Contains(text, "*") {
		return nil, errors.New(`has no "*"; use equal`)
	}
	return glob{strings.Split(text, "*")}, nil
}

func (glob) name() string { return "glob" }

// hold searches each part as early as possible. That finds a match if there is one: a later
// place would put a character of the part, or one before it, into the gap before the part, and
// a gap that may have it may also end earlier.
func (o glob) hold(v gjson.Result, e *evaluation) bool {
	if v.Type != gjson.String || !e.spend(len(v.Str)*len(o.parts)) {
		return false
	}
	first, last := o.parts[0], o.parts[len(o.parts)-1]
	rest, ok := strings.CutPrefix(v.Str, first)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, last); !ok {
		return false
	}
	for _, part := range o.parts[1 : len(o.parts)-1] {
		gap, after, found := strings.Cut(rest, part)
		if !found || strings.ContainsFunc(gap, isDelimiter) {
			return false
		}
		rest = after
	}
	return !strings.ContainsFunc(rest, isDelimiter)
}

// delimiters are what "*" does not match besides white space and invisible characters. The
// characters beyond ASCII are those that programs may turn into one of the others.
const delimiters = ",;/@\u037e\uff20\ufe6b\uff0c\ufe50\ufe10\ufe51\uff64\u3001\u060c\uff1b\ufe54\ufe14\u061b\uff0f\u2044\u2215\u29f8"

// isDelimiter reports whether "*" does not match r.
func isDelimiter(r rune) bool {
	if r < 0x80 {
		return r <= ' ' || r == 0x7f || r == ',' || r == ';' || r == '/' || r == '@'
	}
	return r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.IsSpace(r) || textutil.IsInvisible(r) || strings.ContainsRune(delimiters, r)
}

// The limits of regular expressions.
const (
	maxExpression = 512  // bytes
	maxProgram    = 1000 // instructions
)

// expression holds for a text that a regular expression matches as a whole. It is compiled
// when it is first used, so that expressions that are not used take little memory.
type expression struct {
	instructions int
	compile      func() *regexp.Regexp
}

func newExpression(value any) (operator, error) {
	text, err := textOf(value, "[A-Z]{2}[0-9]+")
	if err != nil {
		return nil, err
	}
	if len(text) > maxExpression {
		return nil, fmt.Errorf("an expression has at most %d bytes", maxExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not a regular expression (RE2): " + err.Error())
	}
	if weigh(parsed) > maxProgram {
		return nil, fmt.Errorf("the expression is too large: it repeats too much; at most %d instructions are allowed", maxProgram)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.New("is not a regular expression (RE2): " + err.Error())
	}
	if len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("the expression has %d instructions; at most %d are allowed", len(program.Inst), maxProgram)
	}
	whole := `\A(?:` + text + `)\z`
	if _, err := syntax.Parse(whole, syntax.Perl); err != nil { // such as (?i without an end
		return nil, errors.New("is not a regular expression (RE2): " + err.Error())
	}
	return &expression{len(program.Inst), sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(whole) })}, nil
}

// weigh returns about how many instructions an expression compiles to, so that one that
// explodes is rejected before it is expanded.
func weigh(r *syntax.Regexp) int {
	weight := 1 + len(r.Rune)/8
	for _, sub := range r.Sub {
		weight = min(weight+weigh(sub), 1<<20)
	}
	if r.Op == syntax.OpRepeat {
		weight *= max(r.Min, r.Max, 1)
	}
	return min(weight, 1<<20)
}

func (*expression) name() string { return "matches" }

func (o *expression) hold(v gjson.Result, e *evaluation) bool {
	return v.Type == gjson.String && e.spend(len(v.Str)*o.instructions) && o.compile().MatchString(v.Str)
}

// directory holds for a path that is the directory or below it once both are cleaned.
type directory string

func newDirectory(value any) (operator, error) {
	text, err := textOf(value, "reports")
	if err != nil {
		return nil, err
	}
	clean, ok := cleanPath(text)
	if !ok || clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, errors.New(`want a path with "/" between its parts, without control characters, that does not lead up`)
	}
	return directory(clean), nil
}

// cleanPath returns the shortest path that is lexically the same. It reports false for a path
// that programs may read in another way.
func cleanPath(text string) (string, bool) {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f || r == unicode.ReplacementChar }) {
		return "", false
	}
	if drive := len(text) >= 2 && text[1] == ':' && (text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z'); drive {
		return "", false
	}
	return path.Clean(text), true
}

func (directory) name() string { return "under" }

func (o directory) hold(v gjson.Result, e *evaluation) bool {
	if v.Type != gjson.String || !e.spend(len(v.Str)) {
		return false
	}
	clean, ok := cleanPath(v.Str)
	switch {
	case !ok:
		return false
	case o == ".":
		return clean != ".." && !strings.HasPrefix(clean, "../") && !strings.HasPrefix(clean, "/")
	case o == "/":
		return strings.HasPrefix(clean, "/")
	}
	rest, below := strings.CutPrefix(clean, string(o))
	return below && (rest == "" || rest[0] == '/')
}
