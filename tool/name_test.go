package tool_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

func TestCheckName(t *testing.T) {
	tests := []struct{ why, name, want string }{
		{"every kind of character", "aZ0_.-", ""},
		{"128 bytes", strings.Repeat("a", 128), ""},
		{"nothing", "", "tool name is empty"},
		{"129 bytes", strings.Repeat("a", 129), `tool name "` + strings.Repeat("a", 32) + `"... has 129 bytes, more than 128`},
		{"a Cyrillic letter", "reаd", `tool name "reаd" has U+0430 at byte 2`},
		{"a space", "read file", `tool name "read file" has U+0020 at byte 4`},
		{"a slash", "a/b", `tool name "a/b" has U+002F at byte 1`},
		{"an invisible character", "read\u200b", `tool name "read\u200b" has U+200B at byte 4`},
		{"a byte that is no UTF-8", "a\xff", `tool name "a\xff" has the byte 0xFF at byte 1`},
		{"the replacement character", "a\ufffd", "tool name \"a\ufffd\" has U+FFFD at byte 1"},
		{"NUL", "a\x00", `tool name "a\x00" has U+0000 at byte 1`},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			got := ""
			if err := tool.CheckName(tt.name); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Property: no two names that pass look alike. Of each pair of letters that
// are drawn alike on purpose, at most one is allowed.
func TestNoNameWithALookAlikeLetterPasses(t *testing.T) {
	data, err := os.ReadFile("testdata/unicode_intentional_confusables.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var pair struct{ A, B string }
		if err := json.Unmarshal(line, &pair); err != nil {
			t.Fatal(err)
		}
		if tool.CheckName("re"+pair.A+"d") == nil && tool.CheckName("re"+pair.B+"d") == nil {
			t.Errorf("both %q and %q pass", pair.A, pair.B)
		}
		if err := tool.CheckName("re" + pair.B + "d"); err == nil {
			t.Errorf("%q passes, which looks like %q", pair.B, pair.A)
		}
	}
}
