package cmd

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/rolecall/rolecall/gateway/client"
)

func artifactTitled(title string) client.Artifact {
	meta, err := json.Marshal(map[string]string{"title": title, "mediaType": "text/markdown"})
	if err != nil {
		panic(err)
	}
	return client.Artifact{ID: "5c8c53b4", Type: "report", Meta: meta}
}

func TestAFileIsNamedAfterItsTitle(t *testing.T) {
	for _, c := range []struct{ title, content, beside, want string }{
		{"Findings of May", "x", "", "Findings-of-May.md"},
		{"Findings.md", "x", "", "Findings.md"},
		{"Findings.md", "x", "id", "Findings-id.md"},
		{"", "x", "", "report.md"},
		{"  ", "x", "", "report.md"},
		{"Übersicht 2026", "x", "", "Übersicht-2026.md"},
		{"../../etc/passwd", "x", "", "etc-passwd.md"},
		{`C:\\Windows\\x`, "x", "", "C-Windows-x.md"},
		{"/", "x", "", "report.md"},
		{"....", "x", "", "report.md"},
		{".bashrc", "x", "", "bashrc.md"},
		{"-rf", "x", "", "rf.md"},
		{"run.sh", "x", "", "run.sh.md"},
		{"page.html", "{}", "", "page.html.json"},
		{"a\x00b\nc\u202ed\x1b[31m", "x", "", "a-b-c-d-31m.md"},
		{strings.Repeat("é", 500), "x", "", strings.Repeat("é", 60) + ".md"},
	} {
		t.Run(c.title, func(t *testing.T) {
			if got := fileName(artifactTitled(c.title), []byte(c.content), c.beside); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("of bytes by what they are", func(t *testing.T) {
		a := artifactTitled("x.png")
		a.Binary = true
		for content, want := range map[string]string{"\x89PNG\r\n\x1a\n": "x.png", "<html>": "x.png.bin", "MZ": "x.png.bin", "": "x.png.bin"} {
			if got := fileName(a, []byte(content), ""); got != want {
				t.Errorf("%q: got %q, want %q", content, got, want)
			}
		}
	})
	t.Run("after itself when nothing else is left", func(t *testing.T) {
		if got := fileName(client.Artifact{ID: "5c8c53b4", Type: "/"}, []byte("x"), ""); got != "5c8c53b4.txt" {
			t.Errorf("got %q", got)
		}
	})
}

// Whatever a title is, the name stands in the directory and acts on nothing.
func FuzzFileName(f *testing.F) {
	for _, title := range []string{"", "a", "..", "../x", "a/b", ".x", "-x", "x.md", "\x00", "\u202e", "é", "CON", strings.Repeat("x", 300)} {
		f.Add(title)
	}
	f.Fuzz(func(t *testing.T, title string) {
		got := fileName(artifactTitled(title), []byte("x"), "")
		plain := func(r rune) bool {
			return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return !plain(r) }) || strings.HasPrefix(got, ".") || strings.HasPrefix(got, "-") ||
			len(got) > 255 || !strings.HasSuffix(got, ".md") {
			t.Errorf("%q becomes %q", title, got)
		}
	})
}

func TestAPreviewShowsHowItBegins(t *testing.T) {
	text, binary := client.Artifact{}, client.Artifact{Binary: true}
	for _, c := range []struct {
		name    string
		a       client.Artifact
		content string
		want    string
	}{
		{"a text", text, "one\ntwo\n", "one\ntwo"},
		{"nothing", text, "", ""},
		{"many lines", text, strings.Repeat("x\n", 21), strings.Repeat("x\n", 20) + "…"},
		{"a long line", text, strings.Repeat("x", 200), strings.Repeat("x", 119) + "…"},
		{"a very long text", text, strings.Repeat("x", 10_000), strings.Repeat("x", 119) + "…\n…"},
		{"what acts on a terminal", text, "a\x1b[2J\u202eb\tc\u009bd", "a [2J b c d"},
		{"JSON, indented", text, `{"a":[1]}`, "{\n  \"a\": [\n    1\n  ]\n}"},
		{"what only begins as JSON", text, `{"a"`, `{"a"`},
		{"bytes", binary, "\x00A", "00000000  00 41                                             |.A|\n"},
		{"a picture that is none", binary, "\x89PNG\r\n\x1a\n", "00000000  89 50 4e 47 0d 0a 1a 0a                           |.PNG....|\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := preview(c.a, []byte(c.content)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
