package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/redact"
)

func TestRedactor_Redact(t *testing.T) {
	for _, c := range []struct {
		name, secret, text, want string
	}{
		{"key", "sk-0123456789", "your key sk-0123456789 is tired", "your key *** is tired"},
		{"key twice", "sk-0123456789", "sk-0123456789sk-0123456789", "******"},
		{"white space around the secret", " sk-0123456789 \n", "your key sk-0123456789 is tired", "your key *** is tired"},
		{"white space in the text", "sk-0123456789 ", "(sk-0123456789 )", "(***)"},
		{"key in JSON", `sk-"01234"\`, `{"a":"sk-\"01234\"\\"}`, `{"a":"***"}`},
		{"key in JSON in JSON", `sk-"01234`, `"{\"a\":\"sk-\\\"01234\"}"`, `"{\"a\":\"***\"}"`},
		{"escaped for HTML", "sk-<01234>", `\u003ca href=sk-\u003c01234\u003e`, `\u003ca href=***`},
		{"slashes escaped", "sk/01234/+", `"sk\/01234\/+"`, `"***"`},
		{"invalid UTF-8", "sk-01234\xff", "sk-01234\ufffd", "***"},
		{"too short", "o", "find_role", "find_role"},
		{"seven bytes", "1234567", "1234567", "1234567"},
		{"eight bytes", "12345678", "12345678", "***"},
		{"seven bytes and a space", "1234567 ", "1234567", "1234567"},
		{"no secret", "", "find_role", "find_role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := redact.New("", c.secret)
			if got := h.RedactText(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := h.Contains([]byte(c.text)); got != (c.text != c.want) {
				t.Errorf("Contains is %v", got)
			}
		})
	}
}

func TestRedactor_LongestSecretFirst(t *testing.T) {
	if got := redact.New("sk-01234", "sk-0123456789").RedactText("sk-0123456789 sk-01234"); got != "*** ***" {
		t.Errorf("got %q", got)
	}
}

func TestRedactor_JSON(t *testing.T) {
	for _, c := range []struct {
		name, secret, doc, want string
	}{
		{"no secret", "sk-0123456789", `{"b": 1.50, "a": "\u00fc"}`, `{"b": 1.50, "a": "\u00fc"}`},
		{"key within a string", "sk-0123456789", `{"a": "is sk-0123456789"}`, `{"a": "is ***"}`},
		{"key in a repeated field", "sk-0123456789", `{"a":"\u0073k-0123456789","a":"x"}`, `{"a":"***","a":"x"}`},
		{"key is a field name", "sk-0123456789", `{"\u0073k-0123456789":"\u00fc"}`, `{"***":"\u00fc"}`},
		{"key with escaped letters", "sk-0123456789", `{"a":"is sk\u002d0123456789","n":1.50}`, `{"a":"is ***","n":1.50}`},
		{"key is a number", "123456789", `{"a":[-123456789.5e3,1],"123456789":2}`, `{"a":["***",1],"***":2}`},
		{"number in a string", "123456789", `{"a":"b\u003d\"123456789"}`, `{"a":"b=\"***"}`},
		{"key spans strings", `:"a","b":`, `{"a":"a","b":"c"}`, `"***"`},
		{"too short", "o", `{"role":"o"}`, `{"role":"o"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := redact.New(c.secret).RedactJSON([]byte(c.doc))
			if string(got) != c.want || !json.Valid(got) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := redact.New("sk-0123456789").RedactJSON([]byte(`"\u0073k-0123456789", sk-0123456789 {`)); string(got) != `"***", *** {` {
		t.Errorf("got %s for a text that is not JSON", got)
	}
	if got := redact.New(strings.Repeat("x", 9)).RedactJSON(nil); got != nil {
		t.Errorf("got %q for nil", got)
	}
}
