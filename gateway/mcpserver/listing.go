package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// listing is what clients of an endpoint are shown, from one View.
type listing struct {
	source []tool.Definition // what the gate offers
	tools  []*sdk.Tool       // sorted by name
	asks   bool              // ask_organization is one of them
	old    []byte            // the result of tools/list with sessions
	new    []byte            // the same without

	within                 []tool.Definition // those of source that are at the endpoint, sorted by name
	once                   sync.Once         // makes what follows
	toolboxOld, toolboxNew []byte            // toolboxLists
}

// private keeps what a role sees out of caches that serve others.
var private = sdk.Cacheable{CacheScope: "private"}

// of says whether the listing was made of this very list.
func (l *listing) of(offered []tool.Definition) bool {
	if len(offered) == 0 || len(l.source) == 0 {
		return len(offered) == len(l.source)
	}
	return len(offered) == len(l.source) && &offered[0] == &l.source[0]
}

// newListing lists what is offered, narrowed to a group if there is one. The
// names of tools are what the protocol allows (tool.CheckName); they stay as
// they are.
func (s *Server) newListing(toolset toolgroups.GroupID, offered []tool.Definition) *listing {
	snapshot := s.rt.Groups().Snapshot()
	l := &listing{source: offered, tools: []*sdk.Tool{}}
	for _, d := range offered {
		within := toolset == "" || snapshot.InGroups(d.Name, toolset)
		if group, _ := snapshot.GroupOf(d.Name); group == toolgroups.OrgManagement && within {
			l.asks = true
		}
		if within && d.Name != AskName {
			l.within = append(l.within, d)
		}
	}
	if l.asks {
		l.within = append(l.within, askDefinition())
	}
	slices.SortFunc(l.within, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range l.within {
		if !secure(d) {
			l.tools = append(l.tools, described(d))
		}
	}
	l.old, l.new = s.serialised(l.tools)
	return l
}

// serialised gives the result of tools/list, with sessions and without.
func (s *Server) serialised(tools []*sdk.Tool) (old, new []byte) {
	result := &sdk.ListToolsResult{Tools: tools, Cacheable: private}
	old = marshal(result)
	result.ResultType = "complete"
	result.Meta = sdk.Meta{sdk.MetaKeyServerInfo: s.about}
	return old, marshal(result)
}

// described words a tool for the protocol. What is not known to be harmless is
// destructive.
func described(d tool.Definition) *sdk.Tool {
	mutates := d.Effect == tool.Mutating || !d.Effect.Valid()
	schema := d.Input
	if d.Declared != nil {
		schema = d.Declared.ClientSchema()
	}
	return &sdk.Tool{
		Name: d.Name, Description: d.Description, InputSchema: withoutHeaders(schema), Meta: authMeta(d.Auth),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint:    d.Effect == tool.ReadOnly,
			IdempotentHint:  d.Effect == tool.ReadOnly || d.Effect == tool.Idempotent,
			DestructiveHint: &mutates,
		},
	}
}

// headerNote asks clients to repeat an argument in an HTTP header. A schema
// that came from another server may hold it; here nobody reads such headers,
// and arguments are not to stand in logs of what is on the way.
const headerNote = "x-mcp-header"

// withoutHeaders gives a schema without its headerNotes.
func withoutHeaders(schema json.RawMessage) json.RawMessage {
	if !bytes.Contains(schema, []byte(`mcp-header`)) {
		return schema
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&doc) != nil { // a schema that is no JSON was refused at registration
		return json.RawMessage(`{"type":"object"}`)
	}
	strip(doc)
	return marshal(doc)
}

// strip takes headerNotes out of a schema: wherever one stands as a keyword,
// which is anywhere but as the name of a property.
func strip(doc any) {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			strip(v)
		}
	case map[string]any:
		delete(doc, headerNote)
		for name, v := range doc {
			properties, ok := v.(map[string]any)
			if name != "properties" || !ok {
				strip(v)
				continue
			}
			for _, p := range properties {
				strip(p)
			}
		}
	}
}

// marshal gives JSON of what always marshals.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("mcp: marshal: " + err.Error())
	}
	return text
}
