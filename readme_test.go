package rolecall_test

import (
	"os"
	"strings"
	"testing"
)

// The Go code in README.md equals that of the compiled example.
func TestReadme_ShowsExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	got := excerpt(string(readme), "```go\n", "```")
	want := strings.ReplaceAll(excerpt(string(source), "// README: begin\n", "\t// README: end"), "\n\t", "\n")
	if got != strings.TrimPrefix(want, "\t") {
		t.Errorf("README.md has\n%s\nwant\n%s", got, want)
	}
}

func excerpt(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	part, _, _ := strings.Cut(rest, end)
	return part
}
