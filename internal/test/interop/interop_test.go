//go:build interop

package interop_test

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/rabbitmq"
	"github.com/rolecall/rolecall/tool"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

// versions are the versions of TrustGraph, as their virtual environments are named.
var versions = []string{"2.7", "2.11"}

// python returns a program of a version of TrustGraph that uses the broker.
func python(b dbtest.Broker, version string, args ...string) *exec.Cmd {
	password := b.Password
	if version != "2.7" { // it pastes the password into a URL
		password = strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
	}
	cmd := exec.Command(".venv-"+version+"/bin/python", args...)
	cmd.Env = append(os.Environ(), "RABBITMQ_HOST="+b.Host, "RABBITMQ_PORT="+strconv.Itoa(b.Port), "RABBITMQ_USERNAME="+b.User, "RABBITMQ_PASSWORD="+password)
	return cmd
}

// startJokes starts the joke service of TrustGraph, which ends with the test.
func startJokes(t *testing.T, b dbtest.Broker, version, topic string, args ...string) *buffer.SyncBuffer {
	t.Helper()
	cmd, log := python(b, version, append([]string{"service.py", "--pubsub-backend", "rabbitmq", "--no-metrics", "--topic", topic}, args...)...), &buffer.SyncBuffer{}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, procgroup.Attributes()
	group := procgroup.New(cmd)
	if err := group.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group.Signal(9)
		<-group.Ended()
		if t.Failed() {
			t.Logf("the service of TrustGraph %s:\n%s", version, log)
		}
	})
	return log
}

// topic returns the topic that a text names.
func topic(t *testing.T, text string) protocol.Topic {
	t.Helper()
	result, err := protocol.ParseTopic(text)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// newTool returns the tool tell-joke of a service.
func newTool(t *testing.T, b dbtest.Broker, name string) tool.Tool {
	t.Helper()
	d, err := rabbitmq.Connect(broker.Config{Name: "main", URL: "amqp://" + b.Host + ":" + strconv.Itoa(b.Port), User: b.User, Password: b.Password})
	if err != nil {
		t.Fatal(err)
	}
	m, err := toolservice.New(toolservice.Config{
		Service: toolservice.Service{
			ID: "joke-service", Timeout: time.Minute,
			Request: topic(t, "non-persistent://tg/request/"+name), Response: topic(t, "non-persistent://tg/response/"+name),
		},
		Tools:  []toolservice.Tool{{Definition: tool.Definition{Name: "tell-joke", Effect: tool.ReadOnly}, Config: json.RawMessage(`{"style": "pun"}`)}},
		Broker: func() (broker.Driver, func() error, error) { return d, d.Close, nil },
		Keys:   func() ([]string, error) { return []string{"a key that TrustGraph does not have"}, nil },
	})
	if err == nil {
		err = m.Provision(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m.ToolGroups()[0].Tools[0]
}

// tellJoke calls the tool.
func tellJoke(t *testing.T, joke tool.Tool) tool.Result {
	t.Helper()
	r, err := joke.Call(t.Context(), tool.Call{ID: "call-1", Args: json.RawMessage(`{"topic": "llamas"}`), By: identity.ByAgent("agent-1"), Owner: "user:ann@teller"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// waitFor waits until done reports true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s did not happen", what)
		}
	}
}

func TestService_OfTrustGraphAnswers(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			name := "joke" + strings.ReplaceAll(version, ".", "")
			startJokes(t, b, version, name)
			joke := newTool(t, b, name)
			var r tool.Result
			waitFor(t, "the start of the service", func() bool {
				r = tellJoke(t, joke)
				return !strings.Contains(string(r.Structured), "no service receives requests")
			})
			if r.IsError || !strings.HasPrefix(r.Text, "Here's a pun for you:\n\n") || !strings.Contains(strings.ToLower(r.Text), "llama") {
				t.Errorf("got %q %s, want a pun about llamas", r.Text, r.Structured)
			}
		})
	}
}

// The documents say that topics.py is needed. This test fails when it no longer is.
func TestService_OfTrustGraphDoesNotStartOnRabbitMQAlone(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			log := startJokes(t, b, version, "alone"+version, "--without-topics")
			waitFor(t, "the error of the service", func() bool {
				return strings.Contains(log.String(), "Invalid topic format: non-persistent://tg/re")
			})
		})
	}
}

// serveJokes is a tool service in Go.
func serveJokes(t *testing.T, b dbtest.Broker, name string) {
	t.Helper()
	conn, err := amqp.DialConfig("amqp://"+b.Host+":"+strconv.Itoa(b.Port), amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: b.User, Password: b.Password}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	request, response := topic(t, "request:tg:"+name).Subject(), topic(t, "response:tg:"+name).Subject()
	for _, exchange := range []string{request, response} {
		if err := channel.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	queue, err := channel.QueueDeclare(request+".joke-service-request", false, false, false, false, nil)
	if err == nil {
		err = channel.QueueBind(queue.Name, "", request, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	requests, err := channel.Consume(queue.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for r := range requests {
			body := answerJoke(r.Body).Encode()
			if err := channel.Publish(response, "", false, false, amqp.Publishing{Headers: amqp.Table{"id": r.Headers["id"]}, ContentType: "application/json", Body: body}); err != nil {
				t.Errorf("respond: %v", err)
			}
		}
	}()
}

// answerJoke returns the response to a request.
func answerJoke(body []byte) protocol.Response {
	r, err := protocol.DecodeRequest(body)
	var joke struct{ Style, Topic string }
	for _, text := range []string{r.Config, r.Arguments} {
		if err == nil {
			err = json.Unmarshal([]byte(text), &joke)
		}
	}
	switch {
	case err != nil:
		return protocol.Response{Error: &protocol.Error{Type: protocol.ErrorService, Message: err.Error()}, EndOfStream: true}
	case joke.Topic == "":
		return protocol.Response{Error: &protocol.Error{Type: protocol.ErrorService, Message: "no topic: \"é\""}, EndOfStream: true}
	}
	return protocol.Response{Text: "a " + joke.Style + " about " + joke.Topic + " ☺", EndOfStream: true}
}

// callFromTrustGraph returns what the client of a version prints.
func callFromTrustGraph(t *testing.T, b dbtest.Broker, version, name, arguments string, env ...string) string {
	t.Helper()
	cmd := python(b, version, "client.py", "request:tg:"+name, "response:tg:"+name, `{"style": "pun"}`, arguments)
	cmd.Env = append(cmd.Env, env...)
	var log buffer.SyncBuffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return strings.TrimSpace(string(out))
}

func TestClient_OfTrustGraphIsAnswered(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	for _, c := range []struct{ name, version, env, arguments, want string }{
		{"agent", "2.7", "", `{"topic": "llamas"}`, "result: a pun about llamas ☺"},
		{"agent", "2.7", "", `{"topic": ""}`, "RuntimeError: no topic: \"é\""},
		{"client", "2.11", "SPEC=1", `{"topic": "llamas"}`, "result: a pun about llamas ☺"},
		{"client", "2.11", "SPEC=1", `{"topic": ""}`, "RuntimeError: no topic: \"é\""},
		// The documents say that agents of these versions call no tool service.
		{"agent", "2.11", "", `{"topic": "llamas"}`, "TypeError: ToolServiceClient() takes no arguments"},
	} {
		t.Run(c.version+" "+c.name, func(t *testing.T) {
			name := "go" + strings.ReplaceAll(c.version, ".", "")
			serveJokes(t, b, name)
			if got := callFromTrustGraph(t, b, c.version, name, c.arguments, c.env); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
