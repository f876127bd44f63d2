package webpage_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/test/testbinary"
)

// asker declares a role whose tool asks a person.
const asker = `---
kind: module
name: suite
type: suite
---
kind: role
name: asker
toolGroups: [suite]
`

// A page that is opened later shows the question that waits, and the role that is paused.
func TestPage_ShowsWaitsFromBefore(t *testing.T) {
	s := startServerOf(t, func() (string, error) {
		return testbinary.CommandPath("github.com/rolecall/rolecall/internal/test/e2e/suiteserver")
	}, asker)
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"hire asker"}`), &task)
	var asked struct{ Questions []struct{ ID string } }
	for len(asked.Questions) == 0 && t.Context().Err() == nil {
		decode(t, s.send(t, "ann", "GET", "/api/v1/tasks/"+task.ID+"/questions", ""), &asked)
	}
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization")
	p.waitText("for an answer to a question of test_elicitation")
	p.goTo("#/task/" + task.ID)
	p.waitText("test_elicitation waits for an answer of the person who started the task: Which account?")
	p.wait(`document.querySelector("svg.lanes rect.wait title")?.textContent.startsWith("test_elicitation waits for an answer")`)

	s.send(t, "ann", "POST", "/api/v1/pause", `{"role":"asker"}`)
	s.send(t, "ann", "POST", "/api/v1/tasks/"+task.ID+"/questions/"+asked.Questions[0].ID, `{"action":"decline"}`)
	p.wait(`!document.body.innerText.includes("waits for an answer")`)
	p.open("/?again#/organization")
	p.waitText("for role asker to be resumed")
	s.send(t, "ann", "POST", "/api/v1/resume", `{"role":"asker"}`)
	p.wait(`!document.body.innerText.includes("to be resumed")`)
	p.checkProblems("waits from before")
}

// A denied call names the group that would grant it, and Who can leads to the tool.
func TestPage_NamesWhatWouldGrantACall(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "deny 1")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + task + "?event=" + deniedEvent(t, s))
	p.waitText("Agents of a role that uses group command may call it.")
	p.goTo("#/access?role=clerk&tool=run_command")
	p.waitText("Role clerk may call it when it uses group command")
	p.click(`main a[href="#/tools/command?tool=run_command"]`)
	p.waitText("Who may call it?")
	p.goTo("#/access")
	p.click(`tbody th a[href="#/access?role=root"]`)
	p.waitText("Role root may call")
	p.checkProblems("grants")
}

// The dialog that creates a role says who will reach it, before it is created.
func TestPage_NewRoleShowsItsReach(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"boss","toolGroups":["org_management"],"grant":["workspace"]}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles")
	p.click(".tools button.primary")
	p.wait(`document.getElementById("dialog").open`)
	p.press("auditor")
	p.wait(`document.getElementById("dialog").innerText.includes("boss") && document.getElementById("dialog").innerText.includes("may spawn agents of auditor")`)
	p.press("\r")
	p.wait(`document.querySelector("h1").innerText === "Role auditor"`)
	p.checkProblems("reach of a new role")
}

// At the width of a phone nothing is cut at the right, and a command breaks at its spaces only.
func TestPage_NarrowScreensShowAll(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "deny 1")
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.setSize(360, 860)
	places := []string{"task/" + task, "roles/clerk", "access?role=clerk&tool=run_command", "tools/workspace?tool=read_file", "approvals", "artifacts"}
	for _, place := range append(places, screens...) {
		p.goTo("#/" + place)
		for what, found := range map[string]string{
			"is wider than the screen": `document.documentElement.scrollWidth > 360`,
			"cuts a table":             `[...document.querySelectorAll(".scroll:has(table)")].some((e) => e.scrollWidth > e.clientWidth)`,
			"cuts a row":               `[...document.querySelectorAll(".row [role=gridcell]:nth-child(3)")].some((e) => e.scrollWidth > e.clientWidth)`,
		} {
			if p.eval(found) == true {
				t.Errorf("%s %s", place, what)
			}
		}
	}
	p.goTo("#/roles")
	p.click(".tools button.primary")
	p.wait(`document.querySelector("#dialog .command code").textContent === "rolecall role create NAME --use-none --grant-none"`)
	if words := p.eval(`[...document.querySelectorAll("#dialog .command code span")].filter((e) => e.getClientRects().length === 1).length`); words != 6.0 {
		t.Errorf("%v of 6 words of the command are in one line", words)
	}
}
