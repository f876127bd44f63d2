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

// wrapLines returns text in lines of n bytes, each with a line break of its own.
func wrapLines(text, lineBreak string, n int) string {
	var b strings.Builder
	for len(text) > n {
		b.WriteString(text[:n] + lineBreak)
		text = text[n:]
	}
	return b.String() + text + lineBreak
}

func TestRedactor_WrappedBase64(t *testing.T) {
	const secret = "sk-canary-0123456789"
	r := redact.New(secret)
	for _, columns := range []int{4, 57, 64, 76} {
		for before := range 80 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + secret + "and more"))
			core := encoded[(before*8+5)/6 : (before+len(secret))*8/6]
			for _, lineBreak := range []string{"\n", "\r\n"} {
				text := "Key:\n\n" + wrapLines(encoded, lineBreak, columns) + "\nend of text\n"
				joined := strings.NewReplacer("\r", "", "\n", "").Replace(r.RedactText(text))
				if strings.Contains(joined, core[1:len(core)-1]) || !strings.HasSuffix(joined, "end of text") {
					t.Fatalf("%d columns, %d bytes before: got %q", columns, before, joined)
				}
				doc, _ := json.Marshal(map[string]string{"a": text})
				if got := r.RedactJSON(doc); !strings.Contains(string(got), redact.Mask) {
					t.Fatalf("%d columns, %d bytes before: got %s", columns, before, got)
				}
			}
		}
	}
	const prose = "ordinary words\nin lines\r\nof a text\n\nend"
	if got := r.RedactText(prose); got != prose {
		t.Errorf("got %q", got)
	}
}

// A JSON document may be in a string of another, which is in a string of a third.
func TestRedactor_EscapesInNestedJSON(t *testing.T) {
	const secret = "pässwörd-0123"
	for _, unicode := range []string{`p\u00e4ssw\u00f6rd-0123`, `\u0070\u00E4ssw\u00f6rd-012\u0033`} {
		doc := `{"key":"` + unicode + `","n":1}`
		for depth := range 4 {
			got := string(redact.New(secret).RedactJSON([]byte(doc)))
			if !strings.Contains(got, redact.Mask) || strings.Contains(got, "ssw") || !json.Valid([]byte(got)) {
				t.Errorf("depth %d: got %s of %s", depth, got, doc)
			}
			inner, _ := json.Marshal(doc)
			doc = `{"body":` + string(inner) + `}`
		}
	}
}

// Ordinary numbers and strings cost nothing for each of the secrets.
func TestRedactor_ManySecretsAndValues(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, strings.Repeat(string(rune('a'+i%26)), 40)+fmt.Sprint(i))
	}
	r := redact.New(append(lines, strings.Join(lines, "\n"))...)
	doc := []byte("[" + strings.Repeat("1234567890,", 5000) + "1]")
	if n := testing.AllocsPerRun(1, func() { r.RedactJSON(doc) }); n > 20 {
		t.Errorf("%v allocations for 5,000 numbers", n)
	}
}
