package main

import (
	"strings"
	"testing"
)

func TestCheck_ReportsErrorsOfOnePlatform(t *testing.T) {
	for platform, want := range map[string]string{
		"linux/amd64":   "",
		"linux/386":     "",
		"windows/amd64": "limit_windows.go:3:30: cannot use 1",
		"darwin/arm64":  "undefined: limit",
		"freebsd/amd64": "undefined: limit",
	} {
		var out strings.Builder
		found, err := Check(&out, "testdata/program", platform)
		if err != nil {
			t.Fatalf("%s: %v", platform, err)
		}
		if (found > 0) != (want != "") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d errors, want %q:\n%s", platform, found, want, out.String())
		}
	}
}

func TestCheck_TestsOfOnePlatform(t *testing.T) {
	var out strings.Builder
	if _, err := Check(&out, "testdata/program", "darwin/arm64"); err != nil {
		t.Fatal(err)
	}
	if want := "program_darwin_test.go:3:13: undefined: missing"; !strings.Contains(out.String(), want) {
		t.Errorf("want %q:\n%s", want, out.String())
	}
}

func TestCheck_RefusesWhatItCannotCheck(t *testing.T) {
	for _, c := range []struct{ dir, platform string }{
		{"testdata/program", "darwin"},
		{"testdata/absent", "darwin/arm64"},
		{"testdata", "plan10/amd64"},
	} {
		found, err := Check(&strings.Builder{}, c.dir, c.platform)
		if err == nil && found == 0 {
			t.Errorf("%s for %s: no error", c.dir, c.platform)
		}
	}
}
