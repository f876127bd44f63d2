package toolboxfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A group that a tool names twice counts once.
func TestTool_GroupTwiceCountsOnce(t *testing.T) {
	cfg, err := read(t, `{kind: source, name: db, type: sqlite, database: x.db}
---
{kind: tool, name: t, type: sqlite-sql, source: db, description: d, statement: SELECT 1, group: [b, a, b, a/b, a]}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a", "a/b"}, cfg.Tools[0].Groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The number of groups of one tool is limited.
func TestTool_GroupsAreLimited(t *testing.T) {
	var ids []string
	for i := range 1001 {
		ids = append(ids, "g"+strings.Repeat("x", i%100)+strings.Repeat("y", i/100))
	}
	_, err := read(t, `{kind: source, name: db, type: sqlite, database: x.db}
---
{kind: tool, name: t, type: sqlite-sql, source: db, description: d, statement: SELECT 1, group: [`+strings.Join(ids, ", ")+`]}`)
	if err == nil || strings.Count(err.Error(), "has more than 1000 entries") != 1 {
		t.Errorf("got %v", err)
	}
}
