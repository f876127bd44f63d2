package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// networkFixture is a gateway for tokens and networks, of all protocols.
type networkFixture struct {
	*gatewaytest.Fixture
	tokens  *auth.TokenStore
	handler http.Handler
}

func newNetworkFixture(t *testing.T, f *gatewaytest.Fixture, list ...auth.Token) *networkFixture {
	t.Helper()
	proxies := func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }
	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, TrustedProxies: proxies})
	if err == nil {
		err = tokens.ReplaceTokens(list)
	}
	if err != nil {
		t.Fatal(err)
	}
	server, err := mcpserver.New(mcpserver.Config{Runtime: f.Runtime, Streaming: gateway.UntilShutdown})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: tokens.Authenticate, MCP: server, StartTask: f.Runtime.StartTask})
	if err != nil {
		t.Fatal(err)
	}
	return &networkFixture{f, tokens, handler}
}

// limit makes the groups of some networks active.
func (f *networkFixture) limit(t testing.TB, networks map[string]toolgroups.GroupSet) {
	t.Helper()
	var list []auth.Network
	for from, groups := range networks {
		list = append(list, auth.Network{From: netip.MustParsePrefix(from), Within: f.Runtime.Org().LimitTo(groups)})
	}
	if err := f.tokens.ReplaceNetworks(list); err != nil {
		t.Fatal(err)
	}
}

// from sends a request that the trusted proxy on 127.0.0.1 passes on from an address.
func (f *networkFixture) from(t testing.TB, address, token, path, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	method, target, ok := strings.Cut(path, " ")
	if !ok {
		method, target = http.MethodGet, path
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "10.99.99.99, "+address)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// surfaces returns the tools that a sender finds and may call, by the way in which it asks.
func (f *networkFixture) surfaces(t testing.TB, address, token string, all []string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	list := func(name, path, body, query string, header http.Header) {
		w := f.from(t, address, token, path, body, header)
		text := w.Body.String()
		if _, event, isStream := strings.Cut(text, "data: "); isStream {
			text = event
		}
		names := []string{}
		for _, n := range gjson.Get(text, query).Array() {
			if n.String() != mcpserver.AskName {
				names = append(names, n.String())
			}
		}
		slices.Sort(names)
		found[name] = names
	}
	list("tools", "/api/v1/tools", "", "items.#.name", nil)
	list("groups", "/api/v1/tool-groups", "", "items.#.tools|@flatten", nil)
	list("can", "POST /api/v1/can", `{}`, "verdicts.#(allowed==true)#.tool", nil)
	list("manifest", "/api/toolset", "", "tools.@keys", nil)
	begin := f.from(t, address, token, "POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	list("mcp", "POST /mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "result.tools.#.name", http.Header{"Mcp-Session-Id": {begin.Header().Get("Mcp-Session-Id")}})
	for _, name := range []string{"invoke", "evaluation", "ask one"} {
		found[name] = []string{}
	}
	for _, tool := range all {
		if w := f.from(t, address, token, "POST /api/tool/"+tool+"/invoke", `{}`, nil); w.Code == http.StatusOK {
			found["invoke"] = append(found["invoke"], tool)
		}
		q := fmt.Sprintf(`{"subject":{"type":"role","id":%q},"action":{"name":"call"},"resource":{"type":"tool","id":%q}}`, "the-role", tool)
		if w := f.from(t, address, token, "POST /access/v1/evaluation", q, nil); gjson.Get(w.Body.String(), "decision").Bool() {
			found["evaluation"] = append(found["evaluation"], tool)
		}
		if w := f.from(t, address, token, "POST /api/v1/can", fmt.Sprintf(`{"caller":"ci","tool":%q}`, tool), nil); gjson.Get(w.Body.String(), "allowed").Bool() {
			found["ask one"] = append(found["ask one"], tool)
		}
	}
	return found
}

// For random networks, roles and addresses, what a caller finds and may call is what its role
// has in the groups of the most specific network that contains its address.
func TestNetworks_ToolsAreRoleWithinGroups(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	groups := []toolgroups.GroupID{"red", "green", "blue", "grey"}
	toolsOf, all := map[toolgroups.GroupID][]string{}, []string{}
	for _, g := range groups {
		name := "tool_" + string(g)
		f.AddTool(t, g, name)
		toolsOf[g], all = []string{name}, append(all, name)
	}
	role := f.AddRole(t, "the-role", groups[0])
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	prefixes := []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32", "::/0", "fd00::/8", "fd00:1::/32"}
	addresses := []string{"10.1.2.3", "10.1.2.4", "10.1.9.9", "10.9.9.9", "192.0.2.1", "::ffff:10.1.2.4", "fd00:1::5", "fd00:2::5%eth0", "2001:db8::1"}
	rnd := newRand(t)
	for range short.Count(12, 120) {
		use := randomGroups(rnd, groups)
		if _, err := f.LocalClient().UpdateRole(t.Context(), string(role.ID), wire.RoleRequest{Use: &use}, false); err != nil {
			t.Fatal(err)
		}
		networks := map[string]toolgroups.GroupSet{}
		for _, p := range prefixes {
			if rnd.IntN(2) == 0 {
				networks[p] = randomGroups(rnd, groups)
			}
		}
		address := addresses[rnd.IntN(len(addresses))]
		if use.IsAll() && expectedGroups(networks, address).IsAll() { // all the built-in tools, too
			continue
		}
		n.limit(t, networks)
		want := []string{}
		for _, g := range groups {
			if use.Has(g) && expectedGroups(networks, address).Has(g) {
				want = append(want, toolsOf[g]...)
			}
		}
		slices.Sort(want)
		for surface, got := range n.surfaces(t, address, token, all) {
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s from %s, role %v, networks %v:\n%s", surface, address, use, networks, diff)
			}
		}
	}
}

// newRand returns a source of random numbers with a seed that the test prints.
func newRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text, given := os.LookupEnv("ROLECALL_TEST_SEED"); given {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("ROLECALL_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomGroups returns a random set of groups, sometimes all.
func randomGroups(rnd *rand.Rand, groups []toolgroups.GroupID) toolgroups.GroupSet {
	if rnd.IntN(6) == 0 {
		return toolgroups.AllGroups()
	}
	list := []toolgroups.GroupID{}
	for _, g := range groups {
		if rnd.IntN(2) == 0 {
			list = append(list, g)
		}
	}
	return toolgroups.SetOf(list...)
}

// expectedGroups returns the groups of the network with the longest prefix, bit by bit.
func expectedGroups(networks map[string]toolgroups.GroupSet, address string) toolgroups.GroupSet {
	at := bitsOf(netip.MustParseAddr(address).Unmap())
	best, longest := toolgroups.AllGroups(), -1
	for text, groups := range networks {
		p := netip.MustParsePrefix(text)
		bits := bitsOf(p.Addr())
		if len(bits) == len(at) && bits[:p.Bits()] == at[:p.Bits()] && p.Bits() > longest {
			best, longest = groups, p.Bits()
		}
	}
	return best
}

// bitsOf returns the bits of an address as text.
func bitsOf(at netip.Addr) (bits string) {
	for _, b := range at.AsSlice() {
		bits += fmt.Sprintf("%08b", b)
	}
	return bits
}

// An address outside the trusted proxies cannot choose its network, and an address that cannot
// be read has none of the rights that a network leaves.
func TestNetworks_AddressIsNotForged(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "red", "tool_red")
	role := f.AddRole(t, "the-role", "red")
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	n.limit(t, map[string]toolgroups.GroupSet{"0.0.0.0/0": toolgroups.SetOf(), "::/0": toolgroups.SetOf(), "10.0.0.0/8": toolgroups.AllGroups(), "127.0.0.0/8": toolgroups.AllGroups()})
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		status       int
	}{
		{"inside", "10.1.1.1:1", nil, 200},
		{"outside", "192.0.2.1:1", nil, 404},
		{"outside, forged", "192.0.2.1:1", []string{"10.1.1.1"}, 404},
		{"behind the proxy, forged first", "127.0.0.1:1", []string{"10.1.1.1, 192.0.2.1"}, 404},
		{"behind the proxy, forged header", "127.0.0.1:1", []string{"10.1.1.1", "192.0.2.1"}, 404},
		{"behind the proxy, inside", "127.0.0.1:1", []string{"192.0.2.1", "10.1.1.1"}, 200},
		{"behind the proxy, unreadable", "127.0.0.1:1", []string{"unknown"}, 403},
		{"behind the proxy, empty", "127.0.0.1:1", []string{""}, 403},
		{"mapped", "[::ffff:10.1.1.1]:1", nil, 200},
		{"mapped behind the proxy", "127.0.0.1:1", []string{"::ffff:192.0.2.1"}, 404},
		{"with a zone", "[fe80::1%eth0]:1", nil, 404},
		{"no address", "@", nil, 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/tools/tool_red", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("Authorization", "Bearer "+token)
		if c.forwarded != nil {
			r.Header["X-Forwarded-For"] = c.forwarded
		}
		w := httptest.NewRecorder()
		n.handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
	}
}

// The operator is not accepted from a network with a limit. The owner of the data directory,
// the scope metrics and routes for everyone are not limited.
func TestNetworks_Operator(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	operator, one := gatewaytest.NewToken("op", auth.Token{Scope: auth.ScopeOperator})
	n := newNetworkFixture(t, f, one)
	n.limit(t, map[string]toolgroups.GroupSet{"0.0.0.0/0": toolgroups.SetOf("workspace"), "10.0.0.0/8": toolgroups.AllGroups()})
	for address, want := range map[string]int{"192.0.2.1": 403, "10.1.1.1": 200} {
		for _, path := range []string{"/api/v1/roles", "/", "/api/v1/tools"} {
			if w := n.from(t, address, operator, path, "", nil); w.Code != want {
				t.Errorf("%s from %s: %d %s", path, address, w.Code, w.Body)
			}
		}
		if w := n.from(t, address, operator, "/healthz", "", nil); w.Code != http.StatusOK {
			t.Errorf("healthz: %d", w.Code)
		}
		if w := n.from(t, address, n.tokens.StartupToken(), "/api/v1/roles", "", nil); w.Code != want {
			t.Errorf("start-up token from %s: %d", address, w.Code)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/roles", nil)
	r.RemoteAddr = "@"
	w := httptest.NewRecorder()
	if auth.TrustLocalOwner(n.handler).ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("the owner: %d %s", w.Code, w.Body)
	}
}

// A task keeps the limit of the network from which it was started, also after a restart without
// the network. It is not retried from a network with less.
func TestNetworks_TaskKeepsLimit(t *testing.T) {
	dir := t.TempDir()
	answer := func(model.Request) model.Answer { return gatewaytest.EndAnswer("no object") }
	f := newFixtureIn(t, dir, answer)
	f.AddTool(t, "red", "tool_red")
	f.AddTool(t, "blue", "tool_blue")
	role := f.AddRole(t, "the-role", "red", "blue", toolgroups.OrgManagement)
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	narrow := toolgroups.SetOf("red", toolgroups.OrgManagement)
	n.limit(t, map[string]toolgroups.GroupSet{"192.0.2.0/24": narrow, "198.51.100.0/24": toolgroups.SetOf()})
	start := func(address, group string) (int, identity.TaskID) {
		body := `{"text":"go","result":{"schema":{"type":"object"}}` + group + `}`
		w := n.from(t, address, token, "POST /api/v1/tasks", body, nil)
		id := gjson.Get(w.Body.String(), "id").Str
		if w.Code == http.StatusAccepted {
			n.from(t, address, token, "/api/v1/tasks/"+id+"?wait=1m", "", nil)
		}
		return w.Code, identity.TaskID(id)
	}
	code, task := start("192.0.2.1", "")
	if code != http.StatusAccepted {
		t.Errorf("from a narrow network: %d", code)
	}
	if code, _ := start("192.0.2.1", `,"group":["blue"]`); code != http.StatusForbidden {
		t.Errorf("more than the network has: %d", code)
	}
	if code, _ := start("198.51.100.1", ""); code != http.StatusForbidden {
		t.Errorf("from a network without groups: %d", code)
	}
	_, wide := start("10.1.1.1", "")
	for _, address := range []string{"198.51.100.1", "192.0.2.1", "10.1.1.1"} { // the last retry is accepted
		want := http.StatusForbidden
		if address == "10.1.1.1" {
			want = http.StatusAccepted
		}
		if w := n.from(t, address, token, "POST /api/v1/tasks/"+string(wide)+"/retry", "", nil); w.Code != want {
			t.Errorf("retry from %s: %d %s", address, w.Code, w.Body)
		}
	}
	if err := errors.Join(f.Runtime.Close(), f.Store.(io.Closer).Close()); err != nil {
		t.Fatal(err)
	}
	again := newFixtureIn(t, dir, answer)
	for id, want := range map[identity.TaskID]bool{task: false, wide: true} {
		ceiling := map[identity.TaskID]toolgroups.PinnedSet{}
		for _, stored := range again.Runtime.Org().NewestTasks(nil, 10) {
			ceiling[stored.ID] = stored.Ceiling
		}
		if got := ceiling[id]; got.IsAll() || got.Set.Has("blue") != want || !got.Set.Has("red") {
			t.Errorf("after the restart: %v may use %v", id, got.Set)
		}
	}
}

// A group is there for a caller if its role uses it and its network has it.
func TestNetworks_Toolsets(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "red", "tool_red")
	f.AddTool(t, "blue", "tool_blue")
	role := f.AddRole(t, "the-role", "red", "blue")
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	n.limit(t, map[string]toolgroups.GroupSet{"10.0.0.0/8": toolgroups.SetOf("red")})
	begin := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for group, want := range map[string]bool{"red": true, "blue": false, "none": false} {
		for _, path := range []string{"POST /mcp/" + group, "/api/toolset/" + group, "/api/v1/tool-groups/" + group, "/api/v1/tools?group=" + group} {
			if w := n.from(t, "10.1.1.1", token, path, begin, nil); (w.Code == http.StatusOK && !strings.Contains(w.Body.String(), "does not exist")) != want {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		by := identity.ByCaller("ci", role.ID)
		by.Within = f.Runtime.Org().LimitTo(toolgroups.SetOf("red"))
		if f.Runtime.Org().CallerHasGroup(by, toolgroups.GroupID(group)) != want {
			t.Errorf("group %s: want %t", group, want)
		}
	}
}

// A sender in several networks has one limit of requests.
func TestNetworks_SenderIsCountedOnce(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	limiter := mcpserver.NewConcurrencyLimiter(1)
	by := identity.ByCaller("ci", "role")
	if _, err := limiter.Acquire(by); err != nil {
		t.Fatal(err)
	}
	by.Within = f.Runtime.Org().LimitTo(toolgroups.SetOf("red"))
	if _, err := limiter.Acquire(by); errcode.CodeOf(err) != errcode.RateLimited {
		t.Errorf("from another network: %v", err)
	}
}

// A network that changes ends sessions of MCP that began with another limit.
func TestNetworks_SessionKeepsLimit(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "red", "tool_red")
	role := f.AddRole(t, "the-role", "red")
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	begin := n.from(t, "10.1.1.1", token, "POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	session := http.Header{"Mcp-Session-Id": {begin.Header().Get("Mcp-Session-Id")}}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tool_red","arguments":{}}}`
	if w := n.from(t, "10.1.1.1", token, "POST /mcp", call, session); !strings.Contains(w.Body.String(), "content") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	n.limit(t, map[string]toolgroups.GroupSet{"10.0.0.0/8": toolgroups.SetOf()})
	if w := n.from(t, "10.1.1.1", token, "POST /mcp", call, session); w.Code == http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A group of a network is bound to its owner. One of another owner with its id has no effect.
// A limit that cannot be read allows nothing.
func TestNetworks_GroupsAreBound(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "red", "tool_red")
	role := f.AddRole(t, "the-role", "red")
	bound, _ := json.Marshal(toolgroups.PinnedSet{Set: toolgroups.SetOf("red"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"red": "another"}})
	for limit, want := range map[string]errcode.Code{
		f.Runtime.Org().LimitTo(toolgroups.SetOf("red")): "",
		f.Runtime.Org().LimitTo(toolgroups.SetOf()):      errcode.ToolNotAvailable,
		string(bound): errcode.ToolNotAvailable,
		"{":           errcode.ToolNotAvailable,
		`{"Set":"*"}`: errcode.ToolNotAvailable,
		`{}`:          errcode.ToolNotAvailable,
	} {
		by := identity.ByCaller("ann", role.ID)
		by.Within = limit
		a, err := f.Runtime.InvokeTool(t.Context(), by, "tool_red", nil)
		if err != nil || a.Code() != want {
			t.Errorf("%s: %v %v", limit, a.Code(), err)
		}
	}
}

// addDesk registers the group ring_tools with the tool ring, and above it the group office with
// hours, closed. It returns the role clerk with the group ring_tools, and opens and closes office.
func addDesk(t *testing.T, f *gatewaytest.Fixture, agent string) (role org.Role, switchTo func(open bool)) {
	t.Helper()
	f.AddTool(t, "phones", "ring")
	m := f.Runtime.GroupManager()
	owner, err := grouptest.ClaimOwner(m, toolgroups.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []toolgroups.Group{
		{ID: "ring_tools", Refs: []string{"ring"}},
		{ID: "office", Children: []toolgroups.GroupID{"ring_tools"}, Hours: officeHours{}},
	} {
		if _, err := owner.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	role = gatewaytest.GetJSON[client.Role](t, f, "POST /api/v1/roles", `{"name":"clerk","toolGroups":["ring_tools"],"agent":`+agent+`}`).Role
	return role, func(open bool) {
		t.Helper()
		if err := m.Update(func(tx *toolgroups.Tx) error { return tx.SwitchGroup(owner, "office", open) }); err != nil {
			t.Fatal(err)
		}
	}
}

// A role has a child of the group that its network has. While the hours of the group close it,
// neither the caller nor its tasks may call what the child has, whenever they began.
func TestNetworks_ClosedParentLimitsTasks(t *testing.T) {
	f := newFixture(t, gatewaytest.ModelFunc(echoTools))
	role, switchTo := addDesk(t, f, `{}`)
	token, known := gatewaytest.NewToken("ci", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	n := newNetworkFixture(t, f, known)
	n.limit(t, map[string]toolgroups.GroupSet{"10.0.0.0/8": toolgroups.SetOf("office")})
	var tasks []org.Task
	for _, open := range []bool{false, true, false} {
		switchTo(open)
		w := n.from(t, "10.1.1.1", token, "POST /api/tool/ring/invoke", "{}", nil)
		if (w.Code == http.StatusOK) != open {
			t.Errorf("open %t: a call: %d %s", open, w.Code, w.Body)
		}
		w = n.from(t, "10.1.1.1", token, "POST /api/v1/agent", `{"question":"q","group":["*"]}`, http.Header{"Accept": {"application/json"}})
		if got := gjson.Get(w.Body.String(), "answer").Str; w.Code != http.StatusOK || (got == "ring") != open {
			t.Errorf("open %t: the agent has %q: %d %s", open, got, w.Code, w.Body)
		}
		tasks = f.Runtime.Org().ListTasks()
		for _, task := range tasks {
			ref, _ := f.Runtime.Org().ResolveView(identity.ByAgent(task.Top))
			if got := ref.CurrentView().ToolNames(); slices.Contains(got, "ring") != open {
				t.Errorf("open %t: the agent of a task has %v", open, got)
			}
		}
	}
	if len(tasks) != 3 {
		t.Errorf("%d tasks", len(tasks))
	}
}

// The same holds for the default groups of the requests to a role.
func TestAskAgent_ClosedDefaultGroup(t *testing.T) {
	f := newFixture(t, gatewaytest.ModelFunc(echoTools))
	role, switchTo := addDesk(t, f, `{"defaultGroups":["office"]}`)
	caller := f.WithCaller(t, role.ID)
	for _, open := range []bool{true, false} {
		switchTo(open)
		_, text := caller.SendText(t, "POST /api/v1/agent", `{"question":"q"}`)
		if !open && strings.Contains(text, `"answer":"ring"`) {
			t.Errorf("closed: %s", text)
		}
	}
	for _, task := range f.Runtime.Org().ListTasks() {
		ref, _ := f.Runtime.Org().ResolveView(identity.ByAgent(task.Top))
		if got := ref.CurrentView().ToolNames(); len(got) > 0 {
			t.Errorf("closed: the agent of a task has %v", got)
		}
	}
}
