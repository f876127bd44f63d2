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

	"github.com/rolecall/rolecall/model"
)

// speaker is a language model that says its answer in two pieces, when it may.
type speaker struct{ may chan struct{} }

// Window implements model.LanguageModel.
func (speaker) Window() int { return 100_000 }

// Generate implements model.Model.
func (s speaker) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		select {
		case <-s.may:
		case <-ctx.Done():
			yield(model.Delta{}, ctx.Err())
			return
		}
		answer := model.Answer{Finish: model.FinishEnd, Text: "so\n\nit is", MessagesRead: 1}
		_ = yield(model.Delta{Text: "so\n\n"}, nil) && yield(model.Delta{Text: "it is"}, nil) && yield(model.Delta{Answer: &answer}, nil)
	}
}

// follow reads a stream to its end; begun is called when its first line is
// there.
func (h *house) follow(t *testing.T, path string, header http.Header, begun func()) (lines []string) {
	t.Helper()
	server := httptest.NewServer(h.handler)
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

// Who asks for deltas sees them before the answer they come to; nobody else
// does, and who comes back finds events only.
func TestDeltasAreShownToWhoAsksForThem(t *testing.T) {
	whole := []string{"task_started", "agent_spawned", "message", "model_delta so\n\n", "model_delta it is", "model_answered", "message", "result"}
	plain := slices.DeleteFunc(slices.Clone(whole), func(s string) bool { return strings.HasPrefix(s, "model_delta") })
	for _, c := range []struct {
		name, query string
		header      http.Header
		want        []string
	}{
		{"a line each", "?follow=1&deltas=1", http.Header{}, whole},
		{"as server-sent events", "?follow=1&deltas=1", sse, whole},
		{"not to who follows only", "?follow=1", http.Header{}, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := speaker{make(chan struct{})}
			h := openOn(t, s)
			path := "/api/v1/tasks/" + string(h.start(t, "go")) + "/events"
			lines := h.follow(t, path+c.query, c.header, func() { close(s.may) })
			got, ids := shown(t, lines)
			if !slices.Equal(got, c.want) {
				t.Errorf("shown %q, want %q\n%q", got, c.want, lines)
			}
			if c.header.Get("Accept") != "" && (len(ids) != len(plain) || !slices.IsSorted(ids)) {
				t.Errorf("the events have the ids %v, want %d: deltas have none", ids, len(plain))
			}
			again := h.send(t, path+"?deltas=1", "", nil).Body.String()
			if got, _ := shown(t, strings.Split(strings.TrimSpace(again), "\n")); !slices.Equal(got, plain) {
				t.Errorf("later %q, want %q", got, plain)
			}
		})
	}
}

// shown gives the events of a stream, with what deltas say, and their ids as
// server-sent events.
func shown(t *testing.T, lines []string) (events, ids []string) {
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

// Deltas do not move the place from which a peer goes on.
func TestWhoComesBackWithDeltasGoesOnBehindTheLastEvent(t *testing.T) {
	s := speaker{make(chan struct{})}
	h := openOn(t, s)
	path := "/api/v1/tasks/" + string(h.start(t, "go")) + "/events?follow=1&deltas=1"
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	server := httptest.NewServer(h.handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = sse
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
	header := sse.Clone()
	header.Set("Last-Event-ID", last)
	lines := h.follow(t, path, header, func() { close(s.may) })
	want := []string{"message", "model_delta so\n\n", "model_delta it is", "model_answered", "message", "result"}
	if got, _ := shown(t, lines); !slices.Equal(got, want) {
		t.Errorf("behind %s come %q, want %q", last, got, want)
	}
}
