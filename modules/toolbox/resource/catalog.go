package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// catalog lists and reads one resource, with the tool that reads it.
type catalog struct{ resource toolboxfile.Resource }

// Source implements tool.Catalog. Sources are tried in the order of their names.
// Resources come before templates, which may have their URIs, because "/" sorts before "~".
func (c catalog) Source() string { return "declared/" + c.resource.Name }

// Answers implements tool.Catalog.
func (catalog) Answers(k tool.CatalogKind) bool {
	return k == tool.ListResources || k == tool.ReadResource
}

// Arguments implements tool.Catalog.
func (c catalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	switch r.Kind {
	case tool.ListResources:
		return nil, true
	case tool.ReadResource:
		return json.RawMessage(`{}`), r.URI == c.resource.URI
	}
	return nil, false
}

// Answer implements tool.Catalog.
func (c catalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	if r.Kind == tool.ReadResource {
		return contents(r.URI, mediaType(c.resource, c.resource.Path), result), nil
	}
	return tool.CatalogAnswer{Resources: []tool.Resource{{
		URI: c.resource.URI, Name: c.resource.Name, Title: c.resource.Title, Description: c.resource.Description, MIMEType: mediaType(c.resource, c.resource.Path), Size: int64(len(c.resource.Text)),
	}}}, nil
}

// ResourceVersion implements tool.ResourceVersioner.
func (c catalog) ResourceVersion(context.Context, identity.Principal, string) (string, error) {
	if c.resource.Type == toolboxfile.ResourceText {
		return c.resource.Fingerprint, nil
	}
	return version(c.resource.Dir, c.resource.Path), nil
}

// templateCatalog lists a template and reads its files, with the tool that reads them.
type templateCatalog struct{ resource toolboxfile.Resource }

// Source implements tool.Catalog.
func (c templateCatalog) Source() string { return "declared~template/" + c.resource.Name }

// Answers implements tool.Catalog.
func (templateCatalog) Answers(k tool.CatalogKind) bool {
	return k == tool.ListTemplates || k == tool.ReadResource
}

// Arguments implements tool.Catalog.
func (c templateCatalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	switch r.Kind {
	case tool.ListTemplates:
		return nil, true
	case tool.ReadResource:
		path, ok := c.path(r.URI)
		if !ok {
			return nil, false
		}
		args, _ := json.Marshal(pathArgs{path}) // a text always marshals
		return args, true
	}
	return nil, false
}

// path returns the path in a URI of the template, decoded once.
func (c templateCatalog) path(uri string) (string, bool) {
	before, after, _ := strings.Cut(strings.Replace(c.resource.URITemplate, "{+path}", "{path}", 1), "{path}")
	rest, ok := strings.CutPrefix(uri, before)
	if !ok {
		return "", false
	}
	encoded, ok := strings.CutSuffix(rest, after)
	if !ok || strings.ContainsAny(encoded, "?#") {
		return "", false
	}
	path, err := url.PathUnescape(encoded)
	if err != nil {
		return "", false
	}
	_, _, err = locate(c.resource, path)
	return path, err == nil
}

// Answer implements tool.Catalog.
func (c templateCatalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	if r.Kind == tool.ReadResource {
		path, _ := c.path(r.URI) // Arguments has accepted it
		return contents(r.URI, mediaType(c.resource, path+c.resource.After), result), nil
	}
	return tool.CatalogAnswer{Templates: []tool.ResourceTemplate{{
		URITemplate: c.resource.URITemplate, Name: c.resource.Name, Title: c.resource.Title, Description: c.resource.Description, MIMEType: c.resource.MIMEType,
	}}}, nil
}

// ResourceVersion implements tool.ResourceVersioner.
func (c templateCatalog) ResourceVersion(_ context.Context, _ identity.Principal, uri string) (string, error) {
	path, ok := c.path(uri)
	if !ok {
		return "", errcode.New(errcode.FileNotFound, "there is no such file")
	}
	dir, name, err := locate(c.resource, path)
	if err != nil {
		return "", err
	}
	return version(dir, name), nil
}

// contents returns the answer to a read.
func contents(uri, mediaType string, result tool.Result) tool.CatalogAnswer {
	return tool.CatalogAnswer{Contents: []tool.Content{{Type: tool.ResourceContent, URI: uri, Text: result.Text, MIMEType: mediaType}}}
}

// mediaTypes are the types of files by the ends of their names.
var mediaTypes = map[string]string{
	".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".xml": "application/xml",
	".sql": "application/sql", ".html": "text/html", ".htm": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".py": "text/x-python",
}

// mediaType returns the configured type, or the type that follows from the name of the file.
func mediaType(r toolboxfile.Resource, name string) string {
	return cmp.Or(r.MIMEType, mediaTypes[strings.ToLower(filepath.Ext(name))], "text/plain")
}
