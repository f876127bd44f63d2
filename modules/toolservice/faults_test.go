//go:build linux

package toolservice_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/tcpproxy"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/service"
	"github.com/rolecall/rolecall/tool"
)

// serviceURL is set in the process of a service: the server that it connects to.
const serviceURL = "TOOLSERVICE_TEST_SERVICE_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(serviceURL); url != "" {
		err := service.Run(context.Background(), service.Options{URL: url, ID: "frail"}, answerOrWait)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if i, err := strconv.Atoi(os.Getenv(hostNumber)); err == nil {
		fmt.Fprintln(os.Stderr, runHost(i))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// topicOf returns the topic of a joke.
func topicOf(c *service.Call) (string, error) {
	var joke struct{ Topic string }
	err := c.Decode(&joke)
	return joke.Topic, err
}

// answerOrWait is the handler of the service that runs in its own process. It says on stdout what
// it received.
func answerOrWait(ctx context.Context, c *service.Call) (string, error) {
	topic, err := topicOf(c)
	fmt.Println(topic)
	if topic == "wait" {
		<-ctx.Done()
	}
	return "a joke about " + topic, err
}

// startNATS starts a server. port is that of an earlier one, or server.RANDOM_PORT.
func startNATS(t *testing.T, port int, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, NoSystemAccount: true}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stopNATS(s) })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

func stopNATS(s *server.Server) { s.Shutdown(); s.WaitForShutdown() }

// patience is how long a test waits for what should come.
const patience = 30 * time.Second

// connectNATS returns a driver, which ends with the test.
func connectNATS(t *testing.T, url string) broker.Driver {
	t.Helper()
	d, err := natsbroker.Connect(broker.Config{Name: "main", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// toolOf returns a tool of a service behind a driver.
func toolOf(t *testing.T, d broker.Driver, id string, effect tool.Effect, timeout time.Duration) tool.Tool {
	t.Helper()
	m, err := toolservice.New(toolservice.Config{
		Service: toolservice.Service{ID: id, Request: protocol.Topic{Class: "request", Space: "tg", Name: id}, Timeout: timeout},
		Tools:   []toolservice.Tool{{Definition: tool.Definition{Name: "tell-joke", Effect: effect}}},
		Broker:  func() (broker.Driver, func() error, error) { return d, nil, nil },
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

// ask calls a tool with a topic and returns its outcome.
func ask(t *testing.T, joke tool.Tool, topic string) string {
	call := ann()
	call.Args = json.RawMessage(`{"topic": ` + strconv.Quote(topic) + `}`)
	return outcome(joke.Call(t.Context(), call))
}

// wantOutcome fails unless an outcome begins with a code.
func wantOutcome(t *testing.T, what, got, code string) {
	t.Helper()
	if !strings.HasPrefix(got, code) {
		t.Errorf("%s: %q, want %s", what, got, code)
	}
}

// waitFor waits until done reports true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s did not happen", what)
		}
	}
}

// awaitAnswer calls a tool until the service answers.
func awaitAnswer(t *testing.T, joke tool.Tool) {
	t.Helper()
	waitFor(t, "an answer", func() bool { return ask(t, joke, "llamas") == "a joke about llamas" })
}

// neighbour is a service that has nothing to do with a fault, and its tool.
type neighbour struct{ tool tool.Tool }

func startNeighbour(t *testing.T, url string, d broker.Driver) neighbour {
	t.Helper()
	s, err := service.Start(service.Options{URL: url, ID: "neighbour", Connect: []nats.Option{nats.ReconnectWait(5 * time.Millisecond)}},
		func(_ context.Context, c *service.Call) (string, error) {
			topic, err := topicOf(c)
			return "a joke about " + topic, err
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return neighbour{toolOf(t, d, "neighbour", tool.ReadOnly, time.Minute)}
}

// wantUndisturbed fails unless the neighbour answers while something is broken.
func (n neighbour) wantUndisturbed(t *testing.T) {
	t.Helper()
	for i := range 20 {
		if got, want := ask(t, n.tool, strconv.Itoa(i)), fmt.Sprintf("a joke about %d", i); got != want {
			t.Fatalf("another service: %q, want %q", got, want)
		}
	}
}

// frail is a service in a process of its own.
type frail struct {
	cmd   *exec.Cmd
	group *procgroup.Group
	lines *bufio.Scanner
}

func startFrail(t *testing.T, url string) frail {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = append(os.Environ(), serviceURL+"="+url), os.Stderr, procgroup.Attributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := frail{cmd, procgroup.New(cmd), bufio.NewScanner(out)}
	if err := f.group.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.group.Signal(syscall.SIGKILL); <-f.group.Ended() })
	return f
}

func (f frail) pid() int { return f.cmd.Process.Pid }

// waitReceived waits until the service has received a topic.
func (f frail) waitReceived(t *testing.T, topic string) {
	t.Helper()
	for f.lines.Scan() {
		if f.lines.Text() == topic {
			return
		}
	}
	t.Fatalf("the service did not receive %q", topic)
}

func TestFault_ServiceIsKilled(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	n, f := startNeighbour(t, url, d), startFrail(t, url)
	awaitAnswer(t, toolOf(t, d, "frail", tool.ReadOnly, time.Minute))
	for effect, code := range map[tool.Effect]string{tool.Mutating: "tool_interrupted", tool.ReadOnly: "tool_timeout"} {
		joke := toolOf(t, d, "frail", effect, 300*time.Millisecond)
		ended := make(chan string, 1)
		go func() { ended <- ask(t, joke, "wait") }()
		f.waitReceived(t, "wait")
		f.group.Signal(syscall.SIGKILL)
		<-f.group.Ended()
		n.wantUndisturbed(t)
		wantOutcome(t, "the call of the killed service", <-ended, code)
		waitFor(t, "the notice that no service receives requests", func() bool {
			return strings.HasPrefix(ask(t, joke, "llamas"), "tool_unavailable: tell-joke did not run: no service")
		})
		f = startFrail(t, url)
		awaitAnswer(t, joke)
	}
}

func TestFault_ServiceIsStopped(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	n, f := startNeighbour(t, url, d), startFrail(t, url)
	joke, patient := toolOf(t, d, "frail", tool.ReadOnly, 100*time.Millisecond), toolOf(t, d, "frail", tool.ReadOnly, time.Minute)
	awaitAnswer(t, patient)
	f.group.Signal(syscall.SIGSTOP)
	waitFor(t, "the stop", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.pid()))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	for range 3 {
		wantOutcome(t, "a call of the stopped service", ask(t, joke, "late"), "tool_timeout")
	}
	n.wantUndisturbed(t)
	f.group.Signal(syscall.SIGCONT)
	if got := ask(t, patient, "cats"); got != "a joke about cats" { // not one of the late answers
		t.Errorf("after the stop: %q", got)
	}
}

// subscribe receives the requests of the service frail without package service.
func subscribe(t *testing.T, url string, answer func(m *nats.Msg, body []byte)) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, err = conn.QueueSubscribe("tg.request.frail", "frail", func(m *nats.Msg) {
		r, err := protocol.DecodeRequest(m.Data)
		if err != nil {
			t.Errorf("read a request: %v", err)
		}
		answer(m, protocol.Response{Text: r.Arguments, EndOfStream: true}.Encode())
	}); err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// send sends a response with an id.
func send(t *testing.T, m *nats.Msg, id string, body []byte) {
	if err := m.RespondMsg(&nats.Msg{Header: nats.Header{protocol.HeaderID: {id}}, Data: body}); err != nil {
		t.Errorf("respond: %v", err)
	}
}

func TestFault_ServiceAnswersLate(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	late := make(chan func(), 1)
	subscribe(t, url, func(m *nats.Msg, body []byte) {
		answer := func() { send(t, m, m.Header.Get(protocol.HeaderID), body) }
		if strings.Contains(string(m.Data), "late") {
			late <- answer
			return
		}
		(<-late)() // the answer to the call before comes first
		answer()
	})
	wantOutcome(t, "a call that is answered late", ask(t, toolOf(t, d, "frail", tool.ReadOnly, 50*time.Millisecond), "late"), "tool_timeout")
	if got := ask(t, toolOf(t, d, "frail", tool.ReadOnly, time.Minute), "cats"); got != `{"topic": "cats"}` {
		t.Errorf("the next call: %q", got)
	}
}

func TestFault_ServiceAnswersTwiceAndForOthers(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	subscribe(t, url, func(m *nats.Msg, body []byte) {
		id, forged := m.Header.Get(protocol.HeaderID), protocol.Response{Text: "forged", EndOfStream: true}.Encode()
		send(t, m, "another", forged)
		send(t, m, "", forged)
		inbox := m.Reply[:strings.LastIndex(m.Reply, ".")+1]
		m.Reply = inbox + "another"
		send(t, m, id, forged)
		m.Reply = inbox + id
		send(t, m, id, body)
		send(t, m, id, forged)
	})
	joke := toolOf(t, d, "frail", tool.ReadOnly, time.Minute)
	for range 20 {
		if got := ask(t, joke, "cats"); got != `{"topic": "cats"}` {
			t.Fatalf("got %q", got)
		}
	}
}

// tooLarge returns the number of bytes of messages that are larger than a broker accepts.
func tooLarge() int { return short.Count(5<<20, 100<<20) }

// A service of package service that returns more than the broker accepts reports it.
func TestFault_ServiceReturnsTooMuch(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	n := startNeighbour(t, url, d)
	s, err := service.Start(service.Options{URL: url, ID: "frail"}, func(context.Context, *service.Call) (string, error) {
		return strings.Repeat("x", tooLarge()), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	wantOutcome(t, "the call", ask(t, toolOf(t, d, "frail", tool.ReadOnly, time.Minute), "cats"), fmt.Sprintf("tool_execution_failed: the result has %d bytes", tooLarge()))
	n.wantUndisturbed(t)
	request := toolOf(t, d, "frail", tool.ReadOnly, time.Minute)
	wantOutcome(t, "a request that is too large", ask(t, request, strings.Repeat("x", tooLarge())), "invalid_arguments")
}

// A service that ignores the limit of the broker is disconnected by the broker.
func TestFault_ServiceSendsTooMuch(t *testing.T) {
	url := startNATS(t, server.RANDOM_PORT, nil).ClientURL()
	d := connectNATS(t, url)
	n := startNeighbour(t, url, d)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB tg.request.frail frail 1\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	lines, ready, broken := bufio.NewReader(conn), make(chan bool), make(chan error, 1)
	go func() {
		for {
			line, err := lines.ReadString('\n')
			switch {
			case err != nil:
				broken <- err
				return
			case strings.HasPrefix(line, "PONG"):
				close(ready)
			case strings.HasPrefix(line, "HMSG"):
				_, _ = fmt.Fprintf(conn, "PUB %s %d\r\n%s\r\n", strings.Fields(line)[3], tooLarge(), strings.Repeat("x", tooLarge())) // the server closes
			}
		}
	}()
	<-ready
	ended := make(chan string, 1)
	joke := toolOf(t, d, "frail", tool.Mutating, 300*time.Millisecond)
	go func() { ended <- ask(t, joke, "cats") }()
	n.wantUndisturbed(t)
	wantOutcome(t, "the call", <-ended, "tool_interrupted")
	<-broken
	wantOutcome(t, "the next call", ask(t, joke, "cats"), "tool_unavailable: tell-joke did not run: no service")
	n.wantUndisturbed(t)
}

func TestFault_BrokerRestarts(t *testing.T) {
	first := startNATS(t, server.RANDOM_PORT, nil)
	url, port := first.ClientURL(), first.Addr().(*net.TCPAddr).Port
	d := connectNATS(t, url)
	n := startNeighbour(t, url, d)
	received := make(chan bool, 10)
	subscribe(t, url, func(*nats.Msg, []byte) { received <- true })
	n.wantUndisturbed(t)
	ended := make(chan string, 2)
	for _, effect := range []tool.Effect{tool.Mutating, tool.ReadOnly} {
		joke := toolOf(t, d, "frail", effect, time.Hour)
		go func() { ended <- ask(t, joke, "cats") }()
		<-received
	}
	stopNATS(first)
	got := <-ended + " " + <-ended // at once, not after an hour
	if !strings.Contains(got, "tool_interrupted: ") || !strings.Contains(got, `tool_unavailable: the response of the tool service "frail" was lost`) {
		t.Errorf("calls that waited: %q", got)
	}
	waitFor(t, "the notice that the broker cannot be reached", func() bool {
		return strings.HasPrefix(ask(t, n.tool, "cats"), "tool_unavailable: tell-joke did not run: the broker")
	})
	startNATS(t, port, nil)
	awaitAnswer(t, n.tool)
}

// A broker that rejected the password for a while does not lose the runtime for ever.
func TestFault_BrokerRejectsPasswordForAWhile(t *testing.T) {
	withPassword := func(password string) func(*server.Options) {
		return func(o *server.Options) { o.Username, o.Password = "ann", password }
	}
	s := startNATS(t, server.RANDOM_PORT, withPassword("right"))
	port := s.Addr().(*net.TCPAddr).Port
	d, err := natsbroker.Connect(broker.Config{Name: "main", URL: s.ClientURL(), User: "ann", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	joke := toolOf(t, d, "frail", tool.ReadOnly, time.Minute)
	wantOutcome(t, "a call without a service", ask(t, joke, "cats"), "tool_unavailable: tell-joke did not run: no service")
	stopNATS(s)
	var rejected atomic.Int32
	wrong := startNATS(t, port, func(o *server.Options) {
		o.CustomClientAuthentication = authentication(func() { rejected.Add(1) })
	})
	waitFor(t, "five attempts, of which nats.go by itself makes two", func() bool { return rejected.Load() >= 5 })
	stopNATS(wrong)
	startNATS(t, port, withPassword("right"))
	waitFor(t, "a connection", func() bool {
		return strings.HasPrefix(ask(t, joke, "cats"), "tool_unavailable: tell-joke did not run: no service")
	})
}

// authentication rejects all clients.
type authentication func()

func (a authentication) Check(server.ClientAuthentication) bool { a(); return false }

// Three servers of a cluster lose one another. The runtime and one service are at one server, and
// another service is at another server.
func TestFault_ClusterIsPartitioned(t *testing.T) {
	var servers [3]*server.Server
	var proxies [3]*tcpproxy.Proxy
	for i := range servers {
		proxies[i] = tcpproxy.New(t, "")
	}
	for i := range servers {
		servers[i] = startNATS(t, server.RANDOM_PORT, func(o *server.Options) {
			o.ServerName = "server-" + strconv.Itoa(i)
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT, Advertise: proxies[i].Address(), PoolSize: -1}
			for j := range i {
				o.Routes = append(o.Routes, server.RoutesFromStr("nats://"+proxies[j].Address())...)
			}
		})
		proxies[i].SetTarget(servers[i].ClusterAddr().String())
	}
	waitFor(t, "the cluster", func() bool {
		return servers[0].NumRoutes() >= 2 && servers[1].NumRoutes() >= 2 && servers[2].NumRoutes() >= 2
	})
	d := connectNATS(t, servers[0].ClientURL())
	n, _ := startNeighbour(t, servers[0].ClientURL(), d), startFrail(t, servers[1].ClientURL())
	joke := toolOf(t, d, "frail", tool.Mutating, 300*time.Millisecond)
	awaitAnswer(t, joke)
	var releases []func()
	for _, p := range proxies {
		releases = append(releases, p.Hold(t))
	}
	wantOutcome(t, "a call into the silence", ask(t, joke, "cats"), "tool_interrupted")
	n.wantUndisturbed(t)
	for i, p := range proxies {
		p.SetTarget("127.0.0.1:1") // the servers do not find one another
		p.Cut()
		releases[i]()
	}
	waitFor(t, "the notice that no service receives requests", func() bool {
		return strings.HasPrefix(ask(t, joke, "cats"), "tool_unavailable: tell-joke did not run: no service")
	})
	n.wantUndisturbed(t)
	for i, p := range proxies {
		p.SetTarget(servers[i].ClusterAddr().String())
	}
	awaitAnswer(t, joke)
}
