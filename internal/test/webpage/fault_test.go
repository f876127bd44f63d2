package webpage_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// The meta of an artifact is any JSON that an agent has written. No title of it breaks the screen.
func TestPage_ArtifactsWithAnyMeta(t *testing.T) {
	var items []string
	for n, meta := range []string{`{"title":{"nodeType":1}}`, `{"title":{"_$litType$":1}}`, `{"title":{"_$litDirective$":1}}`, `{"title":{"toString":0}}`, `{"name":[1]}`, `{"title":"A report"}`} {
		items = append(items, fmt.Sprintf(`{"id":"a%d","type":"report","mediaType":"text/plain","size":1,"createdAt":"2026-01-02T03:04:05Z","meta":%s}`, n, meta))
	}
	s := startServer(t).behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/artifacts" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[`+strings.Join(items, ",")+`],"more":false}`)
		return true
	})
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/artifacts/a0?filter=report")
	p.wait(`document.querySelectorAll("tbody tr").length === 6`)
	p.waitText("A report")
	p.checkProblems("artifacts")
}

// A difference shows all lines, however many there are.
func TestPage_DifferencesAreWhole(t *testing.T) {
	p := openTab(t, newBrowser(t), startServer(t))
	p.signIn("ann")
	diff := func(before, after string) string {
		return fmt.Sprint(p.eval(`(async () => {
			const { lineDiff } = await import(new URL("ui/app/line-diff.js", document.baseURI).href);
			const long = (c) => Array.from({ length: 2100 }, (_, n) => c + n).join("\n");
			return lineDiff(` + before + `, ` + after + `).filter((l) => l.kind !== "same").map((l) => l.kind[0] + l.text).join(",");
		})()`))
	}
	for _, tt := range []struct{ before, after, want string }{
		{`"a\nb\nc"`, `"a\nx\nc"`, "rb,ax"},
		{`""`, `"a"`, "aa"},
		{`"a\na"`, `"a"`, "ra"},
		{`"a\nb\nc\nd"`, `"b\nc\ne"`, "ra,rd,ae"},
		{`long("x") + "\nold"`, `long("x") + "\nnew"`, "rold,anew"},
	} {
		if got := diff(tt.before, tt.after); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.before, tt.after, got, tt.want)
		}
	}
	if got := diff(`long("x")`, `long("y")`); strings.Count(got, ",") != 2*2100-1 {
		t.Errorf("%d lines of two texts without an equal line are shown", strings.Count(got, ",")+1)
	}
}

// A dialog that comes late does not replace the one that the user is about to confirm.
func TestPage_DialogIsNotReplaced(t *testing.T) {
	p := openTab(t, newBrowser(t), startServer(t))
	p.signIn("ann")
	got := p.eval(`(async () => {
		const { ask } = await import(new URL("ui/app/dialog.js", document.baseURI).href);
		ask({ title: "Deny 2 calls", confirm: "Deny all", run: async () => 1 });
		const late = await ask({ title: "Approve 2 calls", confirm: "Approve all", run: async () => 2 });
		return late + " " + document.querySelector("#dialog button[type=submit]").textContent;
	})()`)
	if got != "undefined Deny all" {
		t.Errorf("the dialog is %q", got)
	}
}

// The page of older events begins after the events that are shown, also when new ones have come.
func TestPage_RecordHasOlderEventsAfterNewOnes(t *testing.T) {
	s := startServer(t)
	startTask(t, s, "deny 3")
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	got := p.eval(`(async () => {
		const { record } = await import(new URL("ui/app/record.js", document.baseURI).href);
		const data = { events: Array.from({ length: 100 }, (_, n) => ({ seq: 102 - n })), next: "" };
		record.fold(data, { seq: 103, type: "message" }, { params: {} });
		return (await fetch("api/v1/events?limit=1&cursor=" + data.next)).status + " " + data.events.length + " " + atob(data.next);
	})()`)
	if got != "200 100 4" {
		t.Errorf("got %q", got)
	}
	for filter, want := range map[string]string{`{}`: "true", `{ tool: "x" }`: "false", `{ caller: "ann" }`: "reload", `{ agent: "writer" }`: "reload"} {
		got := p.eval(`(async () => {
			const { record } = await import(new URL("ui/app/record.js", document.baseURI).href);
			return String(record.fold({ events: [] }, { seq: 1, type: "message" }, { params: ` + filter + ` }));
		})()`)
		if got != want {
			t.Errorf("with %s a new event is %v, want %s", filter, got, want)
		}
	}
}

// A sign-out that fails says so: the session stands.
func TestPage_FailedSignOutIsSaid(t *testing.T) {
	s := startServer(t).behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || r.URL.Path != "/ui/session" {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.eval(`[...document.querySelectorAll("button")].find((b) => b.innerText === "Sign out").click(); 0`)
	p.waitText("You are still signed in")
	if p.eval(`document.querySelector("nav") !== null`) != true {
		t.Error("the page shows the form to sign in")
	}
}

// A proxy may end the stream of approvals alone. It is opened again, and tells what has come meanwhile.
func TestPage_ApprovalStreamEndsAlone(t *testing.T) {
	s := startServer(t)
	var up atomic.Bool
	p := openTab(t, newBrowser(t), s.behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/approval-changes" || up.Load() {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		return true
	}))
	p.signIn("fay")
	p.goTo("#/approvals")
	p.waitText("No call waits for your approval.")
	s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"pay rent"}`)
	up.Store(true)
	p.waitText("Role payer wants to call write_file")
}
