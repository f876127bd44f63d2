package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

// wantSeen compares the tools that each request to the model of an agent offered.
func (s *scenario) wantSeen(when string, got, react, plan []string, pattern org.CollaborationPattern) {
	s.t.Helper()
	want := react
	if pattern == org.Plan {
		want = plan
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s: saw (-want +got):\n%s", when, diff)
	}
}

// wantSamples checks that the metrics have these samples.
func (s *scenario) wantSamples(when string, samples ...string) {
	s.t.Helper()
	got := s.scrape()
	for _, want := range samples {
		if !slices.Contains(got, want) {
			s.t.Errorf("%s: no %s in\n%s", when, want, strings.Join(got, "\n"))
		}
	}
}

// A user of a group with children asks agents over HTTP, which walk through the workflow of the
// children's tools. A reload adds a child.
func TestScenario_GroupWithChildren(t *testing.T) {
	const research = "{kind: toolset, name: research, children: [%s]}"
	for _, pattern := range bothPatterns {
		t.Run(string(pattern), func(t *testing.T) {
			s := newScenario(t, pattern, scenarioConfig{role: "toolGroups: [research], agent: {defaultGroups: [research]}", docs: []string{fmt.Sprintf(research, "compute")}})
			_, seen := s.ask("guests", `{"question":"steps[knowledge-query]"}`)
			s.wantSeen("without the child", seen, []string{"", ""}, []string{"", "", ""}, pattern)
			s.reject("guests", `{"question":"steps[]","group":["knowledge"]}`, http.StatusForbidden, errcode.InsufficientPermissions)

			s.docs[len(s.docs)-1] = fmt.Sprintf(research, "knowledge, compute")
			if _, err := s.reconfigure(t.Context(), s.config()); err != nil {
				t.Fatal(err)
			}
			after := s.LastSeq()
			answer, seen := s.ask("guests", `{"question":"steps[knowledge-query complex-analysis]","group":["research"]}`)
			s.wantSeen("parent", seen, []string{kq, ca, ""}, []string{kq, kq, ca, ""}, pattern)
			if moves := s.transitions(after); !slices.Equal(moves, []string{toAnalysis, toResults}) || answer.State != "results" {
				t.Errorf("in the end in %s after %q", answer.State, moves)
			}
			_, seen = s.ask("guests", `{"question":"steps[]","group":["knowledge"]}`)
			s.wantSeen("child", seen, []string{""}, []string{"", ""}, pattern)
			s.reject("guests", `{"question":"steps[]","group":["research","admin"]}`, http.StatusForbidden, errcode.InsufficientPermissions)
			s.wantSamples("in the end", `agent_tool_group_availability{group="research"} 2`, `agent_tool_group_requests_total{group="research"} 3`,
				`agent_tool_group_requests_total{group="knowledge"} 2`, `agent_tool_group_requests_total{group="admin"} 1`)
		})
	}
}

// A user of a toolset with hours asks agents over HTTP, while it is closed, while it is open, and
// while it closes after the model was asked.
func TestScenario_Hours(t *testing.T) {
	zone := berlin(t)
	open, closed := time.Date(2026, 6, 3, 9, 0, 0, 0, zone), time.Date(2026, 6, 3, 19, 0, 0, 0, zone)
	for _, pattern := range bothPatterns {
		t.Run(string(pattern), func(t *testing.T) {
			clock := newSimulatedClock(closed)
			s := newScenario(t, pattern, scenarioConfig{clock: clock, role: "toolGroups: [office], agent: {defaultGroups: [office]}",
				docs: []string{"{kind: toolset, name: office, tools: [text-completion], hours: " + officeHours + "}"}})
			_, seen := s.ask("guests", `{"question":"steps[text-completion]"}`)
			s.wantSeen("closed", seen, []string{"", ""}, []string{"", "", ""}, pattern)
			s.wantSamples("closed", `agent_tool_group_availability{group="office"} 0`)

			clock.set(open)
			_, seen = s.ask("guests", `{"question":"steps[text-completion]","group":["office"]}`)
			s.wantSeen("open", seen, []string{tc, tc}, []string{tc, tc, tc}, pattern)
			s.wantSamples("open", `agent_tool_group_availability{group="office"} 1`, `rolecall_tool_call_duration_seconds_count{outcome="ok",tool="text-completion"} 1`)

			step := map[org.CollaborationPattern]int{org.React: 1, org.Plan: 2}[pattern] // a plan comes first
			goOn, ended := s.askHeld("guests", `{"question":"steps[text-completion]"}`, step)
			clock.set(closed)
			close(goOn)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			s.wantSeen("closes", s.model.takeSeen(), []string{tc, ""}, []string{tc, tc, "", ""}, pattern)
			s.wantSamples("in the end", `agent_tool_group_availability{group="office"} 0`, `agent_tool_group_requests_total{group="office"} 3`,
				`rolecall_tool_call_duration_seconds_count{outcome="ok",tool="text-completion"} 1`)
			lines := s.logLines()
			if last := lines[len(lines)-1]; !slices.Equal(last.Tools, []string{tc}) || len(last.Denied) != 1 || last.Denied[0] != (logDenial{tc, errcode.ToolNotAvailable}) {
				t.Errorf("logged %+v", last)
			}
		})
	}
}
