package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// curiousModel makes root call secret_tool and then answer.
func curiousModel(r model.Request) model.Answer {
	if gatewaytest.CountAnswers(r) == 0 {
		return gatewaytest.ToolCallAnswer("secret_tool", obj{})
	}
	return gatewaytest.EndAnswer("done")
}

// newEventFixture returns a fixture with a task of the operator, a task and two calls of
// the caller ann, of which one is denied, and a denied call of bob.
func newEventFixture(t *testing.T) (f *gatewaytest.Fixture, role org.Role, operators, anns org.Task) {
	t.Helper()
	f = newFixture(t, gatewaytest.ModelFunc(curiousModel))
	f.AddTool(t, "desk/mine", "own_tool")
	f.AddTool(t, "secret/theirs", "secret_tool")
	role = f.AddRole(t, "mine", "desk/mine")
	operators, anns = f.RunTask(t, "secret task"), runTaskAs(t, f, identity.ByCaller("ann", role.ID))
	invoke(t, f, identity.ByCaller("ann", role.ID), "own_tool")
	invoke(t, f, identity.ByCaller("ann", role.ID), "secret_tool")
	invoke(t, f, identity.ByCaller("bob", role.ID), "secret_tool")
	if err := f.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	return f, role, operators, anns
}

// runTaskAs runs a task of a caller to its end.
func runTaskAs(t *testing.T, f *gatewaytest.Fixture, by identity.Principal) org.Task {
	t.Helper()
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "hers", Caller: by})
	if err != nil {
		t.Fatal(err)
	}
	task, err := f.Runtime.WaitTask(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// invoke calls a tool as an external caller.
func invoke(t *testing.T, f *gatewaytest.Fixture, by identity.Principal, name string) {
	t.Helper()
	if _, err := f.Runtime.InvokeTool(t.Context(), by, name, nil); err != nil {
		t.Fatal(err)
	}
}

// publicEvents returns the public events of a store, oldest first.
func publicEvents(t *testing.T, f *gatewaytest.Fixture) (list []journal.Event) {
	t.Helper()
	for _, e := range gatewaytest.CollectAll(t, f.Store.FollowEvents(t.Context(), 0, journal.StoredOnly)) {
		if journal.IsPublic(e.Body) {
			list = append(list, e)
		}
	}
	return list
}

// seqsOf returns the numbers of events.
func seqsOf(list []journal.Event) []uint64 {
	seqs := []uint64{}
	for _, e := range list {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// newest returns the newest events of a query, oldest first.
func newest(t *testing.T, c *client.Client, q client.EventQuery, limit int) []journal.Event {
	t.Helper()
	page, err := c.NewestEvents(t.Context(), q, limit)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(page.Items)
	return page.Items
}

// Pages of every size have all public events once, newest first, and so has the stream,
// oldest first.
func TestOrgEvents_PagesAndStreamHaveAllEvents(t *testing.T) {
	f, _, _, _ := newEventFixture(t)
	want := seqsOf(publicEvents(t, f))
	for _, limit := range []string{"1", "7", "1000", "1000000"} {
		got, cursor := []uint64{}, ""
		for {
			status, text := f.SendText(t, "/api/v1/events?limit="+limit+"&cursor="+cursor, "")
			var page client.Events
			if err := json.Unmarshal([]byte(text), &page); status != http.StatusOK || err != nil {
				t.Fatalf("%d %s: %v", status, text, err)
			}
			if page.Last != f.Store.LastSeq() {
				t.Errorf("last is %d, want %d", page.Last, f.Store.LastSeq())
			}
			if got = append(got, seqsOf(page.Items)...); page.Next == "" {
				break
			}
			cursor = page.Next
		}
		slices.Reverse(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %s (-want +got):\n%s", limit, diff)
		}
	}
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		got := gatewaytest.CollectAll(t, dial(f).StreamEvents(t.Context(), client.EventQuery{}, false))
		if diff := cmp.Diff(want, seqsOf(got)); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
		if got := seqsOf(newest(t, dial(f), client.EventQuery{}, 3)); !slices.Equal(got, want[len(want)-3:]) {
			t.Errorf("the newest 3 are %v, want %v", got, want[len(want)-3:])
		}
	})
}

func TestOrgEvents_Filters(t *testing.T) {
	f, role, operators, anns := newEventFixture(t)
	all := publicEvents(t, f)
	isCall := func(e journal.Event) (tool, caller string, denied bool) {
		switch b := e.Body.(type) {
		case journal.ToolCall:
			return b.Tool, b.Caller, b.Decision == journal.Denied
		case journal.ToolResult:
			return b.Tool, b.Caller, false
		case journal.ToolError:
			return b.Tool, b.Caller, false
		}
		return "", "", false
	}
	callerOf := func(e journal.Event) string {
		switch e.Task {
		case operators.ID:
			return "operator"
		case anns.ID:
			return anns.Caller
		}
		_, caller, _ := isCall(e)
		return caller
	}
	ann := identity.ByCaller("ann", role.ID).String()
	for name, c := range map[string]struct {
		q    client.EventQuery
		want func(journal.Event) bool
	}{
		"task":               {client.EventQuery{Task: string(anns.ID)}, func(e journal.Event) bool { return e.Task == anns.ID }},
		"agent":              {client.EventQuery{Agent: string(operators.Top)}, func(e journal.Event) bool { return e.Agent == operators.Top || e.Stream == operators.Top }},
		"role":               {client.EventQuery{Role: "mine"}, func(e journal.Event) bool { return e.Role == "mine" }},
		"role by id":         {client.EventQuery{Role: string(role.ID)}, func(e journal.Event) bool { return e.Role == "mine" }},
		"caller by name":     {client.EventQuery{Caller: "ann"}, func(e journal.Event) bool { return callerOf(e) == ann }},
		"caller as recorded": {client.EventQuery{Caller: ann}, func(e journal.Event) bool { return callerOf(e) == ann }},
		"operator":           {client.EventQuery{Caller: "operator"}, func(e journal.Event) bool { return callerOf(e) == "operator" }},
		"unknown caller":     {client.EventQuery{Caller: "an"}, func(journal.Event) bool { return false }},
		"tool":               {client.EventQuery{Tool: "secret_tool"}, func(e journal.Event) bool { tool, _, _ := isCall(e); return tool == "secret_tool" }},
		"denied":             {client.EventQuery{Denied: true}, func(e journal.Event) bool { _, _, denied := isCall(e); return denied }},
		"types":              {client.EventQuery{Types: []journal.EventType{"tool_call", "result"}}, func(e journal.Event) bool { return e.Body.EventType() == "tool_call" || e.Body.EventType() == "result" }},
		"after":              {client.EventQuery{After: all[4].Seq}, func(e journal.Event) bool { return e.Seq > all[4].Seq }},
		"since long ago":     {client.EventQuery{Since: "1000h"}, func(journal.Event) bool { return true }},
		"since now":          {client.EventQuery{Since: "0s"}, func(journal.Event) bool { return false }},
		"a tool and a caller": {client.EventQuery{Tool: "secret_tool", Caller: "bob"}, func(e journal.Event) bool {
			tool, _, _ := isCall(e)
			return tool == "secret_tool" && callerOf(e) != ann && e.Task == ""
		}},
	} {
		want := []uint64{}
		for _, e := range all {
			if c.want(e) {
				want = append(want, e.Seq)
			}
		}
		if diff := cmp.Diff(want, seqsOf(newest(t, f.LocalClient(), c.q, 1000))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got := gatewaytest.CollectAll(t, f.LocalClient().StreamEvents(t.Context(), c.q, false))
		if diff := cmp.Diff(want, seqsOf(got)); diff != "" {
			t.Errorf("stream, %s (-want +got):\n%s", name, diff)
		}
	}
	for _, query := range []string{"type=tool_call&type=result", "type=tool_call,result,,tool_call", "type=%20tool_call%20,result"} {
		if _, text := f.SendText(t, "/api/v1/events?"+query, ""); strings.Count(text, `"type":"tool_call"`)+strings.Count(text, `"type":"result"`) != strings.Count(text, `"type":`) || !strings.Contains(text, "result") {
			t.Errorf("%s: %s", query, text)
		}
	}
}

// A caller sees the events of its tasks and its calls, and nothing else, whatever it asks
// for.
func TestOrgEvents_CallerSeesItsOwn(t *testing.T) {
	f, role, operators, anns := newEventFixture(t)
	ann := identity.ByCaller("ann", role.ID).String()
	c := f.WithCaller(t, role.ID).LocalClient()
	var want []uint64
	for _, e := range publicEvents(t, f) {
		text := asJSON(e)
		if e.Task == anns.ID || e.Task == "" && strings.Contains(text, ann) {
			want = append(want, e.Seq)
		}
	}
	if len(want) < 8 {
		t.Fatalf("ann has %d events", len(want))
	}
	for name, list := range map[string][]journal.Event{
		"page":   newest(t, c, client.EventQuery{}, 1000),
		"caller": newest(t, c, client.EventQuery{Caller: "ann"}, 1000),
		"stream": gatewaytest.CollectAll(t, c.StreamEvents(t.Context(), client.EventQuery{}, false)),
	} {
		if diff := cmp.Diff(want, seqsOf(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, e := range list {
			if text := asJSON(e); strings.Contains(text, "tool_not_available") || strings.Contains(text, "secret/theirs") {
				t.Errorf("the event tells that secret_tool exists: %s", text)
			}
		}
	}
	for name, q := range map[string]client.EventQuery{"bob": {Caller: "bob"}, "the operator": {Caller: "operator"}, "a role": {Role: "secret keepers"}} {
		if got := newest(t, c, q, 1000); len(got) != 0 {
			t.Errorf("events of %s: %v", name, got)
		}
	}
	if got := newest(t, c, client.EventQuery{Task: string(anns.ID)}, 1000); len(got) == 0 {
		t.Error("no events of its own task")
	}
	if got := newest(t, c, client.EventQuery{Agent: string(anns.Top)}, 1000); len(got) == 0 {
		t.Error("no events of an agent of its own task")
	}
	for _, param := range []string{"task", "agent"} { // another's is answered as an unknown one
		ids := map[string]string{"task": string(operators.ID), "agent": string(operators.Top)}
		caller := f.WithCaller(t, role.ID)
		gotStatus, got := caller.SendText(t, "/api/v1/events?"+param+"="+ids[param], "")
		wantStatus, want := caller.SendText(t, "/api/v1/events?"+param+"=nonesuch", "")
		if got = strings.ReplaceAll(got, ids[param], "nonesuch"); gotStatus != http.StatusNotFound || wantStatus != gotStatus || got != want {
			t.Errorf("%s: %d %s, want %s", param, gotStatus, got, want)
		}
	}
	if status, text := f.WithCaller(t, role.ID).SendText(t, "/api/v1/events?agent=root", ""); status != http.StatusNotFound {
		t.Errorf("an agent by its role: %d %s", status, text)
	}
}

// A denied call of a tool that the role of a caller does not have is shown to it exactly
// like that of a tool that does not exist.
func TestOrgEvents_DenialsHideTools(t *testing.T) {
	f, role, _, _ := newEventFixture(t)
	by := identity.ByCaller("ann", role.ID)
	invoke(t, f, by, "nonesuch111")
	if err := f.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	c := f.WithCaller(t, role.ID).LocalClient()
	shapes := map[string][]string{}
	for _, name := range []string{"secret_tool", "nonesuch111"} {
		for _, e := range newest(t, c, client.EventQuery{Tool: name}, 1000) {
			if e.Task != "" {
				continue
			}
			e.Seq, e.At = 0, time.Time{}
			switch b := e.Body.(type) {
			case journal.ToolCall:
				b.Call, b.Epoch = "", 0
				e.Body = b
			case journal.ToolError:
				b.Call = ""
				e.Body = b
			}
			shapes[name] = append(shapes[name], strings.ReplaceAll(asJSON(e), name, "NAME"))
		}
	}
	if diff := cmp.Diff(shapes["nonesuch111"], shapes["secret_tool"]); diff != "" || len(shapes["secret_tool"]) != 2 {
		t.Errorf("(-unknown +secret):\n%s", diff)
	}
	if got := newest(t, f.LocalClient(), client.EventQuery{Tool: "secret_tool", Caller: "ann", Denied: true}, 10); got[len(got)-1].Body.(journal.ToolCall).Code != errcode.ToolNotAvailable {
		t.Errorf("the operator is shown %+v", got)
	}
}

func TestOrgEvents_BadInput(t *testing.T) {
	f, _, _, _ := newEventFixture(t)
	sse := "/sse"
	for query, field := range map[string]string{
		"user=ann": "user", "type*=result": "type*", "task=a&task=b": "task", "denied=maybe": "denied",
		"limit=0": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=1e3": "limit", "limit=99999999999999999999": "limit",
		"after=-1": "after", "after=x": "after", "after=18446744073709551615": "after",
		"since=tomorrow": "since", "since=-5m": "since", "since=2999-01-01T00:00:00Z": "since", "since=2026-01-31": "since", "since=1e9h": "since",
		"type=nonesuch": "type", "type=message_taken": "type", "type=tool_call,gap": "type", "type=model_delta": "type",
		"cursor=%21": "cursor", "cursor=eA": "cursor", "cursor=MA": "cursor", "follow=1": "follow", "follow=x": "follow",
		"cursor=MQ&follow=1" + sse: "cursor",
	} {
		header := http.Header{}
		query, streams := strings.CutSuffix(query, sse)
		if streams {
			header = sseHeader
		}
		answer := f.SendRequest(t, "/api/v1/events?"+query, "", header)
		var body wire.ErrorBody
		if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusBadRequest || body.Error.Code != errcode.InvalidArguments || body.Error.Details["field"] != field {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
	for _, query := range []string{"task=nonesuch", "agent=nonesuch", "task=%00%1b", "agent=.."} {
		if status, text := f.SendText(t, "/api/v1/events?"+query, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	for _, query := range []string{"", "role=nonesuch", "tool=%1b", "caller=%00", "after=18446744073709551614", "type=", "type=,"} {
		if status, text := f.SendText(t, "/api/v1/events?"+query, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	header := sseHeader.Clone()
	header.Set("Last-Event-ID", "x")
	if got := f.SendRequest(t, "/api/v1/events", "", header); got.Code != http.StatusBadRequest {
		t.Errorf("Last-Event-ID x: %d", got.Code)
	}
}

// A stream of server-sent events continues after the last event that the client has
// received, whatever its query says.
func TestOrgEvents_ResumeAfterLastEventID(t *testing.T) {
	f, _, _, _ := newEventFixture(t)
	all := seqsOf(publicEvents(t, f))
	stream := func(query string, header http.Header) []uint64 {
		answer := f.SendRequest(t, "/api/v1/events?"+query, "", header)
		if got := answer.Header().Get("Content-Type"); answer.Code == http.StatusOK && got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
		return eventIDs(t, answer.Body.String())
	}
	if diff := cmp.Diff(all, stream("", sseHeader)); diff != "" {
		t.Errorf("the newest 100 (-want +got):\n%s", diff)
	}
	if got := stream("limit=2", sseHeader); !slices.Equal(got, all[len(all)-2:]) {
		t.Errorf("the newest 2: %v", got)
	}
	if got := stream(fmt.Sprint("limit=2&after=", all[1]), sseHeader); !slices.Equal(got, all[len(all)-2:]) {
		t.Errorf("the newest 2 after one: %v", got)
	}
	if got := stream(fmt.Sprint("after=", all[1]), sseHeader); !slices.Equal(got, all[2:]) {
		t.Errorf("after the second: %v", got)
	}
	header := sseHeader.Clone()
	header.Set("Last-Event-ID", fmt.Sprint(all[2]))
	if got := stream("limit=1&since=0s", header); len(got) != 0 {
		t.Errorf("since now: %v", got)
	}
	if got := stream("limit=1", header); !slices.Equal(got, all[3:]) {
		t.Errorf("resumed: %v, want %v", got, all[3:])
	}
	header.Set("Last-Event-ID", fmt.Sprint(all[len(all)-1]))
	if got := f.SendRequest(t, "/api/v1/events", "", header); got.Code != http.StatusNoContent {
		t.Errorf("resumed after the last: %d, want 204", got.Code)
	}
}

// A stream that follows has what happens later, in the order of the log, and only what the
// query selects.
func TestOrgEvents_Follow(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		f, role, _, _ := newEventFixture(t)
		c := dial(f)
		next, stop := iter.Pull2(c.StreamEvents(t.Context(), client.EventQuery{Denied: true, After: f.Store.LastSeq()}, true))
		defer stop()
		for _, user := range []identity.UserName{"ann", "bob"} {
			by := identity.ByCaller(user, role.ID)
			invoke(t, f, by, "own_tool")
			invoke(t, f, by, "secret_tool")
			e, err, ok := next()
			if call, denied := e.Body.(journal.ToolCall); !ok || err != nil || !denied || call.Caller != by.String() || call.Decision != journal.Denied {
				t.Errorf("got %+v, %v", e, err)
			}
		}
	})
}

// readCounter counts the events that are read from the log.
type readCounter struct {
	journal.Store
	read *int
}

func (s readCounter) EventsBefore(ctx context.Context, match journal.EventFilter, before uint64) iter.Seq2[journal.Event, error] {
	return s.Store.EventsBefore(ctx, func(h journal.EventHead) bool { *s.read++; return match(h) }, before)
}

func (s readCounter) FollowMatching(ctx context.Context, match journal.EventFilter, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	return s.Store.FollowMatching(ctx, func(h journal.EventHead) bool { *s.read++; return match(h) }, after, wait)
}

// addEvents commits n small events of an hour ago.
func addEvents(t testing.TB, store journal.Store, n int) {
	t.Helper()
	at := time.Now().UTC().Add(-time.Hour)
	for n > 0 {
		part := min(n, 5000)
		n -= part
		b := &journal.Batch{}
		for i := range part {
			b.Events = append(b.Events, journal.Event{At: at, Role: "filler", Body: journal.ContextCompressed{Summary: "s", Items: i + 1}})
		}
		if _, err := store.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// A request reads a bounded part of a long log. The newest page reads what it returns. A
// search that finds nothing reads up to its limit. A stream that follows reads nothing of
// the past.
func TestOrgEvents_ReadsBoundedPart(t *testing.T) {
	read := 0
	store := readCounter{persisttest.Open(t), &read}
	f := gatewaytest.NewFixture(t, store, gatewaytest.ModelFunc(curiousModel))
	f.RunTask(t, "go")
	n := short.Count(22_000, 120_000)
	addEvents(t, store, n)
	count := func(do func()) int {
		read = 0
		do()
		return read
	}
	page := func(query string) (page client.Events) {
		if _, text := f.SendText(t, "/api/v1/events?"+query, ""); json.Unmarshal([]byte(text), &page) != nil {
			t.Fatal(text)
		}
		return page
	}
	if got := count(func() { page("limit=10") }); got > 256 {
		t.Errorf("the newest page reads %d events", got)
	}
	var found client.Events
	if got := count(func() { found = page("denied=1") }); got > 20_256 || found.Next == "" || len(found.Items) != 0 {
		t.Errorf("a search reads %d events and returns %+v", got, found)
	}
	if got := newest(t, f.LocalClient(), client.EventQuery{Denied: true}, 5); len(got) != 1 {
		t.Errorf("all pages have %d denied calls, want 1", len(got))
	}
	if got := count(func() { page(fmt.Sprint("denied=1&after=", f.Store.LastSeq()-10)) }); got > 256 {
		t.Errorf("a search after an event reads %d events", got)
	}
	if got := count(func() { page("since=0s") }); got > 256 {
		t.Errorf("a search since now reads %d events", got)
	}
	next, stop := iter.Pull2(f.LocalClient().StreamEvents(t.Context(), client.EventQuery{After: f.Store.LastSeq()}, true))
	defer stop()
	if got := count(func() { addEvents(t, store, 1); next() }); got > 2 {
		t.Errorf("a stream that follows reads %d events", got)
	}
}

// A stream that finds nothing for long ends with a gap, after which the client continues.
func TestOrgEvents_LongSearchEndsWithGap(t *testing.T) {
	f := newFixture(t, gatewaytest.ModelFunc(curiousModel))
	addEvents(t, f.Store, 100_100)
	f.RunTask(t, "go")
	answer := f.SendRequest(t, "/api/v1/events?after=0&denied=1", "", sseHeader)
	if got := answer.Body.String(); !strings.Contains(got, `"type":"gap"`) || strings.Contains(got, "tool_call") || !slices.Equal(eventIDs(t, got), []uint64{100_000}) {
		t.Errorf("got %q", got)
	}
	if got := gatewaytest.CollectAll(t, f.LocalClient().StreamEvents(t.Context(), client.EventQuery{Denied: true}, false)); len(got) != 1 {
		t.Errorf("the client has %d events, want 1", len(got))
	}
}
