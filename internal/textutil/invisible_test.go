package textutil_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/textutil"
)

// invisible are texts with what RemoveInvisible leaves of them.
var invisible = map[string]string{
	"plain\ttext\n":                        "plain\ttext\n",
	"two\r\nlines\rone":                    "two\nlinesone",
	"tags \U000e0041\U000e007f":            "tags ",
	"bidi \u202e\u2066x\u2069":             "bidi x",
	"terminal \x1b[31m\x1b]0;t\x07\x9b":    "terminal [31m]0;t\uFFFD",
	"zero width \u200b\ufeff\u00ad":        "zero width ",
	"emoji 👩\u200d🚀 ❤\ufe0f":               "emoji 👩\u200d🚀 ❤\ufe0f",
	"selectors \ufe00\U000e0100":           "selectors ",
	"fillers \u115f\u3164":                 "fillers ",
	"separators \u2028\u2029\x7f\u0085":    "separators ",
	"a private character \ue000\U000f0000": "a private character ",
}

func TestRemoveInvisible(t *testing.T) {
	for text, want := range invisible {
		if got := textutil.RemoveInvisible(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The strings of a document lose what RemoveInvisible removes from them, whether it is escaped
// or not. All else stays.
func TestRemoveInvisibleJSON(t *testing.T) {
	for text, want := range invisible {
		if strings.Contains(text, "\x9b") {
			continue // not UTF-8, so no JSON
		}
		for name, encode := range map[string]func(string) []byte{"escaped": escapeAll, "as it is": asItIs} {
			document := []byte(`{"n":1.50, "` + string(encode(text)) + `":["` + string(encode(text)) + `"]}`)
			var got map[string]any
			out := textutil.RemoveInvisibleJSON(document)
			if err := json.Unmarshal(out, &got); err != nil || !strings.HasPrefix(string(out), `{"n":1.50, `) {
				t.Errorf("%q %s: %s, %v", text, name, out, err)
			}
			if list, ok := got[want].([]any); !ok || list[0] != want {
				t.Errorf("%q %s: got %q, want %q", text, name, got, want)
			}
		}
	}
	const kept = `{"a":"\\u200b \" \/ \n \t \ud83d\ude00 \u00e9","b":"é"}`
	if got := string(textutil.RemoveInvisibleJSON([]byte(kept))); got != kept {
		t.Errorf("%s became %s", kept, got)
	}
}

// escapeAll escapes each character.
func escapeAll(text string) []byte {
	var b strings.Builder
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			b.WriteString(`\u` + hex4(0xd800+r>>10) + `\u` + hex4(0xdc00+r&0x3ff))
			continue
		}
		b.WriteString(`\u` + hex4(r))
	}
	return []byte(b.String())
}

func hex4(r rune) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// asItIs escapes what JSON requires, in the short form if there is one.
func asItIs(text string) []byte {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\r' || r == '\n' || r == '\t':
			b.WriteString(map[rune]string{'\r': `\r`, '\n': `\n`, '\t': `\t`}[r])
		case r < ' ':
			b.WriteString(`\u` + hex4(r))
		default:
			b.WriteRune(r)
		}
	}
	return []byte(b.String())
}

func FuzzRemoveInvisibleJSON(f *testing.F) {
	f.Add([]byte(`{"a":"\ud800\udc00\ud800\r\n\b` + "\u200b" + `"}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		if !json.Valid(document) {
			return
		}
		out := textutil.RemoveInvisibleJSON(document)
		if !json.Valid(out) {
			t.Fatalf("%q became %q", document, out)
		}
		if again := textutil.RemoveInvisibleJSON(out); string(again) != string(out) {
			t.Errorf("%q becomes %q and %q", document, out, again)
		}
	})
}
