package webpage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What a person approves is shown as it will run: a character that turns the direction of text is
// seen, and an edit keeps the digits of numbers.
func TestPage_ApprovalShowsWhatRuns(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay 1\u202e001"}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText(`"content": "1\u202e001"`)
	p.eval(`window.sent = []; const f = window.fetch; window.fetch = (path, o) => { o?.body && window.sent.push(o.body); return f(path, o); }; 0`)
	p.click("aside.panel .buttons button")
	p.wait(`document.activeElement.matches("input[name=args]") && document.activeElement.value === "payment.txt"`)
	p.wait(`document.querySelector("textarea[name=args]").value === '"1\\u202e001"'`)
	p.click("aside.panel .field + p button")
	p.wait(`document.querySelectorAll("[name=args]").length === 1`)
	p.eval(`(() => { const f = document.querySelector("textarea[name=args]"); f.value = '{"path": "a.txt", "content": 12345678901234567}'; f.dispatchEvent(new Event("input", {bubbles: true})); })(); 0`)
	p.waitText("+ {")
	p.eval("document.activeElement.blur(); 0")
	p.press("y")
	p.wait(`document.getElementById("dialog").open`)
	p.press("\r")
	p.wait("window.sent.length > 0")
	if sent := fmt.Sprint(p.eval("window.sent[0]")); !strings.HasSuffix(sent, `"args":{"path": "a.txt", "content": 12345678901234567}}`) {
		t.Errorf("sent %s", sent)
	}
}

// Arguments are edited one by one. What is not changed stays as it was written, and what is typed has the
// kind of the value before. The old value stands before the new one.
func TestPage_ArgumentsAreEditedOneByOne(t *testing.T) {
	s := startServer(t)
	s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay 7"}`)
	p := openTab(t, newBrowser(t), s)
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText("Role payer wants to call write_file")
	p.click("aside.panel .buttons button")
	p.wait(`[...document.querySelectorAll("input[name=args]")].map((f) => f.value).join() === "payment.txt,7"`)
	p.waitText("Nothing is changed yet.")
	p.eval(`(() => { const f = document.querySelectorAll("[name=args]")[1]; f.value = "true"; f.dispatchEvent(new Event("input", {bubbles: true})); })(); 0`)
	p.wait(`document.querySelector("aside.panel pre")?.textContent === '  {\n    "path": "payment.txt",\n-   "content": "7"\n+   "content": "true"\n  }\n'`)
	p.checkAccessible(axe(t), "edited arguments")
	p.checkProblems("edited arguments")

	edit := func(text, edits string) string {
		return fmt.Sprint(p.eval(`(async () => {
			const { fieldsOf, textOf } = await import(new URL("ui/app/argument-fields.js", document.baseURI).href);
			const fields = fieldsOf(` + quoted(text) + `), edits = ` + edits + `;
			for (const f of fields ?? []) { f.now = edits[JSON.parse(f.key)] ?? f.now; }
			return fields ? fields.map((f) => f.kind[0]).join("") + " " + textOf(fields) : "none";
		})()`))
	}
	all := "{\n  \"n\": 12345678901234567,\n  \"s\": \"a\\u003cb\",\n  \"b\": true,\n  \"o\": {\n    \"x\": [\n      1.50,\n      null\n    ]\n  },\n  \"i\": \"\\u202e\",\n  \"e\": {}\n}"
	for _, tt := range []struct{ text, edits, want string }{
		{all, `{}`, "ntbjjj " + all},
		{all, `{n: "1e400"}`, "ntbjjj " + strings.Replace(all, "12345678901234567", "1e400", 1)},
		{all, `{n: "05"}`, "ntbjjj undefined"},
		{all, `{n: "\"5\""}`, "ntbjjj undefined"},
		{all, `{o: "1, \"z\": 2"}`, "ntbjjj undefined"},
		{all, `{s: "5", b: "false"}`, "ntbjjj " + strings.NewReplacer(`"a\u003cb"`, `"5"`, "true", "false").Replace(all)},
		{all, `{s: "\u202e\"\n"}`, "ntbjjj " + strings.Replace(all, `"a\u003cb"`, `"\u202e\"\n"`, 1)},
		{"{}", `{}`, " {}"},
		{"[\n  1\n]", `{}`, "none"},
		{`{"a": 1}`, `{}`, "none"},
	} {
		if got := edit(tt.text, tt.edits); got != tt.want {
			t.Errorf("%s with %s is %s", tt.text, tt.edits, got)
		}
	}
}

// A person who has decided sees what became of the calls, and only who may see the task has a link to it.
func TestPage_ApproverSeesOutcomes(t *testing.T) {
	s := startServer(t)
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText("Role payer wants to call write_file")
	p.eval("document.activeElement.blur(); 0")
	p.press("y")
	p.wait(`document.getElementById("dialog").open`)
	p.press("\r")
	p.waitText("approved write_file by role payer.")
	row := `[...document.querySelectorAll("section tr[data-row]")]`
	p.wait(row + `[0]?.innerText.includes("ran without an error")`)
	p.wait(`!document.querySelector(".notice.done").innerText.includes("The call runs now")`)
	p.wait(row + `[0].innerText.includes("by fay") && ` + row + `[0].innerText.includes('{"path":"payment.txt","content":"7"}')`)
	if p.eval(row+`[0].querySelector("a") !== null`) == true {
		t.Error("the approver has a link to a task that she may not see")
	}
	startPayment(t, s)
	p.waitText("Role payer wants to call write_file")
	id := fmt.Sprint(p.eval(`fetch("api/v1/approvals").then((r) => r.json()).then((page) => page.items[0].id)`))
	p.goTo("#/approvals/" + id)
	s.send(t, "ann", "POST", "/api/v1/approvals/"+id, `{"action":"deny","reason":"twice"}`)
	p.wait(`document.querySelector("aside.panel dl.facts")?.innerText.includes("twice")`)
	p.wait(row + `[0].innerText.includes("denied") && ` + row + `.length === 2`)
	p.checkAccessible(axe(t), "decided calls")
	p.checkProblems("decided calls")

	operator := openTab(t, newBrowser(t), s)
	operator.signIn("ann")
	operator.goTo("#/approvals")
	operator.click(`section tr[data-row]:nth-child(2) td a`)
	operator.wait(`document.querySelector("h1").innerText === "pay 7"`)
	operator.checkProblems("decided calls of the operator")
}

// A person who approves for a role sees a call that waits without a reload, also in the title, and
// that it does not wait any more.
func TestPage_ApproverSeesNewCalls(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText("No call waits for your approval.")
	s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay rent"}`)
	p.waitText("Role payer wants to call write_file")
	p.wait(`document.title.startsWith("(1) ")`)
	id := fmt.Sprint(p.eval(`fetch("api/v1/approvals").then((r) => r.json()).then((page) => page.items[0].id)`))
	s.send(t, "ann", "POST", "/api/v1/approvals/"+id, `{"action":"deny","reason":"twice"}`)
	p.waitText("No call waits for your approval.")
	p.checkProblems("approvals of a role")
}

// The tabs of a browser share a worker with the last events. A user who signs in after another one
// gets none of the events of that one.
func TestPage_OtherUserInTheSameBrowser(t *testing.T) {
	s := startServer(t)
	browser := newBrowser(t)
	first, second := openTab(t, browser, s), openTab(t, browser, s)
	first.signIn("ann")
	second.open("/#/record")
	startTask(t, s, "deny 3")
	second.waitText("tool_not_available")
	first.goTo("#/organization")
	first.eval(`window.loadedOnce = true; [...document.querySelectorAll("button")].find((b) => b.innerText === "Sign out").click(); 0`)
	first.wait(`document.querySelector("input[name=token]") !== null`)
	first.eval(fmt.Sprintf(`document.querySelector("input[name=token]").value = %q; document.querySelector("form button.primary").click(); 0`, tokenOf("eve")))
	first.waitAcrossLoad(`document.body.innerText.includes("in role reader")`)
	if first.eval("window.loadedOnce") == true {
		t.Error("the page of the operator was not loaded again for the caller")
	}
	second.waitAcrossLoad(`document.body.innerText.includes("in role reader")`)
	session := `fetch("ui/session").then((r) => r.json())`
	first.eval(`(async () => {
		const { follow } = await import(new URL("ui/app/stream.js", document.baseURI).href), s = await ` + session + `;
		window.got = [];
		for (let after = 1; after < 200; after++) {
			follow(after, JSON.stringify([s.user, s.roleId, s.operator]), { onEvents: (list) => window.got.push(...list), onApprovals: () => {}, onGap: () => {}, onState: () => {}, onUser: () => {} });
			await new Promise((done) => setTimeout(done, 5));
		}
	})()`)
	if got := fmt.Sprint(first.eval(`JSON.stringify(window.got)`)); got != "[]" {
		t.Errorf("a caller gets %s", got)
	}
}

// waitAcrossLoad waits until an expression is true. The page may be loaded again meanwhile.
func (p *tab) waitAcrossLoad(expression string) {
	p.t.Helper()
	var err error
	for range 100 {
		if _, err = chromedp.Run(p.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err == nil {
			return
		}
	}
	p.t.Fatalf("wait for %s: %v", expression, err)
}
