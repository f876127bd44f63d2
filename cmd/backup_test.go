package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// A backup into a read-only folder and a restore of an unreadable file fail with the cause
// and leave no files.
func TestBackup_ReportsMissingPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root ignores permissions; run this test as an ordinary user")
	}
	data, readOnly := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "readonly")
	store, err := persist.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.backup")
	if err := os.WriteFile(secret, nil, 0o200); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, args := range [][]string{
		{"backup", "--data", data, filepath.Join(readOnly, "x.backup")},
		{"restore", "--data", other, secret},
		{"restore", "--data", filepath.Join(readOnly, "data"), secret},
	} {
		var stdout, stderr bytes.Buffer
		c := &common{launcher: launcher, in: strings.NewReader(""), out: &stdout, err: &stderr, env: os.LookupEnv}
		if status := run(t.Context(), c, args); status != 1 || !strings.Contains(stderr.String(), "permission denied") {
			t.Errorf("%v: status %d, %s%s", args, status, stdout.String(), stderr.String())
		}
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a data directory was created: %v", err)
	}
}
