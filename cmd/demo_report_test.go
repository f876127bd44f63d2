package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheckReport_WantsFileOfThisRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), demoReport)
	if err := checkReport(path, nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no report: got %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkReport(path, nil); err != nil {
		t.Errorf("the first report: got %v", err)
	}
	old, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkReport(path, old); err == nil || !strings.Contains(err.Error(), "of an earlier run") {
		t.Errorf("the report of an earlier run: got %v", err)
	}
	if err := os.Chtimes(path, time.Time{}, old.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := checkReport(path, old); err != nil {
		t.Errorf("a report that was written again: got %v", err)
	}
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := checkReport(link, nil); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a symbolic link: got %v", err)
	}
}
