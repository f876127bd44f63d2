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

// glob holds for a text that is the parts of a pattern in order. Between two parts stands any text
// without delimiters, which is what "*" matches.
type glob struct{ parts []string } // the pattern, split at each "*"

// newGlob parses a pattern. A pattern has no escapes, so no "*" stands for itself.
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

// holds takes the first place where each part is found, and never tries a later one. A later place
// makes the text between two parts longer. If that has no delimiters, then neither has the shorter
// one of the first place. So each match has one with all parts at their first places.
func (o glob) holds(v jsonValue, e *evaluation) bool {
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

// delimiters are the visible characters that "*" does not match. The characters beyond ASCII look
// like ",", ";", "/" or "@", and some programs convert them to those.
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

// regularExpression holds for a text that the expression matches as a whole. The expression is
// compiled when it is first used. So an unused expression takes little memory.
type regularExpression struct {
	instructions int // of the compiled program: steps for each byte of a text, at most
	compile      func() *regexp.Regexp
}

func newRegularExpression(value any) (operator, error) {
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
	if estimateInstructions(parsed) > maxProgram {
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
	if _, err := syntax.Parse(whole, syntax.Perl); err != nil { // such as \Q without \E, which would quote the rest of whole
		return nil, errors.New("is not a regular expression (RE2): " + err.Error())
	}
	return &regularExpression{len(program.Inst), sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(whole) })}, nil
}

// estimateInstructions returns about how many instructions an expression compiles to. It costs little
// where the compilation itself would take too much memory, such as for ((a{1000}){1000}){1000}.
func estimateInstructions(r *syntax.Regexp) int {
	weight := 1 + len(r.Rune)/8
	for _, sub := range r.Sub {
		weight = min(weight+estimateInstructions(sub), 1<<20)
	}
	if r.Op == syntax.OpRepeat {
		weight *= max(r.Min, r.Max, 1)
	}
	return min(weight, 1<<20)
}

func (*regularExpression) name() string { return "matches" }

func (o *regularExpression) holds(v jsonValue, e *evaluation) bool {
	return v.Type == gjson.String && e.spend(len(v.Str)*o.instructions) && o.compile().MatchString(v.Str)
}

// directory holds for a path that is the directory or below it. It compares cleaned texts and does
// not look at files, so it knows no links.
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

func (o directory) holds(v jsonValue, e *evaluation) bool {
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
