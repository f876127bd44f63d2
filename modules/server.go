package modules

import (
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ServerGroups returns the groups of a server with several APIs. apis are its tools, each
// with the name of its API. The first group has the server's name and all tools. Then
// there is a group server/api for each tool alone. So a role can list single tools.
// Models see each tool under its toolgroups.CallName.
//
// The groups have to be registered in this order, as the later groups refer to the tools
// of the first group. Errors: InvalidGroupDef for a name that cannot be part of a group
// id.
func ServerGroups(name, description string, apis []tool.Tool) ([]toolgroups.Group, error) {
	groups := []toolgroups.Group{{ID: toolgroups.GroupID(name), Description: description}}
	for _, t := range apis {
		d := t.Definition()
		id := name + "/" + d.Name
		var err error
		if d.Name, err = toolgroups.CallName(id); err != nil {
			return nil, err
		}
		groups[0].Tools = append(groups[0].Tools, apiTool{t, d})
		groups = append(groups, toolgroups.Group{ID: toolgroups.GroupID(id), Description: d.Description, Refs: []string{d.Name}})
	}
	return groups, nil
}

// apiTool is a tool under its toolgroups.CallName.
type apiTool struct {
	tool.Tool
	definition tool.Definition
}

// Definition implements tool.Tool.
func (a apiTool) Definition() tool.Definition { return a.definition }
