package webpage_test

import (
	"fmt"
	"strings"
	"testing"
)

// The rules of approval of a role are read in words.
func TestPage_RoleShowsApprovalInWords(t *testing.T) {
	s := startServer(t, `
---
kind: role
name: trader
toolGroups: [workspace, command]
approval:
  - groups: [command]
    effect: mutating
    from: {all: [{role: finance, count: 2}, {operator: true}]}
    escalate: {after: 10m, to: {operator: true}}
  - tools: [write_file, read_file]
    unless: {/path: {under: reports}}
    from: {any: [{role: finance}, {role: reader}]}
`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/payer")
	p.waitText("write_file needs 1 person in role finance")
	if text := p.text(); !strings.Contains(text, "Approval of these calls") || strings.Contains(text, "Fields that the editor keeps") {
		t.Errorf("the page shows\n%s", text)
	}
	p.goTo("#/roles/trader")
	p.waitText("mutating tools of group command need 2 people in role finance and 1 operator, after 10 min 1 operator alone")
	p.waitText(`write_file and read_file need 1 person in role finance or 1 person in role reader, unless {"/path":{"under":"reports"}}`)
	p.checkProblems("approval of a role")
}

// The page says what a change of a role would do that is changed in its file alone, and does not
// offer to save it.
func TestPage_DeclaredRoleIsPreviewed(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/clerk")
	p.waitText("This role is declared in the configuration. Change it in its file")
	for what, expression := range map[string]string{
		"a sign of waiting": `[...document.querySelectorAll(".sign")].filter((s) => s.textContent === "◷").length`,
		"a button to save":  `document.querySelectorAll("form button.primary").length`,
	} {
		if n := p.eval(expression); n != 0.0 {
			t.Errorf("the page has %s: %v", what, n)
		}
	}
	p.check("Use workspace")
	p.waitText("What this change does")
	p.wait(`document.querySelector("aside.panel").innerText.includes("loses") && document.querySelector("aside.panel").innerText.includes("write_file")`)
	p.waitText("Tasks that callers in role reader (eve) start with the rights of role clerk")
	if text := p.text(); strings.Contains(text, "rolecall role update") || strings.Contains(text, "defined by the configuration") {
		t.Errorf("the page offers a change:\n%s", text)
	}
	if role := s.send(t, "ann", "GET", "/api/v1/roles/clerk", ""); !strings.Contains(role, `"toolGroups":["workspace"]`) {
		t.Errorf("the role is now %s", role)
	}
	p.checkProblems("declared role")
}

// Names in the panel of a role break at spaces only.
func TestPage_PanelOfRoleKeepsWords(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/keeper")
	p.waitText("Tools that it may call now")
	for _, width := range []int64{1360, 1000, 360} {
		p.setSize(width, 860)
		if broken := fmt.Sprint(p.eval(brokenWords)); broken != "" {
			t.Errorf("at a width of %d these words are broken: %s", width, broken)
		}
	}
}

// brokenWords returns the words of cells of the panel that are on two lines.
const brokenWords = `(() => {
	const broken = [], walker = document.createTreeWalker(document.querySelector(".panel tbody"), NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
			const range = document.createRange();
			range.setStart(node, index);
			range.setEnd(node, index + word.length);
			if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) {
				broken.push(word);
			}
		}
	}
	return broken.join(" ");
})()`

// A role whose callers start tasks with the rights of another role names that role.
func TestPage_RoleNamesTheRoleOfItsTasks(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/reader")
	p.waitText("Tasks that its callers start have the rights of role clerk.")
	p.clickLink("clerk")
	p.wait(`document.querySelector("h1").innerText === "Role clerk"`)
	p.checkProblems("tasks of callers")
}

// Callers are named with their roles, not with the ids of their roles.
func TestPage_NamesCallersWithTheirRoles(t *testing.T) {
	s := startServer(t)
	var task struct{ ID string }
	decode(t, s.send(t, "eve", "POST", "/api/v1/tasks", `{"text":"the answer is 42"}`), &task)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for _, place := range []string{"organization", "organization/" + task.ID, "organization?filter=in%20role%20reader"} {
		p.goTo("#/" + place)
		p.waitText("by eve in role reader")
		if strings.Contains(p.text(), "user:eve@") {
			t.Errorf("%s shows\n%s", place, p.text())
		}
	}
	p.goTo("#/record?type=task_started")
	p.click("tbody a")
	p.waitText("Caller\neve in role reader")
	p.checkProblems("callers")
}
