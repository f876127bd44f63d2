package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// logLine has the fields of all lines of the log about requests and denied calls.
type logLine struct {
	Time        time.Time        `json:"time"`
	Level       string           `json:"level"`
	Message     string           `json:"msg"`
	ID          string           `json:"request_id"`
	Task        identity.TaskID  `json:"task"`
	Agent       identity.AgentID `json:"agent"`
	Role        string           `json:"role"`
	Caller      string           `json:"caller"`
	Named       []string         `json:"requested_groups"`
	Granted     []string         `json:"granted_groups"`
	State       string           `json:"initial_state"`
	Transitions []logTransition  `json:"state_transitions"`
	Tools       []string         `json:"available_tools"`
	ByGroup     []string         `json:"filtered_by_group"`
	ByState     []string         `json:"filtered_by_state"`
	Denied      []logDenial      `json:"denied"`
	Took        string           `json:"execution_time"`
	Tool        string           `json:"tool"` // of a denied call
	Rule        string           `json:"rule"` // likewise
	Code        errcode.Code     `json:"code"`
}

type logTransition struct {
	Tool      string    `json:"tool"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Timestamp time.Time `json:"timestamp"`
}

type logDenial struct {
	Tool string       `json:"tool"`
	Code errcode.Code `json:"code"`
}

// checkLog compares each field of each line about the requests and their calls.
func (s *scenario) checkLog(after uint64, pattern org.CollaborationPattern) {
	s.t.Helper()
	began := s.taskAgents(after)
	moved := s.transitionTimes(after)
	var want []logLine
	for _, r := range scenarioRequests {
		if r.code == "" && (len(began) == 0 || len(moved) < len(r.moves)) {
			s.t.Fatalf("%s %s: its task or its transitions are not on record", r.user, r.body)
		}
		if r.code != "" {
			want = append(want, r.rejectionLine())
			continue
		}
		want = append(want, s.requestLines(r, r.course(pattern), began[0], moved[:len(r.moves)])...)
		began, moved = began[1:], moved[len(r.moves):]
	}
	got := s.logLines()
	for i := range got {
		took, err := time.ParseDuration(got[i].Took)
		if got[i].Took != "" && (err != nil || took <= 0 || took > time.Since(got[i].Time)+time.Hour) || got[i].Time.IsZero() {
			s.t.Errorf("line %d: execution time %q, %v", i, got[i].Took, err)
		}
		got[i].Took, got[i].Time = "", time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("log (-want +got):\n%s", diff)
	}
	if text := s.log.String(); strings.Contains(text, "steps[") || strings.Contains(text, "together[") || strings.Contains(text, "Ada knows Bob") {
		s.t.Errorf("the log has texts of users or results of tools:\n%s", text)
	}
}

// rejectionLine returns the line about a request that is rejected.
func (r scenarioRequest) rejectionLine() logLine {
	named := r.named
	if named == nil {
		named = r.granted
	}
	return logLine{Level: "WARN", Message: "request denied", Caller: "corp:" + r.user, Role: r.user, Named: named, State: r.begin, Code: r.code}
}

// requestLines returns the lines about a request and its denied calls.
func (s *scenario) requestLines(r scenarioRequest, c course, about journal.Event, moved []time.Time) (lines []logLine) {
	denied, transitions := []logDenial{}, []logTransition{}
	for _, d := range c.denied {
		tool, rule, _ := strings.Cut(d, ": ")
		denied = append(denied, logDenial{tool, errcode.ToolNotAvailable})
		lines = append(lines, logLine{Level: "WARN", Message: "call denied", Agent: about.Agent, Role: r.user, Tool: tool, Rule: rule, Code: errcode.ToolNotAvailable})
	}
	for i, move := range r.moves {
		tool, states, _ := strings.Cut(move, ": ")
		from, to, _ := strings.Cut(states, " to ")
		transitions = append(transitions, logTransition{tool, from, to, moved[i]})
	}
	named := r.named
	if named == nil {
		named = r.granted
	}
	return append(lines, logLine{
		Level: "INFO", Message: "agent request", ID: fmt.Sprintf("%s/%s/%d", about.Task, about.Agent, len(c.seen)), Task: about.Task, Agent: about.Agent,
		Role: r.user, Caller: "corp:" + r.user, Named: named, Granted: r.granted, State: r.begin, Transitions: transitions,
		Tools: splitNames(r.tools), ByGroup: s.otherTools(r.tools + " " + r.later), ByState: splitNames(r.later), Denied: denied,
	})
}

// splitNames returns the words of a text, never nil.
func splitNames(text string) []string { return append([]string{}, strings.Fields(text)...) }

// otherTools lists the registered tools that are not among names.
func (s *scenario) otherTools(names string) (list []string) {
	for _, h := range s.groups.CurrentSnapshot().ListTools() {
		if !slices.Contains(strings.Fields(names), h.Definition.Name) {
			list = append(list, h.Definition.Name)
		}
	}
	return list
}

// taskAgents returns the events that started tasks, in order.
func (s *scenario) taskAgents(after uint64) (list []journal.Event) {
	s.t.Helper()
	for e, err := range s.store.FollowEvents(s.t.Context(), after, journal.StoredOnly) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := e.Body.(journal.TaskStarted); ok {
			list = append(list, e)
		}
	}
	return list
}

// transitionTimes returns when the workflow state changed.
func (s *scenario) transitionTimes(after uint64) (list []time.Time) {
	s.t.Helper()
	for e, err := range s.store.FollowEvents(s.t.Context(), after, journal.StoredOnly) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := e.Body.(journal.StateTransition); ok {
			list = append(list, e.At)
		}
	}
	return list
}

// logLines returns the lines of the log without those about the server and about hours. A line must not have
// fields that are not in logLine.
func (s *scenario) logLines() (list []logLine) {
	s.t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"msg":"MCP server connected"`) || strings.Contains(line, `"msg":"toolset switched by its hours"`) {
			continue
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		var l logLine
		if err := d.Decode(&l); err != nil || strictjson.CheckObject([]byte(line), nil) != nil {
			s.t.Errorf("%v in %s", err, line)
		}
		list = append(list, l)
	}
	return list
}
