package property_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// world is an organization in which the operator declares roles and ann has tasks. In
// the crowded one, other callers have tasks too.
type world struct {
	*runtime.Runtime
	builtins *builtinGroups
	store    *memoryStore
	anns     []identity.AgentID // agents of ann's tasks; the i-th of two worlds correspond
	others   []identity.AgentID // agents of the tasks of other callers
	own      []string           // ids that ann knows and that differ between worlds
}

// open opens a runtime on the store, as at every start.
func (w *world) open() (err error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	if w.Runtime, err = newRuntime(w.store, groups, newScriptedModel()); err != nil {
		return err
	}
	_, err = w.builtins.register(groups, w.Runtime)
	return err
}

// start starts a task and returns its root.
func (w *world) start(by identity.Principal) (identity.AgentID, error) {
	id, err := w.StartTask(context.Background(), org.TaskSpec{Text: "go", Caller: by})
	task, _ := w.Org().TaskByID(id)
	return task.Top, err
}

// startAnns starts a task of ann.
func (w *world) startAnns(by identity.Principal) error {
	root, err := w.start(by)
	agent, _ := w.Org().AgentByID(root)
	w.anns, w.own = append(w.anns, root), append(w.own, string(root), string(agent.Task))
	return err
}

// timestamp is the time in a record, which differs between worlds.
var timestamp = regexp.MustCompile(`"createdAt":"[^"]*"`)

// call calls a tool as an agent and returns what the agent is told, with labels in place
// of what differs between worlds.
func (w *world) call(who identity.AgentID, id identity.CallID, name, args string) (string, *gate.Admission, error) {
	out, err := callGate(w.Gate(), identity.ByAgent(who), gate.CallRequest{Call: tool.Call{ID: id, Name: name, Args: []byte(args)}})
	if err != nil {
		return "", nil, err
	}
	text := timestamp.ReplaceAllString(string(out.Result.JSON()), "")
	for i, id := range w.own {
		text = strings.ReplaceAll(text, id, fmt.Sprint("own ", i))
	}
	return string(out.Code()) + " " + text, out, nil
}

// isolation compares a crowded world with one in which ann is alone.
type isolation struct {
	crowded, alone *world
	roles          []identity.RoleID // of the crowded world, in order of creation
	calls          int
	ann            identity.Principal
}

// newIsolation returns two worlds with a task of ann. The other callers are another user,
// the same user in another role, and the operator.
func newIsolation(builtins [2]*builtinGroups) (*isolation, error) {
	s := &isolation{}
	var found error
	for i, w := range []**world{&s.crowded, &s.alone} {
		*w = &world{builtins: builtins[i], store: newMemoryStore()}
		found = errors.Join(found, (*w).open())
	}
	guest, err := s.declare("guest")
	other, err2 := s.declare("other")
	if found = errors.Join(found, err, err2); found != nil {
		return s, found
	}
	s.ann = identity.ByCaller("ann", guest)
	for _, w := range s.worlds() {
		found = errors.Join(found, w.startAnns(s.ann))
	}
	for _, by := range []identity.Principal{identity.ByCaller("bob", guest), identity.ByCaller("ann", other), operator} {
		root, err := s.crowded.start(by)
		found = errors.Join(found, err)
		s.crowded.others = append(s.crowded.others, root)
	}
	return s, found
}

func (s *isolation) worlds() []*world { return []*world{s.crowded, s.alone} }

func (s *isolation) close() {
	for _, w := range s.worlds() {
		if w != nil && w.Runtime != nil {
			w.Close()
		}
	}
}

// nextCall returns the id of a call, which is the same in both worlds.
func (s *isolation) nextCall() identity.CallID {
	s.calls++
	return identity.CallID(identity.DeriveID("call", fmt.Sprint(s.calls)))
}

// declare creates a role as the operator in both worlds. An agent of the operator's tasks
// may have the name: then it is created in neither.
func (s *isolation) declare(name string) (identity.RoleID, error) {
	id, spec := s.nextCall(), artifactSpec(name)
	role, err := s.crowded.CreateRole(context.Background(), tool.Call{ID: id, By: operator}, spec)
	if errcode.CodeOf(err) == errcode.RoleExists {
		return "", nil
	}
	_, err2 := s.alone.CreateRole(context.Background(), tool.Call{ID: id, By: operator}, spec)
	if err == nil && err2 == nil {
		s.remember(role.ID)
	}
	return role.ID, errors.Join(err, err2)
}

// remember adds the id of a new role.
func (s *isolation) remember(id identity.RoleID) {
	if id != "" && !slices.Contains(s.roles, id) {
		s.roles = append(s.roles, id)
	}
}

// edit deletes or renames a role as the operator, in both worlds if it exists in both.
func (s *isolation) edit(id identity.RoleID, name string) error {
	if id == s.ann.Role {
		return nil
	}
	if err := s.crowded.edit(id, name); err != nil {
		return nil // an agent of the operator's tasks has the name
	}
	if r, ok := s.alone.Org().RoleByID(id); ok && r.Status == org.Active {
		return s.alone.edit(id, name)
	}
	return nil
}

// edit renames a role as the operator, or deletes it if name is empty.
func (w *world) edit(id identity.RoleID, name string) (err error) {
	if name == "" {
		_, err = w.DeleteRole(operator, id, false)
		return err
	}
	_, _, err = w.UpdateRole(operator, id, org.RoleSpec{Name: name}, false)
	return err
}

// callOfRoles returns a random call of a tool that has to do with roles.
func (s *isolation) callOfRoles(t *proptest.Choices) (name, args string) {
	role := proptest.PickFrom(t, namePool...)
	switch t.Pick(5) {
	case 0, 1:
		prompt := proptest.PickFrom(t, "p", "q")
		return "create_role", string(mustJSON(map[string]any{"name": role, "rolePrompt": prompt, "toolGroups": []string{"artifact", "org_management"}}))
	case 2:
		return "find_role_by_name", string(mustJSON(map[string]any{"name": role}))
	case 3:
		role = string(proptest.PickFrom(t, s.roles...))
	}
	return "spawn_agent", string(mustJSON(map[string]any{"roleId": role, "taskBrief": taskBrief}))
}

// callOfOther makes a call as an agent of another caller.
func (s *isolation) callOfOther(t *proptest.Choices) error {
	who := proptest.PickFrom(t, s.crowded.others...)
	name, args := s.callOfRoles(t)
	_, out, err := s.crowded.call(who, s.nextCall(), name, args)
	if err != nil {
		return err
	}
	s.learn(name, out)
	if id := createdID(out); name == "spawn_agent" && id != "" {
		s.crowded.others = append(s.crowded.others, identity.AgentID(id))
	}
	return nil
}

// callOfAnn makes a call as an agent of ann's tasks. Both worlds must tell it the same.
func (s *isolation) callOfAnn(t *proptest.Choices) error {
	who := t.Pick(len(s.alone.anns))
	name, args := s.callOfRoles(t)
	id := s.nextCall()
	got, out, err := s.crowded.call(s.crowded.anns[who], id, name, args)
	want, _, err2 := s.alone.call(s.alone.anns[who], id, name, args)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("an agent of ann calls %s %s and gets %s among others, %s alone", name, args, got, want)
	}
	s.learn(name, out)
	if id := createdID(out); name == "spawn_agent" && id != "" {
		for _, w := range s.worlds() {
			w.anns = append(w.anns, identity.AgentID(id))
		}
	}
	return nil
}

// learn remembers the id of a role that a call created.
func (s *isolation) learn(name string, out *gate.Admission) {
	if name == "create_role" {
		s.remember(identity.RoleID(createdID(out)))
	}
}

// createdID returns the id in the result of a call, "" if there is none.
func createdID(out *gate.Admission) string {
	if out.Result.IsError || !out.Allowed() {
		return ""
	}
	var body struct{ ID string }
	_ = json.Unmarshal(out.Result.Structured, &body) // null has no id
	return body.ID
}

// step makes one random change or call.
func (s *isolation) step(t *proptest.Choices) error {
	switch n := t.Pick(16); {
	case n == 0:
		_, err := s.declare(proptest.PickFrom(t, namePool...))
		return err
	case n == 1:
		return s.edit(proptest.PickFrom(t, s.roles...), proptest.PickFrom(t, append(slices.Clone(namePool), "", "spare")...))
	case n == 2 && t.OneIn(2):
		return s.restart()
	case n == 3 && t.OneIn(2):
		return errors.Join(s.crowded.startAnns(s.ann), s.alone.startAnns(s.ann))
	case n < 9:
		return s.callOfOther(t)
	}
	return s.callOfAnn(t)
}

// restart restarts both worlds.
func (s *isolation) restart() error {
	for _, w := range s.worlds() {
		if err := errors.Join(w.Close(), w.open()); err != nil {
			return err
		}
	}
	return nil
}

// check checks that no agent of ann's tasks has a role of another caller.
func (s *isolation) check() error {
	for _, id := range s.crowded.anns {
		agent, _ := s.crowded.Org().AgentByID(id)
		if agent.Root {
			continue
		}
		if _, exists := s.alone.Org().RoleByID(agent.Role); !exists {
			return fmt.Errorf("agent %s of ann has the role %s of another caller", id, agent.Role)
		}
	}
	return nil
}

// Callers do not share roles. The agents of other callers' tasks may do anything, and the
// agents of one caller's tasks may try any names and ids. These are told the same as if
// their caller were alone with the operator. So they learn of no role of another caller
// and use none. This holds over restarts.
func TestRoles_IsolatedBetweenCallers(t *testing.T) {
	builtins := [2]*builtinGroups{newBuiltinGroups(t), newBuiltinGroups(t)}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 250}, func(t *proptest.Choices) error {
		s, err := newIsolation(builtins)
		defer s.close()
		for err == nil && !t.IsEmpty() {
			if err = s.step(t); err == nil {
				err = s.check()
			}
		}
		return err
	})
}
