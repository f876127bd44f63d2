package toolboxapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Manifest describes tools by name for clients of Toolbox.
type Manifest struct {
	ServerVersion string               `json:"serverVersion"`
	Tools         map[string]ToolEntry `json:"tools"`
}

// ToolEntry describes one tool. Parameters is an array, see tool.Declared.
type ToolEntry struct {
	Description  string          `json:"description"`
	Parameters   json.RawMessage `json:"parameters"`
	AuthRequired []string        `json:"authRequired"`
}

// ServeToolset describes the tools of the group in the path value name, or all
// tools of the role without one. A slash at the end is ignored.
func (a *API) ServeToolset(w http.ResponseWriter, r *http.Request) {
	a.serveManifest(w, r, func(s scope, m Manifest) error {
		id, count := toolgroups.GroupID(strings.TrimSuffix(r.PathValue("name"), "/")), 0
		for d := range s.tools {
			if id == "" || s.snapshot.InGroups(d.Name, id) {
				count++
				m.add(d)
			}
		}
		if id != "" && !s.hasGroup(id, count) {
			return errcode.New(errcode.GroupNotFound, "toolset %q does not exist", id)
		}
		return nil
	})
}

// hasGroup reports whether the role has a group in which it has toolCount
// tools. A role that uses all groups may still be restricted, for example to a
// server. A group in which the role has no tool must look like a group that
// does not exist.
func (s scope) hasGroup(id toolgroups.GroupID, toolCount int) bool {
	if (s.role.Use.IsAll() || s.by.Within != "") && toolCount == 0 {
		return false
	}
	return s.rt.Org().CallerHasGroup(s.by, id)
}

// ServeTool describes the tool in the path value name.
func (a *API) ServeTool(w http.ResponseWriter, r *http.Request) {
	a.serveManifest(w, r, func(s scope, m Manifest) error {
		name := r.PathValue("name")
		if d, ok := s.tool(name); !ok || !m.add(d) {
			return unknownTool(name)
		}
		return nil
	})
}

// serveManifest answers with the manifest that fill fills for the sender.
func (a *API) serveManifest(w http.ResponseWriter, r *http.Request, fill func(scope, Manifest) error) {
	w = mcpserver.WithWriteTimeout(w, 0)
	release, err := a.config.Limiter.Acquire(auth.SenderOf(r))
	if err != nil {
		a.respondError(w, r, err)
		return
	}
	defer release()
	text, err := a.encodeManifest(r, fill)
	if err != nil {
		a.respondError(w, r, err)
		return
	}
	wire.WriteEncoded(w, http.StatusOK, text)
}

// encodeManifest returns the manifest that fill fills as JSON, in the sender's turn.
func (a *API) encodeManifest(r *http.Request, fill func(scope, Manifest) error) ([]byte, error) {
	release, err := a.config.Limiter.AcquireList(r.Context(), auth.SenderOf(r))
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := a.scopeFor(r)
	if err != nil {
		return nil, err
	}
	m := Manifest{a.config.Version, map[string]ToolEntry{}}
	if err := fill(s, m); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// add adds a tool. It reports false if the tool's parameters cannot be
// expressed as Toolbox parameters.
func (m Manifest) add(d tool.Definition) bool {
	described := ToolEntry{Description: d.Description, AuthRequired: []string{}}
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

// parameter is a parameter as Toolbox describes it, or the element of an
// array.
type parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Required    bool            `json:"required"`
	Description string          `json:"description"`
	Services    []string        `json:"authServices"`
	Default     json.RawMessage `json:"default,omitempty"`
	Items       *parameter      `json:"items,omitempty"`
	Additional  any             `json:"additionalProperties,omitempty"`
}

// parametersOf derives parameters from the input schema of a tool without
// declared parameters, sorted by name. An optional property without a single
// type is omitted. It reports false if a required property has no single type,
// or the schema has another form.
func parametersOf(input json.RawMessage) (json.RawMessage, bool) {
	schema := gjson.ParseBytes(input)
	if schema.Get("$ref").Exists() {
		return nil, false
	}
	required := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		required[name.Str] = true
	}
	list, ok := []*parameter{}, true
	schema.Get("properties").ForEach(func(name, property gjson.Result) bool {
		p := parameterOf(name.Str, property, required[name.Str])
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
	slices.SortFunc(list, func(a, b *parameter) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(list)
	return text, err == nil
}

// typeNames maps types of JSON schema to types of Toolbox.
var typeNames = map[string]string{
	"string": "string", "integer": "integer", "number": "float", "boolean": "boolean", "array": "array", "object": "object",
}

// elementRequired is the value of required for elements of an array.
const elementRequired = true

// parameterOf converts a property to a parameter, or returns nil if it
// has no single type.
func parameterOf(name string, schema gjson.Result, required bool) *parameter {
	p := &parameter{
		Name: name, Type: typeNames[singleType(schema)], Required: required, Description: schema.Get("description").Str,
		Services: []string{}, Default: json.RawMessage(schema.Get("default").Raw),
	}
	switch p.Type {
	case "":
		return nil
	case "object":
		p.Additional = true
	case "array":
		if p.Items = parameterOf(name, schema.Get("items"), elementRequired); p.Items == nil {
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
