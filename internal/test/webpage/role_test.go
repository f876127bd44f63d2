package webpage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fullRole has each field that a request may set. Its bound has more digits than a number of
// JavaScript.
const fullRole = `{
	"name": "careful", "description": "files", "rolePrompt": "File what you get.", "toolGroups": ["workspace:read", "artifact"], "grant": ["artifact"],
	"limits": {"rounds": 7, "depth": 2}, "pattern": "plan", "toolGated": "strict",
	"result": {"schema": {"type": "object", "properties": {"n": {"type": "number", "maximum": 9007199254740993}}}},
	"bind": {"write_file": {"/path": {"under": "reports"}}, "get_artifact": {"/offset": {"max": 9007199254740993, "missing": "allow"}}}
}`

// roleOf returns a role without what each change changes, as it is sent.
func (s *server) roleOf(t *testing.T, ref string) map[string]json.RawMessage {
	t.Helper()
	var role map[string]json.RawMessage
	decode(t, s.send(t, "ann", "GET", "/api/v1/roles/"+ref, ""), &role)
	delete(role, "revision")
	return role
}

// An edit keeps each field that it does not change, to the last digit, and those that the editor
// does not show.
func TestPage_EditKeepsOtherFields(t *testing.T) {
	s := startServer(t)
	var role struct {
		ID string `json:"id"`
	}
	decode(t, s.send(t, "ann", "POST", "/api/v1/roles?dryRun=0", fullRole), &role)
	want := s.roleOf(t, role.ID)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/" + role.ID)
	p.waitText("Fields that the editor keeps")
	p.set("What its agents are for", "files carefully")
	p.confirm("")
	want["description"] = json.RawMessage(`"files carefully"`)
	if diff := cmp.Diff(want, s.roleOf(t, role.ID)); diff != "" {
		t.Errorf("after another description (-want +got):\n%s", diff)
	}

	p.set("Answers with calls in one turn", "9")
	p.waitText("7 → 9")
	bind := fmt.Sprint(p.eval(field("Bounds on arguments, as JSON: for each tool a condition for each path") + ".value"))
	if !strings.Contains(bind, "9007199254740993") {
		t.Errorf("the editor shows the bounds %s", bind)
	}
	p.set("Bounds on arguments, as JSON: for each tool a condition for each path", "{")
	p.waitText("this is not JSON")
	if p.eval(`document.querySelector("form button.primary").disabled`) != true {
		t.Error("a draft with a fault can be saved")
	}
	p.set("Bounds on arguments, as JSON: for each tool a condition for each path", strings.Replace(bind, `"reports"`, `"letters"`, 1))
	p.waitText(`+`)
	p.confirm("careful")
	want["limits"], want["bind"] = json.RawMessage(`{"rounds":9,"depth":2}`), json.RawMessage(strings.Replace(string(want["bind"]), `"reports"`, `"letters"`, 1))
	if diff := cmp.Diff(want, s.roleOf(t, role.ID)); diff != "" {
		t.Errorf("after other bounds (-want +got):\n%s", diff)
	}
	p.set("Answers with calls in one turn", "")
	p.waitText("What this change does")
	p.confirm("careful")
	want["limits"] = json.RawMessage(`{"depth":2}`)
	if diff := cmp.Diff(want, s.roleOf(t, role.ID)); diff != "" {
		t.Errorf("without a limit of answers (-want +got):\n%s", diff)
	}
	p.checkProblems("bounds")
}

// A change that is begun just after another editor has saved is kept, and its user is told.
func TestPage_BegunChangeIsKept(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","toolGroups":["workspace"],"grant":[]}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/writer")
	p.waitText("Tools that it may call now")
	p.eval("globalThis.frames = 0; const count = () => { globalThis.frames++; requestAnimationFrame(count); }; count(); 0")
	s.send(t, "bob", "PATCH", "/api/v1/roles/writer", `{"rolePrompt":"Write."}`)
	p.wait("globalThis.frames > 20") // the event has come, and the page loads again in a second
	p.set("What its agents are for", "mine")
	p.waitText("has changed this role meanwhile")
	if got := p.eval(field("What its agents are for") + ".value"); got != "mine" {
		t.Errorf("the change that was begun is %q", got)
	}
	pause := `[...document.querySelectorAll(".tools button")].find((b) => b.textContent.startsWith("Pause"))`
	p.wait(pause + " !== undefined")
	p.eval(pause + ".click(); 0")
	p.wait(`document.getElementById("dialog").open`)
	p.eval(`[...document.querySelectorAll("#dialog button")].find((b) => b.textContent === "Close").click(); 0`)
	p.wait(`!document.getElementById("dialog").open`)
	p.eval("globalThis.frames = 0")
	p.wait("globalThis.frames > 20")
	if got := p.eval(field("What its agents are for") + ".value"); got != "mine" {
		t.Errorf("after a dialog that was closed the change is %q", got)
	}
}

// A tool that no group of the editor has is added by its id. What the server rejects is said.
func TestPage_SingleTool(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","toolGroups":["workspace","gone/tool"],"grant":[],"allowUnknown":true}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/writer")
	p.check("Use gone/tool")
	p.waitText("What this change does")
	p.check("Use gone/tool") // it can be chosen again
	p.waitText("Tools that it may call now")
	p.eval(`document.querySelector("input[placeholder='SERVER/TOOL']").value = "nobody/tvl"; 0`)
	p.eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Use a single tool").click(); 0`)
	p.waitText("nobody/tvl")
	p.waitText("there is no tool group")
	p.checkProblems("single tool")
}

// Before a change is saved, the page says which roles and tools it makes reachable through agents
// that are spawned, and asks for the name.
func TestPage_Reach(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"lead","toolGroups":["org_management"],"grant":[]}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/lead")
	p.check("Grant workspace")
	p.waitText("may spawn agents of")
	p.waitText("payer")
	p.waitText("may put into roles that it creates")
	p.waitText("write_file")
	p.click("form button.primary")
	p.wait(`document.getElementById("dialog").open`)
	p.waitText("Through agents that are spawned, more is reached")
	p.press("lead\r")
	p.wait(`!document.getElementById("dialog").open`)
	p.waitText("Tools that it may call now")
	p.checkProblems("reach")
}

// field returns the expression of the field with a label.
func field(label string) string {
	text, _ := json.Marshal(label)
	return fmt.Sprintf(`[...document.querySelectorAll("label.field")].find((l) => l.querySelector("span")?.textContent === %s)?.querySelector("input, textarea, select")`, text)
}

// set types a text into the field with a label.
func (p *tab) set(label, value string) {
	p.t.Helper()
	text, _ := json.Marshal(value)
	p.wait(field(label) + " !== undefined")
	p.eval(fmt.Sprintf(`{ const f = %s; f.value = %s; f.dispatchEvent(new Event("input", { bubbles: true })); } 0`, field(label), text))
}

// confirm saves the draft of a role, and types a name if it is asked for.
func (p *tab) confirm(name string) {
	p.t.Helper()
	p.click("form button.primary")
	p.wait(`document.getElementById("dialog").open`)
	p.press(name)
	p.click("#dialog button[type=submit]")
	p.wait(`!document.getElementById("dialog").open`)
	p.waitText("Tools that it may call now")
}
