package toolboxfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Recorded cases of TrustGraph's validation of groups and states. A case with a field
// refused is an error of that field here.
func TestRead_TrustGraphCases(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "tool_validate.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := gjson.GetBytes(data, "validate").Array()
	if len(cases) != 16 {
		t.Fatalf("got %d cases, want 16", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Get("id").Str, func(t *testing.T) {
			fields := strings.Trim(c.Get("config").Raw, "{}")
			if fields != "" {
				fields = ", " + fields
			}
			_, err := read(t, "{kind: source, name: db, type: sqlite, database: x.db}\n---\n{kind: tool, name: a, type: sqlite-sql, source: db, description: d, statement: SELECT 1"+fields+"}\n")
			field := c.Get("refused").Str
			if field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			list, ok := errors.AsType[yamldoc.Errors](err)
			if !ok || errcode.CodeOf(err) != errcode.InvalidConfig {
				t.Fatalf("got %v, want an error of %s", err, field)
			}
			for _, e := range list {
				if at := e.Error(); !strings.Contains(at, "org.yaml:3:") || !strings.Contains(at, field) {
					t.Errorf("got %v, want only errors of %s", at, field)
				}
			}
		})
	}
}
