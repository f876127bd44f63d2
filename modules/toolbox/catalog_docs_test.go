package toolbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// The reference lists each type that reads a catalog with its parameters.
func TestDocs_ListAllCatalogTypes(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{toolboxfile.SourcePostgres, toolboxfile.SourceMySQL} {
		c := parse(t, catalogFile(kind, `{kind: source, name: db, type: `+kind+`, host: h, port: 1, user: u, database: d}`))
		for _, tool := range c.Tools[1:] {
			var params []string
			gjson.ParseBytes(tool.Parameters.ClientSchema()).Get("properties").ForEach(func(name, p gjson.Result) bool {
				params = append(params, fmt.Sprintf("`%s`%s", name.Str, defaultText(p.Get("default"))))
				return true
			})
			if row := fmt.Sprintf("| `%s` | %s |", tool.Type, strings.Join(params, ", ")); !strings.Contains(string(page), row) {
				t.Errorf("docs/configuration.md lacks the row\n%s", row)
			}
		}
	}
}

// defaultText returns a default for the reference; "" for none and for an empty text.
func defaultText(v gjson.Result) string {
	if v.String() == "" {
		return ""
	}
	return " (" + v.String() + ")"
}
