package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Limits of a page of a list. Sources are asked one after the other until the page has
// pageItems or has taken pageTime. The next page continues with the next source. A
// source that takes longer than sourceTime has failed.
const (
	pageItems  = 500
	pageTime   = 10 * time.Second
	sourceTime = 30 * time.Second
)

// listCursor is where a list continues: at the first source that is not before Source. Cursor
// is of that source.
type listCursor struct{ Source, Cursor string }

// encode returns the cursor as clients see it.
func (c listCursor) encode() string { return base64.RawURLEncoding.EncodeToString(marshal(c)) }

// decodeCursor returns the cursor that a client sent. Errors are of the protocol.
func decodeCursor(text string) (c listCursor, err error) {
	if text == "" {
		return c, nil
	}
	doc, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(doc, &c)
	}
	if err != nil {
		return c, newRPCError(jsonrpc.CodeInvalidParams, "invalid cursor")
	}
	return c, nil
}

// listCatalogs returns a page of what the sources of the caller have, by calls of its tools,
// and the cursor of the next page. Sources that fail are left out; the log has them.
func (s *Server) listCatalogs(ctx context.Context, sc *clientScope, k tool.CatalogKind, cursor string, header http.Header) (page tool.CatalogAnswer, err error) {
	at, err := decodeCursor(cursor)
	if err != nil {
		return page, err
	}
	started, offered := time.Now(), s.visibleCatalogs(sc)
	for _, call := range catalogLists(offered, k, at) {
		source := call.catalog.Source()
		if len(page.Resources)+len(page.Templates)+len(page.Prompts) >= pageItems || time.Since(started) > pageTime {
			page.Next = listCursor{Source: source}.encode()
			return page, nil
		}
		answer, err := s.answerInTime(ctx, sc, call, header)
		if err != nil {
			s.logListFailure(sc, source, err)
			continue
		}
		page.Resources = append(page.Resources, readable(offered, source, answer.Resources)...)
		page.Templates = append(page.Templates, answer.Templates...)
		page.Prompts = append(page.Prompts, gettable(offered, source, answer.Prompts)...)
		if answer.Next != "" {
			page.Next = listCursor{source, answer.Next}.encode()
			return page, nil
		}
	}
	return page, nil
}

// answerInTime is answerCatalog with the time limit of a source.
func (s *Server) answerInTime(ctx context.Context, sc *clientScope, c catalogCall, header http.Header) (tool.CatalogAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.sourceTime)
	defer cancel()
	return s.answerCatalog(ctx, sc, c, header)
}

// catalogLists returns one call for each source, from a cursor on, sorted by source. A source
// of which no tool reads what is listed is left out.
func catalogLists(offered []tool.Definition, k tool.CatalogKind, at listCursor) (list []catalogCall) {
	reads := ifElse(k == tool.ListPrompts, tool.GetPrompt, tool.ReadResource)
	for _, d := range offered {
		source := d.Catalog.Source()
		known := slices.ContainsFunc(list, func(c catalogCall) bool { return c.catalog.Source() == source })
		if source < at.Source || known || !d.Catalog.Answers(k) || !answersKind(offered, reads, source) {
			continue
		}
		r := tool.CatalogRequest{Kind: k, Cursor: ifElse(source == at.Source, at.Cursor, "")}
		if args, ok := d.Catalog.Arguments(r); ok {
			list = append(list, catalogCall{d.Catalog, r, d.Name, args})
		}
	}
	slices.SortFunc(list, func(a, b catalogCall) int { return cmp.Compare(a.catalog.Source(), b.catalog.Source()) })
	return list
}

// readable returns the resources that a tool of the source reads, and no other before it.
func readable(offered []tool.Definition, source string, list []tool.Resource) []tool.Resource {
	return slices.DeleteFunc(list, func(r tool.Resource) bool {
		call := findCatalog(offered, tool.CatalogRequest{Kind: tool.ReadResource, URI: r.URI})
		return len(r.URI) > maxURI || call.catalog == nil || call.catalog.Source() != source
	})
}

// gettable returns the prompts that a tool of the source gets, and no other before it.
func gettable(offered []tool.Definition, source string, list []tool.Prompt) []tool.Prompt {
	return slices.DeleteFunc(list, func(p tool.Prompt) bool {
		call := findCatalog(offered, tool.CatalogRequest{Kind: tool.GetPrompt, Name: p.Name})
		return call.catalog == nil || call.catalog.Source() != source
	})
}

// logListFailure logs that a source could not be listed, unless the gate has denied the call.
func (s *Server) logListFailure(sc *clientScope, source string, err error) {
	if !errors.Is(err, errNotOffered) && !errors.Is(err, context.Canceled) {
		s.failures.LogFailure(slog.LevelWarn, "MCP list failed", sc.sender.String(), err, "source", source, "code", string(errcode.CodeOf(err)))
	}
}

// listResources answers resources/list.
func (s *Server) listResources(ctx context.Context, sc *clientScope, req *sdk.ListResourcesRequest) (sdk.Result, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	page, err := s.listCatalogs(ctx, sc, tool.ListResources, cursor, headerOf(req.Extra))
	if err != nil {
		return nil, err
	}
	result := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, NextCursor: page.Next, Cacheable: privateCache}
	for _, r := range page.Resources {
		result.Resources = append(result.Resources, &sdk.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType, Size: r.Size})
	}
	return result, nil
}

// listTemplates answers resources/templates/list.
func (s *Server) listTemplates(ctx context.Context, sc *clientScope, req *sdk.ListResourceTemplatesRequest) (sdk.Result, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	page, err := s.listCatalogs(ctx, sc, tool.ListTemplates, cursor, headerOf(req.Extra))
	if err != nil {
		return nil, err
	}
	result := &sdk.ListResourceTemplatesResult{ResourceTemplates: []*sdk.ResourceTemplate{}, NextCursor: page.Next, Cacheable: privateCache}
	for _, t := range page.Templates {
		result.ResourceTemplates = append(result.ResourceTemplates, &sdk.ResourceTemplate{URITemplate: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description, MIMEType: t.MIMEType})
	}
	return result, nil
}
