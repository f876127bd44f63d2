package webpage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The organization says what an agent waits for until it is decided, the list of approvals shows the
// arguments, and the tools show their flags.
func TestPage_ShowsWaitsArgumentsAndFlags(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization")
	p.waitText("for approval of write_file")
	p.goTo("#/approvals")
	p.wait(`document.querySelector(".request .args")?.textContent === '{"path":"payment.txt","content":"7"}'`)
	p.goTo("#/tools/workspace?tool=read_file")
	p.waitText("untrusted, private")
	p.goTo("#/organization")
	p.waitText("for approval of write_file")
	var page struct{ Items []struct{ ID string } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page)
	s.send(t, "ann", "POST", "/api/v1/approvals/"+page.Items[0].ID, `{"action":"deny","reason":"twice"}`)
	p.wait(`!document.body.innerText.includes("for approval of write_file")`)
	p.checkProblems("waits")
}

// A task leads to its call that waits. A person whose approval does not count reads that before the
// decision, and an operator may override with a reason.
func TestPage_TaskLeadsToItsApproval(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	var page struct{ Items []struct{ ID, Task string } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + page.Items[0].Task)
	p.waitText("1 call waiting for approval: payer write_file")
	p.eval(`[...document.querySelectorAll(".notice a")].find((a) => a.innerText === "payer write_file").click(); 0`)
	p.waitText("Your approval does not count: its rules do not name you as an approver")
	p.wait(`[...document.querySelectorAll("aside.panel a")].some((a) => a.innerText === "pay 7")`)
	p.eval(`[...document.querySelectorAll("aside.panel button")].find((b) => b.innerText.startsWith("Override")).click(); 0`)
	p.wait(`document.querySelector("#dialog details").open`)
	if p.eval(`document.querySelector("#dialog button[type=submit]").disabled`) != true {
		t.Error("the approvers can be overridden without a reason")
	}
	p.eval(`document.querySelector("#dialog [name=override]").checked = true; const why = document.querySelector("#dialog [name=reason]"); why.value = "fay is away"; why.dispatchEvent(new Event("input", {bubbles: true})); 0`)
	p.waitText("--override --reason 'fay is away'")
	p.eval(`document.querySelector("#dialog button[type=submit]").click(); 0`)
	p.waitText("approved write_file by role payer.")
	p.waitText("No call waits for your approval.")
	p.goTo("#/task/" + page.Items[0].Task)
	p.wait(`!document.body.innerText.includes("waiting for approval")`)
	p.checkProblems("approval of a task")
}

// An operator who asks for an operation may not approve it, nor override its approvers.
func TestPage_OwnOperationCannotBeApproved(t *testing.T) {
	s := startServer(t, `---
kind: oversight
name: four-eyes
operations: [role_gain]
from: {any: [{operator: true}]}
`)
	s.trySend(t, "ann", "POST", "/api/v1/roles", `{"name":"writer","toolGroups":["workspace"]}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/approvals")
	p.waitText("Your approval does not count: the operator who asks for the operation may not approve it")
	if p.eval(`[...document.querySelectorAll("aside.panel button")].find((b) => b.innerText.startsWith("Approve")).disabled`) != true {
		t.Error("the operator may press Approve")
	}
}

// The keys of a screen move the focus where the user goes on: into the text of a new task. The heads of
// the matrix and the row of root lead to their answers.
func TestPage_KeysAndHeadsLeadOn(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.press("gn")
	p.wait(`document.activeElement?.matches("form.start textarea")`)
	p.goTo("#/access")
	p.eval(`document.querySelector(".matrix thead [scope=col] a").click(); 0`)
	p.waitText("Who may call")
	p.goTo("#/roles")
	p.eval(`[...document.querySelectorAll("td a")].find((a) => a.innerText === "root").click(); 0`)
	p.waitText("Role root may call")
}

// A task that is gone while the organization is loaded does not fail the screen.
func TestPage_TaskGoneWhileLoading(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	proxied := s.behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/questions"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"code":"task_not_found","message":"the task is gone"}}`)
		case r.FormValue("type") == "question_asked":
			var page struct{ Items []struct{ ID string } }
			decode(t, s.send(t, "ann", "GET", "/api/v1/tasks", ""), &page)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"items":[{"type":"question_asked","task":%q}]}`, page.Items[0].ID)
		default:
			return false
		}
		return true
	})
	p := openTab(t, newBrowser(t), proxied)
	p.signIn("ann")
	p.waitText("payer-1")
	p.goTo("#/organization")
	p.waitText("payer-1")
	if text := p.text(); strings.Contains(text, "the task is gone") {
		t.Errorf("the screen failed:\n%s", text)
	}
}

// The picture of a task shows a long wait for approval, says what it leaves out, and has an axis of time.
func TestPage_TaskDrawsWaits(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	var page struct{ Items []struct{ ID, Task string } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.eval(`(() => { const now = Date.now; Date.now = () => now() + 33 * 60e3; })(); 0`)
	p.goTo("#/task/" + page.Items[0].Task)
	p.wait(`document.querySelector("svg.lanes rect.wait")?.getBBox().width > 30`)
	p.waitText("waiting")
	p.waitText("∥ nothing happened, left out")
	p.wait(`[...document.querySelectorAll("svg.lanes text")].some((e) => e.textContent.startsWith("∥ 33 min"))`)
	p.wait(`[...document.querySelectorAll("svg.lanes text")].filter((e) => e.textContent === "start" || e.textContent.startsWith("+")).length >= 2`)
	if cut := p.eval(`(() => {
		const svg = document.querySelector("svg.lanes"), { x, y, width, height } = svg.viewBox.baseVal;
		return [...svg.querySelectorAll("text, rect")].filter((e) => { const b = e.getBBox(); return b.x < x || b.y < y || b.x + b.width > x + width || b.y + b.height > y + height; }).map((e) => e.textContent).join(", ");
	})()`); cut != "" {
		t.Errorf("outside the picture: %v", cut)
	}
	p.click("details summary")
	p.waitText("waits for approval of write_file")
	p.checkAccessible(axe(t), "a task that waits")
	s.send(t, "ann", "POST", "/api/v1/approvals/"+page.Items[0].ID, `{"action":"deny","reason":"twice"}`)
	p.wait(`[...document.querySelectorAll("tr")].some((e) => e.innerText.includes("waits for approval") && e.innerText.includes("denied"))`)
	p.checkProblems("picture of waits")
}

// The list of the organization says which tasks had denied calls, also while it is open.
func TestPage_OrganizationMarksDeniedCalls(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 2")
	startTask(t, s, "nothing")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization")
	row := func(text string) string {
		return `[...document.querySelectorAll(".row.org[data-row]")].find((r) => r.innerText.includes("` + text + `"))`
	}
	p.wait(row("deny 2") + `?.innerText.includes("2 denied")`)
	p.wait(`!` + row("nothing") + `.innerText.includes("denied")`)
	startTask(t, s, "deny 3")
	p.wait(row("deny 3") + `?.innerText.includes("3 denied")`)
	p.checkProblems("denied calls of the organization")
}

// The ticks of an axis after a long wait have different texts.
func TestPage_AxisHasDistinctTexts(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	texts := func(list string) string {
		return fmt.Sprint(p.eval(`import(new URL("ui/app/format.js", document.baseURI).href).then((f) => f.distinctDurations(` + list + `).join(", "))`))
	}
	for list, want := range map[string]string{
		"[0, 2000, 307000, 400000]":         "0 ms, 2.0 s, 5 min 7 s, 6 min 40 s",
		"[307000, 307020, 307500, 400000]":  "5 min 7 s, 5 min 7.02 s, 5 min 7.5 s, 6 min 40 s",
		"[1510, 1520]":                      "1.51 s, 1.52 s",
		"[108061000, 108061500, 108122500]": "1 d 6 h 1 min 1 s, 1 d 6 h 1 min 1.5 s, 1 d 6 h 2 min 2.5 s",
	} {
		if got := texts(list); got != want {
			t.Errorf("%s is %s", list, got)
		}
	}
	startPayment(t, s)
	var page struct{ Items []struct{ Task string } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page)
	p.eval(`(() => { const now = Date.now; Date.now = () => now() + 307e3; })(); 0`)
	p.goTo("#/task/" + page.Items[0].Task)
	p.wait(`[...document.querySelectorAll("svg.lanes text")].filter((e) => e.textContent.startsWith("+")).length > 0`)
	if twice := p.eval(`[...document.querySelectorAll("svg.lanes .tick + text")].map((e) => e.textContent).filter((text, i, all) => all.indexOf(text) !== i).join()`); twice != "" {
		t.Errorf("two ticks are %v", twice)
	}
	p.checkProblems("axis")
}

// The picture of the organization has a chooser of the task, texts of one size, and no note of its makers in sight.
func TestPage_PictureOfChosenTask(t *testing.T) {
	s := startServer(t)
	task := startTask(t, s, "carry the report of the day")
	startTask(t, s, "deny 1")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization?form=Picture")
	p.wait(`document.querySelectorAll("svg.picture g").length === 2`)
	height := `[...document.querySelectorAll("svg.picture text")][0].getBoundingClientRect().height`
	if size := p.milliseconds(height); size > 20 {
		t.Errorf("texts of the picture are %v pixels high", size)
	}
	p.eval(`(() => { const s = document.querySelector("main select"); s.value = ` + quoted(task) + `; s.dispatchEvent(new Event("change", {bubbles: true})); })(); 0`)
	p.wait(`document.querySelectorAll("svg.picture g").length === 3 && document.querySelector("aside.panel h2").innerText === "carry the report of the day"`)
	p.wait(`document.querySelector("main select").selectedOptions[0].text === "carry the report of the day (done)"`)
	p.wait(`[...document.querySelectorAll("main p")].find((e) => e.innerText.includes("for screen readers")).getBoundingClientRect().width <= 1`)
	p.goTo("#/organization")
	p.setSize(1360, 860)
	p.eval(`(() => { const now = Date.now; Date.now = () => now() + 59 * 60e3; })(); 0`)
	p.goTo("#/tools")
	p.goTo("#/organization")
	p.wait(`[...document.querySelectorAll(".row time")].length > 0 && [...document.querySelectorAll(".row time")].every((e) => /min ago/.test(e.innerText) && e.parentElement.scrollWidth <= e.parentElement.clientWidth)`)
	p.checkAccessible(axe(t), "picture")
	p.checkProblems("picture of a task")
}
