package parameter_test

import "testing"

// A template parameter is free text unless it is quoted, listed, or not a string.
func TestSet_AllowsFreeText(t *testing.T) {
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
		if got := compile(t, "[]", list).AllowsFreeText(); got != want {
			t.Errorf("%s: got %v", spec, got)
		}
		if compile(t, list, "[]").AllowsFreeText() {
			t.Errorf("%s: free text, but an ordinary parameter is bound", spec)
		}
	}
}
