package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/service"
)

// Documents of the joke service.
const (
	jokeBroker  = "{kind: broker, name: main, type: nats, listen: '127.0.0.1:0'}"
	jokeService = "{kind: toolService, name: joke-service, request-queue: 'request:tg:joke', response-queue: 'response:tg:joke', config-params: [style]}"
	jokeTool    = "{kind: tool, name: tell-joke, type: tool-service, description: d, service: joke-service, style: pun, group: [fun], arguments: [{name: topic, type: string, description: d}]}"
	jokeRoles   = "{kind: role, name: entertainer, toolGroups: [fun]}\n---\n{kind: role, name: clerk, toolGroups: [console]}"
)

// apply applies documents.
func (f *fixture) apply(docs ...string) {
	f.t.Helper()
	if _, err := f.reconfigure(f.t.Context(), f.read(docs...)); err != nil {
		f.t.Fatal(err)
	}
}

// callAs calls a tool as a user in a role, and returns the text of the result, or the code and the
// message of its error.
func (f *fixture) callAs(user, role, name, args string) string {
	f.t.Helper()
	r, _ := f.Runtime.Org().RoleByName(role)
	a, err := f.Runtime.InvokeTool(f.t.Context(), identity.ByCaller(identity.UserName(user), r.ID), name, json.RawMessage(args))
	if err != nil {
		return "error: " + err.Error()
	}
	if !a.Result.IsError {
		return a.Result.Text
	}
	var failure struct{ Error, Message string }
	_ = json.Unmarshal(a.Result.Structured, &failure) // tool.Failure wrote it
	return failure.Error + ": " + failure.Message
}

// brokerURL returns the address of the embedded broker.
func (f *fixture) brokerURL() string {
	f.t.Helper()
	list := f.BrokerAddresses()
	if len(list) != 1 {
		f.t.Fatalf("the brokers listen at %v", list)
	}
	return "nats://" + list[0]
}

// key creates the key of a service.
func (f *fixture) key(name string) string {
	f.t.Helper()
	k, err := f.keys.CreateKey(keystore.Service, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return k.Secret
}

// startJoke starts the joke service with a key.
func (f *fixture) startJoke(key string) (*service.Service, error) {
	return service.Start(service.Options{ID: "joke-service", Queue: "request:tg:joke", URL: f.brokerURL(), Key: key}, func(_ context.Context, c *service.Call) (string, error) {
		var joke struct{ Style, Topic string }
		err := c.Decode(&joke)
		t := c.Token
		return fmt.Sprintf("%s about %s for %s (%s in role %s calls %s, %t)", joke.Style, joke.Topic, c.User, t.Caller, t.Role, t.Tool, t.Organization != "" && t.CallID != ""), err
	})
}

// A tool of a service is called by the roles that have its group, and by no other. The service
// knows who calls, whatever the arguments say.
func TestToolService_IsCalledThroughTheGate(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	joke, err := f.startJoke(f.key("joke-service"))
	if err != nil {
		t.Fatal(err)
	}
	defer joke.Stop()
	for _, c := range []struct{ user, role, args, want string }{
		{"ann", "entertainer", `{"topic":"llamas"}`, "pun about llamas for ann (ann in role entertainer calls tell-joke, true)"},
		{"ann", "clerk", `{"topic":"llamas"}`, "tool_not_available: "},
		{"ann", "entertainer", `{}`, "invalid_arguments: topic: is missing"},
		{"ann", "entertainer", `{"topic":1}`, "invalid_arguments: topic: want string, got number"},
		{"ann", "entertainer", `{"topic":"x","user":"root"}`, "invalid_arguments: unknown property user"},
		{"ann", "entertainer", `{"topic":"x","style":"rude"}`, "invalid_arguments: unknown property style"},
	} {
		if got := f.callAs(c.user, c.role, "tell-joke", c.args); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s in role %s calls with %s: got %q, want %q", c.user, c.role, c.args, got, c.want)
		}
	}
}

// The keys decide who may connect as a service. A call needs no service that runs.
func TestToolService_KeysAndAccounts(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	for _, key := range []string{"", "wrong", f.key("other-service")} {
		if s, err := f.startJoke(key); err == nil {
			t.Errorf("a service connects with the key %q", key)
			_ = s.Stop()
		}
	}
	const absent = `tool_unavailable: tell-joke did not run: no service receives requests of the tool service "joke-service"; it may be called again later`
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); got != absent {
		t.Errorf("without a service: %q", got)
	}
	old := f.key("joke-service")
	first, err := f.startJoke(old)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	next, err := f.keys.RotateKey(keystore.Service, "joke-service", keystore.Overlap)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasPrefix(got, "pun about x") {
		t.Errorf("a service with the old key: %q", got)
	}
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	second, err := f.startJoke(next.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop()
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasPrefix(got, "pun about x") {
		t.Errorf("a service with the new key: %q", got)
	}
}

// A broker in this process lets in the services whose broker it is, and no other.
func TestToolService_HasAnAccountAtItsBrokerOnly(t *testing.T) {
	f := newFixture(t)
	key := f.key("joke-service")
	check := func(when string, want map[string]bool) {
		t.Helper()
		for name, want := range want {
			if _, got := (&accounts{f.App, name}).FindAccount("joke-service", key); got != want {
				t.Errorf("%s: broker %s lets the service in: %t, want %t", when, name, got, want)
			}
		}
	}
	f.apply(jokeService, jokeTool, jokeRoles)
	check("without a document of kind broker", map[string]bool{embeddedBroker: true, "main": false})
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	check("with one broker", map[string]bool{embeddedBroker: false, "main": true})
	f.apply(jokeBroker, "{kind: broker, name: second, type: nats}", strings.Replace(jokeService, "name:", "broker: second, name:", 1), jokeTool, jokeRoles)
	check("with two brokers", map[string]bool{"main": false, "second": true})
}

// A service is disconnected when its key has ended, although the configuration still has it.
func TestToolService_EndedKeyEndsConnection(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	joke, err := f.startJoke(f.key("joke-service"))
	if err != nil {
		t.Fatal(err)
	}
	defer joke.Stop()
	f.brokers.disconnectInvalid()
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasPrefix(got, "pun about x") {
		t.Errorf("with a valid key: %q", got)
	}
	if _, err := f.keys.RotateKey(keystore.Service, "joke-service", 0); err != nil {
		t.Fatal(err)
	}
	f.brokers.disconnectInvalid()
	f.until("the service is disconnected", func() bool { return joke.CheckHealth() != nil })
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.Contains(got, "no service receives requests") {
		t.Errorf("after the end of the key: %q", got)
	}
}

// A broker that cannot be reached, or whose port is in use, is a reason why the process is not ready,
// until it works.
func TestToolService_FailedBrokerIsNotReady(t *testing.T) {
	f := newFixture(t)
	f.MarkReady()
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	if got := f.readyz(); !strings.Contains(got, `"status":"ready"`) {
		t.Errorf("with a broker in the process: %s", got)
	}
	external := "{kind: broker, name: main, type: nats, url: 'nats://127.0.0.1:1'}"
	f.apply(external, jokeService, jokeTool, jokeRoles)
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasSuffix(got, "cannot be reached") {
		t.Errorf("without a broker: %q", got)
	}
	if got := f.readyz(); !strings.Contains(got, wire.UnreadyModule) || !slices.Equal(f.failedModules(), []string{"joke-service"}) {
		t.Errorf("without a broker: %s", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inUse := "{kind: broker, name: main, type: nats, listen: '" + l.Addr().String() + "'}"
	f.apply(inUse, jokeService, jokeTool, jokeRoles)
	if got := f.readyz(); !strings.Contains(got, wire.UnreadyModule) {
		t.Errorf("with a port in use: %s", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f.apply(inUse, jokeService, jokeTool, jokeRoles)
	if got := f.readyz(); !strings.Contains(got, `"status":"ready"`) {
		t.Errorf("when the port is free: %s", got)
	}
}

// serviceMetric says which tool services are there.
const serviceMetric = "rolecall_tool_service_up"

// servicesUp returns the value of the metric for each service.
func (f *fixture) servicesUp() map[string]float64 {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	up := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == serviceMetric {
				up[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return up
}

// Which services are there is known for a broker in the process, and for those that announce
// themselves.
func TestToolService_States(t *testing.T) {
	f := openConnected(t, Options{})
	want := func(when, want string) {
		t.Helper()
		f.until(when+": "+want, func() bool { return fmt.Sprint(f.serviceStates()) == want })
	}
	want("without a configuration", "map[]")
	f.apply(allowBroker, jokeService, jokeTool, jokeRoles)
	want("without services", "map[joke-service:false]")
	joke, err := f.startJoke(f.key("joke-service"))
	if err != nil {
		t.Fatal(err)
	}
	stop := f.startWeather(f.key("weather"), forecast("d"))
	want("with services", "map[joke-service:true weather:true]")
	if got := fmt.Sprint(f.servicesUp()); got != "map[joke-service:1 weather:1]" {
		t.Errorf("the metric is %s", got)
	}
	if err := joke.Stop(); err != nil {
		t.Error(err)
	}
	stop()
	want("when they have stopped", "map[joke-service:false weather:false]")
	if got := fmt.Sprint(f.servicesUp()); got != "map[joke-service:0 weather:0]" {
		t.Errorf("the metric is %s", got)
	}
}

// countingBroker counts how often its accounts are checked.
type countingBroker struct {
	broker.Driver
	checks atomic.Int32
}

func (*countingBroker) Address() string             { return "" }
func (*countingBroker) ConnectedServices() []string { return nil }
func (b *countingBroker) DisconnectInvalid()        { b.checks.Add(1) }

// Accounts are checked while nothing changes: keys expire, and other processes change them.
func TestBrokers_WatchAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := &countingBroker{}
		b := &brokers{open: map[string]*openBroker{"one": {driver: one}}}
		go b.watchAccounts(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := one.checks.Load(); n != 6 {
			t.Errorf("%d checks in a minute", n)
		}
	})
}

// A change of the configuration changes the tools of a service without a restart. The connection
// of an unchanged broker stays, and a service that is removed is disconnected.
func TestToolService_FollowsConfiguration(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	joke, err := f.startJoke(f.key("joke-service"))
	if err != nil {
		t.Fatal(err)
	}
	defer joke.Stop()
	f.apply(jokeBroker, jokeService, strings.Replace(jokeTool, "pun", "one-liner", 1), jokeRoles)
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasPrefix(got, "one-liner about x") {
		t.Errorf("after a change of a value: %q", got)
	}
	moved := strings.Replace(jokeService, "request:tg:joke", "request:tg:jokes", 1)
	f.apply(jokeBroker, moved, jokeTool, jokeRoles)
	f.until("a service with another queue is disconnected", func() bool { return joke.CheckHealth() != nil })
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	f.until("the service is back", func() bool { return joke.CheckHealth() == nil })
	f.apply(jokeBroker, strings.Replace(jokeService, "joke-service", "other-service", 1), strings.Replace(jokeTool, "service: joke-service", "service: other-service", 1), jokeRoles)
	for joke.CheckHealth() == nil { // until it has noticed that it was disconnected
		if t.Context().Err() != nil {
			t.Fatal("the service that was removed stays connected")
		}
	}
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	f.apply(jokeRoles + "\n---\n{kind: tool, name: x, type: http, source: s, description: d, method: GET, path: /, group: [fun]}\n---\n{kind: source, name: s, type: http, baseUrl: 'http://127.0.0.1:1'}")
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"x"}`); !strings.HasPrefix(got, "unknown_tool: ") {
		t.Errorf("after its removal: %q", got)
	}
	if n := len(f.brokers.open); n != 0 {
		t.Errorf("%d brokers are open without a tool service", n)
	}
}

// Models read the changed arguments of a tool whose service does not check them.
func TestToolService_ChangedArgumentsOfUntypedService(t *testing.T) {
	f := newFixture(t)
	untyped := strings.Replace(jokeService, "config-params", "untypedArguments: true, config-params", 1)
	f.apply(jokeBroker, untyped, jokeTool, jokeRoles)
	f.apply(jokeBroker, untyped, strings.Replace(jokeTool, "name: topic", "name: subject", 1), jokeRoles)
	h, _ := f.groups.CurrentSnapshot().LookupTool("tell-joke")
	if schema := string(h.Definition.ModelSchema()); !strings.Contains(schema, "subject") {
		t.Errorf("models read %s", schema)
	}
}

// What a configuration cannot have is an error of its document, and nothing changes.
func TestToolService_RejectedConfigurations(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, jokeService, jokeTool, jokeRoles)
	for want, docs := range map[string][]string{
		`this build has no broker of type "kafka"`:     {"{kind: broker, name: main, type: kafka}", jokeService, jokeTool, jokeRoles},
		"passwords would be sent as plain text":        {"{kind: broker, name: main, type: nats, listen: '0.0.0.0:0'}", jokeService, jokeTool, jokeRoles},
		"choose another port":                          {strings.NewReplacer("main", "other", "127.0.0.1:0", f.BrokerAddresses()[0]).Replace(jokeBroker), jokeService, jokeTool, jokeRoles},
		"is a built-in tool":                           {jokeBroker, jokeService, strings.Replace(jokeTool, "tell-joke", "list_files", 1), jokeRoles},
		"the module at org.yaml:7:1 has the same name": {jokeBroker, jokeService, jokeTool, "{kind: module, name: joke-service, type: fake}", jokeRoles},
		`module name "operator" is reserved`:           {jokeBroker, strings.Replace(jokeService, "joke-service", "operator", 1), "{kind: role, name: r}"},
		"belongs to group \"fake\" of module:fake":     {jokeBroker, jokeService, strings.Replace(jokeTool, "tell-joke", "fake", 1), "{kind: module, name: fake, type: fake}", jokeRoles},
	} {
		_, err := f.reconfigure(t.Context(), f.read(docs...))
		if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if h, ok := f.groups.CurrentSnapshot().LookupTool("tell-joke"); !ok || h.Owner != "module:joke-service" {
		t.Errorf("after errors the tool is %+v, %t", h, ok)
	}
}
