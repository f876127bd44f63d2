package webpage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The key that chooses a place closes the palette, also if a button has opened it.
func TestPage_PaletteOfTheButtonCloses(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for _, one := range []struct{ typed, heading string }{{"record", "Record"}, {"record", "Record"}, {"tools", "Tools"}} {
		if _, err := chromedp.Run(p.ctx, chromedp.Click("button.find")); err != nil {
			t.Fatal(err)
		}
		p.wait(`document.activeElement.matches("#dialog [role=combobox]")`)
		p.press(one.typed)
		p.wait(fmt.Sprintf(found+`[0].toLowerCase() === "screen " + %q`, one.typed))
		p.press("\r")
		p.wait(fmt.Sprintf(`document.querySelector("h1").innerText === %q`, one.heading))
		if open := p.eval(`new Promise((done) => setTimeout(() => done(document.getElementById("dialog").open), 300))`); open == true {
			t.Fatalf("the palette is open again after %s", one.heading)
		}
	}
	p.checkProblems("palette of the button")
}

// The button shows the last entry of a long task that runs.
func TestPage_GoesToTheLatest(t *testing.T) {
	s := startServer(t)
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"long 60"}`), &task)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + task.ID)
	p.wait(`document.querySelectorAll(".talk > article").length >= 80`)
	last := `[...document.querySelectorAll(".talk > article")].at(-1).getBoundingClientRect()`
	visible := last + `.top >= 0 && ` + last + `.bottom <= innerHeight + 1`
	p.eval(`[...document.querySelectorAll("main button")].find((b) => b.innerText === "Go to the latest").click(); 0`)
	p.waitFor(visible, patience/4)
	p.eval(`document.querySelector(".talk header a").click(); 0`)
	p.wait(`location.hash.includes("event=")`)
	p.eval(`[...document.querySelectorAll("main button")].find((b) => b.innerText === "Go to the latest").click(); 0`)
	p.wait(`!location.hash.includes("event=")`)
	p.waitFor(visible, patience/4)
	p.checkProblems("latest")
}

// A task that is done although an agent failed says so, in the list and on its page.
func TestPage_FailedTurnIsSeen(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"coder","toolGroups":[],"grant":[]}`)
	task := startTask(t, s, "hire coder") // for which there is no script
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task")
	p.wait(`document.querySelector("tr[data-row]").innerText.includes("1 failed turn")`)
	p.goTo("#/task/" + task)
	p.waitText("1 failed turn")
	p.wait(`document.querySelector(".outcome").innerText.startsWith("Result\n") && document.querySelector(".outcome .mark.bad") !== null`)
	p.waitText(`The result is an error of an agent: agents.js has no script for role "coder"`)
	p.wait(`document.querySelectorAll("svg.lanes rect.failed").length === 1 && document.querySelector(".legend").innerText.includes("failed call or turn")`)
	p.click("main details summary")
	p.wait(`[...document.querySelectorAll("main details tr[data-row]")].some((r) => r.innerText.includes("coder-1") && r.innerText.includes("failed: llm_call_failed"))`)
	p.checkAccessible(axe(t), "failed turn")
	p.checkProblems("failed turn")
}

// The record names who has decided about a call, and not the role that has asked.
func TestPage_RecordNamesWhoDecided(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/record?type=approval_decided")
	p.waitText("No event passes the filters.")
	for i, body := range []string{`{"action":"approve","args":{"path":"a.txt","content":"8"}}`, `{"action":"deny","reason":"twice"}`} {
		startPayment(t, s)
		var page struct{ Items []struct{ ID string } }
		decode(t, s.send(t, "fay", "GET", "/api/v1/approvals", ""), &page)
		s.send(t, "fay", "POST", "/api/v1/approvals/"+page.Items[0].ID, body)
		p.wait(fmt.Sprintf(`document.querySelectorAll("tr[data-row]").length === %d`, i+1))
	}
	cells := `[...document.querySelectorAll("tr[data-row]")].map((r) => r.cells[2].innerText + ": " + r.cells[3].innerText)`
	p.wait(cells + `[1].startsWith("fay: ") && ` + cells + `[1].includes("approved") && ` + cells + `[1].includes("The arguments were changed.")`)
	p.wait(cells + `[0].startsWith("fay: ") && ` + cells + `[0].includes("denied") && ` + cells + `[0].includes("twice") && !` + cells + `[0].includes("changed")`)
	p.checkProblems("decisions in the record")
}

// The form of the record stays, with what was typed, when the gateway cannot read a value.
func TestPage_RecordKeepsRefusedFilters(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 1")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for field, typed := range map[string]string{"type": "denied", "since": "yesterday"} {
		p.goTo(fmt.Sprintf("#/record?tool=run_command&%s=%s", field, typed))
		p.wait(fmt.Sprintf(`document.querySelector("input[name=%s]")?.value === %q && document.querySelector("input[name=tool]").value === "run_command"`, field, typed))
		p.wait(fmt.Sprintf(`document.querySelector("input[name=%s]").ariaInvalid === "true" && document.getElementById("filter-problem").innerText.includes(%q)`, field, typed))
		startTask(t, s, "deny 1")
		p.wait(`document.querySelector("tr[data-row]") === null && document.querySelector(".failure") === null`)
		p.checkAccessible(axe(t), field)
	}
	p.goTo("#/record?tool=run_command")
	p.wait(`document.querySelector("tr[data-row]") !== null && document.getElementById("filter-problem") === null`)
	p.checkProblems("refused filters")
}

// Who signs in while the address names a screen that she may not see comes to her first screen.
func TestPage_SignInEndsAtScreenOfTheUser(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("eve")
	p.wait(`document.querySelector("h1").innerText === "Tasks"`) // without a screen in the address
	again := func(user, place string) {
		p.eval(`[...document.querySelectorAll("button")].find((b) => b.innerText === "Sign out").click(); 0`)
		p.wait(`document.querySelector("input[name=token]") !== null`)
		p.eval(fmt.Sprintf(`location.hash = %q; document.querySelector("input[name=token]").value = %q; document.querySelector("form button.primary").click(); 0`, place, tokenOf(user)))
	}
	again("eve", "#/organization")
	p.wait(`document.querySelector("h1").innerText === "Tasks"`)
	again("ann", "#/roles/reader")
	p.waitAcrossLoad(`document.querySelector("h1")?.innerText === "Role reader"`)
	again("eve", "#/roles/reader")
	p.waitAcrossLoad(`document.querySelector("h1")?.innerText === "Tasks"`)
	p.waitText("in role reader")
	p.checkProblems("sign-in")
}

// A request for approval names the agent and the task to all who may approve it. It leads to the task
// those who may see the task.
func TestPage_RequestNamesAgentAndTask(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	operator, approver := openTab(t, newBrowser(t), s), openTab(t, newBrowser(t), s)
	operator.signIn("ann")
	approver.signIn("fay")
	for _, p := range []*tab{operator, approver} {
		p.goTo("#/approvals")
		p.waitText("Role payer wants to call write_file")
	}
	for p, leads := range map[*tab]bool{operator: true, approver: false} {
		p.wait(`document.querySelector("aside.panel dl").innerText.includes("payer-1") && document.querySelector("li.request").innerText.includes("Task: pay 7")`)
		if p.eval(`document.querySelector("aside.panel dl").innerText.includes("pay 7") && document.querySelector('main a[href*="#/task/"]') !== null`) != leads {
			t.Errorf("the request of the task leads to the task: %v, want %v", !leads, leads)
		}
	}
	operator.checkAccessible(axe(t), "request")
	id := fmt.Sprint(operator.eval(`fetch("api/v1/approvals").then((r) => r.json()).then((page) => page.items[0].id)`))
	s.send(t, "ann", "POST", "/api/v1/approvals/"+id, `{"action":"deny","reason":"twice"}`)
	operator.wait(`document.querySelector("section.decided tr[data-row] a")?.innerText === "pay 7"`)
	approver.wait(`/denied[^]*pay 7/.test(document.querySelector("section.decided")?.innerText)`)
	if approver.eval(`document.querySelector('main a[href*="#/task/"]') === null`) != true {
		t.Error("the decided call leads an approver to a task that it may not see")
	}
	operator.checkProblems("request of an operator")
	approver.checkProblems("request of an approver")
}

// The command that starts a task names the role that is chosen, and a time limit that is none is not sent.
func TestPage_TaskForm(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/roles/reader")
	p.eval(`[...document.querySelectorAll("main a")].find((a) => a.innerText === "Give it a task").click(); 0`)
	command := `document.querySelector("form.start .command code").innerText`
	p.wait(`document.querySelector("form.start .command") !== null && ` + command + ` === "rolecall run --role reader TASK"`)
	choose := func(name string) {
		p.eval(fmt.Sprintf(`(() => { const s = document.querySelector("select[name=role]"); s.value = [...s.options].find((o) => o.text.startsWith(%q)).value; s.dispatchEvent(new Event("input", {bubbles: true})); })(); 0`, name))
	}
	choose("keeper")
	p.wait(command + ` === "rolecall run --role keeper TASK"`)
	choose("root")
	p.wait(command + ` === "rolecall run TASK" && document.querySelector("select[name=role]").selectedIndex === 0`)
	p.eval(`document.querySelector("textarea[name=text]").focus(); 0`)
	p.press("wait")
	p.tabTo("input[name=timeout]")
	p.press("soon\r")
	p.wait(`document.querySelector("input[name=timeout]").ariaInvalid === "true" && document.querySelector("input[name=timeout] + [role=alert]").innerText.includes("Write a duration")`)
	p.checkAccessible(axe(t), "time limit")
	p.eval(`document.activeElement.select(); 0`)
	p.press("1h30m\r")
	p.wait(`document.querySelector("h1").innerText === "wait"`)
	p.checkProblems("task form")
}

// A cost has a unit.
func TestPage_CostHasUnit(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "cheap")
	seen := s.behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/tasks/"+task {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Replace(s.send(t, "ann", "GET", r.URL.Path, ""), "{", `{"usage":{"costNano":87300000},`, 1))
		return true
	})
	p := openTab(t, newBrowser(t), seen)
	p.signIn("ann")
	p.goTo("#/task/" + task)
	p.waitText("0.0873 in the currency of your prices")
}
