package toolboxfile_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// A SQLite URI is rejected: read as a path it would create another, empty file.
func TestSource_RejectsSQLiteURI(t *testing.T) {
	for name, want := range map[string]string{
		"x.db": "/dir/x.db", "/y/x.db": "/y/x.db", ":memory:": ":memory:", "./file:x": "/dir/file:x",
		"file:x.db": "", "file:///x.db?mode=ro": "", "file::memory:?cache=shared": "",
	} {
		cfg, err := readFiles([]yamldoc.File{{Path: "/dir/tools.yaml", Data: []byte("{kind: source, name: db, type: sqlite, database: '" + name + "'}")}}, nil)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "tools.yaml:1:50: database: ")):
			t.Errorf("%s: got %v", name, err)
		case want != "" && (err != nil || cfg.Sources[0].Database != want):
			t.Errorf("%s: got %v, %v", name, cfg.Sources, err)
		}
	}
}
