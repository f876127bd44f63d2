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

// Suite is a client and what has to be known of its protocol to test it.
type Suite struct {
	New        func(provider.Config) *provider.Model
	Model, Key string

	Answer    string                   // a whole one
	Call      func(name string) string // a whole one that calls a tool by its offered name
	Piece     string                   // the beginning of a stream, which says something
	ToolNames string                   // where they stand in a request, for gjson

	// Reasoning is what a conversation may hold as such, of the client or not.
	Reasoning []string

	// Fault says what is wrong with a request; "" when the provider would take it.
	Fault func(body string) string
}

// Run tests the client.
func (s Suite) Run(t *testing.T) {
	t.Run("whatever an agent lived through, its conversation is one that the provider takes", s.conversations)
	t.Run("names that the provider would refuse go there and back", s.names)
	t.Run("a key stands in no error, even if the provider repeats it", s.keys)
	t.Run("a document that is none may be one the next time", s.noDocument)
	t.Run("a connection that is lost breaks off", s.lost)
	t.Run("who asks may go", s.leaving)
}

// conversations: also after compression, after turns that failed, with answers
// of other providers and calls whose outcome nobody knows.
func (s Suite) conversations(t *testing.T) {
	seed := time.Now().UnixNano()
	p := gopter.DefaultTestParametersWithSeed(seed)
	p.MinSuccessfulTests, p.MaxSize = 400, 80
	var sent string
	m := s.recorded(&sent)
	result := prop.ForAll(func(choices []uint8) string {
		life := agentRun{choices, s.Reasoning}
		if _, _, err := Gather(t, m, life.request()); err != nil {
			return err.Error()
		}
		return s.Fault(sent)
	}, gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Errorf("seed %d: %v %v\nthe case: %v\nsent: %s", seed, result.Labels, result.Error, result.Args, sent)
	}
}

// recorded gives a model that answers with a word and keeps what it was sent.
func (s Suite) recorded(sent *string) *provider.Model {
	return s.New(provider.Config{Model: s.Model, Client: Client(func(_, body string) string {
		*sent = body
		return s.Answer
	})})
}

func (s Suite) names(t *testing.T) {
	for _, real := range []string{"plain", "mail/send", "mail.send", "x__mine", strings.Repeat("n", 65), "ünï", `a"b`, "1st"} {
		r := Hello()
		r.ToolJSON = Wire(t, real, "other")
		offered := gjson.Get(s.Do(t, provider.Config{}, r, 200, s.Answer).Body, s.ToolNames).Array()[0].Str
		x := s.Do(t, provider.Config{}, r, 200, s.Call(offered))
		if x.Err != nil || len(x.Answer.Calls) != 1 || x.Answer.Calls[0].Name != real {
			t.Errorf("%q is offered as %q and comes back as %+v (%v)", real, offered, x.Answer, x.Err)
		}
	}
}

func (s Suite) keys(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 500, 200} {
		x := s.Do(t, provider.Config{}, Hello(), status, `{"type":"error","error":{"type":"authentication_error","code":401,"message":"no key `+s.Key+`"}}`)
		for e := x.Err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), s.Key) {
				t.Errorf("status %d: the key stands in %v", status, e)
			}
		}
		if x.Err == nil || !strings.Contains(errcode.Message(x.Err), "***") {
			t.Errorf("status %d: %v", status, x.Err)
		}
	}
}

func (s Suite) noDocument(t *testing.T) {
	for name, reply := range map[string]string{"one that is cut off": s.Answer[:len(s.Answer)/2], "nothing": ``, "a list": `[]`, "a word": `oops`} {
		t.Run(name, func(t *testing.T) {
			WantError(t, s.Do(t, provider.Config{}, Hello(), 200, reply).Err, errcode.LLMCallFailed, true, "no JSON")
		})
	}
}

func (s Suite) lost(t *testing.T) {
	m := s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	deltas, _, err := Gather(t, m, Hello())
	if WantError(t, err, errcode.LLMCallFailed, true, "broke off in the middle of an answer"); len(deltas) != 1 {
		t.Errorf("got %+v before it", deltas)
	}
}

func (s Suite) leaving(t *testing.T) {
	gone := make(chan struct{})
	m := s.serve(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		gone <- struct{}{}
	})
	t.Run("by cancelling: its own error comes", func(t *testing.T) {
		cause := errors.New("the agent is terminated")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var failure error
		for delta, err := range m.Generate(ctx, Hello()) {
			if delta.Text != "" {
				cancel(cause)
			}
			failure = err
		}
		<-gone
		if failure != cause {
			t.Errorf("got %v, want %v", failure, cause)
		}
	})
	t.Run("by listening no more: nothing comes", func(t *testing.T) {
		for range m.Generate(t.Context(), Hello()) {
			break
		}
		<-gone
	})
}

// serve gives a model behind a server that sends the beginning of a stream.
func (s Suite) serve(t *testing.T, then http.HandlerFunc) *provider.Model {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, s.Piece)
		w.(http.Flusher).Flush()
		then(w, r)
	}))
	t.Cleanup(server.Close)
	return s.New(provider.Config{Model: s.Model, BaseURL: server.URL, Key: s.Key, Stream: true})
}

// Fuzz: whatever a server sends, streamed or whole, a request ends with one
// answer or one trouble (Gather); the answer can be recorded, and sent back in
// a conversation the provider takes. Its seeds are a []byte and whether it is a
// stream.
func (s Suite) Fuzz(f *testing.F) {
	f.Add([]byte(s.Answer), false)
	f.Add([]byte(s.Piece), true)
	f.Fuzz(func(t *testing.T, reply []byte, stream bool) {
		m := s.New(provider.Config{Model: s.Model, Key: s.Key, Stream: stream, Client: Client(func(string, string) string { return string(reply) })})
		_, a, err := Gather(t, m, Hello())
		if err != nil {
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Fatalf("an error that is no trouble: %v", err)
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
		r := Hello()
		r.Items = append(r.Items, Answered(b))
		if _, _, err := Gather(t, s.recorded(&sent), r); err != nil {
			t.Fatal(err)
		}
		if fault := s.Fault(sent); fault != "" {
			t.Errorf("%s: %s", fault, sent)
		}
	})
}
