package webpage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The server is killed while the page is open. The page says that it is not live, and is live
// again without a reload. No event is missing or twice, compared with the record.
func TestPage_ServerIsKilled(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/record?type=tool_call")
	p.eval("window.loadedOnce = true; 0")
	startTask(t, s, "deny 3")
	p.wait(`document.querySelectorAll("main tbody tr").length === 3`)
	for range 2 {
		s.kill()
		p.waitText("Not live since")
		s.start(t)
		startTask(t, s, "deny 3")
		p.wait(`!document.body.innerText.includes("Not live since")`)
	}
	p.wait(`document.querySelectorAll("main tbody tr").length >= 9`)
	var seqs []string
	decode(t, fmt.Sprint(p.eval(`JSON.stringify([...document.querySelectorAll("main tbody a")].map((a) => new URLSearchParams(a.hash.split("?")[1]).get("event")))`)), &seqs)
	if recorded := recordedCalls(t, s); !slices.Equal(seqs, recorded) {
		t.Errorf("the page shows the events %v, the record has %v", seqs, recorded)
	}
	if p.eval("window.loadedOnce") != true {
		t.Error("the page was loaded again")
	}
}

// The address changes before the page is told. Events that come in between belong to the place
// that the page still shows.
func TestPage_EventsWhileTheAddressChanges(t *testing.T) {
	s := startServer(t)
	browser := newBrowser(t)
	list, p := openTab(t, browser, s), openTab(t, browser, s)
	p.signIn("ann")
	p.goTo("#/task/" + startTask(t, s, "deny 1"))
	p.waitText("1 denied call")
	list.open("/#/task")
	list.waitText("deny 1")
	p.eval(`history.replaceState(null, "", "#/task"); 0`)
	startTask(t, s, "deny 3")
	list.waitText("3 denied") // by the stream that both share
	p.eval(`dispatchEvent(new HashChangeEvent("hashchange")); 0`)
	p.waitText("3 denied")
	p.checkProblems("events while the address changes")
}

// recordedCalls returns the sequence numbers of all calls, newest first.
func recordedCalls(t *testing.T, s *server) (seqs []string) {
	t.Helper()
	var page struct{ Items []struct{ Seq json.Number } }
	decode(t, s.send(t, "ann", "GET", "/api/v1/events?type=tool_call&limit=1000", ""), &page)
	for _, e := range page.Items {
		seqs = append(seqs, e.Seq.String())
	}
	return seqs
}

// Each screen shows an error with its code and keeps what it has shown.
func TestPage_StatesOfScreens(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	for place, empty := range map[string]string{"organization": "No task was started yet", "task": "No task was started yet", "artifacts": "No artifact was stored yet"} {
		p.goTo("#/" + place)
		p.waitText(empty)
		p.waitText("rolecall ")
	}
	startTask(t, s, "hello")
	p.goTo("#/start") // so that each screen below is loaded
	s.kill()
	for _, place := range screens {
		if place == "start" || place == "record" {
			continue // these are loaded below
		}
		p.eval(fmt.Sprintf("location.hash = %q; 0", "#/"+place))
		p.wait(fmt.Sprintf(`document.querySelector("nav a[aria-current=page]").hash === %q && document.querySelector(".failure") !== null`, "#/"+place))
		if text := p.text(); !strings.Contains(text, "no_answer") || !strings.Contains(text, "Try again") {
			t.Errorf("%s without a server shows\n%s", place, text)
		}
	}
	p.eval(`location.hash = "#/record"; 0`)
	p.wait(`document.querySelector(".failure") !== null`)
	s.start(t)
	p.click(".failure button")
	p.wait(`document.querySelector(".failure") === null && document.querySelectorAll("main tbody tr").length > 0`)
	s.kill()
	p.eval(`dispatchEvent(new PageTransitionEvent("pageshow", {persisted: false})); 0`)
	p.waitText("Not live since")
	p.waitText("task_started") // what was shown stays
}

// Top says that it has no history yet, draws what it has over the whole width, and goes on after the gateway was away.
func TestPage_TopHasHistory(t *testing.T) {
	s := startServer(t)
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.eval(`window.seen = ""; new MutationObserver(() => { window.seen += document.querySelector("main")?.innerText; }).observe(document.body, {childList: true, subtree: true}); 0`)
	p.goTo("#/top")
	p.wait(`document.querySelectorAll("main .plot canvas").length === 5`)
	p.wait(`window.seen.includes("No history yet: a point is added every 2 seconds while this page is open.")`)
	if p.eval(`document.querySelector("main").innerText.includes("No history yet")`) == true {
		t.Error("the page has a history and says that it has none")
	}
	p.waitText("Commits to the record in a second")
	s.kill()
	p.wait(`document.querySelector(".failure") !== null`)
	s.start(t)
	p.wait(`document.querySelector(".failure") === null && document.querySelectorAll("main .plot canvas").length === 5`)
	p.eval(`window.reads = 0; const f = window.fetch; window.fetch = (path, o) => { window.reads += path === "metrics"; return f(path, o); }; 0`)
	for range 3 { // leaving and returning starts no second clock
		p.goTo("#/tools")
		p.goTo("#/top")
	}
	p.eval(`window.reads = 0; new Promise((done) => setTimeout(done, 6500)).then(() => 0)`)
	if reads := p.milliseconds("window.reads"); reads > 4 {
		t.Errorf("the metrics were read %v times in 6.5 seconds", reads)
	}
}
