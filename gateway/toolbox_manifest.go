package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolboxManifest describes tools by name for clients of Toolbox.
type toolboxManifest struct {
	ServerVersion string                 `json:"serverVersion"`
	Tools         map[string]toolboxTool `json:"tools"`
}

// toolboxTool describes one tool. Parameters is an array, see tool.Declared.
type toolboxTool struct {
	Description  string          `json:"description"`
	Parameters   json.RawMessage `json:"parameters"`
	AuthRequired []string        `json:"authRequired"`
}

// showToolset describes the tools of a group, or all tools of the role without
// a group.
func (a *api) showToolset(w http.ResponseWriter, r *http.Request) error {
	s, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	id := toolgroups.GroupID(strings.TrimSuffix(r.PathValue("name"), "/"))
	m, count := a.manifest(), 0
	for d := range s.tools {
		if id == "" || s.snapshot.InGroups(d.Name, id) {
			count++
			m.add(d)
		}
	}
	if id != "" && !s.hasGroup(id, count) {
		return errcode.New(errcode.GroupNotFound, "toolset %q does not exist", id)
	}
	return wire.WriteJSON(w, http.StatusOK, m)
}

// hasGroup reports whether the role has a group in which it has toolCount
// tools. A role that uses all groups may still be restricted, for example to a
// server; a group in which it has no tool must look like one that does not
// exist.
func (s toolboxScope) hasGroup(id toolgroups.GroupID, toolCount int) bool {
	if s.role.Use.IsAll() && toolCount == 0 {
		return false
	}
	return s.snapshot.Covers(toolgroups.BoundSet{Set: s.role.Use, Owners: s.role.GroupOwners}, id)
}

// showDeclared describes one tool.
func (a *api) showDeclared(w http.ResponseWriter, r *http.Request) error {
	s, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	m, name := a.manifest(), r.PathValue("name")
	if d, ok := s.tool(name); !ok || !m.add(d) {
		return unknownTool(name)
	}
	return wire.WriteJSON(w, http.StatusOK, m)
}

// manifest returns an empty manifest with the program's version.
func (a *api) manifest() toolboxManifest {
	return toolboxManifest{cmp.Or(a.version, "unknown"), map[string]toolboxTool{}}
}

// add adds a tool. It reports false if the tool's parameters cannot be
// expressed as Toolbox parameters.
func (m toolboxManifest) add(d tool.Definition) bool {
	described := toolboxTool{Description: d.Description, AuthRequired: []string{}}
	if d.Auth != nil {
		described.AuthRequired = append(described.AuthRequired, d.Auth.AnyOf...)
	}
	if d.Declared != nil {
		described.Parameters = d.Declared.Manifest()
	} else {
		var ok bool
		if described.Parameters, ok = toolboxParameters(d.Input); !ok {
			return false
		}
	}
	m.Tools[d.Name] = described
	return true
}

// toolboxParameter is a parameter as Toolbox describes it, or the element of an
// array.
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

// toolboxParameters derives parameters from the input schema of a tool without
// declared parameters, sorted by name. An optional property without a single
// type is omitted. It reports false if a required property has no single type,
// or the schema has another form.
func toolboxParameters(input json.RawMessage) (json.RawMessage, bool) {
	schema := gjson.ParseBytes(input)
	if schema.Get("$ref").Exists() {
		return nil, false
	}
	required := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		required[name.Str] = true
	}
	list, ok := []*toolboxParameter{}, true
	schema.Get("properties").ForEach(func(name, property gjson.Result) bool {
		p := toolboxParameterOf(name.Str, property, required[name.Str])
		if p != nil {
			list = append(list, p)
		}
		ok = ok && (p != nil || !required[name.Str])
		delete(required, name.Str)
		return ok
	})
	if !ok || len(required) > 0 {
		return nil, false
	}
	slices.SortFunc(list, func(a, b *toolboxParameter) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(list)
	return text, err == nil
}

// toolboxTypes maps types of JSON schema to types of Toolbox.
var toolboxTypes = map[string]string{
	"string": "string", "integer": "integer", "number": "float", "boolean": "boolean", "array": "array", "object": "object",
}

// toolboxParameterOf converts a property to a parameter, or returns nil if it
// has no single type.
func toolboxParameterOf(name string, schema gjson.Result, required bool) *toolboxParameter {
	p := &toolboxParameter{
		Name: name, Type: toolboxTypes[singleType(schema)], Required: required, Description: schema.Get("description").Str,
		Services: []string{}, Default: json.RawMessage(schema.Get("default").Raw),
	}
	switch p.Type {
	case "":
		return nil
	case "object":
		p.Additional = true
	case "array":
		if p.Items = toolboxParameterOf(name, schema.Get("items"), true); p.Items == nil {
			return nil
		}
	}
	return p
}

// singleType returns the only type of a schema apart from null, or "" if there
// are none or several.
func singleType(schema gjson.Result) string {
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
