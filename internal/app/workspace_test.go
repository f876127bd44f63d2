package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

const callerRole = "kind: role\nname: dba\ntoolGroups: [workspace, org_management]"

// workspaceOf returns the directory of the caller ci in the role dba; "private" for its own.
func (f *fixture) workspaceOf(user identity.UserName) string {
	f.t.Helper()
	role, ok := f.Runtime.Org().ConfiguredRole("dba")
	if !ok {
		f.t.Fatal("there is no role dba")
	}
	ws, err := f.Runtime.ToolHost().OpenWorkspace(f.t.Context(), identity.ByCaller(user, role.ID))
	if err != nil {
		f.t.Fatal(err)
	}
	defer ws.Root.Close()
	switch name := ws.Root.Name(); {
	case strings.Contains(name, "callers"):
		return "private"
	case ws.ReadOnly:
		return filepath.Base(name) + ":ro"
	default:
		return filepath.Base(name)
	}
}

// makeDirs creates directories in a new directory and returns that.
func makeDirs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The workspaces of a configuration hold from the next call on, also when one is removed.
func TestWorkspaces_FollowConfiguration(t *testing.T) {
	dir := makeDirs(t, "a", "b", "c")
	f := newFixture(t)
	token := func(more string) string {
		return strings.Replace(tokenDoc("dba"), "role: dba", "role: dba"+strings.ReplaceAll(more, "DIR", dir), 1)
	}
	a := "kind: workspace\nname: a\npath: " + dir + "/a"
	inline := "kind: organization\nname: o\nworkspace: {path: " + dir + "/c, readOnly: true}"
	for _, c := range []struct {
		docs         []string
		ci, stranger string
	}{
		{[]string{callerRole, tokenDoc("dba")}, "private", "private"},
		{[]string{callerRole, tokenDoc("dba"), inline}, "c:ro", "c:ro"},
		{[]string{callerRole + "\nworkspace: a", tokenDoc("dba"), inline, a}, "a", "a"},
		{[]string{callerRole + "\nworkspace: a", token(", workspace: {name: b, path: DIR/b}"), inline, a}, "b", "a"},
		{[]string{callerRole + "\nworkspace: b", token(", workspace: {name: b, path: DIR/b}"), inline, a}, "b", "b"},
		{[]string{callerRole, token(""), a}, "private", "private"},
	} {
		if _, err := f.reconfigure(t.Context(), f.read(c.docs...)); err != nil {
			t.Fatal(err)
		}
		if got := f.workspaceOf("ci"); got != c.ci {
			t.Errorf("%q: the token works in %s, want %s", c.docs, got, c.ci)
		}
		if got := f.workspaceOf("stranger"); got != c.stranger {
			t.Errorf("%q: others work in %s, want %s", c.docs, got, c.stranger)
		}
	}
}

// A workspace that cannot be used rejects the configuration, with its position.
func TestWorkspaces_RejectsBadDirectories(t *testing.T) {
	dir := makeDirs(t, "a")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "org.yaml:3:7: path: there is no such directory (create it",
		filepath.Join(dir, "file"):   "org.yaml:3:7: path: is not a readable directory",
		f.options.Data:               "contains the data directory",
		"/":                          "contains the data directory",
	} {
		err := f.ApplyConfig(t.Context(), f.read("kind: workspace\nname: a\npath: "+path), nil)
		if err == nil || !strings.Contains(err.Error(), want) || errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	err := f.ApplyConfig(t.Context(), f.read(callerRole+"\nworkspace: {path: "+dir+"/x}"), nil)
	if err == nil || !strings.Contains(err.Error(), "org.yaml:4:19: path: there is no such directory") {
		t.Errorf("got %v", err)
	}
}

// A recorded configuration sets no workspace of callers, since they may have lost it. The
// operator's tasks keep theirs.
func TestWorkspaces_RecordedConfigurationGivesCallersNone(t *testing.T) {
	dir := makeDirs(t, "a")
	f := newFixture(t)
	cfg := f.read(callerRole+"\nworkspace: {name: a, path: "+dir+"/a}", "kind: workspace\nname: gone\npath: "+dir+"/gone")
	if err := f.restoreConfig(t.Context(), cfg, reviveRoles); err != nil {
		t.Fatal(err)
	}
	if got := f.workspaceOf("ci"); got != "private" {
		t.Errorf("a caller works in %s", got)
	}
	for name, want := range map[string]errcode.Code{"a": "", "gone": errcode.WorkspaceNotBound} {
		_, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: identity.ByOperator("op"), WorkspaceName: name})
		if got := errcode.CodeOf(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// A reload says what it changes in workspaces.
func TestWorkspaces_ChangesAreReported(t *testing.T) {
	dir := makeDirs(t, "a", "b")
	f := newFixture(t)
	a := "kind: workspace\nname: a\npath: " + dir + "/a"
	for _, c := range []struct {
		docs []string
		want string
	}{
		{[]string{callerRole}, ""},
		{[]string{callerRole, a}, "the workspace a is DIR/a; it was none"},
		{[]string{callerRole + "\nworkspace: a", a}, "the workspace of role dba is DIR/a; it was none"},
		{[]string{callerRole + "\nworkspace: a", a + "\nreadOnly: true"}, "the workspace a is DIR/a, read-only; it was DIR/a\nthe workspace of role dba is DIR/a, read-only; it was DIR/a"},
		{[]string{callerRole + "\nworkspace: {path: " + dir + "/b}"}, "the workspace a is none; it was DIR/a, read-only\nthe workspace of role dba is DIR/b; it was DIR/a, read-only"},
	} {
		f.takeChanges()
		if _, err := f.reconfigure(t.Context(), f.read(c.docs...)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range f.takeChanges() {
			if strings.Contains(line, "workspace ") {
				got = append(got, strings.ReplaceAll(line, dir, "DIR"))
			}
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.docs, text, c.want)
		}
	}
}
