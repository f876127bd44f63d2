package webpage_test

import (
	"fmt"
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
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"busy 60"}`), &task)
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
