package toolgroups_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/toolgroups"
)

// A level is false, true or "strict" in JSON, and nothing else is read as one.
func TestGating_JSON(t *testing.T) {
	for text, want := range map[string]toolgroups.Gating{"false": toolgroups.NotGated, "true": toolgroups.Gated, `"strict"`: toolgroups.StrictlyGated} {
		var got toolgroups.Gating
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
		if out, err := json.Marshal(want); err != nil || string(out) != text {
			t.Errorf("%s: marshalled as %s, %v", want, out, err)
		}
		if parsed, err := toolgroups.ParseGating(want.String()); err != nil || parsed != want {
			t.Errorf("parsed %q as %s, %v", want.String(), parsed, err)
		}
	}
	for _, text := range []string{`"true"`, `"false"`, `""`, `"Strict"`, `"\ud800`, "null", "1", "[]", ""} {
		got := toolgroups.Gated
		if err := got.UnmarshalJSON([]byte(text)); err == nil || got != toolgroups.Gated {
			t.Errorf("%s was read as %s, %v", text, got, err)
		}
	}
}
