package soakreport_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

func TestRecordResult_IsStoredAndPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	t.Setenv(soakreport.FileEnv, file)
	soakreport.RecordResult(t, soakreport.Result{Part: "load", Claim: "quick", Goal: "≤ 5 s", Observed: "4 s", Passed: true})
	soakreport.RecordResult(t, soakreport.Result{Part: "power", Claim: "durable", Observed: "nothing", Skipped: "no loop device"})
	soakreport.RecordResult(t, soakreport.Result{Part: "load", Claim: "small", Observed: "1 GiB", Passed: true})
	passed, text := printed(t, file)
	want := `part   claim    goal   seen     verdict
load   quick    ≤ 5 s  4 s      holds
load   small           1 GiB    holds
power  durable         nothing  skipped: no loop device
`
	if !passed || text != want {
		t.Errorf("got %v\n%s\nwant\n%s", passed, text, want)
	}
	if err := soakreport.AppendResult(soakreport.Result{Part: "load", Claim: "slow", Observed: "9 s"}); err != nil {
		t.Fatal(err)
	}
	if passed, text := printed(t, file); passed || !strings.Contains(text, "MISSED") {
		t.Errorf("got %v\n%s", passed, text)
	}
}

func TestReadResults_RejectsInvalidLines(t *testing.T) {
	if soakreport.AllPassed(nil) {
		t.Error("an empty report passed")
	}
	if _, err := soakreport.ReadResults(strings.NewReader("not json\n")); err == nil {
		t.Error("an invalid line was read")
	}
}

func printed(t *testing.T, file string) (bool, string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := soakreport.ReadResults(f)
	if err != nil {
		t.Fatal(err)
	}
	var table, md strings.Builder
	if err := soakreport.WriteTable(&table, lines); err != nil {
		t.Error(err)
	}
	if err := soakreport.WriteMarkdown(&md, lines); err != nil || strings.Count(md.String(), "\n") != len(lines)+2 {
		t.Errorf("got %v\n%s", err, md.String())
	}
	return soakreport.AllPassed(lines), table.String()
}
