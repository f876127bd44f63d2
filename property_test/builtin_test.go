package property_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// builtinTools are the built-in groups and their tools, as docs/tools.md records them. They are
// not read from the code, so that a property fails when the code loses one.
var builtinTools = recordedTools(filepath.Join("..", "docs", "tools.md"))

// recordedGroup is a row of the table of groups in docs/tools.md.
type recordedGroup struct {
	group toolgroups.GroupID
	tools []string
}

// recordedTools reads the table of groups. The rows look like this:
//
//	| `console` | Print to the operator's console | [`console_print`](#console_print) |
func recordedTools(path string) (list []recordedGroup) {
	page, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]+ \\| ((?:\\[`\\w+`\\]\\(#\\w+\\) ?)+)\\|$").FindAllSubmatch(page, -1)
	name := regexp.MustCompile("`(\\w+)`")
	for _, row := range rows {
		g := recordedGroup{group: toolgroups.GroupID(row[1])}
		for _, tool := range name.FindAllSubmatch(row[2], -1) {
			g.tools = append(g.tools, string(tool[1]))
		}
		list = append(list, g)
	}
	if len(list) == 0 {
		panic(fmt.Sprintf("%s has no table of groups and their tools", path))
	}
	return list
}

// builtinSpecs stand for the built-in groups; their tools only count their runs.
var builtinSpecs = newBuiltinSpecs()

func newBuiltinSpecs() (list []groupSpec) {
	for _, g := range builtinTools {
		spec := groupSpec{ID: g.group, Owner: toolgroups.Builtin}
		for _, name := range g.tools {
			spec.Tools = append(spec.Tools, toolSpec{Name: name, Effect: effects[len(spec.Tools)%len(effects)]})
		}
		list = append(list, spec)
	}
	return list
}

// builtinIDs lists the reserved ids.
func builtinIDs() (list ids) {
	for _, g := range builtinTools {
		list = append(list, g.group)
	}
	return list
}

// builtinNames lists the names of the built-in tools.
func builtinNames() (list []string) {
	for _, g := range builtinTools {
		list = append(list, g.tools...)
	}
	return list
}

// countedNames are the names of all tools that count their runs.
var countedNames = slices.Concat(toolNames, builtinNames())
