package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

// course is what a request leads to with agents of one pattern.
type course struct {
	seen   []string // tools that each request to the model offers
	denied []string // calls that were denied, and by which rule
}

// scenarioRequest is a request of a user to an agent of its role.
type scenarioRequest struct {
	user, body string
	status     int // of a rejection
	code       errcode.Code

	named, granted []string // groups; granted are the default groups if the request names none
	begin, end     string   // workflow states
	tools, later   string   // available in the state in which it begins, and in another state
	moves          []string // changes of the workflow state
	react, plan    course
}

const (
	kq, tc, ca, rw, ec = "knowledge-query", "text-completion", "complex-analysis", "reset-workflow", "entity-create"

	toAnalysis, toResults, toUndefined = kq + ": undefined to analysis", ca + ": analysis to results", rw + ": results to undefined"
)

var (
	readOnly, write = []string{"read-only"}, []string{"write"}
	workflowGroups  = []string{"knowledge", "compute", "admin"}
	workflow        = scenarioRequest{
		user: "analysts", body: `{"question":"steps[knowledge-query complex-analysis reset-workflow]","group":["knowledge","compute","admin"]}`,
		named: workflowGroups, granted: workflowGroups, begin: "undefined", end: "undefined", tools: kq, later: ca + " " + rw,
		moves: []string{toAnalysis, toResults, toUndefined},
		react: course{seen: []string{kq, ca + " " + rw, rw, kq}},
		plan:  course{seen: []string{kq, kq, ca + " " + rw, rw, kq}},
	}
)

// scenarioRequests are two users with their own groups and states, requests for more than they
// have, the workflow, twice and over three requests, and calls that are not allowed yet.
var scenarioRequests = []scenarioRequest{
	{
		user: "readers", body: `{"question":"steps[]","group":["read-only"]}`, named: readOnly, granted: readOnly, begin: "undefined", end: "undefined", tools: kq + " " + tc,
		react: course{seen: []string{kq + " " + tc}}, plan: course{seen: []string{kq + " " + tc, kq + " " + tc}},
	},
	{
		user: "writers", body: `{"question":"steps[entity-create]","group":["write"],"state":"analysis"}`, named: write, granted: write, begin: "analysis", end: "analysis", tools: ec,
		react: course{seen: []string{ec, ec}}, plan: course{seen: []string{ec, ec, ec}},
	},
	{user: "readers", body: `{"question":"steps[]","group":["write"]}`, status: http.StatusForbidden, code: errcode.InsufficientPermissions, named: write, begin: "undefined"},
	{user: "readers", body: `{"question":"steps[]","state":"analysis"}`, status: http.StatusForbidden, code: errcode.InsufficientPermissions, granted: readOnly, begin: "analysis"},
	{user: "writers", body: `{"question":"steps[]","state":"modification"}`, status: http.StatusConflict, code: errcode.Conflict, granted: write, begin: "modification"},
	workflow, workflow,
	{ // a tool of another user
		user: "readers", body: `{"question":"steps[entity-create]"}`, granted: readOnly, begin: "undefined", end: "undefined", tools: kq + " " + tc,
		react: course{seen: slices.Repeat([]string{kq + " " + tc}, 2), denied: []string{ec + ": not granted"}}, plan: course{seen: slices.Repeat([]string{kq + " " + tc}, 3)},
	},
	{ // a tool of another state
		user: "analysts", body: `{"question":"steps[complex-analysis]","group":["*"]}`, named: []string{"*"}, granted: []string{"*"}, begin: "undefined", end: "undefined", tools: kq, later: ca + " " + rw,
		react: course{seen: slices.Repeat([]string{kq}, 2), denied: []string{ca + ": wrong state"}}, plan: course{seen: slices.Repeat([]string{kq}, 3)},
	},
	{user: "analysts", body: `{"question":"steps[]"}`, status: http.StatusForbidden, code: errcode.NoToolsAvailable, granted: []string{"default"}, begin: "undefined"},
	{ // a tool of the state that a failed call would have led to
		user: "analysts", body: `{"question":"steps[knowledge-query! complex-analysis]","group":["*"]}`, named: []string{"*"}, granted: []string{"*"}, begin: "undefined", end: "undefined", tools: kq, later: ca + " " + rw,
		react: course{seen: slices.Repeat([]string{kq}, 3), denied: []string{ca + ": wrong state"}}, plan: course{seen: slices.Repeat([]string{kq}, 4)},
	},
	{ // dependent steps in one answer
		user: "analysts", body: `{"question":"together[knowledge-query complex-analysis reset-workflow]","group":["*"]}`, named: []string{"*"}, granted: []string{"*"}, begin: "undefined", end: "undefined", tools: kq, later: ca + " " + rw,
		moves: workflow.moves, react: course{seen: slices.Repeat([]string{kq}, 2)}, plan: course{seen: slices.Repeat([]string{kq}, 3)},
	},
	{ // the first of them fails
		user: "analysts", body: `{"question":"together[knowledge-query! complex-analysis]","group":["*"]}`, named: []string{"*"}, granted: []string{"*"}, begin: "undefined", end: "undefined", tools: kq, later: ca + " " + rw,
		react: course{seen: slices.Repeat([]string{kq}, 2), denied: []string{ca + ": wrong state"}}, plan: course{seen: slices.Repeat([]string{kq}, 4), denied: []string{ca + ": wrong state"}},
	},
	{
		user: "analysts", body: `{"question":"steps[knowledge-query]","group":["knowledge"]}`, named: []string{"knowledge"}, granted: []string{"knowledge"}, begin: "undefined", end: "analysis", tools: kq,
		moves: []string{toAnalysis}, react: course{seen: []string{kq, ""}}, plan: course{seen: []string{kq, kq, ""}},
	},
	{ // another user has another state
		user: "readers", body: `{"question":"steps[knowledge-query text-completion]","state":"undefined"}`, granted: readOnly, begin: "undefined", end: "undefined", tools: kq + " " + tc,
		moves: []string{toAnalysis, tc + ": analysis to undefined"},
		react: course{seen: []string{kq + " " + tc, tc, kq + " " + tc}}, plan: course{seen: []string{kq + " " + tc, kq + " " + tc, tc, kq + " " + tc}},
	},
	{
		user: "analysts", body: `{"question":"steps[complex-analysis]","group":["compute"],"state":"analysis"}`, named: []string{"compute"}, granted: []string{"compute"}, begin: "analysis", end: "results", tools: ca,
		moves: []string{toResults}, react: course{seen: []string{ca, ""}}, plan: course{seen: []string{ca, ca, ""}},
	},
	{
		user: "analysts", body: `{"question":"steps[reset-workflow]","group":["admin"],"state":"results"}`, named: []string{"admin"}, granted: []string{"admin"}, begin: "results", end: "undefined", tools: rw,
		moves: []string{toUndefined}, react: course{seen: []string{rw, ""}}, plan: course{seen: []string{rw, rw, ""}},
	},
}

var bothPatterns = []org.CollaborationPattern{org.React, org.Plan}

// course returns what r leads to with a pattern.
func (r scenarioRequest) course(p org.CollaborationPattern) course {
	if p == org.Plan {
		return r.plan
	}
	return r.react
}

// Users with tokens of an issuer ask agents over HTTP, which call their tools one by one or by
// a plan. Each sees the tools of its groups in its state. A state changes after success only,
// and follows the user. All of it is on record, logged and counted.
func TestScenario_UsersOfAnIssuer(t *testing.T) {
	moved := map[string]bool{} // metrics that had another value than 0
	passed := 0
	for _, pattern := range bothPatterns {
		t.Run(string(pattern), func(t *testing.T) {
			s := newScenario(t, pattern, scenarioConfig{})
			after := s.LastSeq()
			for _, r := range scenarioRequests {
				s.play(r, r.course(pattern))
			}
			s.checkRecord(after)
			s.checkLog(after, pattern)
			s.checkMetrics(pattern, moved)
			s.checkAtWork(moved)
			passed++
		})
	}
	if passed < len(bothPatterns) {
		return // not all were run
	}
	for _, name := range documentedMetrics(t) {
		elsewhere := name == serviceMetric || strings.HasPrefix(name, "rolecall_approval") || strings.HasPrefix(name, "rolecall_notification")
		if !moved[name] && !elsewhere { // TestToolService_States and TestNotifications_ServedConfiguration move those
			t.Errorf("the scenario does not move %s", name)
		}
	}
}

// play sends a request and checks its answer, and what its agent saw.
func (s *scenario) play(r scenarioRequest, c course) {
	s.t.Helper()
	if r.code != "" {
		s.reject(r.user, r.body, r.status, r.code)
		return
	}
	answer, seen := s.ask(r.user, r.body)
	if diff := cmp.Diff(c.seen, seen); diff != "" || answer.State != r.end || !slices.Equal(answer.Granted, r.granted) {
		s.t.Errorf("%s %s: in the end in %s with the groups %v, want %s and %v; saw (-want +got):\n%s", r.user, r.body, answer.State, answer.Granted, r.end, r.granted, diff)
	}
}

// checkRecord compares what is on record about the requests.
func (s *scenario) checkRecord(after uint64) {
	s.t.Helper()
	var started, moves []string
	for _, r := range scenarioRequests {
		started = append(started, r.recorded())
		moves = append(moves, r.moves...)
	}
	if diff := cmp.Diff(started, s.started(after)); diff != "" {
		s.t.Errorf("requests on record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(moves, s.transitions(after)); diff != "" {
		s.t.Errorf("transitions on record (-want +got):\n%s", diff)
	}
}

// recorded describes the event of a request, as started does.
func (r scenarioRequest) recorded() string {
	last := r.begin
	if r.code != "" {
		last = string(r.code)
	}
	return describeRequest("user:corp:"+r.user+"@role", r.named, r.granted, last)
}
