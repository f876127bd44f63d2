package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/examples"
	"github.com/rolecall/rolecall/internal/test/accesslog"
	"github.com/rolecall/rolecall/internal/test/short"
)

// The numbers in the demo's report equal an independent count of the same log. On a terminal,
// the demo prints what README.md shows.
func TestDemo_ReportMatchesIndependentCount(t *testing.T) {
	short.SkipSequential(t) // its scripts have five seconds a step, and the engine runs twenty times slower with the detector
	shown := newFakeTerminal(t, 140, 50)
	c := &common{launcher: launcher, out: shown, err: shown, env: func(string) (string, bool) { return "", false }}
	dir := t.TempDir()
	if status := run(t.Context(), c, []string{"demo", "--data", dir}); status != 0 {
		t.Fatalf("status %d: %s", status, shown)
	}
	checkReadme(t, shown.String())
	report, err := os.ReadFile(filepath.Join(dir, demoWorkspace, demoReport))
	if err != nil {
		t.Fatal(err)
	}
	log, err := examples.Files.ReadFile(demoFolder + "/" + demoInput)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := accesslog.ReadLog(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range counts.ReportRows() {
		if !strings.Contains(string(report), row) {
			t.Errorf("the report has no line that begins with %q:\n%s", row, report)
		}
	}
}

// checkReadme checks that README.md shows lines that the demo prints on a terminal, and its
// last lines as a whole.
func checkReadme(t *testing.T, shown string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, found := strings.Cut(string(readme), "```text\n")
	picture, _, _ = strings.Cut(picture, "```")
	if !found || !strings.Contains(picture, "\nroot") {
		t.Fatal("README.md does not show the demo")
	}
	for line := range strings.Lines(picture) {
		if !showsLine(shown, line) {
			t.Errorf("the demo does not print %q", line)
		}
	}
	if end := picture[strings.Index(picture, "\nroot"):]; !strings.Contains(shown, end) {
		t.Errorf("the demo does not print %q", end)
	}
	if t.Failed() {
		t.Log("the demo prints\n" + shown)
	}
}

// showsLine reports whether the demo prints a line. In a line about what an agent may call, it may
// print more tools, so that README.md does not name each new one.
func showsLine(shown, line string) bool {
	agent, tools, lists := strings.Cut(strings.TrimSuffix(line, "\n"), "  may call ")
	if !lists {
		return strings.Contains(shown, "\n"+line)
	}
	_, rest, found := strings.Cut(shown, "\n"+agent+"  may call ")
	printed, _, _ := strings.Cut(rest, "\n")
	for name := range strings.SplitSeq(tools, ", ") {
		found = found && slices.Contains(strings.Split(printed, ", "), name)
	}
	return found
}
