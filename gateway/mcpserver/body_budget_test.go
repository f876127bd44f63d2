package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
)

// bigBody is a reader of n bytes.
func bigBody(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestReadBody_LimitsBytesInProgress(t *testing.T) {
	l := mcpserver.NewConcurrencyLimiter(0)
	const limit = 8 << 20
	user := func(i int) identity.Principal { return identity.ByCaller(identity.UserName(fmt.Sprint(i)), "r") }
	read := func(who int, size, declared int64) (release func(), code errcode.Code) {
		data, release, err := l.ReadBody(bigBody(size), user(who), declared, limit)
		if err == nil && int64(len(data)) != size {
			t.Errorf("read %d bytes of %d", len(data), size)
		}
		return release, errcode.CodeOf(err)
	}
	var releases []func()
	for range 4 {
		release, code := read(1, limit, limit)
		if code != "" {
			t.Fatalf("a body within the limit: %s", code)
		}
		releases = append(releases, release)
	}
	if _, code := read(1, 65<<10, -1); code != errcode.RateLimited {
		t.Errorf("a large body over the sender's limit: %q", code)
	}
	if _, code := read(1, 1000, 1000); code != "" {
		t.Errorf("a small body over the sender's limit: %q", code)
	}
	if release, code := read(2, limit, -1); code != "" {
		t.Errorf("another sender: %q", code)
	} else {
		release()
		release()
	}
	releases[0]()
	release, code := read(1, 1<<20, -1)
	if code != "" {
		t.Errorf("after a body was released: %q", code)
	}
	if _, code := read(1, 7<<20, 7<<20); code != "" {
		t.Errorf("a body takes more than its size: %q", code)
	}
	release()
}

// Many senders together leave room for the small bodies of each other.
func TestReadBody_LimitsAllSenders(t *testing.T) {
	l := mcpserver.NewConcurrencyLimiter(0)
	const limit = 8 << 20
	total := 0
	for i := range 20 {
		for range 4 {
			data, _, err := l.ReadBody(bigBody(limit), identity.ByCaller(identity.UserName(fmt.Sprint(i)), "r"), limit, limit)
			if errcode.CodeOf(err) == errcode.RateLimited {
				continue
			}
			total += len(data)
		}
	}
	if total > 128<<20 || total < 96<<20 {
		t.Errorf("all senders together have %d MiB", total>>20)
	}
}

// bigCall returns a call whose body has some 8 MB.
func bigCall(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":"%s"}}}`, id, tool, strings.Repeat("x", 8<<20-1000))
}

func TestHTTP_LimitsBodiesInProgress(t *testing.T) {
	f := openFixture(t)
	hold := fillBudget(t, f, "ann@tester")
	got := f.post(t, "ann@tester", "/mcp", bigCall(1, "say"), nil)
	if got.status != http.StatusTooManyRequests || gjson.Get(got.body, "error.code").Int() == 0 {
		t.Errorf("over the limit: %d %.200s", got.status, got.body)
	}
	if got := f.post(t, "bob@tester", "/mcp", bigCall(1, "say"), nil); got.status != http.StatusOK {
		t.Errorf("another sender: %d %.200s", got.status, got.body)
	}
	hold()
	if got := f.post(t, "ann@tester", "/mcp", bigCall(1, "say"), nil); got.status != http.StatusOK {
		t.Errorf("after the release: %d %.200s", got.status, got.body)
	}
}

func TestStdio_LimitsLinesInProgress(t *testing.T) {
	f := openFixture(t)
	in, client := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- f.server.ServeStdio(t.Context(), in, out, mcpserver.StdioClient{Sender: operator, Role: "tester"})
	}()
	lines := bufio.NewReader(answers)
	exchange := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	exchange(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	hold := fillBudget(t, f, "operator")
	if got := exchange(bigCall(1, "say")); !strings.Contains(got, "leaves no room") {
		t.Errorf("over the limit: %.200s", got)
	}
	hold()
	for i := range 5 { // each line is released with its answer
		if got := exchange(bigCall(2+i, "say")); !strings.Contains(got, "result_too_large") {
			t.Errorf("call %d: %.200s", i, got)
		}
	}
	client.Close()
	out.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// fillBudget takes all bytes that a sender may have in progress.
func fillBudget(t *testing.T, f *fixture, sender string) (release func()) {
	t.Helper()
	by := f.sender(&http.Request{Header: http.Header{"Sender": {sender}}})
	var releases []func()
	for range 4 {
		_, release, err := f.server.Limiter().ReadBody(bigBody(8<<20), by, 8<<20, 8<<20)
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
