package redact_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/redact"
)

// A secret is removed from a stream wherever the parts split it, and no other text is lost.
func TestTextStream_SplitSecrets(t *testing.T) {
	for _, secret := range secrets {
		r := redact.New(secret)
		for _, form := range []string{secret, url.QueryEscape(secret), url.QueryEscape(url.QueryEscape(secret)), base64.StdEncoding.EncodeToString([]byte("u" + secret))} {
			text := "100% of <" + form + "> and " + form[:len(form)/2] + " sk%2"
			want := r.RedactText(text)
			for first := range len(text) {
				for _, size := range []int{1, 2, 7, len(text)} {
					if got := redactParts(r, text, first, size); got != want {
						t.Fatalf("%q split at %d, then each %d: got %q, want %q", text, first, size, got, want)
					}
				}
			}
		}
	}
}

// A text that arrives byte by byte hides what the whole text hides, in every encoding.
func TestTextStream_ByteByByte(t *testing.T) {
	const secret = "sk-canary-0123456789"
	r := redact.New(secret)
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + secret + ":and more"))
	for name, text := range map[string]string{
		"plain":                  "key " + secret + " end",
		"base64":                 encoded,
		"base64 in lines":        wrapLines(encoded, "\n", 6) + "end",
		"base64 in CRLF lines":   "a\r\n" + wrapLines(encoded, "\r\n", 16) + "\r\nend",
		"base64 in JSON lines":   `{"key":"` + wrapLines(encoded, `\n`, 16) + `"}`,
		"JSON":                   `{"key":"` + secret + `"}`,
		"escapes of JSON":        `{"key":"` + escapeUnicode(secret) + `"}`,
		"escapes of nested JSON": `{"key":"{\"key\":\"` + strings.ReplaceAll(escapeUnicode(secret), `\`, `\\`) + `\"}"}`,
		"one escape of JSON":     `{"key":"` + strings.Replace(secret, "c", `\u0063`, 1) + `"}`,
		"percent":                "https://host/?key=" + strings.ReplaceAll(secret, "-", "%2D"),
	} {
		got := redactParts(r, text, 0, 1)
		if !strings.Contains(got, redact.Mask) || r.Contains([]byte(got)) || string(r.RedactJSON([]byte(got))) != got {
			t.Errorf("%s: got %q of %q", name, got, text)
		}
	}
}

// A secret that is split between a text and its continuation is not in both together.
func TestTextStream_ContinuesText(t *testing.T) {
	const secret = "sk-canary-0123456789"
	r := redact.New(secret)
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte("u" + secret)), url.QueryEscape(secret)} {
		text := "sk- <" + form + "> end sk-c"
		for cut := range len(text) {
			for _, size := range []int{1, 3, len(text)} {
				before := r.RedactText(text[:cut])
				s := r.ContinueStream(before)
				rest := ""
				for tail := text[cut:]; tail != ""; {
					n := min(size, len(tail))
					rest += s.RedactPart(tail[:n])
					tail = tail[n:]
				}
				rest += s.Flush()
				joined := before + rest
				if r.Contains([]byte(joined)) || !strings.HasSuffix(joined, "> end sk-c"[max(0, cut-len(text)+10):]) {
					t.Fatalf("cut at %d, then each %d: got %q and %q", cut, size, before, rest)
				}
				if (cut < 5 || cut > len(text)-10) && joined != "sk- <"+redact.Mask+"> end sk-c" && form == secret {
					t.Fatalf("cut at %d, then each %d: got %q and %q", cut, size, before, rest)
				}
			}
		}
	}
}

// escapeUnicode returns text with every byte as an escape of JSON.
func escapeUnicode(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

// redactParts redacts text in parts: the first bytes, then size bytes at a time.
func redactParts(r *redact.Redactor, text string, first, size int) string {
	s := r.NewStream()
	out := s.RedactPart(text[:first])
	for text = text[first:]; text != ""; {
		n := min(size, len(text))
		out += s.RedactPart(text[:n])
		text = text[n:]
	}
	return out + s.Flush()
}

// A stream holds back a line break within a secret, but no run of them. The bound covers a
// secret of which each byte is encoded in the longest way.
func TestTextStream_HoldsBackFewLineBreaks(t *testing.T) {
	const secret = "sk-0123456789"
	for _, lineBreak := range []string{"\n", "\r\n", `\n`, `\r\n`, `\\r\\n`, strings.Repeat(`\`, 8) + "n"} {
		s := redact.New(secret).NewStream()
		if got := s.RedactPart("s" + lineBreak); got != "" {
			t.Errorf("%q: got %q after one", lineBreak, got)
		}
		got := s.RedactPart(lineBreak + lineBreak)
		for range 100 {
			got += s.RedactPart(lineBreak)
		}
		if want := "s" + strings.Repeat(lineBreak, 100); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %d bytes, want at least %d", lineBreak, len(got), len(want))
		}
	}
	backslashes := strings.Repeat(`\`, 8)
	long := strings.ReplaceAll(escapeUnicode(secret), `\`, backslashes+"r"+backslashes+"n"+backslashes)[2*len(backslashes+"n"):]
	if got := redactParts(redact.New(secret), long, 0, 1); got != redact.Mask {
		t.Errorf("got %q", got)
	}
}

// Only what may be a secret is held back.
func TestTextStream_HoldsBackLittle(t *testing.T) {
	s := redact.New("sk-0123456789").NewStream()
	for _, step := range [][2]string{{"Hello, ", "Hello, "}, {"s", ""}, {"ky", "sky"}, {" sk-01", " "}, {"x", "sk-01x"}, {"sk-0123456789", "***"}} {
		if got := s.RedactPart(step[0]); got != step[1] {
			t.Errorf("got %q after %q, want %q", got, step[0], step[1])
		}
	}
	var none *redact.Redactor
	if got := none.NewStream().RedactPart("sk-01"); got != "sk-01" {
		t.Errorf("got %q without secrets", got)
	}
	if long := strings.Repeat("sk-", 1000); redactParts(redact.New("sk-0123456789"), long, 0, 1) != long {
		t.Error("text was lost")
	}
}
