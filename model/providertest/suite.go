package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
)

// Suite describes a client and its protocol for the tests.
type Suite struct {
	New        func(provider.Config) *provider.Model
	Model, Key string

	Answer      string                   // a complete answer
	Call        func(name string) string // a complete answer that calls a tool by its offered name
	StreamStart string                   // the beginning of a stream, with content
	ToolNames   string                   // path of the tool names in a request, for gjson

	// Reasoning holds samples of recorded reasoning data. Some of them are not valid for the client.
	Reasoning []string

	// CheckRequest returns why the provider would reject a request, or "".
	CheckRequest func(body string) string
}

// Run runs the tests that all clients share.
func (s Suite) Run(t *testing.T) {
	t.Run("random conversations are valid", s.testConversations)
	t.Run("tool names are mapped", s.testToolNames)
	t.Run("key is redacted from errors", s.testKeyIsRedacted)
	t.Run("answer is not JSON", s.testNotJSON)
	t.Run("connection lost", s.testConnectionLost)
	t.Run("cancellation", s.testCancellation)
}

// testConversations checks requests for random conversations: after compression,
// after failed turns, with answers of other providers and calls without results.
func (s Suite) testConversations(t *testing.T) {
	seed := time.Now().UnixNano()
	p := gopter.DefaultTestParametersWithSeed(seed)
	p.MinSuccessfulTests, p.MaxSize = 400, 80
	var sent string
	m := s.recordingModel(&sent)
	result := prop.ForAll(func(choices []uint8) string {
		run := randomRun{choices, s.Reasoning}
		if _, _, err := Collect(t, m, run.request()); err != nil {
			return err.Error() + "\nsent: " + sent
		}
		if problem := s.CheckRequest(sent); problem != "" {
			return problem + "\nsent: " + sent
		}
		return ""
	}, gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Errorf("seed %d: %v %v\nthe case: %v", seed, result.Labels, result.Error, result.Args)
	}
}

// recordingModel returns a model that stores each request in sent.
func (s Suite) recordingModel(sent *string) *provider.Model {
	return s.New(provider.Config{Model: s.Model, Client: Client(func(_, body string) string {
		*sent = body
		return s.Answer
	})})
}

func (s Suite) testToolNames(t *testing.T) {
	for _, original := range []string{"plain", "mail/send", "mail.send", "x__mine", strings.Repeat("n", 65), "ünï", `a"b`, "1st"} {
		r := HelloRequest()
		r.ToolJSON = ToolsJSON(t, original, "other")
		offered := gjson.Get(s.Do(t, provider.Config{}, r, 200, s.Answer).Body, s.ToolNames).Array()[0].Str
		x := s.Do(t, provider.Config{}, r, 200, s.Call(offered))
		if x.Err != nil || len(x.Answer.Calls) != 1 || x.Answer.Calls[0].Name != original {
			t.Errorf("%q is offered as %q and comes back as %+v (%v)", original, offered, x.Answer, x.Err)
		}
	}
}

func (s Suite) testKeyIsRedacted(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 500, 200} {
		x := s.Do(t, provider.Config{}, HelloRequest(), status, `{"type":"error","error":{"type":"authentication_error","code":401,"message":"no key `+s.Key+`"}}`)
		for e := x.Err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), s.Key) {
				t.Errorf("status %d: the key is in %v", status, e)
			}
		}
		if x.Err == nil || !strings.Contains(errcode.Message(x.Err), "***") {
			t.Errorf("status %d: %v", status, x.Err)
		}
	}
}

func (s Suite) testNotJSON(t *testing.T) {
	for name, reply := range map[string]string{"truncated": s.Answer[:len(s.Answer)/2], "empty": ``, "list": `[]`, "word": `oops`} {
		t.Run(name, func(t *testing.T) {
			WantError(t, s.Do(t, provider.Config{}, HelloRequest(), 200, reply).Err, errcode.LLMCallFailed, true, "not a JSON object")
		})
	}
}

func (s Suite) testConnectionLost(t *testing.T) {
	m := s.streamingModel(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	deltas, _, err := Collect(t, m, HelloRequest())
	if WantError(t, err, errcode.LLMCallFailed, true, "stopped in the middle of its answer"); len(deltas) != 1 {
		t.Errorf("got %+v before it", deltas)
	}
}

func (s Suite) testCancellation(t *testing.T) {
	closed := make(chan struct{})
	m := s.streamingModel(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		closed <- struct{}{}
	})
	t.Run("by the context: its cause is returned", func(t *testing.T) {
		cause := errors.New("the agent is terminated")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var failure error
		for delta, err := range m.Generate(ctx, HelloRequest()) {
			if delta.Text != "" {
				cancel(cause)
			}
			failure = err
		}
		<-closed
		if failure != cause {
			t.Errorf("got %v, want %v", failure, cause)
		}
	})
	t.Run("by stopping the iteration", func(t *testing.T) {
		for range m.Generate(t.Context(), HelloRequest()) {
			break
		}
		<-closed
	})
}

// streamingModel returns a model whose server sends the beginning of a stream and then
// calls then.
func (s Suite) streamingModel(t *testing.T, then http.HandlerFunc) *provider.Model {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, s.StreamStart)
		w.(http.Flusher).Flush()
		then(w, r)
	}))
	t.Cleanup(server.Close)
	return s.New(provider.Config{Model: s.Model, BaseURL: server.URL, Key: s.Key, Stream: true})
}

// Fuzz checks that any response, streamed or whole, becomes one answer or one
// *model.Error. It checks that the answer can be recorded, and that a conversation
// with it is valid for the provider. A seed is a []byte and whether it is a stream.
func (s Suite) Fuzz(f *testing.F) {
	f.Add([]byte(s.Answer), false)
	f.Add([]byte(s.StreamStart), true)
	f.Fuzz(func(t *testing.T, reply []byte, stream bool) {
		m := s.New(provider.Config{Model: s.Model, Key: s.Key, Stream: stream, Client: Client(func(string, string) string { return string(reply) })})
		_, a, err := Collect(t, m, HelloRequest())
		if err != nil {
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Fatalf("not a *model.Error: %v", err)
			}
			return
		}
		doc, err := json.Marshal(a)
		var b model.Answer
		if err != nil || json.Unmarshal(doc, &b) != nil {
			t.Fatalf("the answer cannot be recorded: %v\n%+v", err, a)
		}
		if u := a.Usage; u.Input < 0 || u.Cached < 0 || u.Cached > u.Input || u.Output < 0 {
			t.Errorf("used %+v", u)
		}
		for i := range b.Calls {
			b.Calls[i].ID = identity.CallID(fmt.Sprint("call-", i))
		}
		var sent string
		r := HelloRequest()
		r.Items = append(r.Items, AnswerItem(b))
		if _, _, err := Collect(t, s.recordingModel(&sent), r); err != nil {
			t.Fatal(err)
		}
		if problem := s.CheckRequest(sent); problem != "" {
			t.Errorf("%s: %s", problem, sent)
		}
	})
}
