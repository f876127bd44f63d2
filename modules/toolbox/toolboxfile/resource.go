package toolboxfile

import (
	"fmt"
	"mime"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/tool"
)

// The types of resources.
const (
	ResourceText = "text"
	ResourceFile = "file"
)

// Limits of resources.
const (
	MaxResourceBytes = 4 << 20 // of a file: a result of the gate has no more
	maxResourceSize  = 1 << 30 // of the field maxSize, as in Toolbox
	maxResourceURI   = 8 << 10
)

// The kinds of documents that declare resources.
const (
	kindResource = "resource"
	kindTemplate = "resourceTemplate"
)

// Resource is a document of kind resource or resourceTemplate. A resource is a text or a file
// that clients read by its URI. A template stands for files whose URIs have a path. Calls of the
// tool ToolName read it.
//
//	kind: resource
//	name: schema
//	type: file
//	path: docs/schema.md
type Resource struct {
	Name        string
	Type        string // ResourceText or ResourceFile
	Title       string
	Description string
	MIMEType    string // "" follows from the name of the file

	URI  string // of a resource; "" in a template
	Text string // of type text

	// Of a resource of type file: the path below Dir, which the file must not leave.
	Dir  string `json:",omitempty"`
	Path string `json:",omitempty"`

	// Of a template: a URI file://… with one place for a path, and the directories that the files
	// must not leave. Before is the path before that place, After the one behind it.
	URITemplate   string   `json:",omitempty"`
	Before, After string   `json:",omitempty"`
	Allowed       []string `json:",omitempty"`

	MaxSize int // largest size of the file in bytes, at most MaxResourceBytes

	Invalid     bool   `json:"-"` // errors in the document have been reported
	Fingerprint string `json:"-"` // the same for resources that differ in nothing but Pos
	Pos         yamldoc.Pos
}

// ToolName returns the name of the tool that reads a resource or the files of a template.
func (r *Resource) ToolName() string {
	if r.URITemplate != "" {
		return templateToolName(r.Name)
	}
	return resourceToolName(r.Name)
}

func resourceToolName(name string) string { return "resource_" + name }
func templateToolName(name string) string { return "template_" + name }

// readResource reads a document of kind resource.
func readResource(it item) {
	before := it.ErrorCount()
	r := Resource{Name: it.Name, Pos: it.Pos, MaxSize: MaxResourceBytes}
	types := []string{ResourceText, ResourceFile}
	i, ok := it.typeIndex("resource", len(types), func(i int) (string, bool) { return types[i], true })
	if !ok {
		return
	}
	r.Type = types[i]
	r.URI = r.Type + "://" + it.Name
	fields := it.resourceFields(&r)
	fields["uri"] = uriField(&r.URI, r.Type)
	if r.Type == ResourceText {
		fields["text"] = yamldoc.NonEmptyField(&r.Text)
		it.ReadFields(fields)
		it.RequireFields("text")
	} else {
		fields["path"], fields["maxSize"] = resourcePath(&r), yamldoc.IntField(&r.MaxSize, maxResourceSize)
		it.ReadFields(fields)
		it.RequireFields("path")
	}
	it.declareResource(r, "URI", r.URI, before)
}

// readTemplate reads a document of kind resourceTemplate.
func readTemplate(it item) {
	before := it.ErrorCount()
	r := Resource{Name: it.Name, Type: ResourceFile, Pos: it.Pos, MaxSize: MaxResourceBytes}
	if _, ok := it.typeIndex("resource template", 1, func(int) (string, bool) { return ResourceFile, true }); !ok {
		return
	}
	fields := it.resourceFields(&r)
	fields["uriTemplate"] = uriTemplateField(&r)
	fields["allowedPaths"] = directoryList(&r.Allowed)
	fields["maxSize"] = yamldoc.IntField(&r.MaxSize, maxResourceSize)
	it.ReadFields(fields)
	it.RequireFields("uriTemplate")
	if _, ok := it.FindField("allowedPaths"); !ok {
		it.MissingField("allowedPaths").AddError("is missing", "without it a caller could read every file of this machine: list the directories, for example [./docs]")
	}
	it.declareResource(r, "URI template", r.URITemplate, before)
}

// resourceFields returns the fields of both kinds.
func (it item) resourceFields(r *Resource) yamldoc.Fields {
	page := func(v yamldoc.Value) {
		v.AddError("belongs to pages of MCP Apps, which are not served", "leave it out")
	}
	return yamldoc.Fields{
		"type":          yamldoc.SkipField,
		"title":         yamldoc.TextField(&r.Title),
		"description":   yamldoc.TextField(&r.Description),
		"mimeType":      mimeTypeField(&r.MIMEType),
		"annotations":   checkResourceAnnotations,
		"ui":            rejectInterface,
		"csp":           page,
		"permissions":   page,
		"domain":        page,
		"prefersBorder": page,
	}
}

// declareResource registers the name of a resource, its tool and its URI, and adds it. what is
// what the URI is called.
func (it item) declareResource(r Resource, what, uri string, errsBefore int) {
	it.DeclareItem()
	if it.Name == "" {
		return
	}
	if tool.CheckName(resourceToolName(it.Name)) != nil {
		it.NameAt.AddError(yamldoc.QuoteText(it.Name)+" is not a valid name of a "+it.Kind, "1 to 119 ASCII letters, digits, '_', '.' or '-'")
	} else if first, ok := it.DeclareName("tool", r.ToolName(), it.NameAt.Pos); !ok && it.ErrorCount() == errsBefore {
		it.NameAt.AddError("its tool "+yamldoc.QuoteText(r.ToolName())+" has the name of the tool at "+first.String(), "choose another name")
	}
	if first, ok := it.DeclareName(what, uri, it.Pos); !ok && it.ErrorCount() == errsBefore {
		it.AddError("the "+what+" "+yamldoc.QuoteText(uri)+" is that of the document at "+first.String(), "")
	}
	r.MaxSize = min(r.MaxSize, MaxResourceBytes)
	r.Fingerprint, r.Invalid = it.fingerprint(append([]string{r.Dir}, r.Allowed...)...), it.ErrorCount() > errsBefore
	it.r.to.Resources = append(it.r.to.Resources, r)
}

// otherSchemes are the schemes of resources that are not declared.
var otherSchemes = []string{"workspace", "artifact", "mcp", "ui", "skill"}

// uriField reads the URI of a resource. Like Toolbox it writes the scheme and the host in lower
// case.
func uriField(to *string, kind string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme == "" || len(text) > maxResourceURI:
			v.AddTypeError("an absolute URI", "for example "+kind+"://schema")
		case slices.Contains(otherSchemes, strings.ToLower(u.Scheme)):
			v.AddError("has the scheme "+u.Scheme+", which other resources have", "for example "+kind+"://schema")
		case kind == ResourceFile && !strings.EqualFold(u.Scheme, "file"):
			v.AddError("must begin with file://", "")
		default:
			u.Host = strings.ToLower(u.Host)
			*to = u.String()
		}
	}
}

// textExtensions are the endings of files that Toolbox serves.
var textExtensions = []string{".txt", ".md", ".csv", ".json", ".yaml", ".yml", ".xml", ".sql", ".html", ".htm", ".js", ".css", ".svg", ".py"}

// HasTextExtension reports whether a file has the ending of a type that resources may have.
func HasTextExtension(name string) bool {
	return slices.Contains(textExtensions, strings.ToLower(filepath.Ext(name)))
}

// resourcePath reads the path of a file. It is below the document's directory, or absolute.
func resourcePath(r *Resource) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		switch {
		case !ok:
		case !HasTextExtension(text):
			v.AddError(yamldoc.QuoteText(text)+" is not a file of text", yamldoc.ListHint("its name ends in ", textExtensions))
		case filepath.IsAbs(text):
			r.Dir, r.Path = filepath.Split(filepath.Clean(text))
		case !filepath.IsLocal(text):
			v.AddError(yamldoc.QuoteText(text)+" leaves the directory of this file", "write a path below it, or an absolute path")
		default:
			r.Dir, r.Path = v.FilePath("."), filepath.Clean(text)
		}
	}
}

// uriTemplateField reads a URI with one place for a path, file:///docs/{path}.
func uriTemplateField(r *Resource) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		before, after, found := strings.Cut(strings.Replace(text, "{+path}", "{path}", 1), "{path}")
		rest, isFile := strings.CutPrefix(before, "file://")
		start, err := url.PathUnescape(rest)
		end, afterErr := url.PathUnescape(after)
		switch {
		case !found || strings.ContainsAny(before+after, "{}") || len(text) > maxResourceURI:
			v.AddError(yamldoc.QuoteText(text)+" must have the variable {path}, once, and no other", "for example file:///docs/{path}")
		case !isFile || err != nil || afterErr != nil || rest != "" && rest[0] != '/' || strings.ContainsAny(before+after, "?#"):
			v.AddError(yamldoc.QuoteText(text)+" must be file:// with the absolute path of a file", "for example file:///docs/{path}")
		default:
			r.URITemplate, r.Before, r.After = text, start, end
		}
	}
}

// directoryList reads directories, relative to the document's.
func directoryList(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		var list []string
		yamldoc.NameList(&list, "directories")(v)
		if v.IsList() && len(v.Node.Content) == 0 {
			v.AddError("is empty", "list the directories, for example [./docs]")
		}
		for _, dir := range list {
			dir, err := filepath.Abs(v.FilePath(dir))
			if err != nil {
				v.AddError(fmt.Sprintf("cannot be resolved: %v", err), "write absolute paths")
				return
			}
			*to = append(*to, dir)
		}
	}
}

// mimeTypeField reads a media type.
func mimeTypeField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if kind, _, err := mime.ParseMediaType(text); err != nil || !strings.Contains(kind, "/") {
			v.AddTypeError("a media type", "for example text/markdown")
			return
		}
		*to = text
	}
}

// checkResourceAnnotations checks the hints of MCP about a resource. They are not passed on.
func checkResourceAnnotations(v yamldoc.Value) {
	if v.IsNull() {
		return
	}
	var audience []string
	yamldoc.MappingField(yamldoc.Fields{
		"priority": func(v yamldoc.Value) { v.ReadNumber(1) },
		"audience": func(v yamldoc.Value) {
			yamldoc.NameList(&audience, "roles")(v)
			for _, role := range audience {
				if role != RoleUser && role != RoleAssistant {
					v.AddError(yamldoc.QuoteText(role)+" is unknown", "there are assistant and user")
				}
			}
		},
		"lastModified": func(v yamldoc.Value) {
			if text, ok := v.ReadNonEmpty(); ok {
				if _, err := time.Parse(time.RFC3339, text); err != nil {
					v.AddTypeError("a time", "for example 2026-05-01T12:00:00Z")
				}
			}
		},
	})(v)
}

// rejectInterface rejects ui: true: a page of MCP Apps.
func rejectInterface(v yamldoc.Value) {
	var on bool
	if yamldoc.BoolField(&on)(v); on {
		v.AddError("is not supported: pages of MCP Apps are not served", "leave the document out")
	}
}

// unlistedResources returns a warning for each resource and template that no group lists.
func (d *Declarations) unlistedResources() (list []string) {
	listed := map[string]bool{}
	for _, t := range d.Toolsets {
		for _, name := range t.ResourceTools() {
			listed[name] = true
		}
		for _, name := range t.Tools {
			listed[name] = true
		}
	}
	for _, r := range d.Resources {
		if !listed[r.ToolName()] {
			kind, field := kindResource, "resources"
			if r.URITemplate != "" {
				kind, field = kindTemplate, "resourceTemplates"
			}
			list = append(list, r.Pos.String()+": "+kind+" "+yamldoc.QuoteText(r.Name)+" is in no group, so no client can read it: list it under "+field+" of a document of kind group")
		}
	}
	return list
}

// ResourceTools returns the names of the tools that read the resources and templates of a toolset.
func (t *Toolset) ResourceTools() (names []string) {
	for _, name := range t.Resources {
		names = append(names, resourceToolName(name))
	}
	for _, name := range t.ResourceTemplates {
		names = append(names, templateToolName(name))
	}
	return names
}
