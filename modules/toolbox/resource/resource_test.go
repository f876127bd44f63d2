package resource_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/resource"
	"github.com/rolecall/rolecall/tool"
)

// fixture has the tools of declared resources.
type fixture struct {
	*testing.T
	dir   string
	tools []tool.Tool
}

// newFixture writes files and reads a configuration next to them. In its text, DIR is the
// directory. A content that begins with "->" is the target of a link.
func newFixture(t *testing.T, text string, files map[string]string) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if target, link := strings.CutPrefix(content, "->"); link && err == nil {
			err = os.Symlink(strings.ReplaceAll(target, "DIR", dir), path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.ReadFiles([]yamldoc.File{{Path: filepath.Join(dir, "tools.yaml"), Data: []byte(strings.ReplaceAll(text, "DIR", dir))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := resource.New(c.Resources)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, dir, m.ToolGroups()[0].Tools}
}

// read returns the text of the tool that a URI leads to, or the code of its failure; "no tool" if
// it leads to none.
func (f *fixture) read(uri string) string {
	f.Helper()
	r := tool.CatalogRequest{Kind: tool.ReadResource, URI: strings.ReplaceAll(uri, "DIR", f.dir)}
	for _, one := range f.tools {
		d := one.Definition()
		args, ok := d.Catalog.Arguments(r)
		if !ok {
			continue
		}
		result := f.call(one, string(args))
		if result.IsError {
			return gjson.GetBytes(result.JSON(), "error").Str
		}
		answer, err := d.Catalog.Answer(r, result)
		if err != nil || len(answer.Contents) != 1 || answer.Contents[0].URI != r.URI {
			f.Fatalf("%s: %+v, %v", uri, answer, err)
		}
		return answer.Contents[0].MIMEType + " " + answer.Contents[0].Text
	}
	return "no tool"
}

func (f *fixture) call(one tool.Tool, args string) tool.Result {
	f.Helper()
	result, err := one.Call(f.Context(), tool.Call{Name: one.Definition().Name, Args: json.RawMessage(args)})
	if err != nil {
		f.Fatal(err)
	}
	return result
}

func TestModule_ReadsResources(t *testing.T) {
	f := newFixture(t, `
{kind: resource, name: hours, type: text, text: 9 to 5}
---
{kind: resource, name: rule, type: text, uri: "HTTPS://Example.COM/Rule?a=1", mimeType: text/markdown, text: "# Rule"}
---
{kind: resource, name: schema, type: file, path: docs/schema.sql, maxSize: 9}
---
{kind: resource, name: absolute, type: file, path: DIR/docs/a.md, uri: "file:///a"}
---
{kind: resource, name: linked, type: file, path: docs/link.md}
---
{kind: resource, name: long, type: file, path: docs/long.txt, maxSize: 9}
---
{kind: resource, name: gone, type: file, path: docs/gone.txt}
---
{kind: resource, name: binary, type: file, path: docs/binary.txt}
---
{kind: resource, name: folder, type: file, path: docs/folder.txt}
---
{kind: resource, name: out, type: file, path: docs/out.md}
---
{kind: resource, name: image, type: file, path: docs/image.md}
`, map[string]string{
		"docs/schema.sql": "SELECT 1;", "docs/a.md": "A", "docs/link.md": "->a.md", "docs/long.txt": "0123456789", "docs/binary.txt": "\xff", "docs/folder.txt/x": "",
		"docs/out.md": "->DIR/../../etc/passwd.md", "docs/image.md": "->x.png", "docs/x.png": "png",
	})
	for uri, want := range map[string]string{
		"text://hours": "text/plain 9 to 5", "https://example.com/Rule?a=1": "text/markdown # Rule", "file://schema": "application/sql SELECT 1;", "file:///a": "text/markdown A",
		"file://linked": "text/markdown A", "file://long": "result_too_large", "file://gone": "file_not_found", "file://binary": "tool_execution_failed", "file://folder": "file_not_found",
		"file://out": "path_traversal_blocked", "file://image": "path_traversal_blocked", "text://hours/": "no tool", "TEXT://hours": "no tool", "": "no tool",
	} {
		if got := f.read(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}

// templateFiles are a directory docs, and what lies outside of it.
func templateFiles() map[string]string {
	return map[string]string{
		"docs/a.md": "A", "docs/sub/b c.md": "B", "docs/%2e%2e.md": "dots", "docs/.hidden.md": "hidden", "docs/inside.md": "->sub/b c.md", "docs/out.md": "->../secret.md",
		"docs/up": "->..", "docs/absolute.md": "->DIR/secret.md", "docs/image.png": "png", "docs/key.md": "->.env", "docs/.env": "KEY=1", "secret.md": "secret", "docs2/a.md": "other", "more/c.md": "C",
	}
}

// Whatever the path in a URI or in a call is, no file outside the directories is read.
func TestTemplate_StaysWithinDirectories(t *testing.T) {
	f := newFixture(t, `
{kind: resourceTemplate, name: docs, type: file, uriTemplate: "file://DIR/docs/{path}", allowedPaths: [docs]}
---
{kind: resourceTemplate, name: any, type: file, uriTemplate: "file://{+path}", allowedPaths: [DIR/docs, more]}
`, templateFiles())
	reads := map[string]string{
		"file://DIR/docs/a.md": "A", "file://DIR/docs/sub/b%20c.md": "B", "file://DIR/docs/sub%2Fb%20c%2emd": "B", "file://DIR/docs/%252e%252e.md": "dots",
		"file://DIR/docs/.hidden.md": "hidden", "file://DIR/docs/inside.md": "B", "file://DIR/more/c.md": "C",
	}
	for uri, want := range reads {
		if got := f.read(uri); got != "text/markdown "+want {
			t.Errorf("%s: got %q", uri, got)
		}
	}
	var calls []string
	for _, path := range []string{
		"../secret.md", "sub/../../secret.md", "./a.md", "sub//b c.md", "/a.md", "", "..", "a.md/", "..\\secret.md", "a.md\x00.md", "DIR/secret.md", "/DIR/secret.md",
		"out.md", "absolute.md", "up/secret.md", "up/docs/a.md", "image.png", "key.md", "../docs2/a.md", "%2e%2e/secret.md", strings.Repeat("../", 50) + "etc/passwd.md",
	} {
		path = strings.ReplaceAll(path, "DIR", f.dir)
		calls = append(calls, path)
		for _, uri := range []string{"file://DIR/docs/" + path, "file://DIR/docs/" + strings.ReplaceAll(strings.ReplaceAll(path, ".", "%2e"), "/", "%2F"), "file://" + path, "file:///" + path} {
			if got := f.read(uri); strings.HasPrefix(got, "text/") {
				t.Errorf("%q is read: %q", uri, got)
			}
		}
	}
	for _, one := range f.tools {
		for _, path := range calls {
			args, _ := json.Marshal(map[string]string{"path": path})
			if result := f.call(one, string(args)); !result.IsError {
				t.Errorf("%s reads %q: %q", one.Definition().Name, path, result.Text)
			}
		}
	}
	if got := f.read("file://DIR/secret.md"); got != "no tool" {
		t.Errorf("got %q", got)
	}
	if got := f.read("file://DIR/docs/a.md?x=1"); got != "no tool" {
		t.Errorf("got %q", got)
	}
}

// A pipe is not waited for.
func TestTemplate_ReadsRegularFilesOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mkfifo")
	}
	f := newFixture(t, `{kind: resourceTemplate, name: docs, type: file, uriTemplate: "file://DIR/{path}", allowedPaths: [.]}`, map[string]string{"dir.md/x": ""})
	makePipe(t, filepath.Join(f.dir, "pipe.md"))
	for _, name := range []string{"pipe.md", "dir.md"} {
		if got := f.read("file://DIR/" + name); got != string(errcode.FileNotFound) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestCatalog_ListsAndWatches(t *testing.T) {
	f := newFixture(t, `
{kind: resource, name: hours, type: text, text: 9 to 5, title: Hours, description: When we are there.}
---
{kind: resource, name: a, type: file, path: docs/a.md}
---
{kind: resourceTemplate, name: docs, type: file, uriTemplate: "file://DIR/docs/{path}", allowedPaths: [docs], title: Docs, description: All., mimeType: text/x-doc}
`, templateFiles())
	var listed []string
	for _, one := range f.tools {
		d := one.Definition()
		if !d.Effect.IsValid() || d.Effect != tool.ReadOnly {
			t.Errorf("%s is %s", d.Name, d.Effect)
		}
		for _, k := range []tool.CatalogKind{tool.ListResources, tool.ListTemplates} {
			args, ok := d.Catalog.Arguments(tool.CatalogRequest{Kind: k})
			if ok != d.Catalog.Answers(k) || args != nil {
				t.Errorf("%s: %s, %v", d.Name, args, ok)
			}
			if ok {
				answer, err := d.Catalog.Answer(tool.CatalogRequest{Kind: k}, tool.Result{})
				listed = append(listed, strings.ReplaceAll(fmt.Sprint(d.Name, answer.Resources, answer.Templates, err), f.dir, "DIR"))
			}
		}
	}
	want := []string{
		"resource_hours[{text://hours hours Hours When we are there. text/plain 6}] [] <nil>",
		"resource_a[{file://a a   text/markdown 0}] [] <nil>",
		"template_docs[] [{file://DIR/docs/{path} docs Docs All. text/x-doc}] <nil>",
	}
	if !slices.Equal(listed, want) {
		t.Errorf("got %q", listed)
	}
	versions := func(uri string) (list []string) {
		for _, one := range f.tools[1:] {
			v, err := one.Definition().Catalog.(tool.ResourceVersioner).ResourceVersion(t.Context(), identity.Principal{}, uri)
			list = append(list, fmt.Sprint(v, err))
		}
		return list
	}
	uri := "file://" + f.dir + "/docs/a.md"
	before := versions(uri)
	if err := os.WriteFile(filepath.Join(f.dir, "docs", "a.md"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, after := range versions(uri) {
		if after == before[i] {
			t.Errorf("the version stays %s", after)
		}
	}
}
