package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// A backup whose folder may not be written to, and a restore of a file that
// may not be read, say so and leave nothing.
func TestBackupWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write and read everything; run the tests as an ordinary user to see this one")
	}
	data, shut := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "shut")
	store, err := persist.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(shut, 0o500); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.backup")
	if err := os.WriteFile(secret, nil, 0o200); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, args := range [][]string{
		{"backup", "--data", data, filepath.Join(shut, "x.backup")},
		{"restore", "--data", other, secret},
		{"restore", "--data", filepath.Join(shut, "data"), secret},
	} {
		var stdout, stderr bytes.Buffer
		c := &common{launcher: launcher, in: strings.NewReader(""), out: &stdout, err: &stderr, env: os.LookupEnv}
		if status := run(t.Context(), c, args); status != 1 || !strings.Contains(stderr.String(), "permission denied") {
			t.Errorf("%v: status %d, %s%s", args, status, stdout.String(), stderr.String())
		}
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
}
