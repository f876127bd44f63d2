package mcpserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// listing is the tool list of an endpoint, built from one View.
type listing struct {
	source        []tool.Definition // what the gate offers, in the order of the View
	tasks         taskRight
	offersAsk     bool   // ask_organization is in the list
	sessionJSON   []byte // the result of tools/list in versions with sessions
	statelessJSON []byte // the same in versions without sessions

	definitions                              []tool.Definition // the tools of source that are in the endpoint's group, sorted by name
	once                                     sync.Once         // guards building the fields below
	toolboxSessionJSON, toolboxStatelessJSON []byte            // see toolboxLists
}

// privateCache marks a tool list as specific to a role, so that shared caches do not
// keep it.
var privateCache = sdk.Cacheable{CacheScope: "private"}

// taskRight is what the tasks.as of a role says about the tasks of its callers.
type taskRight struct {
	given bool // the role has tasks.as
	valid bool // and the role that it names is active
}

// taskRightOf returns the taskRight of a role now.
func (s *Server) taskRightOf(caller identity.Principal) taskRight {
	_, given := s.rt.Org().TaskRole(caller.Role)
	return taskRight{given, given && s.rt.Org().CallerMayStartTasks(caller)}
}

// builtFrom reports whether the listing was built from this very slice. Equal
// content is not enough: the slice identifies the View.
func (l *listing) builtFrom(offered []tool.Definition, tasks taskRight) bool {
	switch {
	case l.tasks != tasks || len(offered) != len(l.source):
		return false
	case len(offered) == 0:
		return true
	}
	return &offered[0] == &l.source[0]
}

// newListing builds the tool list from what the gate offers, narrowed to
// toolset unless that is empty. Tool names are listed unchanged; tool.CheckName
// has checked that the protocol allows them.
func (s *Server) newListing(toolset toolgroups.GroupID, offered []tool.Definition, tasks taskRight) *listing {
	snapshot := s.rt.GroupManager().CurrentSnapshot()
	l := &listing{source: offered, tasks: tasks, offersAsk: tasks.given && toolset == ""}
	tools, stateless := []*sdk.Tool{}, []*sdk.Tool{}
	for _, d := range offered {
		within := toolset == "" || snapshot.InGroups(d.Name, toolset)
		if group, _ := snapshot.GroupOf(d.Name); group == toolgroups.OrgManagement && within {
			l.offersAsk = true
		}
		if within && d.Name != AskName {
			l.definitions = append(l.definitions, d)
		}
	}
	if tasks.given && !tasks.valid {
		l.offersAsk = false
	}
	if l.offersAsk {
		l.definitions = append(l.definitions, askDefinition(tasks))
	}
	slices.SortFunc(l.definitions, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range l.definitions {
		if !takesSecureArgs(d) {
			tools, stateless = append(tools, describeTool(d)), append(stateless, withMarks(describeTool(d), d))
		}
	}
	l.sessionJSON, l.statelessJSON = s.encodeList(tools, stateless)
	return l
}

// encodeList returns the encoded result of tools/list for versions with
// sessions and without.
func (s *Server) encodeList(tools, stateless []*sdk.Tool) (sessionJSON, statelessJSON []byte) {
	result := &sdk.ListToolsResult{Tools: tools, Cacheable: privateCache}
	sessionJSON = marshal(result)
	result.Tools, result.ResultType = stateless, "complete"
	result.Meta = sdk.Meta{sdk.MetaKeyServerInfo: s.info}
	return sessionJSON, marshal(result)
}

// describeTool converts a definition to the protocol's type. A tool with an
// unknown effect is marked as destructive.
func describeTool(d tool.Definition) *sdk.Tool {
	mutates := d.Effect == tool.Mutating || !d.Effect.IsValid()
	described := &sdk.Tool{
		Name: d.Name, Description: d.Description, InputSchema: withoutMarks(clientSchema(d)), Title: d.Listing.Title, Meta: metaOf(d),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint:    d.Effect == tool.ReadOnly,
			IdempotentHint:  d.Effect == tool.ReadOnly || d.Effect == tool.Idempotent,
			DestructiveHint: &mutates,
		},
	}
	if json.Valid(d.Listing.Output) { // a Tool that New did not make may have anything
		described.OutputSchema = d.Listing.Output
	}
	_ = json.Unmarshal(d.Listing.Icons, &described.Icons) // invalid or absent icons are left out
	return described
}

// withMarks returns a description with the marks of arguments that clients repeat in headers, which
// versions without sessions have.
func withMarks(described *sdk.Tool, d tool.Definition) *sdk.Tool {
	if len(paramHeaders(d)) > 0 {
		described.InputSchema = d.ModelSchema()
	}
	return described
}

// ownMeta are the prefixes of keys of _meta that only this server sets: clients act on them.
var ownMeta = []string{"toolbox/", "com.google.cloud/", "io.modelcontextprotocol/"}

// metaOf returns the _meta of a tool: what its Listing says, and its auth services.
func metaOf(d tool.Definition) sdk.Meta {
	var meta sdk.Meta
	if json.Unmarshal(d.Listing.Meta, &meta) != nil || len(meta) == 0 { // the Listing says nothing, or no object
		return authMeta(d.Auth)
	}
	maps.DeleteFunc(meta, func(key string, _ any) bool {
		return slices.ContainsFunc(ownMeta, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	maps.Copy(meta, authMeta(d.Auth))
	return meta
}

// marshal returns v as JSON. It panics if v cannot be encoded, so it must only
// be used for types that always can.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("mcpserver: marshal: " + err.Error())
	}
	return text
}
