package tool_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

func TestCheckName_Errors(t *testing.T) {
	tests := []struct{ description, name, want string }{
		{"all kinds of characters", "aZ0_.-", ""},
		{"128 bytes", strings.Repeat("a", 128), ""},
		{"empty", "", "tool name is empty"},
		{"129 bytes", strings.Repeat("a", 129), `tool name "` + strings.Repeat("a", 32) + `"... has 129 bytes, more than 128`},
		{"Cyrillic letter", "reаd", `tool name "reаd" has U+0430 at byte 2`},
		{"space", "read file", `tool name "read file" has U+0020 at byte 4`},
		{"slash", "a/b", `tool name "a/b" has U+002F at byte 1`},
		{"invisible character", "read\u200b", `tool name "read\u200b" has U+200B at byte 4`},
		{"invalid UTF-8", "a\xff", `tool name "a\xff" has the byte 0xFF at byte 1`},
		{"replacement character", "a\ufffd", "tool name \"a\ufffd\" has U+FFFD at byte 1"},
		{"NUL", "a\x00", `tool name "a\x00" has U+0000 at byte 1`},
	}
	for _, tt := range tests {
		t.Run(tt.description, func(t *testing.T) {
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

// Property: of each pair of letters that look alike, at most one is allowed.
func TestCheckName_RejectsLookalikes(t *testing.T) {
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
			t.Errorf("%q and %q are both allowed", pair.A, pair.B)
		}
		if err := tool.CheckName("re" + pair.B + "d"); err == nil {
			t.Errorf("%q is allowed and looks like %q", pair.B, pair.A)
		}
	}
}
