package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestReader_EnforcesLimits checks that huge files, and small files that expand to
// much, are rejected.
func TestReader_EnforcesLimits(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nested aliases":    {aliasBomb(9), "expand to more than 10000 values"},
		"recursive alias":   {"kind: &a [*a]", "alias *a refers to the anchor it is in"},
		"depth of brackets": {"kind: " + strings.Repeat("[", 1000), "exceeded max depth of 64"},
		"depth of lists":    {strings.Repeat("- ", 1000) + "a", "exceeded max depth of 64"},
		"many values":       {"[" + strings.Repeat("a,", 1<<20) + "]", "may have 1048578 values; the limit is 262144"},
		"huge file":         {strings.Repeat("# comment \n", 1<<20), "has more than 10 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			list := wantRejected(t, c.text)
			if got := list[0].Message; len(list) != 1 || !strings.Contains(got, c.want) {
				t.Errorf("got %.300v, want one error with %q", list, c.want)
			}
		})
	}
}

// aliasBomb returns a document whose aliases expand to 8^levels values.
func aliasBomb(levels int) string {
	var b strings.Builder
	b.WriteString("kind: role\nname: a\na0: &a0 x\n")
	for i := range levels {
		alias := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.Join([]string{alias, alias, alias, alias, alias, alias, alias, alias}, ", "))
	}
	return b.String()
}

// TestReader_BoundsVariableExpansion checks the limit on a text with its variables
// substituted.
func TestReader_BoundsVariableExpansion(t *testing.T) {
	text := "{kind: role, name: a, prompt: '" + strings.Repeat("${BIG}", 100) + "'}"
	big := func(string) (string, bool) { return strings.Repeat("x", 1<<20), true }
	_, err := readEnv(text, big)
	if err == nil || !strings.Contains(err.Error(), "exceeds 10 MiB") {
		t.Errorf("got %.200v", err)
	}
}

// TestReader_ExpandsAliasedTextOnce checks that many aliases of a large text with
// variables expand it once and report its error once.
func TestReader_ExpandsAliasedTextOnce(t *testing.T) {
	text := "kind: role\nname: a\nprompt: &p '${MISSING}" + strings.Repeat("x", 1<<20) + "'\ntoolGroups: [" + strings.Repeat("*p, ", 1000) + "]\n"
	if list := wantRejected(t, text); len(list) != 1 || list[0].Message != "variable MISSING is not set" {
		t.Errorf("got %.300v", list)
	}
}

// TestError_Excerpt checks that long lines are shortened and control characters
// replaced.
func TestError_Excerpt(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"tabs keep the caret aligned": {"{kind: role,\tname: a,\tbogus: 1}", "{kind: role,\tname: a,\tbogus: 1}\n            \t        \t^"},
		"other line breaks count":     {"kind: role\r\nname: a\rprompt: x\u2028bogus: 1\n", "bogus: 1\n^"},
		"byte order mark":             {"\ufeffbogus: 1\nkind: role\nname: a", "bogus: 1\n^"},
		"invisible characters":        {"{kind: role, name: a, 'bo\u202egus': 1}", "{kind: role, name: a, 'bo\ufffdgus': 1}\n                      ^"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wantRejected(t, c.text)[0].Excerpt; got != c.want {
				t.Errorf("got:\n%q\nwant:\n%q", got, c.want)
			}
		})
	}
	long := wantRejected(t, "{kind: role, name: a, prompt: "+strings.Repeat("é", 5<<20/2)+", bogus: "+strings.Repeat("x", 1<<20)+"}")
	line, caret, _ := strings.Cut(long[0].Excerpt, "\n")
	if n := len([]rune(line)); n > 110 || !strings.Contains(line, "é, bogus: xxx") || len(caret) > 70 {
		t.Errorf("excerpt has %d characters: %s", n, long[0].Excerpt)
	}
}
