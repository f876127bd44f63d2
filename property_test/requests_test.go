package property_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// requestGroups are the groups of the organizations in which callers ask agents. Each has one
// tool of its own, and shares one with the next group.
var requestGroups = ids{"default", "a", "b", "c"}

// requestCase is a random request of a caller.
type requestCase struct {
	own, asked, as org.RoleSpec // of the caller, of another role, and of the role in tasks.as
	other, tasksAs bool         // the other role is asked; the caller's role has tasks.as
	groups         *toolgroups.GroupSet
	state          string
	stateOnRecord  string
}

// String shows the sets of a case.
func (q requestCase) String() string {
	standard := func(a *org.AskSettings) string {
		switch {
		case a == nil:
			return "nothing to ask"
		case a.DefaultGroups == nil:
			return "ask default"
		}
		return "ask " + a.DefaultGroups.String()
	}
	return fmt.Sprintf("own %v (%s, states %v), asked %v (%s) %v, tasks.as %v %v, groups %v, state %q, on record %q",
		q.own.Use, standard(q.own.Agent), q.own.States, q.asked.Use, standard(q.asked.Agent), q.other, q.as.Use, q.tasksAs, q.groups, q.state, q.stateOnRecord)
}

// chooseGroups chooses a set of groups, sometimes all.
func chooseGroups(c *proptest.Choices) *toolgroups.GroupSet {
	if c.OneIn(6) {
		return new(toolgroups.AllGroups())
	}
	return new(toolgroups.SetOf(someOf(c, 2, requestGroups)...))
}

func newRequestCase(c *proptest.Choices) requestCase {
	agent := func() *org.AskSettings {
		switch c.Pick(4) {
		case 0:
			return nil
		case 1:
			return &org.AskSettings{}
		}
		return &org.AskSettings{DefaultGroups: chooseGroups(c)}
	}
	q := requestCase{
		own:   org.RoleSpec{Name: "own", Use: chooseGroups(c), Agent: agent()},
		asked: org.RoleSpec{Name: "asked", Use: chooseGroups(c), Grant: new(toolgroups.SetOf()), Agent: agent()},
		as:    org.RoleSpec{Name: "bound", Use: chooseGroups(c)}, other: c.OneIn(3), tasksAs: c.OneIn(2),
	}
	if c.OneIn(2) {
		q.own.States = []string{"draft", "review"}
	}
	if !c.OneIn(3) {
		q.groups = chooseGroups(c)
	}
	q.state = proptest.PickFrom(c, "", "draft", "review", "done", toolgroups.UndefinedState)
	q.stateOnRecord = proptest.PickFrom(c, "", "", "draft", "done")
	return q
}

// toolsOf lists the tools of groups, sorted: a naive model of the registry.
func toolsOf(set toolgroups.GroupSet) []string {
	names := []string{}
	for i, id := range requestGroups {
		if set.Has(id) {
			names = append(names, "own_"+string(id), fmt.Sprint("shared_", i), fmt.Sprint("shared_", (i+1)%len(requestGroups)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// both lists the names that are in both lists.
func both(x, y []string) []string {
	return slices.DeleteFunc(slices.Clone(x), func(name string) bool { return !slices.Contains(y, name) })
}

// expected returns the tools that the agent of a request has, or the code of its denial.
func (q requestCase) expected() (tools []string, code errcode.Code) {
	bound, role := *q.own.Use, q.own
	if q.tasksAs {
		bound = *q.as.Use
	}
	if q.other {
		role = q.asked
	}
	switch {
	case !q.tasksAs && q.own.Agent == nil:
		return nil, errcode.InsufficientPermissions
	case !q.tasksAs && q.other:
		return nil, errcode.RoleNotFound
	case q.groups != nil && !q.groups.IsAll() && !bound.Covers(*q.groups):
		return nil, errcode.InsufficientPermissions
	case q.stateDenial() != "":
		return nil, q.stateDenial()
	case q.other && !bound.Covers(*q.asked.Use):
		return nil, errcode.RoleNotFound
	}
	whole := both(toolsOf(*role.Use), toolsOf(bound))
	if q.groups != nil {
		return both(whole, toolsOf(*q.groups)), ""
	}
	standard := toolgroups.SetOf("default")
	if role.Agent != nil && role.Agent.DefaultGroups != nil {
		standard = *role.Agent.DefaultGroups
	}
	if tools = both(whole, toolsOf(standard.Intersect(bound))); len(tools) == 0 && len(whole) > 0 {
		return nil, errcode.NoToolsAvailable
	}
	return tools, ""
}

// stateDenial returns the code with which the state of a request is denied, "" if it is not.
func (q requestCase) stateDenial() errcode.Code {
	switch {
	case q.state == "" || q.state == q.stateOnRecord:
		return ""
	case q.stateOnRecord != "":
		return errcode.Conflict
	case q.state != toolgroups.UndefinedState && !slices.Contains(q.own.States, q.state):
		return errcode.InsufficientPermissions
	}
	return ""
}

// newRequestOrg returns an organization with the groups of requestGroups.
func newRequestOrg() (*org.Org, error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	for i, id := range requestGroups {
		var tools []tool.Tool
		for _, name := range []string{"own_" + string(id), fmt.Sprint("shared_", i)} {
			made, err := tool.New(name, "a tool", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
			if err != nil {
				return nil, err
			}
			tools = append(tools, made)
		}
		if _, err := grouptest.RegisterGroup(groups, toolgroups.Config, toolgroups.Group{ID: "of/" + id, Tools: tools}); err != nil {
			return nil, err
		}
	}
	for i, id := range requestGroups {
		refs := []string{"own_" + string(id), fmt.Sprint("shared_", i), fmt.Sprint("shared_", (i+1)%len(requestGroups))}
		if _, err := grouptest.RegisterGroup(groups, toolgroups.Config, toolgroups.Group{ID: id, Refs: refs}); err != nil {
			return nil, err
		}
	}
	return org.LoadOrg(org.Config{Groups: groups, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
}

// ask makes the request in a new organization. It returns the tools of the agent, or the code of
// the denial, and the state of the caller before and after.
func (q requestCase) ask() (tools []string, code errcode.Code, before, after string, err error) {
	o, err := newRequestOrg()
	if err != nil {
		return nil, "", "", "", err
	}
	made := map[string]identity.RoleID{}
	if q.tasksAs {
		q.own.TasksAs = new("bound")
	}
	for _, spec := range []org.RoleSpec{q.as, q.own, q.asked} {
		role, _, err := o.CreateRole(operator, identity.RoleID("role-"+spec.Name), spec)
		if err != nil {
			return nil, "", "", "", err
		}
		made[spec.Name] = role.ID
	}
	caller := identity.ByCaller("ann", made["own"])
	if q.stateOnRecord != "" {
		o.SetCallerState(caller, q.stateOnRecord)
	}
	_, before = o.ResolveView(caller)
	spec := org.TaskSpec{Text: "q", Caller: caller, Role: "own", Ask: true, Groups: q.groups, State: q.state}
	if q.other {
		spec.Role = "asked"
	}
	request, err := org.PrepareTask(spec)
	if err != nil {
		return nil, "", "", "", err
	}
	_, agent, _, err := o.StartTask("t1", 0, request)
	_, after = o.ResolveView(caller)
	if err != nil {
		return nil, errcode.CodeOf(err), before, after, nil
	}
	ref, _ := o.ResolveView(identity.ByAgent(agent.ID))
	return slices.Sorted(slices.Values(ref.CurrentView().ToolNames())), "", before, after, nil
}

// A request of a caller to an agent only narrows: the agent has exactly the tools that the
// request, the role and the caller have in common. What exceeds them is denied, and a denial
// changes nothing.
func TestRequests_Narrow(t *testing.T) {
	outcomes := map[errcode.Code]int{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 60, CaseFactor: 10, ShortCases: 300}, func(c *proptest.Choices) error {
		q := newRequestCase(c)
		tools, code, before, after, err := q.ask()
		if err != nil {
			return err
		}
		outcomes[code]++
		wantTools, wantCode := q.expected()
		switch {
		case code != wantCode:
			return fmt.Errorf("%v: code %q, want %q", q, code, wantCode)
		case code == "" && !slices.Equal(tools, wantTools):
			return fmt.Errorf("%v: tools %q, want %q", q, tools, wantTools)
		case code != "" && before != after:
			return fmt.Errorf("%v: denied, and the state changed from %q to %q", q, before, after)
		}
		return nil
	})
	for _, code := range []errcode.Code{"", errcode.InsufficientPermissions, errcode.RoleNotFound, errcode.Conflict, errcode.NoToolsAvailable} {
		if outcomes[code] == 0 {
			t.Errorf("no case ended with %q: %v", code, outcomes)
		}
	}
}
