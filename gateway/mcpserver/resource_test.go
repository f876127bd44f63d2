package mcpserver_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// resourceURIs returns the URIs of all pages of resources/list, in order.
func resourceURIs(t testing.TB, session *sdk.ClientSession) (uris []string) {
	t.Helper()
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	return uris
}

// templateURIs returns the templates of all pages, in order.
func templateURIs(t testing.TB, session *sdk.ClientSession) (uris []string) {
	t.Helper()
	for r, err := range session.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URITemplate)
	}
	return uris
}

// readText returns the type and the content of a resource, or the error.
func readText(t testing.TB, session *sdk.ClientSession, uri string) string {
	t.Helper()
	result, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return err.Error()
	}
	if len(result.Contents) != 1 || result.Contents[0].URI != uri {
		return fmt.Sprintf("%d contents", len(result.Contents))
	}
	c := result.Contents[0]
	if c.Blob != nil {
		return fmt.Sprintf("%s %x", c.MIMEType, c.Blob)
	}
	return c.MIMEType + " " + c.Text
}

// callTool calls a tool and returns its text.
func callTool(t testing.TB, session *sdk.ClientSession, name string, args obj) string {
	t.Helper()
	text, _ := json.Marshal(args)
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(text)})
	if err != nil || got.IsError {
		t.Fatalf("%s: %v %+v", name, err, got)
	}
	return textOf(got)
}

// openResources returns a fixture with the roles writer (workspace, artifact), blind (probe)
// and other (workspace), and with files of ann as writer.
func openResources(t testing.TB) *fixture {
	t.Helper()
	f := openFixture(t)
	f.role(t, "writer", "workspace", "artifact", "probe")
	f.role(t, "other", "workspace", "artifact")
	f.role(t, "blind", "probe")
	session := f.connect(t, "ann@writer", "/mcp", "", nil)
	for name, content := range map[string]string{"plan.md": "Paint.", "a b/c#d?.txt": "x", "empty": "", "%2e%2e": "dots"} {
		callTool(t, session, "write_file", obj{"path": name, "content": content})
	}
	callTool(t, session, "write_file", obj{"path": "pixel.png", "content": "iVBORw0KGgo=", "encoding": "base64"})
	return f
}

func TestResources_ListsAndReadsFilesOfCaller(t *testing.T) {
	f := openResources(t)
	want := map[string]string{
		"workspace:///%252e%252e":         "text/plain dots",
		"workspace:///a%20b/c%23d%3F.txt": "text/plain x",
		"workspace:///empty":              "text/plain ",
		"workspace:///pixel.png":          "image/png 89504e470d0a1a0a",
		"workspace:///plan.md":            "text/markdown Paint.",
	}
	for _, version := range versions {
		session := f.connect(t, "ann@writer", "/mcp", version, nil)
		uris := resourceURIs(t, session)
		if len(uris) != len(want) || !slices.IsSorted(uris) {
			t.Errorf("%s: listed %q", version, uris)
		}
		for _, uri := range uris {
			if got := readText(t, session, uri); got != want[uri] {
				t.Errorf("%s: %s is %q, want %q", version, uri, got, want[uri])
			}
		}
		if got := fmt.Sprint(templateURIs(t, session)); got != "[artifact:{id} workspace:///{+path}]" {
			t.Errorf("%s: templates %s", version, got)
		}
	}
	group := f.connect(t, "ann@writer", "/mcp/artifact", "", nil)
	if uris, templates := resourceURIs(t, group), templateURIs(t, group); len(uris) > 0 || fmt.Sprint(templates) != "[artifact:{id}]" {
		t.Errorf("at /mcp/artifact: %q and %q", uris, templates)
	}
	if got := readText(t, group, "workspace:///plan.md"); !strings.Contains(got, "Resource not found") {
		t.Errorf("at /mcp/artifact a file is %q", got)
	}
}

// The reference that put_artifact returns is the URI. Another caller, and another role of the
// same user, read it like one that does not exist.
func TestResources_ReadsArtifactsOfCaller(t *testing.T) {
	f := openResources(t)
	session := f.connect(t, "ann@writer", "/mcp", "", nil)
	for content, want := range map[string]string{`"Hello."`: "text/plain Hello.", `{"a":[1]}`: `application/json {"a":[1]}`} {
		ref := gjson.Get(callTool(t, session, "put_artifact", obj{"type": "report", "content": json.RawMessage(content)}), "artifactRef").Str
		if got := readText(t, session, ref); got != want {
			t.Errorf("%s is %q, want %q", ref, got, want)
		}
		for _, sender := range []string{"bob@writer", "ann@other", "ann@blind", "ann@clerk"} {
			absent := "artifact:" + strings.Repeat("0", len(ref)-len("artifact:"))
			foreign := f.connect(t, sender, "/mcp", "", nil)
			if got, none := readText(t, foreign, ref), readText(t, foreign, absent); got != none || !strings.Contains(got, "Resource not found") {
				t.Errorf("%s reads %q, and of an absent one %q", sender, got, none)
			}
		}
	}
	ref := gjson.Get(callTool(t, session, "put_artifact", obj{"type": "image/png", "path": "pixel.png"}), "artifactRef").Str
	if got := readText(t, session, ref); got != "image/png 89504e470d0a1a0a" {
		t.Errorf("an image is %q", got)
	}
}

// A caller lists its artifacts, newest first. Another caller, another role of the same user, and a
// role that may not read them list none of them.
func TestResources_ListsArtifactsOfCaller(t *testing.T) {
	f := openResources(t)
	session := f.connect(t, "ann@writer", "/mcp/artifact", "", nil)
	var want []string
	for _, content := range []string{`"Hello."`, `{"a":[1]}`, `"Bye."`} {
		ref := gjson.Get(callTool(t, session, "put_artifact", obj{"type": "re\u202eport\n", "content": json.RawMessage(content)}), "artifactRef").Str
		want = slices.Insert(want, 0, ref)
	}
	if got := resourceURIs(t, session); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	list, err := session.ListResources(t.Context(), nil)
	if err != nil || list.Resources[1].Name != "report" || list.Resources[1].MIMEType != "application/json" || list.Resources[1].Size != 9 {
		t.Errorf("%+v, %v", list.Resources[1], err)
	}
	for _, sender := range []string{"bob@writer", "ann@other", "ann@blind"} {
		foreign := f.connect(t, sender, "/mcp", "", nil)
		if got := strings.Join(resourceURIs(t, foreign), " "); strings.Contains(got, "artifact:") {
			t.Errorf("%s lists %s", sender, got)
		}
	}
	for _, cursor := range []string{"x", "-1 x", "1", "9 /../x"} {
		at, _ := json.Marshal(obj{"Source": "artifact", "Cursor": cursor})
		if got, err := session.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: base64.RawURLEncoding.EncodeToString(at)}); err != nil || len(got.Resources) > 3 {
			t.Errorf("cursor %q: %+v, %v", cursor, got, err)
		}
	}
}

// climbing are URIs that lead out of the workspace, or that only resemble a resource.
var climbing = []string{
	"workspace:///..", "workspace:///../x", "workspace:///a/../../x", "workspace:///%2e%2e/x", "workspace:///%2E%2E%2Fx", "workspace:///..%2f..%2fetc%2fpasswd",
	"workspace:///..%5c..%5cx", `workspace:///..\x`, "workspace:////etc/passwd", "workspace:///%2fetc/passwd", "workspace:///C:/x", "workspace:///C%3A%5Cx", "workspace://etc/passwd",
	"workspace:plan.md", "workspace:/plan.md", "WORKSPACE:///plan.md", "Workspace:///plan.md", "workspace://localhost/plan.md", "workspace:///plan.md?x", "workspace:///plan.md#x",
	"workspace:///./plan.md", "workspace:///a/../plan.md", "workspace:///plan.md/", "workspace:///", "workspace:///.", "workspace:///%00", "workspace:///plan.md%00", "workspace:///%zz", "workspace:///%",
	"workspace:///%ff", "workspace:///plan.md\x00", "workspace:///" + strings.Repeat("a/", 5000), "file:///etc/passwd", "file:///plan.md", "/etc/passwd", "plan.md", "", "..", "http://127.0.0.1/",
	"artifact:", "artifact://x", "artifact:../x", "artifact:%2e%2e", "artifact:" + strings.Repeat("x", 5000), "artifact:x\x00", "mcp://", "mcp:///x",
}

// A URI that leads out of its folder, a resource of another role and one that does not exist
// are answered with the same bytes, apart from the URI. The caller may have the tool or not.
func TestResources_HidesWhatIsNotTheCallers(t *testing.T) {
	f := openResources(t)
	session := map[string]string{}
	for _, sender := range []string{"ann@writer", "ann@other", "ann@blind"} {
		session[sender] = f.initialize(t, sender, "/mcp", map[string]string{"Accept": "application/json"})
	}
	read := func(sender, uri string) string {
		text, _ := json.Marshal(uri)
		got := f.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":`+string(text)+`}}`, map[string]string{"Mcp-Session-Id": session[sender], "Accept": "application/json"})
		data := gjson.Get(got.body, "error.data.uri").Raw
		return fmt.Sprint(got.status, strings.Replace(got.body, data, "URI", 1))
	}
	want := read("ann@blind", "workspace:///none")
	if !strings.Contains(want, `{"code":-32002,"message":"Resource not found","data":{"uri":URI}}`) {
		t.Fatalf("an absent file is %s", want)
	}
	for _, c := range []struct {
		sender string
		uris   []string
	}{
		{"ann@writer", append(slices.Clone(climbing), "workspace:///a%20b")},
		{"ann@other", append(slices.Clone(climbing), "workspace:///plan.md", "workspace:///pixel.png")},
		{"ann@blind", append(slices.Clone(climbing), "workspace:///plan.md", "workspace:///pixel.png")},
	} {
		for _, uri := range c.uris {
			if got := read(c.sender, uri); got != want && uri != "workspace:///a%20b" {
				t.Errorf("%s reads %.100q: %.300s, want %s", c.sender, uri, got, want)
			}
		}
	}
	if got := read("ann@writer", "workspace:///a%20b"); !strings.Contains(got, "is a directory") {
		t.Errorf("a directory of the caller is %s", got)
	}
}

// Each read is on record: as the call of the tool that reads it, or as a denied one.
func TestResources_RecordsEachRead(t *testing.T) {
	f := openResources(t)
	for sender, want := range map[string]string{
		"ann@writer": `read_file allowed {"path":"plan.md","length":1000000}; resources/read denied {"uri":"workspace:///../x"}; get_artifact allowed {"list":{}}; list_files allowed {"recursive":true}`,
		"ann@blind":  `resources/read denied {"uri":"workspace:///plan.md"}; resources/read denied {"uri":"workspace:///../x"}`,
	} {
		if err := f.rt.Flush(); err != nil {
			t.Fatal(err)
		}
		before := f.calls(t)
		session := f.connect(t, sender, "/mcp", "", nil)
		readText(t, session, "workspace:///plan.md")
		readText(t, session, "workspace:///../x")
		resourceURIs(t, session)
		templateURIs(t, session)
		if err := f.rt.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.calls(t)[len(before):], "; "); got != want {
			t.Errorf("%s: the record has %s, want %s", sender, got, want)
		}
	}
}

// calls returns the calls on record, as name, decision and arguments.
func (f *fixture) calls(t testing.TB) (list []string) {
	t.Helper()
	for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(journal.ToolCall); ok {
			list = append(list, fmt.Sprint(c.Tool, " ", c.Decision, " ", cmp.Or(c.ArgsStart, string(c.Args))))
		}
	}
	return list
}

// notes is the catalog of a tool that lists or reads notes, which are resources of any URI.
type notes struct {
	source string
	kind   tool.CatalogKind
}

// Source implements tool.Catalog.
func (n notes) Source() string { return n.source }

// Answers implements tool.Catalog.
func (n notes) Answers(k tool.CatalogKind) bool {
	return k == n.kind || k == tool.ListTemplates && n.kind == tool.ListResources
}

// Arguments implements tool.Catalog.
func (n notes) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	if r.URI == n.source+":panic" {
		panic("no such note")
	}
	return raw(`{}`), n.Answers(r.Kind) && (r.Kind != tool.ReadResource || strings.HasPrefix(r.URI, n.source))
}

// Answer implements tool.Catalog.
func (n notes) Answer(r tool.CatalogRequest, _ tool.Result) (a tool.CatalogAnswer, _ error) {
	switch r.Kind {
	case tool.ReadResource:
		a.Contents = []tool.Content{{Type: tool.ResourceContent, URI: r.URI, MIMEType: "text/plain", Text: "of " + n.source}}
	case tool.ListTemplates:
		a.Templates = []tool.ResourceTemplate{{URITemplate: n.source + ":{x}"}}
	default:
		a.Resources = []tool.Resource{{URI: n.source + ":1"}, {URI: "elsewhere:1"}}
	}
	return a, nil
}

// A catalog of a module that panics fails the request, and not the process.
func TestResources_SurvivePanickingCatalog(t *testing.T) {
	f := openFixture(t)
	f.role(t, "reader", f.registerNotes(t, "a")...)
	session := f.connect(t, "ann@reader", "/mcp", "2025-11-25", nil)
	if got := readText(t, session, "a:panic"); !strings.Contains(got, "see the log") {
		t.Errorf("the request got %s", got)
	}
	if got := readText(t, session, "a:1"); got != "text/plain of a" {
		t.Errorf("afterwards: %s", got)
	}
}

// registerNotes registers the groups list-X and read-X for each source, with one tool each.
func (f *fixture) registerNotes(t testing.TB, sources ...string) (groups []toolgroups.GroupID) {
	t.Helper()
	done := func(context.Context, noArgs) (string, error) { return "done", nil }
	for _, source := range sources {
		for name, kind := range map[string]tool.CatalogKind{"list-" + source: tool.ListResources, "read-" + source: tool.ReadResource} {
			f.register(t, toolgroups.Group{ID: toolgroups.GroupID(name), Tools: []tool.Tool{
				must(t)(tool.New(name, "d", done, &tool.Options{Effect: tool.ReadOnly, Catalog: notes{source, kind}})),
			}})
			groups = append(groups, toolgroups.GroupID(name))
		}
	}
	slices.Sort(groups)
	return groups
}

// Whatever a role may use, it lists only what it can read, and reads nothing whose tool it
// may not call.
func TestResources_VisibleIsReadable(t *testing.T) {
	f := openFixture(t)
	all := f.registerNotes(t, "a", "b", "c")
	f.role(t, "some", "probe")
	session := f.connect(t, "ann@some", "/mcp", "", nil)
	for set := range 1 << len(all) {
		groups := []toolgroups.GroupID{"probe"}
		for i, g := range all {
			if set>>i&1 == 1 {
				groups = append(groups, g)
			}
		}
		f.setGroups(t, "some", groups...)
		var listed, templates []string
		for _, source := range []string{"a", "b", "c"} {
			reads, lists := slices.Contains(groups, toolgroups.GroupID("read-"+source)), slices.Contains(groups, toolgroups.GroupID("list-"+source))
			if read := strings.HasSuffix(readText(t, session, source+":1"), "of "+source); read != reads {
				t.Errorf("with %v, %s is read: %v", groups, source, read)
			}
			if reads && lists {
				listed, templates = append(listed, source+":1"), append(templates, source+":{x}")
			}
		}
		if got := resourceURIs(t, session); !slices.Equal(got, listed) {
			t.Errorf("with %v, %q are listed, want %q", groups, got, listed)
		}
		if got := templateURIs(t, session); !slices.Equal(got, templates) {
			t.Errorf("with %v, the templates are %q, want %q", groups, got, templates)
		}
	}
}

func TestResources_RejectsInvalidCursor(t *testing.T) {
	f := openResources(t)
	session := f.connect(t, "ann@writer", "/mcp", "", nil)
	for _, cursor := range []string{"x", "!", "bm8", "W10"} {
		if _, err := session.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: cursor}); err == nil || !strings.Contains(err.Error(), "invalid cursor") {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func TestResources_DeclaresCapability(t *testing.T) {
	f := openResources(t)
	for sender, want := range map[string]bool{"ann@writer": true, "ann@blind": false} {
		for _, version := range versions {
			session := f.connect(t, sender, "/mcp", version, nil)
			if got := session.InitializeResult().Capabilities.Resources != nil; got != want {
				t.Errorf("%s, %s: declared %v, want %v", sender, version, got, want)
			}
		}
	}
}

// The instructions are the description of the caller's role, and nothing of MCP servers.
func TestInstructions_AreDescriptionOfRole(t *testing.T) {
	f := openFixture(t)
	f.connectUpstream(t, map[string]*sdk.Server{"one": upstream("one")})
	f.role(t, "plain", "one")
	f.role(t, "told", "one")
	if _, _, err := f.rt.UpdateRole(operator, f.roles["told"], org.RoleSpec{Description: "Reads memos."}, false); err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		for role, want := range map[string]string{"plain": "", "told": "Reads memos."} {
			if got := f.connect(t, "ann@"+role, "/mcp", version, nil).InitializeResult().Instructions; got != want {
				t.Errorf("%s, %s: %q, want %q", version, role, got, want)
			}
		}
	}
}

// A file that does not fit into one answer is not cut.
func TestResources_RejectsLargeFile(t *testing.T) {
	f := openResources(t)
	session := f.connect(t, "ann@writer", "/mcp", "", nil)
	callTool(t, session, "write_file", obj{"path": "long.txt", "content": strings.Repeat("x", 1_000_001)})
	if got := readText(t, session, "workspace:///long.txt"); !strings.Contains(got, "has 1000001 bytes") || !strings.Contains(got, "read_file") {
		t.Errorf("got %.200s", got)
	}
}

// A workspace of many files is listed in pages, each file once.
func TestResources_ListsInPages(t *testing.T) {
	f := openResources(t)
	session := f.connect(t, "ann@clerk", "/mcp", "", nil)
	var want []string
	for i := range 30 {
		callTool(t, session, "write_file", obj{"path": fmt.Sprintf("d/%04d", i), "content": "x"})
		want = append(want, fmt.Sprintf("workspace:///d/%04d", i))
	}
	if got := resourceURIs(t, session); !slices.Equal(got, want) {
		t.Errorf("listed %q", got)
	}
}
