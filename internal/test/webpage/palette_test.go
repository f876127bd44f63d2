package webpage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// found returns the expression of the kinds and names that the palette lists.
const found = `[...document.querySelectorAll("#palette-list li")].map((l) => l.children[0].textContent + " " + l.children[1].textContent)`

// From the keyboard alone, the palette goes to a screen, role, agent, task, tool and approval. It
// lists at most 12 names, and hostile ones stay text.
func TestPage_Palette(t *testing.T) {
	s := startServer(t)
	for i := range 15 {
		body, _ := json.Marshal(map[string]any{"name": fmt.Sprintf("many %d", i), "description": markup, "toolGroups": []string{}, "grant": []string{}})
		s.send(t, "ann", "POST", "/api/v1/roles", string(body))
	}
	startTask(t, s, "hostile "+markup)
	startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for _, one := range []struct{ typed, want, heading string }{
		{"record", "screen Record", "Record"},
		{"role clerk", "role clerk", "Role clerk"},
		{"agent payer", "agent payer-1", "Organization"},
		{"tool write_f", "tool write_file", "Tools"},
		{"pay 7", "task pay 7", "pay 7"},
		{"approval wr", "approval write_file", "Approvals"},
	} {
		p.openPalette()
		p.press(one.typed)
		p.wait(fmt.Sprintf(found+`[0] === %q`, one.want))
		p.press("\r")
		p.wait(fmt.Sprintf(`!document.getElementById("dialog").open && document.querySelector("h1").innerText.startsWith(%q)`, one.heading))
		if text := p.eval(`document.getElementById("announcements").textContent`); text != "" {
			t.Errorf("%s still says %q to screen readers", one.heading, text)
		}
	}
	p.openPalette()
	p.press("many")
	p.waitText("3 others match")
	if n := p.eval(found + ".length"); n != 12.0 {
		t.Errorf("%v names are listed, want 12", n)
	}
	p.press(kb.ArrowDown + kb.ArrowDown + kb.ArrowUp)
	p.wait(`document.querySelector("[role=combobox]").getAttribute("aria-activedescendant") === "palette-1" && document.getElementById("palette-1").ariaSelected === "true"`)
	p.checkAccessible(axe(t), "palette")
	p.press(kb.Escape)
	p.wait(`!document.getElementById("dialog").open`)
	p.openPalette()
	p.press("hostile")
	p.wait(fmt.Sprintf(`(%s[0] ?? "").startsWith("task hostile <img")`, found))
	if p.eval(`document.querySelector("#dialog img, #dialog script, #dialog b") === null && !document.title.includes("owned")`) != true {
		t.Error("a name has become an element")
	}
	p.press(kb.Escape)
	p.checkProblems("palette")
}

// The point opens the actions of the screen, which work as their buttons do.
func TestPage_ActionsOfTheScreen(t *testing.T) {
	s := startServer(t)
	task := startPayment(t, s)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/task/" + task)
	if _, err := chromedp.Run(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: ".", Text: "."})
		return err
	})); err != nil {
		t.Fatal(err)
	}
	p.wait(`document.querySelector("#dialog [role=combobox]") !== null`)
	if typed := p.eval(`document.querySelector("#dialog input").value`); typed != "" {
		t.Errorf("the key has typed %q into the field", typed)
	}
	p.press("cancel")
	p.wait(found + `.join() === "action Cancel the task"`)
	p.press("\r")
	p.wait(`document.getElementById("dialog").open && document.querySelector("#dialog input[name=reason]") !== null`)
	p.press("enough\r")
	p.waitText("cancelled")
	p.checkProblems("actions")
}

// openPalette presses Ctrl-K and waits until all names are read.
func (p *tab) openPalette() {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
		p.t.Fatal(err)
	}
	p.wait(`document.querySelector("#dialog [role=combobox]") !== null && !document.getElementById("dialog").innerText.includes("Reading")`)
}

// startPayment starts a task with a call that waits for approval.
func startPayment(t *testing.T, s *server) (id string) {
	t.Helper()
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay 7"}`), &task)
	for t.Context().Err() == nil {
		var page struct{ Items []any }
		if decode(t, s.send(t, "ann", "GET", "/api/v1/approvals", ""), &page); len(page.Items) > 0 {
			break
		}
	}
	return task.ID
}
