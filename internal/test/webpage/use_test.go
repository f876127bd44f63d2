package webpage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
)

// A user needs no mouse. The user signs in, reads the keys, starts a task and follows it to its
// result. Then the user finds a denied call and the rule, and adds a group to a role.
func TestPage_KeyboardAlone(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")

	p.press("?")
	p.wait(`document.getElementById("dialog").open`)
	p.waitText("Who can")
	p.press("\x1b")
	p.wait(`!document.getElementById("dialog").open`)

	p.press("gn")
	p.wait(`document.querySelector("h1").innerText === "Give a task"`)
	p.focus("textarea[name=text]")
	p.press("deny 2")
	p.tabTo("button.primary")
	p.press("\r")
	p.wait(`document.querySelector("h1").innerText === "deny 2"`)
	p.waitText("done")
	p.waitText("2 denied calls")
	p.eval("document.activeElement.blur(); 0")
	p.press("]")
	p.waitText("tool_not_available")
	p.waitText("rule")

	p.press("gr")
	p.wait(`document.querySelector("h1").innerText === "Roles"`)
	p.waitText("reader")
	p.press("j")
	p.wait(`document.activeElement.matches("tr a") && document.activeElement.innerText === "root"`)
	p.press("j")
	p.press("\r")
	p.waitText("Tools that it may call now")
	p.press("go")
	p.wait(`document.querySelector("h1").innerText === "Organization"`)
	p.checkProblems("keyboard")
}

// focus moves the focus to an element by the Tab key.
func (p *tab) focus(selector string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.querySelector(%q) !== null", selector))
	p.tabTo(selector)
}

// tabTo presses Tab until an element has the focus.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 100 {
		if p.eval(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == true {
			return
		}
		p.press("\t")
	}
	p.t.Fatalf("Tab does not reach %s", selector)
}

// The editor of a role shows what a change does, asks for the name if something is gained, and
// tells a second editor that the role has changed.
func TestPage_TwoEditorsOfOneRole(t *testing.T) {
	s := startServer(t)
	var role struct {
		ID         string   `json:"id"`
		ToolGroups []string `json:"toolGroups"`
	}
	decode(t, s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","toolGroups":["workspace"],"grant":[]}`), &role)
	browser := newBrowser(t)
	ann := openTab(t, browser, s)
	ann.signIn("ann")
	bob := openTab(t, newBrowser(t), s)
	bob.signIn("bob")
	for _, p := range []*tab{ann, bob} {
		p.goTo("#/roles/" + role.ID)
		p.check("Use console")
		p.waitText("gains")
		p.waitText("console_print")
	}
	ann.save("writer")
	bob.waitText("has changed this role meanwhile")
	if bob.eval(`document.querySelector("form button.primary").disabled`) != true {
		t.Error("the second editor can save over the first")
	}
	bob.click(".notice button")
	bob.wait(`document.querySelector(".notice[role=alert]") === null && document.querySelectorAll(".group-choice input:checked").length === 2`)
	decode(t, s.send(t, "ann", "GET", "/api/v1/roles/"+role.ID, ""), &role)
	if got := fmt.Sprint(role.ToolGroups); got != "[workspace console]" {
		t.Errorf("the role uses %s", got)
	}
	ann.checkProblems("first editor")
}

// check clicks the box with a label.
func (p *tab) check(label string) {
	p.t.Helper()
	text, _ := json.Marshal(label)
	p.wait(fmt.Sprintf(`[...document.querySelectorAll("label.check")].some((l) => l.textContent.trim() === %s)`, text))
	p.eval(fmt.Sprintf(`[...document.querySelectorAll("label.check")].find((l) => l.textContent.trim() === %s).click(); 0`, text))
}

// click clicks an element.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.querySelector(%q) !== null && !document.querySelector(%[1]q).disabled", selector))
	p.eval(fmt.Sprintf("document.querySelector(%q).click(); 0", selector))
}

// save saves a role that gains something.
func (p *tab) save(name string) {
	p.t.Helper()
	p.click("form button.primary")
	p.wait(`document.getElementById("dialog").open`)
	p.press(name + "\r")
	p.wait(`!document.getElementById("dialog").open`)
	p.waitText("Tools that it may call now")
}

// The editor offers the part of a group that only reads, and shows it in a role that has it.
func TestPage_ReadPart(t *testing.T) {
	s := startServer(t)
	var role struct {
		ID         string   `json:"id"`
		ToolGroups []string `json:"toolGroups"`
	}
	decode(t, s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"auditor","toolGroups":["workspace"],"grant":[]}`), &role)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/" + role.ID)
	p.check("Use workspace")
	p.check("Use workspace:read")
	p.waitText("loses")
	p.waitText("write_file")
	p.click("form button.primary")
	p.wait(`document.getElementById("dialog").open`)
	p.waitText("No tool is gained.")
	p.click("#dialog button[type=submit]")
	p.wait(`!document.getElementById("dialog").open`)
	p.waitText("Tools that it may call now")
	decode(t, s.send(t, "ann", "GET", "/api/v1/roles/"+role.ID, ""), &role)
	if got := fmt.Sprint(role.ToolGroups); got != "[workspace:read]" {
		t.Errorf("the role uses %s", got)
	}
	p.wait(`document.querySelectorAll(".group-choice input:checked").length === 1`)
	p.checkProblems("read part")
}

// A role without groups is told so before it is saved.
func TestPage_RoleWithoutGroups(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","toolGroups":["workspace"],"grant":[]}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/writer")
	p.check("Use workspace")
	p.waitText("No group is chosen")
	p.waitText("loses")
}

// A caller in a role sees the screens of what it may ask, and no other.
func TestPage_CallerInRole(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("eve")
	p.waitText("in role reader")
	if nav := fmt.Sprint(p.eval(`document.querySelector("nav").innerText`)); strings.Contains(nav, "Roles") || strings.Contains(nav, "Organization") || !strings.Contains(nav, "Who can") {
		t.Errorf("the navigation of a caller is %q", nav)
	}
	for _, place := range []string{"task", "access", "access?tool=run_command", "tools", "record", "start"} {
		p.goTo("#/" + place)
		if p.eval(`document.querySelector(".failure") === null`) != true {
			t.Errorf("%s fails for a caller:\n%s", place, p.text())
		}
		p.checkProblems("caller " + place)
	}
	p.goTo("#/roles")
	p.waitText("There is no such screen, or you may not see it.")
}

// The event that is chosen stands at the top of the panel. Esc closes it, and the next one leaves the task.
func TestPage_ChosenEventComesFirst(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "deny 3")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + task)
	p.wait(`document.querySelector("svg.lanes rect.denied") !== null`)
	p.eval(`document.querySelector("svg.lanes rect.denied").dispatchEvent(new MouseEvent("click", {bubbles: true})); 0`)
	p.wait(`document.getElementById("chosen-event") !== null && document.querySelector("aside.panel h2").id === "chosen-event"`)
	p.wait(`(() => { const b = document.getElementById("chosen-event").getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight; })()`)
	p.waitText("tool run_command is not available")
	p.press("\x1b")
	p.wait(`document.getElementById("chosen-event") === null`)
	if hash := p.eval("location.hash"); hash != "#/task/"+task {
		t.Errorf("the page is at %v", hash)
	}
	p.press("\x1b")
	p.wait(`location.hash === "#/task"`)
	p.checkProblems("chosen event")
}

// A task that has ended says its result or its error before the picture. The conversation says it once.
func TestPage_OutcomeOfTaskComesFirst(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + startTask(t, s, "carry the report of the day"))
	p.waitText("Result")
	if heads := p.eval(`[...document.querySelectorAll("main h2")].slice(0, 2).map((h) => h.innerText).join()`); heads != "Result,What happened when" {
		t.Errorf("the heads are %v", heads)
	}
	p.wait(`[...document.querySelectorAll(".talk .text")].filter((e) => e.innerText === "carry the report of the day").length === 4`) // asked, hired, kept, and its answer
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"agents 1"}`), &task)
	s.send(t, "ann", "GET", "/api/v1/tasks/"+task.ID+"?wait=1m", "")
	p.goTo("#/task/" + task.ID)
	p.wait(`document.querySelector("main h2").innerText === "Error"`)
	p.wait(`document.querySelector(".outcome").innerText.includes("task stalled") && !document.querySelector("aside.panel").innerText.includes("task stalled")`)
	p.wait(`[...document.querySelectorAll(".talk .text")].some((e) => e.innerText === "agents 1")`)
	p.wait(`[...document.querySelectorAll(".talk .text")].at(-1).innerText.startsWith("task stalled")`)
	p.checkProblems("outcome")
}

// The list of tasks marks those with denied calls, says how long each has taken so far, and why one has failed.
func TestPage_TaskListSaysMore(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 2")
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"agents 1"}`), &task)
	s.send(t, "ann", "GET", "/api/v1/tasks/"+task.ID+"?wait=1m", "")
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task")
	row := func(text string) string {
		return `[...document.querySelectorAll("tr[data-row]")].find((r) => r.innerText.includes("` + text + `"))`
	}
	p.wait(row("deny 2") + `.innerText.includes("2 denied")`)
	p.wait(row("agents 1") + `.title.includes("task stalled")`)
	p.wait(row("pay 7") + `.innerText.includes("waiting")`)
	p.wait(row("pay 7") + `.cells[4].innerText.match(/^\d.* (ms|s|min)/) !== null`)
	startTask(t, s, "deny 3")
	p.wait(row("deny 3") + `?.innerText.includes("3 denied")`)
	p.checkProblems("list of tasks")
}

// The filters of the record keep their names, and offer the types of events. Times have milliseconds, and an event
// is shown in words. The error that tells an agent of a denial is no second problem.
func TestPage_RecordIsReadable(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 1")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/record?role=root&event=" + deniedEvent(t, s))
	p.wait(`[...document.querySelectorAll("form.filters label span")].map((l) => l.innerText).join() === "Task,Agent,Role,Caller,Tool,Types,Since"`)
	types := []string{}
	decode(t, fmt.Sprint(p.eval(`JSON.stringify([...document.querySelector("input[name=type]").list.options].map((o) => o.value))`)), &types)
	for _, known := range journal.EventTypes() {
		if name := string(known); name != "gap" && name != "model_delta" && !slices.Contains(types, name) { // these two are never recorded
			t.Errorf("type %s is not offered", name)
		}
	}
	p.wait(`/ \d\d:\d\d:\d\d\.\d\d\d$/.test(document.querySelector("tbody a").innerText)`)
	p.wait(`document.querySelector("aside.panel dl").innerText.includes("tool run_command is not available")`)
	p.wait(`document.querySelector("aside.panel dl").innerText.includes("Agents of a role that uses group command may call it.")`)
	if failed := p.eval(`[...document.querySelectorAll("tr[data-row]")].filter((r) => r.innerText.includes("failed")).length`); failed != 0.0 {
		t.Errorf("%v events say failed beside the denial", failed)
	}
	p.checkAccessible(axe(t), "record")
	p.checkProblems("record")
}

// A caller in a role sees its own tasks only. The page does not say that there are no others.
func TestPage_CallerWithoutTasks(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 1") // of the operator
	p := openTab(t, newBrowser(t), s)
	p.signIn("eve")
	for place, want := range map[string]string{
		"task":   "You see only tasks that you have started: none yet.",
		"record": "You see only your calls and the events of tasks that you have started: none yet.",
	} {
		p.goTo("#/" + place)
		p.waitText(want)
		if p.eval(`document.querySelector("main .command") === null`) != true {
			t.Errorf("%s shows a caller a command of operators", place)
		}
	}
	p.checkProblems("caller without tasks")
}

// Two tabs of a browser share one event stream, and both follow it.
func TestPage_TwoTabsOneStream(t *testing.T) {
	s := startServer(t)
	browser := newBrowser(t)
	first := openTab(t, browser, s)
	first.signIn("ann")
	second := openTab(t, browser, s)
	second.open("/#/record")
	first.goTo("#/record")
	startTask(t, s, "deny 1")
	for _, p := range []*tab{first, second} {
		p.waitText("tool_not_available")
		p.checkProblems("tab")
	}
	if first.streams()+second.streams() != 0 {
		t.Error("a tab has opened a stream of its own")
	}
}

// streams returns how many event streams the page itself has opened, rather than the worker.
func (p *tab) streams() int {
	return int(p.eval(`performance.getEntriesByType("resource").filter((e) => e.name.includes("follow=")).length`).(float64))
}
