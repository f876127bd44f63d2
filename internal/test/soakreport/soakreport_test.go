package soakreport_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

func TestLinesAreKeptAndPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	t.Setenv(soakreport.File, file)
	soakreport.Report(t, soakreport.Result{Part: "load", Claim: "quick", Goal: "≤ 5 s", Observed: "4 s", Passed: true})
	soakreport.Report(t, soakreport.Result{Part: "power", Claim: "kept", Observed: "nothing", Skipped: "no loop device"})
	soakreport.Report(t, soakreport.Result{Part: "load", Claim: "small", Observed: "1 GiB", Passed: true})
	kept, text := printed(t, file)
	want := `part   claim  goal   seen     verdict
load   quick  ≤ 5 s  4 s      holds
load   small         1 GiB    holds
power  kept          nothing  skipped: no loop device
`
	if !kept || text != want {
		t.Errorf("got %v\n%s\nwant\n%s", kept, text, want)
	}
	if err := soakreport.Append(soakreport.Result{Part: "load", Claim: "slow", Observed: "9 s"}); err != nil {
		t.Fatal(err)
	}
	if kept, text := printed(t, file); kept || !strings.Contains(text, "MISSED") {
		t.Errorf("got %v\n%s", kept, text)
	}
}

func TestNoLinesAreNoVerdict(t *testing.T) {
	if soakreport.Kept(nil) {
		t.Error("nothing was seen to hold")
	}
	if _, err := soakreport.Read(strings.NewReader("no line\n")); err == nil {
		t.Error("what is no line was read")
	}
}

func printed(t *testing.T, file string) (bool, string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := soakreport.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var table, md strings.Builder
	if err := soakreport.Table(&table, lines); err != nil {
		t.Error(err)
	}
	if err := soakreport.Markdown(&md, lines); err != nil || strings.Count(md.String(), "\n") != len(lines)+2 {
		t.Errorf("got %v\n%s", err, md.String())
	}
	return soakreport.Kept(lines), table.String()
}
