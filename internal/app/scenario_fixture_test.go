package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// scenario is a served organization with the tools of TrustGraph's specification. Its users
// have tokens of an issuer, its agents a model behind HTTP.
type scenario struct {
	*fixture
	idp   *oidctest.Issuer
	model *scenarioModel
	log   *buffer.SyncBuffer // the log, from level info on
	url   string
	docs  []string // its documents without the specification
}

// scenarioConfig is what a scenario has beyond the specification.
type scenarioConfig struct {
	role  string          // fields of a role guests, whose users are guests; "" for none
	docs  []string        // more documents
	clock *simulatedClock // nil is the machine's
}

// newScenario serves an organization whose roles have a pattern.
func newScenario(t *testing.T, pattern org.CollaborationPattern, c scenarioConfig) *scenario {
	s := &scenario{idp: oidctest.NewIssuer(t), model: newScenarioModel(t), log: &buffer.SyncBuffer{}}
	o := Options{Serve: true, Log: slog.New(slog.NewJSONHandler(s.log, nil))}
	if c.clock != nil {
		o.wall = c.clock.wall()
	}
	s.fixture = openConnected(t, o)
	s.docs = append(s.documents(pattern, c.role, newTrustGraph(t).URL, newMCPFixture(t, "complex-analysis", "reset-workflow")), c.docs...)
	apply := func() {
		if err := s.ApplyConfig(t.Context(), s.config(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if c.clock == nil {
		apply()
	} else {
		c.clock.during(apply)
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// documents returns the configuration without the specification.
func (s *scenario) documents(pattern org.CollaborationPattern, guests, trustGraph string, m *mcpFixture) (docs []string) {
	fields := map[string]string{
		"readers":  "toolGroups: [read-only], agent: {defaultGroups: [read-only]}",
		"writers":  "toolGroups: [write], agent: {defaultGroups: [write]}, states: [analysis, modification]",
		"analysts": "toolGroups: [knowledge, compute, admin], agent: {}",
	}
	if guests != "" {
		fields["guests"] = guests
	}
	var rules []string
	for name, more := range fields {
		docs = append(docs, fmt.Sprintf("{kind: role, name: %s, pattern: %s, %s}", name, pattern, more))
		rules = append(rules, fmt.Sprintf("{claim: /groups, value: %s, role: %s}", name, name))
	}
	digest := sha256.Sum256([]byte("rc_prometheus"))
	return append(docs,
		"{kind: organization, name: o, model: m}",
		fmt.Sprintf("{kind: model, name: m, type: openai, model: scripted, baseURL: %q, prices: {input: 100000}}", s.model.URL+"/v1"),
		"{kind: network, name: n, allowHTTP: true, privateAddresses: [127.0.0.0/8]}",
		fmt.Sprintf("{kind: source, name: trustgraph, type: http, baseUrl: %q}", trustGraph), m.document(""),
		"{kind: tool, name: entity-create, type: http, source: trustgraph, method: POST, path: /entities, description: Adds., group: [write], available_in_states: [analysis, modification]}",
		fmt.Sprintf("{kind: gateway, name: g, tokens: [{name: prometheus, scope: metrics, sha256: %q}], auth: [{name: corp, issuer: %q, audience: [gw], roles: [%s]}]}",
			hex.EncodeToString(digest[:]), s.idp.URL, strings.Join(rules, ", ")),
	)
}

// config reads the documents and the specification.
func (s *scenario) config() *config.Config {
	s.t.Helper()
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte(strings.Join(s.docs, "\n---\n"))}, {Path: "tools.yaml", Data: []byte(specification)},
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

// token returns a token of the issuer for a user, who is in the group of the same name.
func (s *scenario) token(user string) string {
	return s.idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"gw","sub":%q,"groups":[%q],"exp":%d}`, s.idp.URL, user, user, time.Now().Add(time.Hour).Unix()))
}

// do sends a request with a token.
func (s *scenario) do(token, method, path, body string) (int, []byte) {
	s.t.Helper()
	status, data, err := s.send(token, method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return status, data
}

func (s *scenario) send(token, method, path, body string) (status int, data []byte, err error) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	data, err = io.ReadAll(answer.Body)
	return answer.StatusCode, data, err
}

// ask asks an agent and returns what it answered, and the tools of each request to its model.
func (s *scenario) ask(user, body string) (answer wire.AgentAnswer, seen []string) {
	s.t.Helper()
	status, data := s.do(s.token(user), http.MethodPost, "/api/v1/agent", body)
	if err := json.Unmarshal(data, &answer); err != nil || status != http.StatusOK || string(answer.Answer) != `"done"` {
		s.t.Fatalf("%s %s: %d %s", user, body, status, data)
	}
	return answer, s.model.takeSeen()
}

// askHeld asks an agent and returns when its model is asked for the nth time. The model answers
// when the channel goOn is closed; ended then has the error of the request.
func (s *scenario) askHeld(user, body string, n int) (goOn chan<- struct{}, ended <-chan error) {
	hold, failed := make(chan chan<- struct{}), make(chan error, 1)
	s.model.holdRequests(hold)
	go func() {
		status, data, err := s.send(s.token(user), http.MethodPost, "/api/v1/agent", body)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, data)
		}
		failed <- err
	}()
	for range n - 1 {
		close(<-hold)
	}
	goOn = <-hold
	s.model.holdRequests(nil)
	return goOn, failed
}

// reject sends a request to an agent that is rejected.
func (s *scenario) reject(user, body string, status int, code errcode.Code) {
	s.t.Helper()
	got, data := s.do(s.token(user), http.MethodPost, "/api/v1/agent", body)
	var answer struct{ Error struct{ Code errcode.Code } }
	if err := json.Unmarshal(data, &answer); err != nil || got != status || answer.Error.Code != code {
		s.t.Errorf("%s %s: %d %s, want %d %s", user, body, got, data, status, code)
	}
	if seen := s.model.takeSeen(); len(seen) > 0 {
		s.t.Errorf("%s %s: the model was asked with %s", user, body, seen)
	}
}

// describeRequest describes a request on record.
func describeRequest(caller string, named, granted []string, last string) string {
	user, _, _ := strings.Cut(strings.TrimPrefix(caller, "user:"), "@")
	return fmt.Sprintf("%s, named %s, granted %s, %s", user, strings.Join(named, " "), strings.Join(granted, " "), last)
}

// started describes the requests on record: the user, the groups that were named and granted,
// and the state or the code of a rejection. One without named groups that was rejected has its
// default groups in place of granted ones.
func (s *scenario) started(after uint64) (list []string) {
	s.t.Helper()
	for e, err := range s.store.FollowEvents(s.t.Context(), after, journal.StoredOnly) {
		if err != nil {
			s.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case journal.TaskStarted:
			if b.Groups == nil {
				b.Groups = []string{"*"}
			}
			list = append(list, describeRequest(b.Caller, b.Requested, b.Groups, b.State))
		case journal.TaskDenied:
			list = append(list, describeRequest(b.Caller, b.Requested, b.Defaults, string(b.Code)))
		}
	}
	return list
}

// scrape reads the metrics over HTTP, without help texts and buckets, sorted.
func (s *scenario) scrape() (samples []string) {
	s.t.Helper()
	status, data := s.do("rc_prometheus", http.MethodGet, "/metrics", "")
	if status != http.StatusOK {
		s.t.Fatalf("GET /metrics: %d %s", status, data)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			samples = append(samples, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(samples)
	return samples
}
