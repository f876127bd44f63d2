package textutil_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/textutil"
)

func Example() {
	fmt.Println(textutil.Truncate("a long message", 6))
	fmt.Println(textutil.OneLine("two\nlines", 80))
	fmt.Println(textutil.Sanitize("\x1b[31mred"))
	// Output:
	// a long…
	// two lines
	// �[31mred
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"abc", 0, "…"}, {"abc", -1, "…"},
		{"äöü", 3, "ä…"}, {"äöü", 1, "…"}, {"a\U0001F600", 3, "a…"}, {"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80…"},
	} {
		if got := textutil.Truncate(c.text, c.n); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestTruncateWidth(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"", 0, ""}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"abc", 1, "…"}, {"abc", 0, "…"}} {
		if got := textutil.TruncateWidth(c.text, c.n); got != c.want {
			t.Errorf("TruncateWidth(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestSanitizeLines_KeepsLineBreaks(t *testing.T) {
	if got := textutil.SanitizeLines("a\tb\r\n\u202ec"); got != "a b \n�c" {
		t.Errorf("got %q", got)
	}
}

func TestTailBuffer_KeepsTheEnd(t *testing.T) {
	b := textutil.TailBuffer{Size: 4}
	for _, text := range []string{"ab", "cde", "", "0123456789", "x"} {
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write(%q) = %d, %v", text, n, err)
		}
	}
	if got := b.String(); got != "789x" {
		t.Errorf("got %q, want %q", got, "789x")
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("a\x80\U0001F600ä\x1b", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		got := textutil.Truncate(text, n)
		if len(got) > max(n, 0)+len("…") || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("Truncate(%q, %d) = %q", text, n, got)
		}
		if clean := textutil.Sanitize(text); strings.ContainsFunc(clean, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }) {
			t.Errorf("Sanitize(%q) = %q", text, clean)
		}
	})
}

// The beginning takes at most n bytes as JSON, and one more character takes more.
func TestPrefixJSON_FillsTheLimit(t *testing.T) {
	encoded := func(text string) int {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return len(data) - 2
	}
	for c := range rune(0x3000) {
		if n := encoded(string(c)); textutil.PrefixJSON(string(c)+"x", n) != string(c) || textutil.PrefixJSON(string(c), n-1) != "" {
			t.Errorf("%U takes %d bytes of JSON", c, n)
		}
	}
	for _, text := range []string{"", "a\"b\\c\n😀<é>", "a\xffb\xe2\x82"} {
		for n := range 40 {
			got := textutil.PrefixJSON(text, n)
			if encoded(got) > n || !strings.HasPrefix(text, got) || encoded(text) <= n && got != text {
				t.Errorf("%q, %d: got %q", text, n, got)
			}
		}
	}
}

func TestSuggestName(t *testing.T) {
	for word, want := range map[string]string{"toolGruops": `did you mean "toolGroups"?`, "x": "", "NAME": `did you mean "name"?`} {
		if got := textutil.SuggestName(word, []string{"name", "toolGroups"}); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct{ word, known, want string }{ // one that is far off does not help
		{"helper", "reader", ""}, {"port", "cors", ""}, {"tag", "key", ""}, {"x", "y", ""}, {"rôle", "role", "role"}, {"openaiKey", "apiKey", "apiKey"},
		{"clerc", "clerk", "clerk"}, {"readr", "reader", "reader"}, {"rolle", "role", "role"}, {"hlper", "helper", "helper"}, {"wirter", "writer", "writer"},
	} {
		if got := textutil.SuggestName(c.word, []string{c.known}); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.word, got, c.want)
		}
	}
}

func TestUnescapeHTML(t *testing.T) {
	for document, want := range map[string]string{
		`{"a":"x \u003c y \u003E z \u0026"}`: `{"a":"x < y > z &"}`,
		`"\\u003c"`:                          `"\\u003c"`,
		`"\\\u003c"`:                         `"\\<"`,
		`"\u0022\u2028\u001b\n"`:             `"\u0022\u2028\u001b\n"`,
		`"plain"`:                            `"plain"`,
		`"\u003`:                             `"\u003`,
		`"\u00\`:                             `"\u00\`,
	} {
		if got := string(textutil.UnescapeHTML([]byte(document))); got != want {
			t.Errorf("%s: got %s, want %s", document, got, want)
		}
	}
}

// The document means the same.
func FuzzUnescapeHTML(f *testing.F) {
	f.Add("a < b \\u003c & \\")
	f.Fuzz(func(t *testing.T, text string) {
		document, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if json.Unmarshal(document, &before) != nil || json.Unmarshal(textutil.UnescapeHTML(document), &after) != nil || before != after {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestAddHint(t *testing.T) {
	for _, test := range []struct{ text, hint, want string }{
		{"no x", "", "no x"},
		{"no x", "name a y", "no x; name a y"},
		{`no x; did you mean "y"?`, "name a y", `no x; did you mean "y"? Name a y`},
		{`did you mean "y"?`, `"help" lists them`, `did you mean "y"? "help" lists them`},
	} {
		if got := textutil.AddHint(test.text, test.hint); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestListNames(t *testing.T) {
	many := strings.Split(strings.Repeat("n ", 25)+"n", " ")
	long := strings.Repeat("x", 300)
	for want, names := range map[string][]string{
		"":     nil,
		"a":    {"a"},
		"a, b": {"a", "b"},
		strings.Repeat("n, ", 19) + "n and 6 more": many,
		long + " and 1 more":                       {long, long},
		"and 1 more":                               {long + long},
	} {
		if got := textutil.ListNames(names); got != want {
			t.Errorf("%d names: got %q, want %q", len(names), got, want)
		}
	}
}
