package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/service"
	"github.com/rolecall/rolecall/tool"
)

// serviceCalls is the number of calls of a round.
const serviceCalls = 6400

// jokeArguments are the arguments of each call.
const jokeArguments = `{"topic": "llamas", "audience": "people who keep llamas and have heard every joke about them"}`

// jokeAnswer is the result of each call.
const jokeAnswer = "Here's a pun for you:\n\nWhy did the llama cross the road? To prove he wasn't a chicken!"

// serviceComparison compares calls of a tool service through the embedded NATS with bare requests
// of nats.go that carry as much. The call token is signed and verified.
func serviceComparison(inFlight int) (comparison, error) {
	call, stopCall, err := startToolService()
	if err != nil {
		return comparison{}, err
	}
	request, stopRequest, err := startBareNATS()
	if err != nil {
		return comparison{}, err
	}
	return comparison{
		title: fmt.Sprintf("tool service behind the embedded NATS, %d in flight", inFlight),
		candidates: []candidate{
			{"nats.go request", serviceCalls, func(n int) { runInFlight(inFlight, n, request) }},
			{"call of the tool, with token", serviceCalls, func(n int) { runInFlight(inFlight, n, call) }},
		},
		goals:   []goal{{part: "tool services", claim: fmt.Sprintf("a call of a tool service beside a bare request, %d in flight", inFlight), candidate: 1, maxRatio: 1.25}},
		cleanup: func() { stopCall(); stopRequest() },
	}, nil
}

// runInFlight does something n times, in a number of goroutines.
func runInFlight(goroutines, n int, do func() error) {
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range n / goroutines {
				must(0, do())
			}
		})
	}
	all.Wait()
}

// jokeQueues are the queues of the service.
var jokeQueues = broker.Queues{Service: "joke", Request: protocol.Topic{Class: "request", Space: "tg", Name: "joke"}}

// accounts lets the service in.
type accounts struct{ key string }

func (a accounts) FindAccount(id, password string) (broker.Queues, bool) {
	return jokeQueues, id == jokeQueues.Service && password == a.key
}

// startToolService starts a service at an embedded server, and returns a call of its tool. The key is
// read from a file, as when rolecall serves.
func startToolService() (call func() error, stop func(), err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, nil, err
	}
	keys := keystore.Open(dir)
	made, err := keys.CreateKey(keystore.Service, jokeQueues.Service)
	if err != nil {
		return nil, nil, err
	}
	key := made.Secret
	d, err := natsbroker.Connect(broker.Config{Name: "bench", Listen: "127.0.0.1:0", Accounts: accounts{key}})
	if err != nil {
		return nil, nil, err
	}
	s, err := service.Start(service.Options{URL: "nats://" + d.(broker.Embedded).Address(), ID: "joke", Key: key, MaxConcurrent: 128}, func(context.Context, *service.Call) (string, error) {
		return jokeAnswer, nil
	})
	if err != nil {
		return nil, nil, err
	}
	m, err := toolservice.New(toolservice.Config{
		Service:      toolservice.Service{ID: jokeQueues.Service, Request: jokeQueues.Request, MaxConcurrent: 128},
		Tools:        []toolservice.Tool{{Definition: tool.Definition{Name: "tell-joke"}, Config: json.RawMessage(`{"style": "pun"}`)}},
		Broker:       func() (broker.Driver, func() error, error) { return d, d.Close, nil },
		Keys:         func() ([]string, error) { return keys.RecentSecrets(keystore.Service, jokeQueues.Service) },
		Organization: func() string { return must(keys.Organization()) },
		RoleOf:       func(identity.Principal) string { return "teller" },
	})
	if err == nil {
		err = m.Provision(context.Background())
	}
	if err != nil {
		return nil, nil, err
	}
	joke := m.ToolGroups()[0].Tools[0]
	c := tool.Call{ID: "call-1", Args: json.RawMessage(jokeArguments), By: identity.ByAgent("agent-1"), Owner: "user:ann@teller"}
	call = func() error {
		r, err := joke.Call(context.Background(), c)
		if err == nil && r.Text != jokeAnswer {
			err = fmt.Errorf("the tool answered %q %s", r.Text, r.Structured)
		}
		return err
	}
	return call, func() { must(0, s.Stop()); must(0, m.Close()); must(0, os.RemoveAll(dir)) }, nil
}

// startBareNATS starts a responder at a server in this process, and returns a request to it. The
// connections are those of startToolService: the caller's in the process, the other one on loopback.
func startBareNATS() (request func() error, stop func(), err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, NoSystemAccount: true})
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, nil, fmt.Errorf("the server does not start")
	}
	responder, err := nats.Connect(s.ClientURL())
	if err != nil {
		return nil, nil, err
	}
	response := protocol.Response{Text: jokeAnswer, EndOfStream: true}.Encode()
	_, err = responder.QueueSubscribe("tg.request.joke", "joke", func(m *nats.Msg) {
		must(0, m.RespondMsg(&nats.Msg{Header: nats.Header{protocol.HeaderID: m.Header[protocol.HeaderID]}, Data: response}))
	})
	if err == nil {
		err = responder.Flush()
	}
	if err != nil {
		return nil, nil, err
	}
	caller, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return nil, nil, err
	}
	r := protocol.Request{User: "ann", Config: `{"style": "pun"}`, Arguments: jokeArguments}
	body, token := r.Encode(), protocol.Token{Service: "joke", Agent: "agent-1", Tool: "tell-joke", CallID: "call-1", Expires: time.Now()}.SignRequest(r, "key")
	request = func() error {
		header := nats.Header{protocol.HeaderID: {"3f0a3a06-8f0b-4b0e-8a53-0f4bd1a1cf0e"}, protocol.HeaderToken: {token}}
		_, err := caller.RequestMsg(&nats.Msg{Subject: "tg.request.joke", Header: header, Data: body}, time.Minute)
		return err
	}
	return request, func() { caller.Close(); responder.Close(); s.Shutdown(); s.WaitForShutdown() }, nil
}
