package gateway_test

import (
	"bufio"
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// streamingModel is a language model that answers in deltas once release is closed.
type streamingModel struct {
	release chan struct{}
	deltas  []string
}

// newStreamingModel returns a streamingModel that answers in these deltas.
func newStreamingModel(deltas ...string) streamingModel {
	return streamingModel{make(chan struct{}), deltas}
}

// Window implements model.LanguageModel.
func (streamingModel) Window() int { return 100_000 }

// Generate implements model.Model.
func (m streamingModel) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		select {
		case <-m.release:
		case <-ctx.Done():
			yield(model.AnswerDelta{}, ctx.Err())
			return
		}
		for _, text := range m.deltas {
			if !yield(model.AnswerDelta{Text: text}, nil) {
				return
			}
		}
		yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishEnd, Text: strings.Join(m.deltas, ""), MessagesRead: 1}}, nil)
	}
}

// follow reads a stream to its end. It calls begun after the first line.
func follow(t *testing.T, f *gatewaytest.Fixture, path string, header http.Header, begun func()) (lines []string) {
	t.Helper()
	server := httptest.NewServer(f.Handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for s := bufio.NewScanner(answer.Body); s.Scan(); {
		if len(lines) == 0 {
			begun()
		}
		lines = append(lines, s.Text())
	}
	return lines
}

// Deltas are sent, before their answer, only to clients that ask for them. A
// stream of past events has none.
func TestEvents_DeltasOnRequest(t *testing.T) {
	withDeltas := []string{"task_started", "agent_spawned", "message", "model_delta so\n\n", "model_delta it is", "model_answered", "message", "result"}
	withoutDeltas := slices.DeleteFunc(slices.Clone(withDeltas), func(s string) bool { return strings.HasPrefix(s, "model_delta") })
	for _, c := range []struct {
		name, query string
		header      http.Header
		want        []string
	}{
		{"as JSON lines", "?follow=1&deltas=1", http.Header{}, withDeltas},
		{"as server-sent events", "?follow=1&deltas=1", sseHeader, withDeltas},
		{"not without deltas=1", "?follow=1", http.Header{}, withoutDeltas},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newStreamingModel("so\n\n", "it is")
			f := gatewaytest.NewFixture(t, persisttest.Open(t), m)
			path := "/api/v1/tasks/" + string(f.StartTask(t, "go")) + "/events"
			lines := follow(t, f, path+c.query, c.header, func() { close(m.release) })
			got, ids := readEvents(t, lines)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q\n%q", got, c.want, lines)
			}
			if c.header.Get("Accept") != "" && (len(ids) != len(withoutDeltas) || !slices.IsSorted(ids)) {
				t.Errorf("got event ids %v, want %d; deltas have none", ids, len(withoutDeltas))
			}
			again := f.SendRequest(t, path+"?deltas=1", "", nil).Body.String()
			if got, _ := readEvents(t, strings.Split(strings.TrimSpace(again), "\n")); !slices.Equal(got, withoutDeltas) {
				t.Errorf("later %q, want %q", got, withoutDeltas)
			}
		})
	}
}

// readEvents returns the types of the events in a stream, with the text of
// deltas, and the ids of server-sent events.
func readEvents(t *testing.T, lines []string) (events, ids []string) {
	t.Helper()
	id := ""
	for _, line := range lines {
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "id: "):
			id = line
			ids = append(ids, id)
			continue
		case !gjson.Valid(data):
			t.Fatalf("a line is %q", line)
		}
		e := gjson.Parse(data)
		text := e.Get("type").Str
		if text == "model_delta" {
			text += " " + e.Get("text").Str
		}
		if isData && (id != "") == (e.Get("type").Str == "model_delta") {
			t.Errorf("%s has the id %q", text, id)
		}
		events, id = append(events, text), ""
	}
	return events, ids
}

// Deltas have no id and do not change where a client resumes.
func TestEvents_ResumeIgnoresDeltas(t *testing.T) {
	m := newStreamingModel("so\n\n", "it is")
	f := gatewaytest.NewFixture(t, persisttest.Open(t), m)
	path := "/api/v1/tasks/" + string(f.StartTask(t, "go")) + "/events?follow=1&deltas=1"
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	server := httptest.NewServer(f.Handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = sseHeader
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines, n := bufio.NewScanner(answer.Body), 0; n < 2 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last, n = text, n+1
		}
	}
	answer.Body.Close()
	header := sseHeader.Clone()
	header.Set("Last-Event-ID", last)
	lines := follow(t, f, path, header, func() { close(m.release) })
	want := []string{"message", "model_delta so\n\n", "model_delta it is", "model_answered", "message", "result"}
	if got, _ := readEvents(t, lines); !slices.Equal(got, want) {
		t.Errorf("after %s: got %q, want %q", last, got, want)
	}
}

// A secret of a model's provider that comes in several deltas is hidden in all of them, and in
// the answer that is recorded.
func TestEvents_DeltasHideSplitSecrets(t *testing.T) {
	const secret = "sk-live-4f9a27c1d8e35b60"
	for name, header := range map[string]http.Header{"as JSON lines": {}, "as server-sent events": sseHeader} {
		t.Run(name, func(t *testing.T) {
			m := newStreamingModel("my key is sk-", "live-4f9a27", "c1d8e", "35b60, and this is all")
			f := gatewaytest.NewFixture(t, persisttest.Open(t), retry.New(m, retry.Config{Secrets: []string{secret}}))
			path := "/api/v1/tasks/" + string(f.StartTask(t, "go")) + "/events?follow=1&deltas=1"
			lines := follow(t, f, path, header, func() { close(m.release) })
			generated, answer := "", ""
			for _, line := range lines {
				e := gjson.Parse(strings.TrimPrefix(line, "data: "))
				switch e.Get("type").Str {
				case "model_delta":
					generated += e.Get("text").Str
				case "model_answered":
					answer += e.Get("answer.text").Str
				}
			}
			want := "my key is " + redact.Mask + ", and this is all"
			if generated != want || answer != want {
				t.Errorf("deltas %q, answer %q, want %q", generated, answer, want)
			}
			for _, part := range []string{"live-4f9a27", "c1d8e", "35b60"} {
				if all := strings.Join(lines, "\n"); strings.Contains(all, part) {
					t.Errorf("the stream has %q, a part of the secret:\n%s", part, all)
				}
			}
		})
	}
}
