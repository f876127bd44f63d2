package bounds_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// A rule that is accepted is the same after it is stored, and takes any arguments without a
// panic.
func FuzzParseRule(f *testing.F) {
	f.Add(`{"/to": {"any": [{"equal": "a"}, {"glob": "*@y"}], "missing": "allow"}}`, `{"to": "x@y"}`)
	f.Add(`{"/a/*/b": {"max": 1e3, "min": -1}, "/u": {"url": {"host": "a.b", "path": "/v1/"}}}`, `{"a": [{"b": 1}], "u": "https://a.b/v1/"}`)
	f.Add(`{"/p": {"under": "a"}, "/q": {"matches": "a+"}, "/r": {"input": "one"}}`, `{"p": "a/b", "q": "aa", "r": "a@x"}`)
	f.Fuzz(func(t *testing.T, text, args string) {
		r, err := bounds.ParseRule([]byte(text))
		if err != nil {
			return
		}
		again, err := bounds.ParseRule([]byte(r.String()))
		if err != nil || !again.Equal(r) {
			t.Fatalf("%s is stored as %s, %v", text, r, err)
		}
		if !json.Valid([]byte(args)) {
			return
		}
		if one, two := r.CheckArguments([]byte(args), inputs), again.CheckArguments([]byte(args), inputs); (one == nil) != (two == nil) {
			t.Fatalf("%s: %v and %v", args, one, two)
		}
	})
}

// A glob matches the texts of the regular expression that it stands for.
func FuzzGlob(f *testing.F) {
	f.Add("*@y.example", "a@y.example")
	f.Add("a*b*c", "abcbc")
	f.Add("*@a*@a", "x@a@a@a")
	f.Add("**,*", "a,b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		r, err := bounds.ParseRule([]byte(`{"/v": {"glob": ` + quote(pattern) + `}}`))
		if err != nil || len(text) > 4096 {
			return
		}
		pattern, text = strings.ToValidUTF8(pattern, "\ufffd"), strings.ToValidUTF8(text, "\ufffd")
		if strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 && !unicode.IsLetter(c) }) {
			return
		}
		oracle := regexp.MustCompile(`\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `[^\x00-\x20\x7f,;/@]*`) + `\z`)
		if strings.ContainsRune(text, '\u3164') || strings.ContainsRune(text, '\u115f') || strings.ContainsRune(text, '\u1160') || strings.ContainsRune(text, '\uffa0') {
			return
		}
		if got, want := r.CheckArguments([]byte(`{"v": `+quote(text)+`}`), nil) == nil, oracle.MatchString(text); got != want {
			t.Fatalf("%q with %q: got %v, want %v", pattern, text, got, want)
		}
	})
}
