package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// sdkList is a tools/list that the SDK answers, because of the additional member.
const sdkList = `{"jsonrpc":"2.0","id":1,"method":"tools/list","more":1}`

// takeListTurns takes all turns to encode a list that a sender may have.
func takeListTurns(t *testing.T, f *fixture, sender identity.Principal) (release func()) {
	t.Helper()
	var releases []func()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range max(4, 2*runtime.NumCPU()) / 2 {
		release, err := f.server.Limiter().AcquireList(ctx, sender)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// A list that the SDK encodes waits for the turn of its sender. Other requests of the sender,
// and lists of others, do not.
func TestHTTP_ListsOfSessionsWaitForTurn(t *testing.T) {
	f := openFixture(t)
	ann := map[string]string{"Mcp-Session-Id": f.initialize(t, "ann@tester", "/mcp", nil)}
	bob := map[string]string{"Mcp-Session-Id": f.initialize(t, "bob@tester", "/mcp", nil)}
	release := takeListTurns(t, f, identity.ByCaller("ann", f.roles["tester"]))
	answered := make(chan struct{}, 2)
	other := strings.Replace(sdkList, `"id":1`, `"id":3`, 1) // ids in flight differ
	for _, body := range []string{sdkList, "[" + other + "]"} {
		go func() {
			if got := f.post(t, "ann@tester", "/mcp", body, ann); got.status != 200 || !strings.Contains(got.body, `"name":"echo"`) {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
			answered <- struct{}{}
		}()
	}
	if receivedSoon(answered) {
		t.Error("a list did not wait for its turn")
	}
	if got := f.post(t, "bob@tester", "/mcp", sdkList, bob); got.status != 200 {
		t.Errorf("another sender: %d %s", got.status, got.body)
	}
	if got := f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, ann); got.status != 200 {
		t.Errorf("a call: %d %s", got.status, got.body)
	}
	release()
	waitFor(t, "the first list", answered)
	waitFor(t, "the second list", answered)
	takeListTurns(t, f, identity.ByCaller("ann", f.roles["tester"]))() // all were given back
	if got := f.post(t, "ann@tester", "/mcp", "["+sdkList+","+sdkList+"]", ann); got.status != 400 || !strings.Contains(got.body, "more than one tools/list") {
		t.Errorf("two lists in a batch: %d %s", got.status, got.body)
	}
}

// A turn does not end with the event that begins a stream, before the list is encoded.
func TestHTTP_ListsKeepTurnUntilEncoded(t *testing.T) {
	const prime, message = "event: prime\nid: a_0\ndata: \n\n", "event: message\nid: a_1\ndata: {\"jsonrpc\":\"2.0\"}\n\n"
	if n := mcpserver.WritesUntilEncoded(prime, message); n != 2 {
		t.Errorf("the turn ends with write %d, want 2", n)
	}
	if n := mcpserver.WritesUntilEncoded(`{"jsonrpc":"2.0"}`); n != 1 {
		t.Errorf("the turn ends with write %d, want 1", n)
	}
}

// A batch is answered when all its requests are. One that is slow does not keep the turn of a list.
func TestHTTP_SlowBatchEndsTurn(t *testing.T) {
	f := openFixture(t)
	header := map[string]string{"Accept": "application/json"}
	header["Mcp-Session-Id"] = f.initialize(t, "ann@tester", "/mcp", header)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.post(t, "ann@tester", "/mcp", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}]`, header)
	}()
	waitFor(t, "the tool starts", f.probe.began)
	takeListTurns(t, f, identity.ByCaller("ann", f.roles["tester"]))()
	f.post(t, "ann@tester", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, header)
	waitFor(t, "the batch ends", done)
}

func TestServeStdio_ListsWaitForTurn(t *testing.T) {
	f := openFixture(t)
	p := f.serveStdio(t, operator, "tester")
	answers := bufio.NewReader(p.Reader)
	exchange := func(message string) string {
		_, _ = io.WriteString(p.WriteCloser, message+"\n")
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		return line
	}
	exchange(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	release, answered := takeListTurns(t, f, operator), make(chan struct{}, 1)
	go func() {
		if got := exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(got, `"name":"echo"`) {
			t.Error(got)
		}
		answered <- struct{}{}
	}()
	if receivedSoon(answered) {
		t.Error("a list did not wait for its turn")
	}
	release()
	waitFor(t, "the list", answered)
	takeListTurns(t, f, operator)()
	held := takeListTurns(t, f, operator)
	_, _ = io.WriteString(p.WriteCloser, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
	p.WriteCloser.Close()
	p.Reader.(io.Closer).Close()
	held()
}

// Many sessions that ask for lists of MiB do not keep another caller's small calls waiting.
// The calls took up to seconds before; now it is tens of milliseconds, with a bound for a busy
// machine.
func TestHTTP_LargeListsDelayNoOther(t *testing.T) {
	f := openFixture(t)
	sessions, kib := 16, 4
	if !testing.Short() {
		sessions, kib = 48, 16
	}
	var tools []tool.Tool
	for i := range 200 {
		tools = append(tools, must(t)(tool.New(fmt.Sprintf("large_%d", i), strings.Repeat("describes ", kib*100), func(_ context.Context, in textArgs) (string, error) { return in.Text, nil }, nil)))
	}
	f.register(t, toolgroups.Group{ID: "large", Description: "large definitions", Tools: tools})
	f.setGroups(t, "tester", "probe", "large")
	id := map[string]string{"Mcp-Session-Id": f.initialize(t, "ann@tester", "/mcp", nil)}
	stop := make(chan struct{})
	var lists sync.WaitGroup
	for range sessions {
		lists.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f.post(t, "ann@tester", "/mcp", sdkList, id)
				}
			}
		})
	}
	for i := range 20 {
		began := time.Now()
		got := f.post(t, "bob@clerk", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i), nil)
		if took := time.Since(began); got.status != 200 || took > 5*time.Second {
			t.Errorf("a call of another: %d after %v", got.status, took)
		}
	}
	close(stop)
	lists.Wait()
}
