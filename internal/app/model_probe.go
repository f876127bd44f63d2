package app

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/probe"
	"github.com/rolecall/rolecall/model/provider"
)

// ModelReport is what a declared model did when it was asked, and what to change in its
// declaration.
type ModelReport struct {
	probe.Report
	Window int                   // tokens that the model is used with
	Server provider.ServerWindow // what the server says; zero if it is not known
	Advice []string              // fields of the document, and why to set them
}

// ProbeModel asks a declared model, without its fallbacks and without repeating a request.
// Its error is that the declaration cannot be tested; that the model does not answer is
// in the report.
func ProbeModel(ctx context.Context, d config.Model) (ModelReport, error) {
	p, ok := catalog.FindProvider(d.Type)
	if !ok {
		return ModelReport{}, errcode.New(errcode.InvalidConfig, "model %q is of type %s, which asks no server: there is nothing to test", d.Name, d.Type)
	}
	if !d.HasKey() {
		return ModelReport{}, errcode.New(errcode.InvalidConfig, "model %q needs an API key and the variable %s is not set", d.Name, d.KeyFrom)
	}
	d, err := withKey(ctx, d)
	if err != nil {
		return ModelReport{}, errcode.New(errcode.InvalidConfig, "model %q: %s", d.Name, err)
	}
	settings, stream := d.ProviderConfig(), &streamDetector{next: http.DefaultTransport}
	settings.Client = &http.Client{Transport: stream}
	client := p.New(settings)
	r := ModelReport{Report: probe.AskModel(ctx, client), Window: client.Window()}
	r.Streams = r.Streams || r.Err == nil && stream.found.Load()
	secret := redact.New(settings.Secrets()...)
	r.Text, r.Err, r.ToolErr = secret.RedactText(r.Text), secret.RedactError(r.Err), secret.RedactError(r.ToolErr)
	if r.Err == nil && p.FindWindow != nil {
		r.Server = p.FindWindow(ctx, settings)
	}
	r.Advice = adviseModel(d, r)
	return r, nil
}

// streamDetector notes whether a server sends streams. A short answer may come in one part
// of a stream.
type streamDetector struct {
	next  http.RoundTripper
	found atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (s *streamDetector) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusOK && isStream(answer.Header.Get("Content-Type")) {
		s.found.Store(true)
	}
	return answer, err
}

// isStream reports whether a content type means a stream of events.
func isStream(contentType string) bool {
	return strings.HasPrefix(contentType, "text/event-stream") || contentType == "application/vnd.amazon.eventstream"
}

// adviseModel returns what to change in the declaration of a model that answers.
func adviseModel(d config.Model, r ModelReport) (advice []string) {
	if r.Err != nil {
		return nil
	}
	server := r.Server.Tokens
	switch {
	case server > 0 && server < r.Window:
		advice = append(advice, "contextWindow: "+strconv.Itoa(server)+"   the server accepts no more"+largerWindow(r.Server))
	case server > r.Window && !r.Server.AtMost && d.ContextWindow > 0:
		advice = append(advice, "contextWindow: "+strconv.Itoa(server)+"   the server accepts so much; a smaller window costs less")
	case r.Server.AtMost && d.ContextWindow == 0:
		advice = append(advice, fmt.Sprintf("contextWindow: …   %d is assumed; set what the server is started with, for Ollama OLLAMA_CONTEXT_LENGTH", r.Window))
	case server == 0 && d.ContextWindow == 0 && d.BaseURL != "":
		advice = append(advice, fmt.Sprintf("contextWindow: …   %d is assumed; set what the server is started with", r.Window))
	}
	if d.Stream && !r.Streams {
		advice = append(advice, "stream: false   the server sends answers as a whole")
	}
	if !r.CalledTool && r.ToolErr == nil {
		advice = append(advice, "model: …   another model: this one did not call a tool when it was asked to, so its agents can only answer")
	}
	return advice
}

// largerWindow returns how to get a larger window from a server, or "" if that is not known.
func largerWindow(w provider.ServerWindow) string {
	if strings.Contains(w.Source, "/api/ps") {
		return "; Ollama is started with OLLAMA_CONTEXT_LENGTH for another window"
	}
	return ""
}
