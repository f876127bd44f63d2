package parameter_test

import "testing"

// What callers may write into a statement is anything unless it is quoted, or
// listed, or no text.
func TestFreeText(t *testing.T) {
	for spec, want := range map[string]bool{
		`"type":"string"`:                                                       true,
		`"type":"string","escape":"single-quotes"`:                              false,
		`"type":"string","allowedValues":["a","b"]`:                             false,
		`"type":"string","allowedValues":["a","/b+/"]`:                          true,
		`"type":"integer"`:                                                      false,
		`"type":"array","items":{"name":"x","description":"d","type":"string"}`: true,
		`"type":"array","items":{"name":"x","description":"d","type":"string","escape":"double-quotes"}`: false,
	} {
		list := `[{"name":"p","description":"d",` + spec + `}]`
		if got := compile(t, "[]", list).FreeText(); got != want {
			t.Errorf("%s: %v", spec, got)
		}
		if compile(t, list, "[]").FreeText() {
			t.Errorf("%s: it is bound, and part of no statement", spec)
		}
	}
}
