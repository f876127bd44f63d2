package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// kinds are the ways that a request can come: header, and what its params begin
// with.
func (h *house) kinds(t *testing.T) map[string]struct {
	header map[string]string
	meta   string
} {
	t.Helper()
	stream := h.initialize(t, "ann@tester", "/mcp", nil)
	plain := h.initialize(t, "ann@tester", "/mcp", map[string]string{"Accept": "application/json"})
	return map[string]struct {
		header map[string]string
		meta   string
	}{
		"without a session":   {map[string]string{"Mcp-Protocol-Version": "2025-11-25"}, ""},
		"in a session":        {map[string]string{"Mcp-Session-Id": stream}, ""},
		"in one of documents": {map[string]string{"Mcp-Session-Id": plain, "Accept": "application/json"}, ""},
		"in the new version":  {map[string]string{"Mcp-Protocol-Version": "2026-07-28"}, meta},
	}
}

// sent posts a request of one of the kinds.
func (h *house) sent(t *testing.T, header map[string]string, id, method, params string) answer {
	t.Helper()
	all := map[string]string{"Mcp-Method": method, "Mcp-Name": gjson.Get("{"+params+"}", "name").Str}
	for name, value := range header {
		all[name] = value
	}
	if id != "" {
		id = `"id":` + id + `,`
	}
	return h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0",`+id+`"method":"`+method+`","params":{`+params+`}}`, all)
}

func with(params, meta string) string {
	if params == "" || meta == "" {
		return params + meta
	}
	return params + "," + meta
}

// message gives the JSON of an answer, of a stream too.
func message(a answer) gjson.Result {
	_, data, ok := strings.Cut(a.body, "data: ")
	if !ok {
		data = a.body
	}
	return gjson.Parse(data)
}

func TestIDsAreEchoedAsTheyWere(t *testing.T) {
	h := open(t)
	for name, kind := range h.kinds(t) {
		t.Run(name, func(t *testing.T) {
			for _, id := range []string{`0`, `-1`, `9007199254740993`, `-9223372036854775809`, `123456789012345678901234567890`, `1.5`, `1e400`, `1.0`, `-0`, `"9007199254740993"`, `""`, `"é"`} {
				for method, params := range map[string]string{
					"tools/list": ``, "tools/call": `"name":"say","arguments":{"text":"9007199254740993"}`, "nobody/asks": ``,
					"resources/list": ``, // and what follows is read by the SDK
					"tools/call ":    `"name":"say","arguments":{"text":"9007199254740993"},"requestState":"x"`,
				} {
					got := h.sent(t, kind.header, id, strings.TrimSpace(method), with(params, kind.meta))
					m := message(got)
					if m.Get("id").Raw != id || strings.HasPrefix(method, "tools/call") && m.Get("result.content.0.text").Str != "9007199254740993" && name != "without a session" {
						t.Errorf("%s with the id %s: %d %.300s", method, id, got.status, got.body)
					}
				}
			}
			if got := message(h.sent(t, kind.header, `"a\u0062\/"`, "tools/list", kind.meta)); got.Get("id").Str != "ab/" {
				t.Errorf("a text: %s", got.Get("id").Raw)
			}
		})
	}
}

func TestIDsOfABatchAndOfSessionsThatBegin(t *testing.T) {
	h := open(t)
	plain := map[string]string{"Accept": "application/json", "Mcp-Protocol-Version": "2025-03-26"}
	got := h.post(t, "ann@tester", "/mcp", `{"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}},"jsonrpc":"2.0", "id" : 9007199254740993}`, plain)
	if got.status != 200 || gjson.Get(got.body, "id").Raw != "9007199254740993" {
		t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	plain["Mcp-Session-Id"] = got.header.Get("Mcp-Session-Id")
	got = h.post(t, "ann@tester", "/mcp", ` [{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}, {"jsonrpc":"2.0","id":9007199254740995,"method":"ping"}]`, plain)
	if ids := gjson.Get(got.body, "#.id").Raw; ids != "[9007199254740993,9007199254740995]" && ids != "[9007199254740995,9007199254740993]" {
		t.Errorf("a batch: %d %s", got.status, got.body)
	}
}

func TestIDsOnLinesAreEchoedAsTheyWere(t *testing.T) {
	h := open(t)
	in := `{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":-9223372036854775809,"method":"tools/list"}
`
	var out strings.Builder
	if err := h.mcp.ServeStdio(t.Context(), strings.NewReader(in), &out, operator, "tester"); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"id":9007199254740993,`) || !strings.Contains(got, `"id":-9223372036854775809,`) {
		t.Error(got)
	}
}

func TestACallOfALargeIDIsCancelled(t *testing.T) {
	h := open(t)
	id := h.initialize(t, "ann@tester", "/mcp", nil)
	for call, cancel := range map[string]string{
		`9007199254740993`: `9007199254740993`, `"a\u0062"`: `"ab"`,
	} {
		for _, more := range []string{``, `,"requestState":"x"`} { // which the SDK reads
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":`+call+`,"method":"tools/call","params":{"name":"wait"`+more+`}}`, map[string]string{"Mcp-Session-Id": id})
			}()
			soon(t, "the tool begins", h.probe.began)
			got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+cancel+`}}`, map[string]string{"Mcp-Session-Id": id})
			if got.status != http.StatusAccepted {
				t.Errorf("cancelled: %d %s", got.status, got.body)
			}
			soon(t, "the tool is cancelled", h.probe.ended)
			soon(t, "the request ends", done)
		}
	}
}

// Nobody waits for the answer to what has no id, and nothing is done about it.
func TestWithoutAnIDNothingIsAnsweredAndDone(t *testing.T) {
	h := open(t)
	for name, kind := range h.kinds(t) {
		for _, id := range []string{``, `null`} {
			for method, params := range map[string]string{
				"tools/list": ``, "tools/call": `"name":"wait"`, "initialize": `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`, "notifications/of/nobody": ``,
			} {
				if got := h.sent(t, kind.header, id, method, with(params, kind.meta)); got.status != http.StatusAccepted || got.body != "" {
					t.Errorf("%s, %s with the id %q: %d %s", name, method, id, got.status, got.body)
				}
			}
		}
	}
	if len(h.probe.began) != 0 {
		t.Error("a call without an id was made")
	}
}

func TestAnotherVersionIsToldWhichOnesThereAre(t *testing.T) {
	h := open(t)
	session := h.initialize(t, "ann@tester", "/mcp", nil)
	for _, version := range []string{"2024-10-07", "2025-11-26", "2099-01-01", "newest", "DRAFT-2026-v1", strings.Repeat("x", 1000)} {
		for _, id := range []string{"", session} {
			for _, method := range []string{"tools/list", "server/discover", "initialize", "ping", "nobody/asks"} {
				got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":"x","method":"`+method+`"}`, map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": id})
				e := gjson.Get(got.body, "error")
				if got.status != 400 || e.Get("code").Int() != -32022 || e.Get("data.supported").Raw != `["`+strings.Join(versions, `","`)+`"]` || !strings.HasPrefix(version, strings.TrimSuffix(e.Get("data.requested").Str, "…")) || gjson.Get(got.body, "id").Raw != `"x"` || len(got.body) > 500 {
					t.Errorf("%.20s of %.20s: %d %s", method, version, got.status, got.body)
				}
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				r, _ := http.NewRequestWithContext(t.Context(), method, h.url+"/mcp", nil)
				if got := h.send(t, "ann@tester", r, map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": version}); got.status != 400 || gjson.Get(got.body, "error.code").Int() != -32022 {
					t.Errorf("%s of %.20s: %d %s", method, version, got.status, got.body)
				}
			}
		}
	}
	if got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": session}); got.status != 200 {
		t.Errorf("after all that: %d %s", got.status, got.body)
	}
}

// What a client says it accepts is looked at, if it says anything.
func TestWhoDoesNotSayWhatItAcceptsIsAnswered(t *testing.T) {
	h := open(t)
	session := ""
	for _, accept := range [][]string{nil, {""}, {"*/*"}, {"application/json"}} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}`,
		} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if accept != nil {
				r.Header["Accept"] = accept
			}
			if session != "" && !strings.Contains(body, "initialize") {
				r.Header.Set("Mcp-Session-Id", session)
			}
			got, err := as{sender: "ann@tester"}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(got.Body)
			got.Body.Close()
			if id := got.Header.Get("Mcp-Session-Id"); id != "" {
				session = id
			}
			if got.StatusCode != 200 || got.Header.Get("Content-Type") != "application/json" || !gjson.GetBytes(text, "result").Exists() {
				t.Errorf("%q, %s: %d %s", accept, body, got.StatusCode, text)
			}
		}
	}
	stream := h.initialize(t, "ann@tester", "/mcp", nil)
	for _, accept := range []string{"", "*/*"} {
		if got := h.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Accept": accept, "Mcp-Session-Id": stream}); got.status != 200 {
			t.Errorf("%q in a session of streams: %d %s", accept, got.status, got.body)
		}
	}
}

func TestASlashAtTheEndIsTheSame(t *testing.T) {
	h := open(t)
	h.declare(t)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, path := range []string{"/mcp/flights/find", "/roles/flyer/mcp/flights/find", "/mcp/flights%2Ffind", "/mcp/probe", "/mcp/nowhere", "/mcp", "/roles/flyer/mcp"} {
		without, slashed := h.post(t, "ann@flyer", path, list, nil), h.post(t, "ann@flyer", path+"/", list, nil)
		if without.status != slashed.status || without.body != slashed.body {
			t.Errorf("%s: %d %s, and with a slash %d %s", path, without.status, without.body, slashed.status, slashed.body)
		}
	}
	if got := h.post(t, "ann@flyer", "/mcp/%2F", list, nil); !strings.Contains(got.body, "does not exist") {
		t.Errorf("a slash alone: %d %s", got.status, got.body)
	}
	id := h.initialize(t, "ann@flyer", "/mcp/flights/find/", nil)
	if got := h.post(t, "ann@flyer", "/mcp/flights/find", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, map[string]string{"Mcp-Session-Id": id}); got.status != 200 {
		t.Errorf("a session that began at one: %d %s", got.status, got.body)
	}
}

// talkative registers a tool that reports its progress until it is told to stop,
// and a channel that says when it was.
func (h *house) talkative(t *testing.T) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{}, 1)
	talk := made(t)(tool.New("talk", "says much", func(ctx context.Context, _ nothing) (string, error) {
		defer func() { ended <- struct{}{} }()
		for i := 1.0; ctx.Err() == nil; i++ {
			tool.Report(ctx, tool.Progress{Done: i, Message: strings.Repeat("x", 1000)})
		}
		return "", ctx.Err()
	}, nil))
	h.register(t, toolgroups.Group{ID: "talk", Description: "d", Tools: []tool.Tool{talk}})
	h.role(t, "talker", "talk")
	return ended
}

// A client that does not read what a call tells it loses the call.
func TestWhoDoesNotReadAStreamHoldsNothing(t *testing.T) {
	h := plan{config: mcpserver.Config{WriteTimeout: 50 * time.Millisecond, Calls: 1}}.open(t)
	ended := h.talkative(t)
	id := h.initialize(t, "ann@talker", "/mcp", nil)
	for name, c := range map[string]struct{ header, params string }{
		"without a session": {"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: talk", strings.Replace(meta, `{`, `{"progressToken":1,`, 1)},
		"in a session":      {"Mcp-Session-Id: " + id, `"_meta":{"progressToken":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk",` + c.params + `}}`
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: here\r\nSender: ann@talker\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%s\r\nContent-Length: %d\r\n\r\n%s", c.header, len(body), body)
			if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				t.Fatalf("%s %v", line, err)
			}
			soon(t, "the call ends", ended)
			h.free(t, "ann@talker")
		})
	}
}

// Nor does one that does not read a document.
func TestWhoDoesNotReadADocumentHoldsNothing(t *testing.T) {
	h := plan{config: mcpserver.Config{WriteTimeout: 50 * time.Millisecond, Calls: 1}}.open(t)
	large := made(t)(tool.New("large", "says much at once", func(context.Context, nothing) (string, error) { return strings.Repeat("x", 16<<20), nil }, nil))
	h.register(t, toolgroups.Group{ID: "large", Description: "d", Tools: []tool.Tool{large}})
	h.role(t, "reader", "large")
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: here\r\nSender: ann@reader\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%s %v", line, err)
	}
	h.free(t, "ann@reader")
}

// free waits until a sender, who may do one thing at once, does nothing.
func (h *house) free(t *testing.T, sender string) {
	t.Helper()
	for h.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil).status == http.StatusTooManyRequests {
		continue
	}
}
