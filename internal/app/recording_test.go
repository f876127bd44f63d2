package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall/identity"
)

// A recording counts every byte before it writes it, and writes nothing that is refused.
func TestRecordings_CountBytes(t *testing.T) {
	errFull := errors.New("full")
	counted := 0
	r := &recordings{dir: t.TempDir(), log: slog.New(slog.DiscardHandler), count: func(task identity.TaskID, bytes int) error {
		if task != "t1" || counted+bytes > 10 {
			return errFull
		}
		counted += bytes
		return nil
	}}
	file := r.newFile("t1")
	if n, err := file.Write([]byte("12345678")); n != 8 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := file.Write([]byte("12345678")); n != 0 || !errors.Is(err, errFull) {
		t.Errorf("over the limit got %d, %v", n, err)
	}
	if text, err := os.ReadFile(filepath.Join(r.dir, "t1.jsonl")); err != nil || string(text) != "12345678" || counted != 8 {
		t.Errorf("%q, %v, %d bytes counted", text, err, counted)
	}
}
