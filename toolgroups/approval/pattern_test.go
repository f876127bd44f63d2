package approval_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// A call is covered if the arguments that the pattern names fit, and all others are equal.
func TestPattern_Rest(t *testing.T) {
	for _, tt := range []struct {
		pattern, call, other string
		same                 bool
	}{
		{`{"/a": {"max": 9}}`, `{"a": 1, "b": 2}`, `{"b": 2, "a": 5}`, true},
		{`{"/a": {"max": 9}}`, `{"a": 1, "b": 2}`, `{"a": 1, "b": 3}`, false},
		{`{"/a": {"max": 9}}`, `{"a": 1}`, `{"a": 1, "b": null}`, false},
		{`{"/a": {"max": 9}}`, `{"a": 1}`, `{"a": 1, "A": 1}`, false},
		{`{"/a": {"max": 9}}`, `{"a": 1, "b": 1}`, `{"a": 1, "b": 1.0}`, false},
		{`{"/o/a": {"max": 9}}`, `{"o": {"a": 1, "b": 2}}`, `{"o": {"a": 2, "b": 2}}`, true},
		{`{"/o/a": {"max": 9}}`, `{"o": {"a": 1, "b": 2}}`, `{"o": {"a": 1, "b": 3}}`, false},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": ["a@y"]}`, `{"to": ["b@y", "c@y"]}`, true},
		{`{"/to/*/a": {"max": 9}}`, `{"to": [{"a": 1, "b": 1}]}`, `{"to": [{"a": 2, "b": 1}]}`, true},
		{`{"/to/*/a": {"max": 9}}`, `{"to": [{"a": 1, "b": 1}]}`, `{"to": [{"a": 1, "b": 2}]}`, false},
		{`{"/to/0": {"max": 9}}`, `{"to": [1, 2]}`, `{"to": [3, 2]}`, true},
		{`{"/to/0": {"max": 9}}`, `{"to": [1, 2]}`, `{"to": [1, 3]}`, false},
		{`{"/a~1b": {"max": 9}}`, `{"a/b": 1}`, `{"a/b": 2}`, true},
	} {
		rule, err := bounds.ParseRule([]byte(tt.pattern))
		if err != nil {
			t.Fatal(err)
		}
		p := approval.Pattern{Args: rule, Uses: 1}
		if !p.Fits(json.RawMessage(tt.call)) {
			t.Errorf("%s does not fit %s", tt.call, tt.pattern)
		}
		if same := p.RestDigest([]byte(tt.call)) == p.RestDigest([]byte(tt.other)); same != tt.same {
			t.Errorf("%s: %s and %s: %v", tt.pattern, tt.call, tt.other, same)
		}
	}
	if new(approval.Pattern).Fits(json.RawMessage(`{}`)) {
		t.Error("the zero Pattern covers a call")
	}
}
