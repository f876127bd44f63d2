package toolboxfile

import (
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// Reader is the state of reading Toolbox's documents: what is declared so far, and the
// checks that have to wait until every document is read. It is not safe for concurrent
// use.
type Reader struct {
	docs          *yamldoc.Reader
	set           *docset.Set
	to            *Declarations
	toolTypes     []toolType
	pending       []*pendingTool            // tools that wait for the sources and services they name
	mcpTools      []pendingMCPTool          // tools that wait for the MCP servers they name
	services      []yamldoc.Value           // documents of Declarations.ToolServices
	serviceTools  []pendingServiceTool      // tools that wait for the services they name
	foreign       []foreignTool             // tools of servers and modules that documents name
	labels        []foreignTool             // those with a document of their own
	servers       map[string]Labels         // of MCP servers, by name
	section       string                    // of the v1 form that is being read
	reused        []int                     // indexes in to.Tools of tools from an earlier configuration
	stale         bool                      // a reused tool is no longer valid
	parameterSets map[string]*parameter.Set // compiled sets, shared by tools with the same parameters
	networkChecks []networkCheck            // that wait for the addresses that the operator allows
	scratch       []byte                    // buffer for fingerprints
}

// NewReader returns a Reader and adds its kinds to set. The documents of
// Toolbox that set reads are added to to. Errors are added to docs.
func NewReader(docs *yamldoc.Reader, set *docset.Set, to *Declarations) *Reader {
	r := &Reader{docs: docs, set: set, to: to, toolTypes: toolTypes(), parameterSets: make(map[string]*parameter.Set), servers: make(map[string]Labels)}
	set.AddKinds(r.kinds()...)
	set.ReadWithoutKind = r.readWithoutKind
	docs.FieldHint = toolboxFieldHint
	return r
}

// SetServerLabels sets the labels of the tools of an MCP server that have none of their own.
func (r *Reader) SetServerLabels(server string, l Labels) { r.servers[server] = l }
