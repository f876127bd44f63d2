package roman

import "testing"

func TestFormat(t *testing.T) {
	for n, want := range map[int]string{1: "I", 4: "IV", 14: "XIV", 1994: "MCMXCIV", 3999: "MMMCMXCIX"} {
		if got, err := Format(n); got != want || err != nil {
			t.Errorf("Format(%d) = %q, %v; want %q", n, got, err, want)
		}
	}
}

func TestParse_InvertsFormat(t *testing.T) {
	for n := 1; n < 4000; n++ {
		text, err := Format(n)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(text); got != n || err != nil {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, got, err, n)
		}
	}
}

func TestParse_RejectsInvalidText(t *testing.T) {
	for _, text := range []string{"", "IIII", "IC", "MMMM", "x", "XIX "} {
		if n, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d", text, n)
		}
	}
}
