package toolboxfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// All fields of Toolbox are read. Paths are below the directory of the file.
func TestResource_Fields(t *testing.T) {
	const text = `{kind: resource, name: hours, type: text, text: 9 to 5, title: Hours, description: When., mimeType: text/markdown, ui: false,
 annotations: {priority: 0.5, audience: [user, assistant], lastModified: "2026-05-01T12:00:00Z"}}
---
{kind: resource, name: schema, type: file, path: docs/./schema.sql, uri: "FILE://Schema/A", maxSize: 7}
---
{kind: resource, name: hosts, type: file, path: /srv/x/../hosts.txt, annotations: , maxSize: 1073741824}
---
{kind: resourceTemplate, name: docs, type: file, uriTemplate: "file:///my%20docs/{+path}.md", allowedPaths: [/my docs, /more]}
---
{kind: group, name: g, resources: [hours, schema, hours], resourceTemplates: [docs], tools: [resource_hosts]}
`
	d, err := readFiles([]yamldoc.File{{Path: "/dir/tools.yaml", Data: []byte(text)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []toolboxfile.Resource{
		{Name: "hours", Type: "text", Title: "Hours", Description: "When.", MIMEType: "text/markdown", URI: "text://hours", Text: "9 to 5", MaxSize: 4 << 20},
		{Name: "schema", Type: "file", URI: "file://schema/A", Dir: "/dir", Path: "docs/schema.sql", MaxSize: 7},
		{Name: "hosts", Type: "file", URI: "file://hosts", Dir: "/srv/", Path: "hosts.txt", MaxSize: 4 << 20},
		{Name: "docs", Type: "file", URITemplate: "file:///my%20docs/{+path}.md", Before: "/my docs/", After: ".md", Allowed: []string{"/my docs", "/more"}, MaxSize: 4 << 20},
	}
	if diff := cmp.Diff(want, d.Resources, cmpopts.IgnoreFields(toolboxfile.Resource{}, "Pos", "Fingerprint")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"resource_hours", "resource_schema", "template_docs"}, d.Toolsets[0].ResourceTools()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list := d.ListWarnings(); len(list) != 0 {
		t.Errorf("warnings: %q", list)
	}
	again, err := toolboxfile.MigrateFile([]byte(text))
	if err != nil || string(again) != text {
		t.Errorf("migrated to %s, %v", again, err)
	}
}

// The fingerprint changes with what is read, also if that is in another directory.
func TestResource_FingerprintChanges(t *testing.T) {
	seen := map[string]string{}
	for _, file := range []yamldoc.File{
		{Path: "/a/t.yaml", Data: []byte("{kind: resource, name: r, type: file, path: x.md}")},
		{Path: "/b/t.yaml", Data: []byte("{kind: resource, name: r, type: file, path: x.md}")},
		{Path: "/a/t.yaml", Data: []byte("{kind: resource, name: r, type: file, path: x.md, maxSize: 1}")},
		{Path: "/a/t.yaml", Data: []byte("{kind: resourceTemplate, name: r, type: file, uriTemplate: 'file:///a/{path}', allowedPaths: [a]}")},
		{Path: "/b/t.yaml", Data: []byte("{kind: resourceTemplate, name: r, type: file, uriTemplate: 'file:///a/{path}', allowedPaths: [a]}")},
	} {
		d, err := readFiles([]yamldoc.File{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		print := d.Resources[0].Fingerprint
		if other, twice := seen[print]; twice {
			t.Errorf("%s has the fingerprint of %s", file.Data, other)
		}
		seen[print] = string(file.Data)
	}
}

func TestListWarnings_UnlistedResource(t *testing.T) {
	d, err := read(t, "{kind: resource, name: a, type: text, text: t}\n---\n{kind: resourceTemplate, name: b, type: file, uriTemplate: 'file:///{path}', allowedPaths: [.]}\n")
	want := []string{
		`org.yaml:1:1: resource "a" is in no group, so no client can read it: list it under resources of a document of kind group`,
		`org.yaml:3:1: resourceTemplate "b" is in no group, so no client can read it: list it under resourceTemplates of a document of kind group`,
	}
	if diff := cmp.Diff(want, d.ListWarnings()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
