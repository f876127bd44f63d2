package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/service"
)

// startServer starts a NATS server and returns a client of it.
func startServer(t *testing.T) (url string, client *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	if client, err = nats.Connect(s.ClientURL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return s.ClientURL(), client
}

// key is the key of the service joke.
const key = "the key"

// joke is a request to the service joke.
var joke = protocol.Request{User: "ann", Config: `{"style":"pun"}`, Arguments: `{"topic":"llamas"}`}

// sign returns the token of a request.
func sign(r protocol.Request, service string, valid time.Duration, keys ...string) string {
	return protocol.Token{Service: service, Tool: "tell-joke", Role: "teller", Expires: time.Now().Add(valid)}.SignRequest(r, keys...)
}

// ask sends a request and returns all responses to it as one text.
func ask(t *testing.T, client *nats.Conn, r protocol.Request, token string) string {
	t.Helper()
	inbox := client.NewInbox()
	sub, err := client.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	err = client.PublishMsg(&nats.Msg{Subject: "tg.request.joke", Reply: inbox, Data: r.Encode(), Header: nats.Header{protocol.HeaderID: {"id-1"}, protocol.HeaderToken: {token}}})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for {
		m, err := sub.NextMsg(20 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if id := m.Header.Get(protocol.HeaderID); id != "id-1" {
			t.Fatalf("a response has the id %q", id)
		}
		response, err := protocol.DecodeResponse(m.Data)
		switch {
		case err != nil:
			t.Fatal(err)
		case response.Error != nil:
			list = append(list, response.Error.Type+": "+response.Error.Message)
		default:
			list = append(list, response.Text)
		}
		if response.EndOfStream {
			return strings.Join(list, " | ")
		}
	}
}

// tell is the handler of the service joke.
func tell(_ context.Context, c *service.Call) (string, error) {
	var joke struct{ Style, Topic string }
	if err := c.Decode(&joke); err != nil {
		return "", err
	}
	switch joke.Topic {
	case "":
		return "", errors.New("a topic is required")
	case "panic":
		panic("no joke")
	case "pieces":
		if err := errors.Join(c.SendPiece("one"), c.SendPiece("two")); err != nil {
			return "", err
		}
	}
	role := "a stranger"
	if c.Token != nil {
		role = c.Token.Role
	}
	return fmt.Sprintf("%s for %s, %s, about %s", joke.Style, c.User, role, joke.Topic), nil
}

// start starts the service joke; the test stops it.
func start(t *testing.T, o service.Options, h service.Handler) *service.Service {
	t.Helper()
	o.ID = "joke"
	s, err := service.Start(o, h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestService_Answers(t *testing.T) {
	url, client := startServer(t)
	s := start(t, service.Options{URL: url}, tell)
	defer s.Stop()
	for arguments, want := range map[string]string{
		`{"topic":"llamas"}`: "pun for ann, a stranger, about llamas",
		`{"topic":"pieces"}`: "one | two | pun for ann, a stranger, about pieces",
		``:                   "tool-service-error: a topic is required",
		`{"topic":"panic"}`:  "tool-service-error: the tool service joke failed",
		`[1]`:                "tool-service-error: read the arguments: json: cannot unmarshal array into Go value of type struct { Style string; Topic string }",
	} {
		r := joke
		r.Arguments = arguments
		if got := ask(t, client, r, ""); got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}

func TestService_ChecksTokens(t *testing.T) {
	url, client := startServer(t)
	s := start(t, service.Options{URL: url, Key: key, Connect: []nats.Option{nats.UserInfo("", "")}}, tell)
	defer s.Stop()
	other := joke
	other.Arguments = `{"topic":"money"}`
	otherUser, otherConfig := joke, joke
	otherUser.User, otherConfig.Config = "bob", `{"style":"rude"}`
	good := sign(joke, "joke", time.Minute, key)
	for _, c := range []struct{ name, token, want string }{
		{"valid", good, "pun for ann, teller, about llamas"},
		{"of a newer key, too", sign(joke, "joke", time.Minute, "new", key), "pun for ann, teller, about llamas"},
		{"missing", "", "forbidden: the request has no call token"},
		{"of another key", sign(joke, "joke", time.Minute, "other", "another"), "forbidden: the call token is not signed with the key of the service"},
		{"of an empty key", sign(joke, "joke", time.Minute, ""), "forbidden: the call token is not signed with the key of the service"},
		{"of another service", sign(joke, "bank", time.Minute, key), "forbidden: the call token is of another service or of another request"},
		{"of other arguments", sign(other, "joke", time.Minute, key), "forbidden: the call token is of another service or of another request"},
		{"of another user", sign(otherUser, "joke", time.Minute, key), "forbidden: the call token is of another service or of another request"},
		{"of another config", sign(otherConfig, "joke", time.Minute, key), "forbidden: the call token is of another service or of another request"},
		{"expired", sign(joke, "joke", -time.Second, key), "forbidden: the call token has expired"},
		{"changed", "x" + good, "forbidden: the call token is not signed with the key of the service"},
		{"without a signature", good[:strings.IndexByte(good, '.')], "forbidden: the call token is not signed with the key of the service"},
		{"huge", strings.Repeat("x", 100_000), "forbidden: the call token is not signed with the key of the service"},
	} {
		if got := ask(t, client, joke, c.token); got != c.want {
			t.Errorf("a token that is %s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The context of a handler ends when the caller stops waiting, which the token says.
func TestService_HandlerEndsWithItsToken(t *testing.T) {
	url, client := startServer(t)
	s := start(t, service.Options{URL: url, Key: key, Connect: []nats.Option{nats.UserInfo("", "")}}, func(ctx context.Context, _ *service.Call) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	defer s.Stop()
	if got := ask(t, client, joke, sign(joke, "joke", 2*time.Second, key)); got != "tool-service-error: context deadline exceeded" {
		t.Errorf("got %q", got)
	}
}

func TestService_StopWaitsForCalls(t *testing.T) {
	url, client := startServer(t)
	began, finish := make(chan struct{}), make(chan struct{})
	s := start(t, service.Options{URL: url}, func(context.Context, *service.Call) (string, error) {
		close(began)
		<-finish
		return "done", nil
	})
	inbox, err := client.SubscribeSync("the-inbox")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.PublishRequest("tg.request.joke", "the-inbox", joke.Encode()); err != nil {
		t.Fatal(err)
	}
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	close(finish)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if m, err := inbox.NextMsg(20 * time.Second); err != nil || !strings.Contains(string(m.Data), `"done"`) {
		t.Errorf("the call in progress was not answered: %v", err)
	}
	if s.CheckHealth() == nil {
		t.Error("a stopped service is healthy")
	}
}

func TestService_StopEndsSlowCalls(t *testing.T) {
	url, client := startServer(t)
	began := make(chan struct{})
	s := start(t, service.Options{URL: url, StopTimeout: time.Millisecond}, func(ctx context.Context, _ *service.Call) (string, error) {
		close(began)
		<-ctx.Done()
		return "", ctx.Err()
	})
	if err := client.PublishRequest("tg.request.joke", "nowhere", joke.Encode()); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "calls were still in progress") {
		t.Errorf("got %v", err)
	}
}

func TestService_RejectsCallsBeyondItsLimit(t *testing.T) {
	url, client := startServer(t)
	var began sync.WaitGroup
	began.Add(2)
	finish := make(chan struct{})
	s := start(t, service.Options{URL: url, MaxConcurrent: 2}, func(context.Context, *service.Call) (string, error) {
		began.Done()
		<-finish
		return "done", nil
	})
	defer s.Stop()
	for range 2 {
		if err := client.PublishRequest("tg.request.joke", "nowhere", joke.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	began.Wait()
	if got := ask(t, client, joke, ""); got != "too-many-requests: too many calls at a time" {
		t.Errorf("got %q", got)
	}
	close(finish)
}

func TestService_Health(t *testing.T) {
	url, _ := startServer(t)
	s := start(t, service.Options{URL: url}, tell)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, nil)
	if w.Code != 200 {
		t.Errorf("a running service: %d", w.Code)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	w = httptest.NewRecorder()
	s.ServeHTTP(w, nil)
	if w.Code != 503 {
		t.Errorf("a stopped service: %d", w.Code)
	}
}

func TestStart_RejectsInvalid(t *testing.T) {
	for want, o := range map[string]service.Options{
		"an ID and a handler": {},
		"queue":               {ID: "a", Queue: "a b"},
		"connect":             {ID: "a", URL: "nats://127.0.0.1:1"},
	} {
		if _, err := service.Start(o, tell); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := service.Start(service.Options{ID: "a"}, nil); err == nil {
		t.Error("no handler is accepted")
	}
}
