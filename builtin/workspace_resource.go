package builtin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// workspacePrefix begins the URI of a file: workspace:///notes/plan.txt.
const workspacePrefix = "workspace:///"

// maxListedFiles is how many files a page of resources has at most.
const maxListedFiles = 1000

// readCatalog reads files as resources, with read_file.
type readCatalog struct{ workspaces WorkspaceOpener }

// ResourceVersion implements tool.ResourceVersioner with the time and the size of a file.
func (c readCatalog) ResourceVersion(ctx context.Context, by identity.Principal, uri string) (string, error) {
	name, ok := fileOfURI(uri)
	if !ok {
		return "", errcode.New(errcode.FileNotFound, "there is no file %q", uri)
	}
	ws, err := c.workspaces.OpenWorkspace(ctx, by)
	if err != nil {
		return "", err
	}
	defer ws.Root.Close()
	info, err := ws.Root.Stat(name)
	if err != nil {
		return "absent", nil
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size()), nil
}

// Source implements tool.Catalog.
func (readCatalog) Source() string { return "workspace" }

// Answers implements tool.Catalog.
func (readCatalog) Answers(k tool.CatalogKind) bool {
	return k == tool.ReadResource || k == tool.ListTemplates
}

// Arguments implements tool.Catalog.
func (readCatalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	switch r.Kind {
	case tool.ListTemplates:
		return nil, true
	case tool.ReadResource:
		name, ok := fileOfURI(r.URI)
		if !ok {
			return nil, false
		}
		return marshalArgs(readFile{Path: name, Length: maxLength}), true
	}
	return nil, false
}

// Answer implements tool.Catalog.
func (readCatalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	if r.Kind == tool.ListTemplates {
		return tool.CatalogAnswer{Templates: []tool.ResourceTemplate{{
			URITemplate: workspacePrefix + "{+path}", Name: "workspace file", Description: "A file of the workspace.",
		}}}, nil
	}
	var part filePart
	if err := json.Unmarshal(result.Structured, &part); err != nil {
		return tool.CatalogAnswer{}, errcode.Wrap(errcode.Internal, err, "read the result of read_file")
	}
	if part.Truncated {
		return tool.CatalogAnswer{}, errcode.New(errcode.InvalidArguments, "the file has %d bytes, more than fit into one answer; read_file reads it in parts", part.Size)
	}
	c, err := resourceContent(r.URI, part.Content, part.Encoding)
	if c.Data == nil {
		c.MIMEType = textType(part.Path)
	}
	return tool.CatalogAnswer{Contents: []tool.Content{c}}, err
}

// resourceContent returns the contents that a tool has returned as text or base64.
func resourceContent(uri, content, encoding string) (tool.Content, error) {
	c := tool.Content{Type: tool.ResourceContent, URI: uri, Text: content, MIMEType: "text/plain"}
	if encoding != inBase64 {
		return c, nil
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return c, errcode.Wrap(errcode.Internal, err, "decode the content of %s", uri)
	}
	data = append([]byte{}, data...) // not nil
	return tool.Content{Type: tool.ResourceContent, URI: uri, Data: data, MIMEType: Artifact{Data: data}.MediaType()}, nil
}

// textType returns the media type of a text file by its name.
func textType(name string) string {
	types := map[string]string{".csv": "text/csv", ".html": "text/html", ".json": "application/json", ".md": "text/markdown", ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml"}
	return cmp.Or(types[strings.ToLower(path.Ext(name))], "text/plain")
}

// fileOfURI returns the path of the file with this URI. It decodes percent-encoding once and
// reports false for anything that is not a clean path in the workspace.
func fileOfURI(uri string) (string, bool) {
	encoded, ok := strings.CutPrefix(uri, workspacePrefix)
	if !ok || strings.ContainsAny(encoded, "?#") {
		return "", false
	}
	name, err := url.PathUnescape(encoded)
	if err != nil || name == "." || len(name) > maxPath || !textutil.IsText([]byte(name)) {
		return "", false
	}
	clean, err := workspace.CleanPath(name)
	return name, err == nil && clean == name
}

// maxPath is the longest path that read_file accepts, in bytes.
const maxPath = 4096

// uriOfFile returns the URI of a file; fileOfURI returns its path.
func uriOfFile(name string) string { return (&url.URL{Scheme: "workspace", Path: "/" + name}).String() }

// listCatalog lists the files of a workspace as resources, with list_files.
type listCatalog struct{}

// Source implements tool.Catalog.
func (listCatalog) Source() string { return "workspace" }

// Answers implements tool.Catalog.
func (listCatalog) Answers(k tool.CatalogKind) bool { return k == tool.ListResources }

// Arguments implements tool.Catalog.
func (listCatalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	return marshalArgs(listFiles{Recursive: true}), r.Kind == tool.ListResources
}

// Answer implements tool.Catalog. The cursor is the last path of the page before.
func (listCatalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	var list workspace.Listing
	if err := json.Unmarshal(result.Structured, &list); err != nil {
		return tool.CatalogAnswer{}, errcode.Wrap(errcode.Internal, err, "read the result of list_files")
	}
	var page tool.CatalogAnswer
	for _, e := range list.Entries {
		uri := uriOfFile(e.Name)
		if name, ok := fileOfURI(uri); e.Type != "file" || e.Name <= r.Cursor || !ok || name != e.Name {
			continue
		}
		if len(page.Resources) == maxListedFiles {
			page.Next = page.Resources[maxListedFiles-1].Name
			break
		}
		page.Resources = append(page.Resources, tool.Resource{URI: uri, Name: e.Name, Size: e.Size})
	}
	return page, nil
}

// marshalArgs returns the arguments of a call.
func marshalArgs(in any) json.RawMessage {
	text, _ := json.Marshal(in) // strings, numbers and booleans always marshal
	return text
}
