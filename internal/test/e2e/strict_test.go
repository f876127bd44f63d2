package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allGroupsConfig lets a role use every built-in tool.
const allGroupsConfig = `kind: organization
name: strict
model: unused
---
kind: model
name: unused
type: script
file: unused.js
---
kind: role
name: all
toolGroups: "*"
---
kind: gateway
name: api
tokens:
  - {name: all, role: all, sha256: %s}
`

// finding matches a finding of the inspector: how bad it is, the tool and the path.
var finding = regexp.MustCompile(`(?m)^(\w+): tool "(\S+)"\n  Path: (\S+)$`)

// The schemas of all built-in tools pass the inspector's check of portability: it has no warnings.
func TestInspector_StrictSchemas(t *testing.T) {
	fx := newServeFixture(t, fmt.Sprintf(allGroupsConfig, digest("all")))
	writeFile(t, fx.path("unused.js"), `role("*", function* () { return "not used"; });`)
	url, _ := fx.serve(t)
	o := runInspector(t, url+"/mcp", tokenOf("all"), "tools/list", "--strict")
	if names := toolNames(t, o); len(names) < 19 {
		t.Fatalf("only %q are listed", names)
	}
	var found []string
	for _, f := range finding.FindAllStringSubmatch(o.stderr, -1) {
		found = append(found, f[2]+" "+f[3])
	}
	if diff := cmp.Diff([]string(nil), found); diff != "" || strings.Contains(o.stderr, "warning") {
		t.Errorf("findings (- want, + got):\n%s\n%s", diff, o.stderr)
	}
}
