package config_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// surroundings are what the examples of Toolbox's documentation refer to, by name.
var surroundings = map[string]string{
	"my-pg-instance":         "kind: source\nname: my-pg-instance\ntype: postgres\nhost: h\nport: 5432\nuser: u\ndatabase: d\n",
	"my-mysql-instance":      "kind: source\nname: my-mysql-instance\ntype: mysql\nhost: h\nport: 3306\n",
	"my-sqlite-db":           "kind: source\nname: my-sqlite-db\ntype: sqlite\ndatabase: a.db\n",
	"my-http-source":         "kind: source\nname: my-http-source\ntype: http\nbaseUrl: https://api.example.com\n",
	"my-google-auth":         "kind: authService\nname: my-google-auth\ntype: google\nclientId: c\n",
	"my-google-auth-service": "kind: authService\nname: my-google-auth-service\ntype: google\nclientId: c\n",
	"other-auth-service":     "kind: authService\nname: other-auth-service\ntype: generic\naudience: a\nauthorizationServer: https://id.example.com\n",
	"my-generic-auth":        "kind: authService\nname: my-generic-auth\ntype: generic\naudience: a\nauthorizationServer: https://id.example.com\n",
}

// unreadExamples are the examples that are rejected, with a part of the error that is the reason.
var unreadExamples = map[string]string{
	"integrations/http/source.md#2":                            "a file of tools cannot allow more than the operator",
	"integrations/http/tools/http-tool.md#4":                   "credentials of this machine are never sent to a service",
	"integrations/postgres/tools/postgres-search-catalog.md#1": "Toolbox has it, and this version does not",
	"integrations/mysql/tools/mysql-search-catalog.md#1":       "Toolbox has it, and this version does not",
	"documentation/configuration/tools/_index.md#9":            "ui: not available in this version",
	"documentation/configuration/tools/_index.md#11":           "maxRows: must be a whole number from 1", // 0 would be no limit

	// Toolbox rejects these too.
	"documentation/configuration/tools/_index.md#5":           "description: is missing",
	"documentation/configuration/tools/_index.md#8":           "description: is missing",
	"documentation/configuration/authentication/generic.md#1": "scopesRequired: requires mcpEnabled: true",
	"documentation/configuration/authentication/generic.md#2": `unknown type "strings"`,
}

// Each example of Toolbox's documentation is read, or is rejected for the reason in unreadExamples.
func TestReadFiles_ToolboxDocumentation(t *testing.T) {
	data, err := os.ReadFile("testdata/toolboxdocs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, example := range append(parseArchive(data).files, catalogExamples()...) {
		seen[example.Path] = true
		files := []yamldoc.File{{Path: "example.yaml", Data: example.Data}, {Path: "rest.yaml", Data: surroundingsOf(string(example.Data))}}
		_, err := config.ReadFiles(files, func(string) (string, bool) { return "3306", true })
		switch reason, listed := unreadExamples[example.Path]; {
		case err != nil && !listed:
			t.Errorf("%s: %v", example.Path, err)
		case listed && err == nil:
			t.Errorf("%s is read now; remove it from unreadExamples", example.Path)
		case listed && !strings.Contains(err.Error(), reason):
			t.Errorf("%s: got %v, want %s", example.Path, err, reason)
		}
	}
	for path := range unreadExamples {
		if !seen[path] {
			t.Errorf("unreadExamples has %s, which is no example", path)
		}
	}
}

// surroundingsOf returns the surroundings that an example names and does not declare.
func surroundingsOf(example string) []byte {
	text := "{kind: role, name: r}\n"
	for name, document := range surroundings {
		declared := regexp.MustCompile(`(?m)^name: ` + name + `$`).MatchString(example)
		named := regexp.MustCompile(`[ ]` + name + `( |$|\n)`).MatchString(example)
		if named && !declared {
			text += "---\n" + document
		}
	}
	return []byte(text)
}

// catalogExamples returns the examples of the pages that have a type of tool each. They are alike.
func catalogExamples() (list []yamldoc.File) {
	for kind, source := range map[string]string{toolboxfile.SourcePostgres: "my-pg-instance", toolboxfile.SourceMySQL: "my-mysql-instance"} {
		for _, name := range toolboxfile.CatalogTypes(kind) {
			list = append(list, yamldoc.File{
				Path: "integrations/" + kind + "/tools/" + name + ".md",
				Data: fmt.Appendf(nil, "kind: tool\nname: %s\ntype: %[1]s\nsource: %s\ndescription: d\n", name, source),
			})
		}
	}
	return list
}
