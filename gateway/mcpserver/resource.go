package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// Resources are read and listed by calls of tools (tool.Catalog). So the gate decides each
// read, and the record has it as a call of the tool. If no tool of the caller reads a
// resource, the gate is asked for the tool unknownResourceName, which never exists. So the record
// has the attempt.

// unknownResourceName is the name under which a read is denied that no tool of the caller answers. It
// is no valid name of a tool.
const unknownResourceName = "resources/read"

// maxURI is the longest URI that is read, in bytes.
const maxURI = 8 << 10

// codeNotFound is the code of the error for a resource that does not exist, in versions with
// sessions. Later versions use CodeInvalidParams.
const codeNotFound = -32002

// catalogCall is the call of a tool that answers a request for resources.
type catalogCall struct {
	catalog tool.Catalog
	request tool.CatalogRequest
	tool    string
	args    json.RawMessage // nil if the answer needs no call
}

// findCatalog returns the call that answers a request: of the first source, by name, of which
// one of these tools answers it. The zero catalogCall has no catalog.
func findCatalog(offered []tool.Definition, r tool.CatalogRequest) (found catalogCall) {
	for _, d := range offered {
		if d.Catalog == nil || found.catalog != nil && found.catalog.Source() <= d.Catalog.Source() {
			continue
		}
		if args, ok := d.Catalog.Arguments(r); ok {
			found = catalogCall{d.Catalog, r, d.Name, args}
		}
	}
	return found
}

// withinEndpoint returns the tools that are in the group of the endpoint.
func (s *Server) withinEndpoint(sc *clientScope, offered []tool.Definition) (list []tool.Definition) {
	snapshot := s.rt.GroupManager().CurrentSnapshot()
	for _, d := range offered {
		if d.Catalog != nil && (sc.endpoint.toolset == "" || snapshot.InGroups(d.Name, sc.endpoint.toolset)) {
			list = append(list, d)
		}
	}
	return list
}

// listableCatalogs returns the tools with a Catalog that the caller may call in some workflow
// state.
func (s *Server) listableCatalogs(sc *clientScope) []tool.Definition {
	return s.withinEndpoint(sc, s.rt.Gate().Subject(sc.caller).ListableTools())
}

// visibleCatalogs returns the tools with a Catalog that the caller may call now.
func (s *Server) visibleCatalogs(sc *clientScope) []tool.Definition {
	return s.withinEndpoint(sc, s.rt.Gate().Subject(sc.caller).VisibleTools())
}

// answersKind reports whether one of the tools answers requests of a kind, of a source or, for
// "", of any.
func answersKind(offered []tool.Definition, k tool.CatalogKind, source string) bool {
	return slices.ContainsFunc(offered, func(d tool.Definition) bool {
		return d.Catalog.Answers(k) && (source == "" || d.Catalog.Source() == source)
	})
}

// answerCatalog makes the call and returns its answer.
func (s *Server) answerCatalog(ctx context.Context, sc *clientScope, c catalogCall, header http.Header) (tool.CatalogAnswer, error) {
	if c.args == nil {
		return c.catalog.Answer(c.request, tool.Result{})
	}
	o := s.callRecovered(ctx, func(ctx context.Context) outcome {
		return s.call(ctx, sc, toolCall{name: c.tool, args: c.args, header: header})
	})
	switch {
	case o.result == nil && o.err == nil && o.tokenErr == nil:
		return tool.CatalogAnswer{}, errNotOffered
	case o.result == nil:
		return tool.CatalogAnswer{}, s.rpcError(o, c.tool, sc.sender)
	case o.result.IsError:
		return tool.CatalogAnswer{}, failureOf(o.result)
	}
	return c.catalog.Answer(c.request, *o.result)
}

// errNotOffered is the error of a call that the gate has denied.
var errNotOffered = errcode.New(errcode.ToolNotAvailable, "the caller may not call this tool")

// failureOf returns the error that a failed result describes.
func failureOf(r *tool.Result) error {
	doc := gjson.ParseBytes(r.JSON())
	err := errcode.New(errcode.Code(doc.Get("error").Str), "%s", doc.Get("message").Str)
	if code := doc.Get("serverCode").Int(); code != 0 {
		return err.With(serverCode, code)
	}
	return err
}

// serverCode is the detail of a failure with the code of the protocol that an MCP server
// answered.
const serverCode = "serverCode"

// codeFromServer returns the code of the protocol that an MCP server answered; 0 if none.
func codeFromServer(err error) int64 {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return 0
	}
	code, _ := e.Details[serverCode].(int64)
	return code
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, sc *clientScope, req *sdk.ReadResourceRequest) (sdk.Result, error) {
	uri := req.Params.URI
	answer, err := s.readByTool(ctx, sc, uri, headerOf(req.Extra))
	if err != nil {
		return nil, resourceError(err, uri, req.ProtocolVersion())
	}
	result := &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{}, Cacheable: privateCache}
	for _, c := range answer.Contents {
		result.Contents = append(result.Contents, &sdk.ResourceContents{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Blob: c.Data})
	}
	return completeResultOf(result, req.ProtocolVersion()), nil
}

// readByTool reads a resource by a call of the caller's tool. If there is none, the gate denies the
// request, so that it is on record.
func (s *Server) readByTool(ctx context.Context, sc *clientScope, uri string, header http.Header) (tool.CatalogAnswer, error) {
	call := catalogCall{tool: unknownResourceName}
	if len(uri) <= maxURI {
		if found := findCatalog(s.listableCatalogs(sc), tool.CatalogRequest{Kind: tool.ReadResource, URI: uri}); found.catalog != nil {
			call = found
		}
	}
	if call.catalog == nil {
		call.args = marshal(map[string]string{"uri": textutil.Truncate(uri, maxURI)})
	}
	return s.answerCatalog(ctx, sc, call, header)
}

// headerOf returns the header of a request; nil on stdio.
func headerOf(extra *sdk.RequestExtra) http.Header {
	if extra == nil {
		return nil
	}
	return extra.Header
}

// resourceError returns the error for a resource that was not read. It is the same for a resource
// that does not exist and for a resource that the caller may not read.
func resourceError(err error, uri, version string) error {
	switch errcode.CodeOf(err) {
	case errcode.ToolNotAvailable, errcode.UnknownTool, errcode.FileNotFound, errcode.ArtifactNotFound, errcode.PathTraversal, errcode.NotADirectory:
		return resourceNotFound(uri, version)
	}
	if code := codeFromServer(err); code == codeNotFound || code == jsonrpc.CodeInvalidParams {
		return resourceNotFound(uri, version)
	}
	return newRPCError(jsonrpc.CodeInternalError, errcode.Message(err))
}

// resourceNotFound returns the error for a resource that does not exist for the caller.
func resourceNotFound(uri, version string) error {
	e := newRPCError(codeNotFound, "Resource not found")
	if version >= statelessVersion {
		e.Code = jsonrpc.CodeInvalidParams
	}
	e.Data = marshal(map[string]string{"uri": textutil.Truncate(uri, maxURI)})
	return e
}
