package webpage_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// deniedRoot is why root may not call run_command, in the same words in a task and in Who can.
const deniedRoot = "not granted: no group that the role may use has this tool (root uses org_management alone)"

// What a new user is asked, answered from the page alone. The log has how long
// each answer took a browser.
func TestPage_AnswersOfNewReader(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/roles", `{"name":"coder","toolGroups":["command","workspace"],"grant":[]}`)
	denied := startTask(t, s, "deny 1")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	timed := func(question string, answer func()) {
		start := time.Now()
		answer()
		t.Logf("%5.1f s  %s", time.Since(start).Seconds(), question)
	}

	timed("Who may call run_command, and why?", func() {
		p.clickLink("Who can")
		p.choose("Tool", "run_command")
		p.waitText("Who may call run_command")
		p.waitText("Roles whose agents may call it")
		p.wait(`[...document.querySelectorAll("tbody tr")].some((r) => r.innerText.split(/\s+/).join(" ").trim() === "eve reader ✕ no")`)
		p.wait(`/Operators \(.*ann.*\) have no role of their own/.test(document.body.innerText)`)
		p.waitText("Roles that may not (6), and why")
		p.click(".denied-roles summary")
		p.waitText("not granted: no group that the role may use has this tool (the toolGroups of role reader)")
		p.waitText(deniedRoot)
		p.clickLink("group command")
		p.waitText("Role coder may call run_command")
		p.waitText("group command, through role coder")
	})
	timed("What was denied in this task, and by which rule?", func() {
		p.clickLink("Tasks")
		p.clickLink("deny 1")
		p.waitText("1 denied call")
		p.eval("document.activeElement.blur(); 0")
		p.press("]")
		p.waitText(deniedRoot)
		p.waitText("tool_not_available")
		p.wait(`document.querySelector(".talk article.denied").innerText.includes('{"command":"id"}')`)
	})
	timed("What would taking the group command from coder change, and for whom?", func() {
		p.clickLink("Roles")
		p.clickLink("coder")
		p.check("Use command")
		p.waitText("What this change does")
		p.wait(`document.querySelector("aside.panel").innerText.includes("loses") && document.querySelector("aside.panel").innerText.includes("run_javascript")`)
		p.waitText("New tasks that callers start with these rights: none")
		p.click("form button[type=button]") // Undo
	})
	timed("Give a task and get its result", func() {
		p.clickLink("Give a task")
		p.focus("textarea[name=text]")
		p.press("the answer is 42")
		p.tabTo("button.primary")
		p.press("\r")
		p.wait(`document.querySelector("h1").innerText === "the answer is 42"`)
		p.wait(`[...document.querySelectorAll("h2")].some((h) => h.innerText === "Result")`)
	})
	var pay struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay 100"}`), &pay)
	timed("How far is a running task, and what did it cost?", func() {
		p.goTo("#/task/" + pay.ID)
		p.wait(`document.querySelector(".outcome")?.innerText.includes("waits for approval of write_file for")`)
		p.wait(`/Done: 1 × spawn_agent_with_task\s+Until now, without answers in progress: .* · \d+ calls? · 0 of at most 5,000,000 tokens/.test(document.querySelector(".outcome").innerText)`)
		p.wait(`/running|waiting/.test(document.querySelector("aside.panel").innerText)`)
	})
	fay := openTab(t, newBrowser(t), s)
	fay.signIn("fay")
	timed("Approve a call with changed arguments", func() {
		fay.wait(`document.querySelector(".badge") !== null && document.title.startsWith("(1)")`)
		fay.clickLink("Approvals")
		fay.waitText("wants to call write_file")
		fay.wait(`document.querySelector("li.request").innerText.includes("Task: pay 100")`)
		fay.click("aside.panel .buttons button")
		fay.wait(`document.activeElement.matches("[name=args]")`)
		fay.eval(`(() => { const f = [...document.querySelectorAll("[name=args]")].find((f) => f.value === "100"); f.value = "60"; f.dispatchEvent(new Event("input", {bubbles: true})); })(); 0`)
		fay.waitText(`+   "content": "60"`)
		fay.eval("document.activeElement.blur(); 0")
		fay.press("y")
		fay.wait(`document.getElementById("dialog").open && document.getElementById("dialog").innerText.includes('+   "content": "60"')`)
		fay.press("\r")
		fay.wait(`!document.getElementById("dialog").open`)
		fay.waitText("approved write_file by role payer, with changed arguments.")
		fay.wait(`/"content":"60".*\schanged from .*"content":"100"/.test(document.querySelector("section.decided")?.innerText)`)
		p.waitText("paid 60")
		p.waitText("fay as finance")
		p.wait(`[...document.querySelectorAll(".talk article")].some((a) => /^\S+\s+write_file\s+returned to\s+payer/.test(a.innerText))`)
		p.waitText(`+   "content": "60"`)
	})
	for name, tab := range map[string]*tab{"operator": p, "approver": fay} {
		tab.checkProblems(name)
	}
	if text := s.send(t, "ann", "GET", "/api/v1/tasks/"+denied, ""); !strings.Contains(text, `"denied":1`) {
		t.Errorf("the task is now %s", text)
	}
}

// clickLink clicks the first link with a text.
func (p *tab) clickLink(text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	find := `[...document.querySelectorAll("a")].find((a) => a.innerText.trim() === ` + string(quoted) + ` || a.querySelector("span")?.innerText.trim() === ` + string(quoted) + `)`
	p.wait(find + " !== undefined")
	p.eval(find + ".click(); 0")
	p.wait(`document.querySelector("main .skeleton") === null`)
}

// choose chooses a value of the list with a label.
func (p *tab) choose(label, value string) {
	p.t.Helper()
	name, _ := json.Marshal(label)
	find := `[...document.querySelectorAll("label.check")].find((l) => l.querySelector("span")?.innerText === ` + string(name) + `)?.querySelector("select")`
	p.wait(find + " !== undefined")
	set, _ := json.Marshal(value)
	p.eval(`(() => { const s = ` + find + `; s.value = ` + string(set) + `; s.dispatchEvent(new Event("change", {bubbles: true})); })(); 0`)
}
