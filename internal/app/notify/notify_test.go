package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/app/notify"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/toolgroups"
)

// Secrets of the tests: the key of signatures, one that arguments have, and the path of a chat.
const (
	signingKey = "a key of more than 24 bytes"
	password   = "hunter2-hunter2"
	chatPath   = "/services/T0/B0/chat-secret"
)

var signingSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(signingKey))

// fixture is a journal with a store of positions.
type fixture struct {
	t     *testing.T
	log   *memory.Store
	logs  buffer.SyncBuffer
	store *store
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, log: memory.New(), store: &store{left: -1}}
	t.Cleanup(func() { f.log.Close() })
	return f
}

// store keeps one value. It fails after a number of writes, as the store of a process that dies.
type store struct {
	mu          sync.Mutex
	value       []byte
	left        int    // writes until it fails; -1 for no limit
	failedReads int    // reads that fail before the others
	afterRead   func() // is called after each read that does not fail; may be nil
}

func (s *store) ReadValue(context.Context, toolgroups.GroupOwner) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failedReads > 0 {
		s.failedReads--
		return nil, errors.New("the store cannot be read")
	}
	if s.afterRead != nil {
		s.afterRead()
	}
	return s.value, nil
}

func (s *store) WriteValue(_ context.Context, _ toolgroups.GroupOwner, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return errors.New("the process died")
	}
	if s.left > 0 {
		s.left--
	}
	s.value = value
	return nil
}

// position returns the stored positions.
func (s *store) position() string {
	value, _ := s.ReadValue(context.Background(), "")
	return string(value)
}

// engine begins to send to receivers, as a new process.
func (f *fixture) engine(list ...config.Notification) (*notify.Engine, func()) {
	f.t.Helper()
	e := f.newEngine()
	if err := e.ReplaceReceivers(f.t.Context(), list); err != nil {
		f.t.Fatal(err)
	}
	return e, f.run(e)
}

// newEngine returns an engine without receivers.
func (f *fixture) newEngine() *notify.Engine {
	f.t.Helper()
	e, err := notify.NewEngine(notify.Config{
		Journal: f.log, Store: f.store, Log: slog.New(slog.NewTextHandler(&f.logs, nil)), Delays: backoff.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
		Redact: func() *redact.Redactor { return redact.New(password, signingSecret, chatPath) },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// run runs an engine until stop is called or the test ends.
func (f *fixture) run(e *notify.Engine) (stop func()) {
	stop = e.Run(f.t.Context())
	f.t.Cleanup(stop)
	return stop
}

// commit adds events to the journal.
func (f *fixture) commit(bodies ...journal.EventBody) {
	f.t.Helper()
	b := journal.Batch{}
	for _, body := range bodies {
		b.Events = append(b.Events, journal.Event{At: time.Now(), Role: "clerk", Task: "t1", Body: body})
	}
	if _, err := f.log.Commit(f.t.Context(), &b); err != nil {
		f.t.Fatal(err)
	}
}

// request returns a request for approval.
func request(n int) journal.ApprovalRequested {
	return journal.ApprovalRequested{
		Approval: fmt.Sprint("request", n), Tool: "transfer", Digest: "d", Args: json.RawMessage(`{"amount":5,"note":"` + password + `"}`), Reason: "The invoice is due.", For: "clara",
		Rules: json.RawMessage(`[{"tools":["transfer"],"from":{"all":[{"role":"finance"},{"role":"security","count":2}]}}]`), Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// delivery is a request that a receiver got.
type delivery struct {
	id, at, signature string
	body              string
}

// receiver is a server that answers as reply says.
type receiver struct {
	*httptest.Server
	reply http.HandlerFunc

	mu   sync.Mutex
	got  []delivery
	more chan struct{} // has a value after each delivery
}

func newReceiver(t *testing.T, reply http.HandlerFunc) *receiver {
	r := &receiver{reply: reply, more: make(chan struct{}, 10_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, delivery{q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"), q.Header.Get("webhook-signature"), string(body)})
		r.mu.Unlock()
		defer func() { r.more <- struct{}{} }()
		if r.reply != nil {
			r.reply(w, q)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// wait waits until the receiver got n requests, and returns them.
func (r *receiver) wait(t *testing.T, n int) []delivery {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		r.mu.Lock()
		got := slices.Clone(r.got)
		r.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-r.more:
		case <-limit:
			t.Fatalf("%d requests, want %d", len(got), n)
		}
	}
}

// notification returns the declaration of a receiver on this machine.
func (r *receiver) notification(name string) config.Notification {
	return config.Notification{
		Name: name, URL: yamldoc.Secret(r.URL + "/hook"), Secret: yamldoc.Secret(signingSecret), Format: config.NotifyJSON, RetryFor: time.Hour, Page: "https://rolecall.example.com/",
		Events: []string{"approval_requested", "approval_escalated", "approval_decided"}, AllowHTTP: true, PrivateAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
}

// waitCount waits until counts of a receiver are as wanted.
func waitCount(t *testing.T, e *notify.Engine, name string, want metrics.DeliveryCounts) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(time.Minute); ; <-tick.C {
		got := e.Deliveries()[name]
		if got == want {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// A receiver can verify each message by the scheme of Standard Webhooks. No message has a secret.
func TestEngine_SignsMessages(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, nil)
	f.commit(request(0)) // before the receiver was declared
	f.engine(r.notification("oncall"))
	f.commit(request(1), journal.AgentTerminated{}, journal.ApprovalEscalated{Approval: "request1", Tool: "transfer", Digest: "d", To: "oncall"},
		journal.ApprovalDecided{Approval: "request1", Tool: "transfer", Digest: "d", Outcome: journal.ApprovalGiven, By: "operator:ops", Override: true, Reason: "away " + password})
	got := r.wait(t, 3)
	for _, d := range got {
		at, _ := strconv.ParseInt(d.at, 10, 64)
		mac := hmac.New(sha256.New, []byte(signingKey))
		mac.Write([]byte(d.id + "." + d.at + "." + d.body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); d.signature != want || time.Since(time.Unix(at, 0)) > time.Minute {
			t.Errorf("%+v, want the signature %s", d, want)
		}
		if strings.Contains(d.body, password) {
			t.Errorf("a secret is sent: %s", d.body)
		}
	}
	var ids []string
	for _, d := range got {
		ids = append(ids, d.id)
	}
	if diff := cmp.Diff([]string{"request1-2", "request1-4", "request1-5"}, ids); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{
		`{"id":"request1","tool":"transfer","role":"clerk","for":"clara","task":"t1","digest":"d","args":{"amount":5,"note":"***"},"reason":"The invoice is due.",` +
			`"rules":[{"tools":["transfer"],"from":{"all":[{"role":"finance"},{"role":"security","count":2}]}}],"needs":["finance and 2 of security"],` +
			`"until":"2030-01-02T03:04:05Z","link":"https://rolecall.example.com/#/approvals/request1"}`,
		`{"id":"request1","tool":"transfer","role":"clerk","task":"t1","digest":"d","to":"oncall","until":"0001-01-01T00:00:00Z","link":"https://rolecall.example.com/#/approvals/request1"}`,
		`{"id":"request1","tool":"transfer","role":"clerk","task":"t1","digest":"d","reason":"away ***","outcome":"approved","by":"operator:ops","override":true,"link":"https://rolecall.example.com/#/approvals/request1"}`,
	} {
		var m struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(got[i].body), &m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(m.Data)); diff != "" {
			t.Errorf("message %d (-want +got):\n%s", i, diff)
		}
	}
}

// Long arguments are cut, and say so.
func TestEngine_CutsArguments(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, nil)
	f.engine(r.notification("oncall"))
	long := request(1)
	long.Args = json.RawMessage(`"` + strings.Repeat("é", 40_000) + `"`)
	f.commit(long)
	var m struct {
		Data struct {
			Args, ArgsStart any
			ArgsSize        int
		}
	}
	if err := json.Unmarshal([]byte(r.wait(t, 1)[0].body), &m); err != nil {
		t.Fatal(err)
	}
	start, _ := m.Data.ArgsStart.(string)
	if m.Data.Args != nil || m.Data.ArgsSize != 80_002 || len(start) > 4100 || !strings.HasSuffix(start, "é…") {
		t.Errorf("%d bytes of %d: %v", len(start), m.Data.ArgsSize, m.Data.Args)
	}
}

// A process may die after any write of its position. The next one loses no message, and repeats
// one with the same id and body.
func TestEngine_DiesAtEachWrite(t *testing.T) {
	const events = 4
	for died := 1; died <= events; died++ {
		f, r := newFixture(t), newReceiver(t, nil)
		f.store.left = died
		_, stop := f.engine(r.notification("oncall"))
		for n := range events {
			f.commit(request(n))
		}
		r.wait(t, died) // the first write is that of the new receiver
		stop()
		f.store.left = -1
		f.engine(r.notification("oncall"))
		var ids []string
		bodies := map[string]string{}
		for _, d := range r.wait(t, events+1) {
			if known, sent := bodies[d.id]; sent && known != d.body {
				t.Errorf("the message %s is another one: %s", d.id, d.body)
			}
			ids, bodies[d.id] = append(ids, d.id), d.body
		}
		want := []string{"request0-1", "request1-2", "request2-3", "request3-4"}
		if got := slices.Compact(slices.Clone(ids)); !slices.Equal(got, want) || ids[died] != ids[died-1] {
			t.Errorf("death %d: %v", died, ids)
		}
	}
}

// A message that is not accepted is tried again with the same id, unless the answer says that this
// has no use. A redirect is not followed.
func TestEngine_Answers(t *testing.T) {
	stolen := newReceiver(t, nil)
	for status, tries := range map[int]int{200: 1, 204: 1, 301: 3, 307: 3, 400: 1, 401: 3, 404: 3, 410: 1, 429: 3, 500: 3, 503: 3} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var n atomic.Int64
			f, r := newFixture(t), newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
				if n.Add(1) < 3 && status >= 300 {
					w.Header().Set("Location", stolen.URL)
					w.WriteHeader(status)
				}
			})
			e, _ := f.engine(r.notification("oncall"))
			f.commit(request(1))
			for _, d := range r.wait(t, tries) {
				if d.id != "request1-1" {
					t.Errorf("the id is %s", d.id)
				}
			}
			want := metrics.DeliveryCounts{Delivered: 1, Retried: uint64(tries - 1)}
			if status == 400 || status == 410 {
				want = metrics.DeliveryCounts{Dropped: 1}
			}
			waitCount(t, e, "oncall", want)
			n.Store(10)
			f.commit(request(2)) // the next message is sent
			if last := r.wait(t, tries+1)[tries]; last.id != "request2-2" {
				t.Errorf("the next message is %s", last.id)
			}
		})
	}
	if got := stolen.wait(t, 0); len(got) > 0 {
		t.Errorf("a redirect was followed: %+v", got)
	}
}

// A receiver that does not answer holds up no other, and stopping does not wait for it.
func TestEngine_HangingReceiver(t *testing.T) {
	f := newFixture(t)
	hangs := newReceiver(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	works := newReceiver(t, nil)
	e, stop := f.engine(hangs.notification("a"), works.notification("b"))
	for n := range 100 {
		f.commit(request(n))
	}
	works.wait(t, 100)
	stop()
	if got := hangs.wait(t, 1); len(got) > 1 || e.Deliveries()["a"].Delivered > 0 {
		t.Errorf("%d requests", len(got))
	}
}

// The body of an answer is not read, whatever its size.
func TestEngine_LargeAnswer(t *testing.T) {
	sent := make(chan int, 1)
	f, r := newFixture(t), newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		n, part := 0, make([]byte, 1<<20)
		for ; n < 1024; n++ {
			if _, err := w.Write(part); err != nil {
				break
			}
		}
		sent <- n
	})
	e, _ := f.engine(r.notification("oncall"))
	f.commit(request(1))
	waitCount(t, e, "oncall", metrics.DeliveryCounts{Delivered: 1})
	if n := <-sent; n > 64 {
		t.Errorf("%d MiB of the answer were taken", n)
	}
}

// Messages go only to public addresses and to those that the notification allows. Logs name the
// host, and no path, no secret and no argument.
func TestEngine_GuardsAddressesAndLogs(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		f, r := newFixture(t), newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, signingSecret)
		})
		n := r.notification("oncall")
		n.URL, n.RetryFor = yamldoc.Secret(r.URL+chatPath+"?token="+password), time.Nanosecond
		if !allowed {
			n.PrivateAddresses = nil
		}
		e, stop := f.engine(n)
		f.commit(request(1))
		waitCount(t, e, "oncall", metrics.DeliveryCounts{Dropped: 1})
		stop()
		log := f.logs.String()
		if got := len(r.wait(t, 0)); got != map[bool]int{true: 1}[allowed] {
			t.Errorf("allowed %v: %d requests", allowed, got)
		}
		if !strings.Contains(log, "127.0.0.1") {
			t.Errorf("the log does not name the host: %s", log)
		}
		for _, secret := range []string{password, chatPath, "chat-secret", signingSecret, signingKey, "invoice", "amount"} {
			if strings.Contains(log, secret) {
				t.Errorf("the log has %q: %s", secret, log)
			}
		}
	}
}

// While a receiver accepts nothing, messages that are too old are dropped without an attempt.
func TestEngine_DropsOldMessages(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	n := r.notification("oncall")
	n.RetryFor = time.Nanosecond
	e, _ := f.engine(n)
	for i := range 50 {
		f.commit(request(i))
	}
	waitCount(t, e, "oncall", metrics.DeliveryCounts{Dropped: 50})
	if got := len(r.wait(t, 1)); got != 1 {
		t.Errorf("%d attempts", got)
	}
}

// A changed receiver goes on where the former one stopped. One that is left out is forgotten,
// unless the configuration was a recorded one.
func TestEngine_ReplacesReceivers(t *testing.T) {
	f, first, second := newFixture(t), newReceiver(t, nil), newReceiver(t, nil)
	e, _ := f.engine(first.notification("oncall"))
	replace := func(list ...config.Notification) {
		t.Helper()
		if err := e.ReplaceReceivers(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	f.commit(request(1))
	waitCount(t, e, "oncall", metrics.DeliveryCounts{Delivered: 1})
	e.SuspendReceivers()
	f.commit(request(2))
	replace(second.notification("oncall"))
	if got := second.wait(t, 1)[0].id; got != "request2-2" {
		t.Errorf("the new receiver begins with %s", got)
	}
	waitCount(t, e, "oncall", metrics.DeliveryCounts{Delivered: 1})
	replace(first.notification("oncall"))
	f.commit(request(3))
	waitCount(t, e, "oncall", metrics.DeliveryCounts{Delivered: 2}) // a change keeps the counts
	replace()
	if got := f.store.position(); got != "" {
		t.Errorf("the positions are %s", got)
	}
	f.commit(request(4))
	replace(first.notification("oncall"))
	f.commit(request(5))
	if got := first.wait(t, 3)[2].id; got != "request5-5" {
		t.Errorf("a receiver that was left out begins with %s", got)
	}
}

// A receiver begins at its stored position, also if the positions could not be read at first.
func TestEngine_FailedRead(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, nil)
	f.commit(request(1), request(2))
	f.store.value, f.store.failedReads = []byte(`{"oncall":1}`), 1
	e := f.newEngine()
	if err := e.ReplaceReceivers(t.Context(), []config.Notification{r.notification("oncall")}); err == nil {
		t.Fatal("positions that cannot be read are no error")
	}
	f.store.afterRead = func() { f.commit(request(3)) }
	f.run(e)
	if got := r.wait(t, 1)[0].id; got != "request2-2" {
		t.Errorf("the receiver begins with %s", got)
	}
}

// Positions that could not be stored are stored when the same receivers are set again.
func TestEngine_FailedWrite(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, nil)
	f.commit(request(1))
	f.store.left = 0
	e, list := f.newEngine(), []config.Notification{r.notification("oncall")}
	if err := e.ReplaceReceivers(t.Context(), list); err == nil {
		t.Fatal("positions that cannot be stored are no error")
	}
	f.store.left = -1
	if err := e.ReplaceReceivers(t.Context(), list); err != nil || f.store.position() != `{"oncall":1}` {
		t.Errorf("the positions are %q, %v", f.store.position(), err)
	}
}

// Texts of agents cannot mention anybody, link anything or look like other lines of a message to
// Slack.
func TestEngine_SlackMessage(t *testing.T) {
	f, r := newFixture(t), newReceiver(t, nil)
	n := r.notification("chat")
	n.Format, n.Secret = config.NotifySlack, ""
	f.engine(n)
	hostile := request(1)
	hostile.Tool = "transfer<!channel>"
	hostile.Reason = "pay\nNeeds: nobody\u202e <@U1> <https://evil.example|bank>"
	hostile.Args = json.RawMessage(`{"note":"<!channel> *bold* ` + "```" + ` <https://evil.example|bank> &lt;!here&gt; ` + password + `"}`)
	f.commit(hostile)
	d := r.wait(t, 1)[0]
	if d.signature != "" || strings.Contains(d.body, "<") {
		t.Errorf("%+v", d)
	}
	text := func(s string) string {
		quoted, _ := json.Marshal(s)
		return `{"type":"text","text":` + string(quoted) + `}`
	}
	want := `{"text":"A call of transfer\u0026lt;!channel\u0026gt; waits for approval","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` +
		`{"type":"text","text":"A call of transfer\u003c!channel\u003e waits for approval\n","style":{"bold":true}},` +
		text("Role: clerk\n") + "," + text("For: clara\n") + "," + text("Needs: finance and 2 of security\n") + "," +
		text("Reason: pay Needs: nobody\uFFFD <@U1> <https://evil.example|bank>\n") + "," + text("Until: 2030-01-02T03:04:05Z\n") + "," + text("Request: request1\n") +
		`]},{"type":"rich_text_preformatted","elements":[` + text("{\"note\":\"<!channel> *bold* ``` <https://evil.example|bank> &lt;!here&gt; ***\"}") + `]},` +
		`{"type":"rich_text_section","elements":[{"type":"link","text":"Open the request","url":"https://rolecall.example.com/#/approvals/request1"}]}]}],"unfurl_links":false,"unfurl_media":false}`
	if diff := cmp.Diff(want, d.body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
