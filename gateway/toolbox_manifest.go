package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolboxManifest is what clients of Toolbox are told of tools, by name.
type toolboxManifest struct {
	ServerVersion string                 `json:"serverVersion"`
	Tools         map[string]toolboxTool `json:"tools"`
}

// toolboxTool is one of them. Parameters is an array, see tool.Declared.
type toolboxTool struct {
	Description  string          `json:"description"`
	Parameters   json.RawMessage `json:"parameters"`
	AuthRequired []string        `json:"authRequired"`
}

// showToolset describes the tools of a group, or without a name all that the
// caller's role has.
func (a *api) showToolset(w http.ResponseWriter, r *http.Request) error {
	b, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	id := toolgroups.GroupID(strings.TrimSuffix(r.PathValue("name"), "/"))
	m, within := a.manifest(), 0
	for d := range b.offered {
		if id == "" || b.snapshot.InGroups(d.Name, id) {
			within++
			m.add(d)
		}
	}
	if id != "" && !b.holds(id, within) {
		return errcode.New(errcode.GroupNotFound, "toolset %q does not exist", id)
	}
	return writeJSON(w, http.StatusOK, m)
}

// holds says whether a group is there that shows so many tools. What bounds a
// role of all groups may hide one, and then it shows none.
func (b toolboxScope) holds(id toolgroups.GroupID, within int) bool {
	if b.role.Use.IsAll() && within == 0 {
		return false
	}
	return b.snapshot.Covers(toolgroups.BoundSet{Set: b.role.Use, Owners: b.role.GroupOwners}, id)
}

// showDeclared describes one tool.
func (a *api) showDeclared(w http.ResponseWriter, r *http.Request) error {
	b, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	m, name := a.manifest(), r.PathValue("name")
	if d, ok := b.offers(name); !ok || !m.add(d) {
		return unknown(name)
	}
	return writeJSON(w, http.StatusOK, m)
}

func (a *api) manifest() toolboxManifest {
	return toolboxManifest{cmp.Or(a.version, "unknown"), map[string]toolboxTool{}}
}

// add describes a tool; false if that cannot be said in terms of Toolbox.
func (m toolboxManifest) add(d tool.Definition) bool {
	described := toolboxTool{Description: d.Description, AuthRequired: []string{}}
	if d.Auth != nil {
		described.AuthRequired = append(described.AuthRequired, d.Auth.AnyOf...)
	}
	if d.Declared != nil {
		described.Parameters = d.Declared.Manifest()
	} else {
		var ok bool
		if described.Parameters, ok = parametersOf(d.Input); !ok {
			return false
		}
	}
	m.Tools[d.Name] = described
	return true
}

// toolboxParameter is a parameter in terms of Toolbox, or what an array holds.
type toolboxParameter struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"`
	Required    bool              `json:"required"`
	Description string            `json:"description"`
	Services    []string          `json:"authServices"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Items       *toolboxParameter `json:"items,omitempty"`
	Additional  any               `json:"additionalProperties,omitempty"`
}

// parametersOf gives the parameters of a tool that was not declared, of its
// input schema, sorted by name. One that has no single type is left out if
// calls may do without it; else, and for a schema that says it otherwise, false.
func parametersOf(input json.RawMessage) (json.RawMessage, bool) {
	schema := gjson.ParseBytes(input)
	if schema.Get("$ref").Exists() {
		return nil, false
	}
	needed := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		needed[name.Str] = true
	}
	list, said := []*toolboxParameter{}, true
	schema.Get("properties").ForEach(func(name, property gjson.Result) bool {
		p := parameterOf(name.Str, property, needed[name.Str])
		if p != nil {
			list = append(list, p)
		}
		said = said && (p != nil || !needed[name.Str])
		delete(needed, name.Str)
		return said
	})
	if !said || len(needed) > 0 {
		return nil, false
	}
	slices.SortFunc(list, func(a, b *toolboxParameter) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(list)
	return text, err == nil
}

// toolboxTypes are the types of JSON schema that Toolbox has, and their names
// there.
var toolboxTypes = map[string]string{
	"string": "string", "integer": "integer", "number": "float", "boolean": "boolean", "array": "array", "object": "object",
}

// parameterOf gives a property as a parameter; nil if it has no single type.
func parameterOf(name string, schema gjson.Result, required bool) *toolboxParameter {
	p := &toolboxParameter{
		Name: name, Type: toolboxTypes[typeOf(schema)], Required: required, Description: schema.Get("description").Str,
		Services: []string{}, Default: json.RawMessage(schema.Get("default").Raw),
	}
	switch p.Type {
	case "":
		return nil
	case "object":
		p.Additional = true
	case "array":
		if p.Items = parameterOf(name, schema.Get("items"), true); p.Items == nil {
			return nil
		}
	}
	return p
}

// typeOf gives the only type of a schema beside null; "" if there are none or
// several.
func typeOf(schema gjson.Result) string {
	kind := schema.Get("type")
	if !kind.IsArray() {
		return kind.Str
	}
	list := slices.DeleteFunc(kind.Array(), func(v gjson.Result) bool { return v.Str == "null" })
	if len(list) != 1 {
		return ""
	}
	return list[0].Str
}
