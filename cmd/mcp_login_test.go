package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/oauthtest"
)

// loginFixture is an organization with an MCP server that requires OAuth.
type loginFixture struct {
	*testing.T
	upstream   *oauthtest.Server
	data, file string
	page       string // the file that a browser was opened with last
}

// loginToken returns the token of rolecall of a user.
func loginToken(user string) string { return "rc_" + strings.Repeat(user, 15) }

func newLoginFixture(t *testing.T) *loginFixture {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("USERPROFILE", os.Getenv("HOME"))
	f := &loginFixture{T: t, upstream: oauthtest.NewServer(t), data: filepath.Join(t.TempDir(), "data")}
	doc := fmt.Sprintf(`
{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: script, file: agents.js}
---
{kind: role, name: staff, description: d, toolGroups: [org_management, web]}
---
kind: mcpServer
name: web
url: %s
auth: {oauth: {}}
credentials: {per: caller}
---
kind: gateway
name: g
tokens:
`, f.upstream.URL())
	for _, user := range []string{"ann", "bob", "eve"} {
		sum := sha256.Sum256([]byte(loginToken(user)))
		doc += fmt.Sprintf("  - {name: %s, sha256: %s, role: staff}\n", user, hex.EncodeToString(sum[:]))
	}
	const script = `
role("root", function* () {
	const brief = { objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c" };
	const found = yield call("find_role_by_name", { name: "staff" });
	yield call("spawn_agent_with_task", { roleId: found.id, taskBrief: brief, initialMessage: "go" });
	return (yield receive()).payload;
});
role("staff", function* () {
	const got = yield call("web__whoami", {});
	return got.error ? got.error : got;
});
`
	dir := t.TempDir()
	f.file = filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{"org.yaml": doc, "agents.js": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// as runs a command for a user, whose browser logs in at the issuer; "" is the operator.
func (f *loginFixture) as(user string, args ...string) (status int, stdout, stderr string) {
	f.Helper()
	var out, log bytes.Buffer
	c := &common{launcher: launcher, data: f.data, in: strings.NewReader(""), out: &out, err: &log, env: func(name string) (string, bool) {
		return loginToken(user), user != "" && name == tokenVariable
	}}
	c.openBrowser = func(page string) error {
		page = f.pageOf(page)
		back := oauthtest.LogIn(f, page, user)
		to, err := url.Parse(page)
		if err != nil {
			return err
		}
		response, err := http.Get(to.Query().Get("redirect_uri") + "?" + back.Encode())
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			f.Errorf("the browser got %s: %s", response.Status, text)
		}
		return err
	}
	status = run(f.Context(), c, append([]string{"--data", f.data}, args...))
	return status, out.String(), log.String()
}

// pageOf returns the address to which a browser goes that was opened with an argument. Other users of
// the machine see arguments, so the argument says nothing of the login, and they cannot read its file.
func (f *loginFixture) pageOf(argument string) string {
	f.Helper()
	at, err := url.Parse(argument)
	if err != nil || at.Scheme != "file" {
		f.Fatalf("the browser is opened with %s, %v", argument, err)
	}
	name := filepath.FromSlash(at.Path)
	file, err := os.Stat(name)
	dir, dirErr := os.Stat(filepath.Dir(name))
	text, readErr := os.ReadFile(name)
	if err := errors.Join(err, dirErr, readErr); err != nil {
		f.Fatal(err)
	}
	if runtime.GOOS != "windows" && (file.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700) {
		f.Errorf("others can read the page: %s in %s", file.Mode(), dir.Mode())
	}
	_, rest, _ := strings.Cut(string(text), `<a href="`)
	address, _, _ := strings.Cut(rest, `"`)
	if !strings.Contains(string(text), `content="0; url=`+address+`"`) {
		f.Errorf("the page does not lead to %s: %s", address, text)
	}
	f.page = name
	return html.UnescapeString(address)
}

// must runs a command that has to succeed.
func (f *loginFixture) must(user string, args ...string) string {
	f.Helper()
	status, stdout, stderr := f.as(user, args...)
	if status != 0 {
		f.Fatalf("%v of %q: status %d: %s%s", args, user, status, stdout, stderr)
	}
	return stdout
}

// The operator logs in without a running process, callers with one. Each task of a caller works
// with the token of its caller, through all of its agents.
func TestMCPLogin_EachCaller(t *testing.T) {
	f := newLoginFixture(t)
	if got := f.must("", "mcp", "login", "web", "-f", f.file); !strings.HasPrefix(got, "logged in to web as operator, at "+f.upstream.Issuer.URL()) {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(filepath.Dir(f.page)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the login, its page is still there: %v", err)
	}
	if got := f.must("", "mcp", "logins", "-f", f.file); !strings.Contains(got, "operator") || !strings.Contains(got, "active") {
		t.Errorf("got %s", got)
	}
	serveSession(t, f.file, f.data)
	for _, user := range []string{"ann", "bob"} {
		if got := f.must(user, "mcp", "login", "web"); !strings.HasPrefix(got, "logged in to web as user:"+user+"@") {
			t.Errorf("got %s", got)
		}
	}
	for _, user := range []string{"ann", "bob", "ann"} {
		if got := f.must(user, "run", "who am I?"); strings.TrimSpace(got) != user {
			t.Errorf("the task of %s returned %s", user, got)
		}
	}
	if got := f.must("eve", "run", "who am I?"); !strings.Contains(got, "authorization_required") {
		t.Errorf("the task of eve returned %s", got)
	}
	if got := f.must("ann", "mcp", "logins"); strings.Contains(got, "bob") || strings.Contains(got, "operator") || !strings.Contains(got, "user:ann@") {
		t.Errorf("ann sees %s", got)
	}
	if got := f.must("", "mcp", "logins"); strings.Count(got, "active") != 3 {
		t.Errorf("the operator sees %s", got)
	}
	f.must("ann", "mcp", "logout", "web")
	if got := f.must("ann", "run", "who am I?"); !strings.Contains(got, "authorization_required") {
		t.Errorf("after the logout, the task of ann returned %s", got)
	}
	f.findNoToken()
}

// findNoToken reports files of the data directory with a token of the issuer.
func (f *loginFixture) findNoToken() {
	f.Helper()
	err := filepath.WalkDir(f.data, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, mark := range []string{"at-ann-", "rt-ann-", "at--", "rt--", "at-bob-"} {
			if bytes.Contains(text, []byte(mark)) {
				f.Errorf("%s has %s", path, mark)
			}
		}
		return err
	})
	if err != nil {
		f.Error(err)
	}
}
