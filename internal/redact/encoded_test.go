package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/redact"
)

// secrets of all lengths modulo three, with bytes that each encoding has to escape.
var secrets = []string{"sk-01234", "sk-canary", "sk-0/12+3?", "ключ-<&> %25 x", "\xff\xfe\xfdsk-01234\xfb\xff"}

// leaks reports whether text has more than the bytes that base64 mixes with others at the
// ends of a secret.
func leaks(text, encoded string) bool {
	return len(encoded) > 4 && strings.Contains(text, encoded[2:len(encoded)-2])
}

func TestRedactor_Base64AtAnyAlignment(t *testing.T) {
	encodings := map[string]*base64.Encoding{
		"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding,
	}
	for _, secret := range secrets {
		r := redact.New(secret)
		for name, e := range encodings {
			alone := e.EncodeToString([]byte(secret))
			if got := r.RedactText("<" + alone + ">"); got != "<***>" {
				t.Errorf("%s of %q: got %q", name, secret, got)
			}
			for before := range 6 {
				for after := range 4 {
					text := e.EncodeToString([]byte(strings.Repeat("u", before) + secret + strings.Repeat(":", after)))
					got := r.RedactText(text)
					core := text[(before*8+5)/6 : (before+len(secret))*8/6]
					if !strings.Contains(got, redact.Mask) || leaks(got, core) || !r.Contains([]byte(text)) {
						t.Errorf("%s of %q at %d: got %q of %q", name, secret, before, got, text)
					}
				}
			}
		}
	}
}

func TestRedactor_PercentEncoded(t *testing.T) {
	every := func(form string) func(string) string {
		return func(text string) string {
			var b strings.Builder
			for _, c := range []byte(text) {
				fmt.Fprintf(&b, form, c)
			}
			return b.String()
		}
	}
	lower := func(text string) string { // of the hexadecimal digits only
		for _, hex := range []string{"%2F", "%2B", "%3F", "%3C", "%3E", "%D0", "%BA", "%FF", "%FE", "%FD", "%FB"} {
			text = strings.ReplaceAll(text, hex, strings.ToLower(hex))
		}
		return text
	}
	for name, encode := range map[string]func(string) string{
		"query": url.QueryEscape, "path": url.PathEscape, "every byte": every("%%%02X"), "every byte in lower case": every("%%%02x"),
		"lower case": func(text string) string { return lower(url.QueryEscape(text)) },
		"twice":      func(text string) string { return url.QueryEscape(url.QueryEscape(text)) },
		"thrice":     func(text string) string { return url.PathEscape(url.PathEscape(every("%%%02x")(text))) },
		"of base64":  func(text string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))) },
		"last byte":  func(text string) string { return text[:len(text)-1] + every("%%%02x")(text[len(text)-1:]) },
		"first byte": func(text string) string { return every("%%%02x")(text[:1]) + text[1:] },
	} {
		for _, secret := range secrets {
			text := "https://host/?a=b%2&key=" + encode(secret) + "&c=%"
			if got := strings.ReplaceAll(redact.New(secret).RedactText(text), "%3D", ""); got != "https://host/?a=b%2&key=***&c=%" {
				t.Errorf("%s of %q: got %q", name, secret, got)
			}
		}
	}
}

// Text that only resembles an encoded secret stays.
func TestRedactor_KeepsOtherEncodedText(t *testing.T) {
	r := redact.New("sk-01234")
	for _, text := range []string{
		"", "%", "%2", "%73", "%73k-0123", "sk-0123%", "sk-0123%3", "100% sk+01234", "c2stMDEyM", "%zzsk-0123", "sk-0123%2535",
		base64.StdEncoding.EncodeToString([]byte("sk-0123")),
	} {
		if got := r.RedactText(text); got != text || r.Contains([]byte(text)) {
			t.Errorf("got %q for %q", got, text)
		}
	}
}

func TestRedactor_JSONOfEncodedSecrets(t *testing.T) {
	secret := "sk-?>0123?>"
	doc := fmt.Sprintf(`{"a":%q,"b":"%s","c":"\u0025%x"}`, url.QueryEscape(secret), strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte("u:"+secret)), "/", `\/`), "s")
	got := redact.New(secret).RedactJSON([]byte(doc))
	var fields struct{ A, B, C string }
	if err := json.Unmarshal(got, &fields); err != nil || fields.A != redact.Mask || !strings.Contains(fields.B, redact.Mask) || fields.C != "%73" {
		t.Errorf("got %s of %s", got, doc)
	}
}

// A secret whose beginning was cut off is not in the rest of the text.
func TestRedactor_TailHasNoSplitSecret(t *testing.T) {
	secret := "sk-0123456789"
	text := secret + strings.Repeat(" and more", 50)
	for cut := range len(secret) {
		got := redact.New(secret).RedactTail(text[cut:])
		if strings.Contains(got, secret[len(secret)-1:]) || !strings.HasSuffix(got, " and more") {
			t.Errorf("cut at %d: got %q", cut, got)
		}
	}
}

// Texts that are hostile to a matcher are searched in linear time.
func BenchmarkRedactText(b *testing.B) {
	r := redact.New("%25%25%25%25%25%25%25", "sk-0123456789")
	text := strings.Repeat("%25", 1<<16)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.RedactText(text)
	}
}
