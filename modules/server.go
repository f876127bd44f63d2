package modules

import (
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Server gives the groups by which the module of this name brings a server's
// APIs; each API is a tool that bears the API's name. They are a group named
// after the server, which holds all of them, and for each API a group
// server/api that holds it alone, so that a role may list single ones. Models
// see each under its toolgroups.CallName.
//
// Register them in this order. Errors: InvalidGroupDef for a name that cannot
// be part of an id.
func Server(name, description string, apis []tool.Tool) ([]toolgroups.Group, error) {
	groups := []toolgroups.Group{{ID: toolgroups.GroupID(name), Description: description}}
	for _, t := range apis {
		d := t.Definition()
		id := name + "/" + d.Name
		var err error
		if d.Name, err = toolgroups.CallName(id); err != nil {
			return nil, err
		}
		groups[0].Tools = append(groups[0].Tools, api{t, d})
		groups = append(groups, toolgroups.Group{ID: toolgroups.GroupID(id), Description: d.Description, Refs: []string{d.Name}})
	}
	return groups, nil
}

// api is a tool under the name it is offered by.
type api struct {
	tool.Tool
	definition tool.Definition
}

// Definition implements tool.Tool.
func (a api) Definition() tool.Definition { return a.definition }
