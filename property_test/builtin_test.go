package property_test

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// builtinTools are the built-in groups and their tools. They are written out and not
// read from the code, so that a property fails when the code loses one.
var builtinTools = []struct {
	group toolgroups.GroupID
	tools []string
}{
	{"org_management", []string{"find_role_by_name", "create_role", "spawn_agent", "spawn_agent_with_task", "terminate_agent", "send_message"}},
	{"artifact", []string{"put_artifact", "get_artifact"}},
	{"workspace", []string{"read_file", "write_file", "list_files", "get_workspace_info"}},
	{"command", []string{"run_command", "run_javascript"}},
	{"network", []string{"http_request"}},
	{"context", []string{"compress_context", "get_context_status"}},
	{"console", []string{"console_print"}},
}

// builtinSpecs stand for the built-in groups; their tools only count their runs.
var builtinSpecs = newBuiltinSpecs()

func newBuiltinSpecs() (list []groupSpec) {
	for _, g := range builtinTools {
		spec := groupSpec{ID: g.group, Owner: toolgroups.Builtin}
		for _, name := range g.tools {
			spec.Tools = append(spec.Tools, toolSpec{Name: name})
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
