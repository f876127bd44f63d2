package textutil_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/textutil"
)

func TestEscapeUnprintable(t *testing.T) {
	for document, want := range map[string]string{
		"{\n \"a\": \"b é 漢 🙂\"}":             "{\n \"a\": \"b é 漢 🙂\"}",
		"\"a\u202eb\u200b\u3164\"":            `"a\u202eb\u200b\u3164"`,
		"\"a\u034f\u180b\ufe0f\u2800\u17b4\"": `"a\u034f\u180b\ufe0f\u2800\u17b4"`,
		"\"\x7f\u0085\U000e0041\"":            `"\u007f\u0085\udb40\udc41"`,
	} {
		if got := string(textutil.EscapeUnprintable([]byte(document))); got != want {
			t.Errorf("%q: got %q, want %q", document, got, want)
		}
	}
}
