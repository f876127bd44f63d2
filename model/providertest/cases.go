package providertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
)

// ErrorCase tests, as a part of its own, that a response becomes an error as for WantError.
type ErrorCase func(name string, status int, reply string, code errcode.Code, retryable bool, text string)

// ErrorCases returns a function that tests a response to the request for a stream.
func (s Suite) ErrorCases(t *testing.T) ErrorCase {
	return func(name string, status int, reply string, code errcode.Code, retryable bool, text string) {
		t.Run(name, func(t *testing.T) {
			x := s.Do(t, provider.Config{Name: "main", Stream: true}, HelloRequest(), status, reply)
			WantError(t, x.Err, code, retryable, text)
		})
	}
}

// AnswerCase tests, as a part of its own, that a stream becomes an answer to one message.
type AnswerCase func(name, stream string, want model.Answer)

// AnswerCases returns a function that tests a stream. encode returns what the server sends
// for one. All of them report usage.
func (s Suite) AnswerCases(t *testing.T, usage model.TokenUsage, encode func(stream string) string) AnswerCase {
	return func(name, stream string, want model.Answer) {
		t.Run(name, func(t *testing.T) {
			want.MessagesRead, want.Usage = 1, usage
			x := s.Do(t, provider.Config{Stream: true}, HelloRequest(), 200, encode(stream))
			if diff := cmp.Diff(&want, x.Answer); x.Err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", x.Err, diff)
			}
		})
	}
}

// CheckURLs checks the URL that a client with each base URL requests. path follows the
// values of urls.
func (s Suite) CheckURLs(t *testing.T, path string, urls map[string]string) {
	for given, want := range urls {
		var requested string
		m := s.New(provider.Config{Model: s.Model, BaseURL: given, Key: s.Key, Client: Client(func(url, _ string) string {
			requested = url
			return s.Answer
		})})
		if _, _, err := Collect(t, m, HelloRequest()); err != nil || requested != want+path {
			t.Errorf("%q: requested %s (%v)", given, requested, err)
		}
	}
}

// CheckNoCalls checks that a request without calls has field once, with the value none,
// whatever the options of the model say.
func (s Suite) CheckNoCalls(t *testing.T, field string) {
	for _, choice := range []string{"", provider.ToolsAuto, provider.ToolsRequired, provider.ToolsNone} {
		r := HelloRequest()
		r.ToolJSON, r.NoCalls = ToolsJSON(t, "look"), true
		body := s.Do(t, provider.Config{Options: provider.Options{ToolChoice: choice}}, r, 200, `{}`).Body
		if n := strings.Count(body, `"`+field+`"`); n != 1 || !strings.Contains(strings.ToLower(body), `"none"`) {
			t.Errorf("toolChoice %q: %d times in %s", choice, n, body)
		}
	}
}
