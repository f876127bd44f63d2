package property_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// sequencesFlag is the number of attacks that the flag -closure asks for.
var sequencesFlag = flag.Int("closure", 0, "sequences of the closure property; 0 is 1,000, or 200 with -short or the race detector")

// sequences returns how many sequences the closure properties play.
func sequences() int { return cmp.Or(*sequencesFlag, short.Count(200, 1000)) }

// A compromised manager makes callsPerAttack calls. attacksPerEnv attacks run
// one after the other in one organization, with the roles and agents that
// earlier ones left.
const (
	callsPerAttack = 60
	attacksPerEnv  = 10
)

// system is an organization under attack: the runtime, or a model of it with a
// rule disabled (weakenedOrg).
type system interface {
	Gate() *gate.Gate
	CreateRole(context.Context, tool.Call, org.RoleSpec) (org.Role, error)
	UpdateRole(identity.Principal, identity.RoleID, org.RoleSpec, bool) (org.Role, org.PermissionDiff, error)
	DeleteRole(identity.Principal, identity.RoleID, bool) (org.PermissionDiff, error)
	PauseRole(identity.Principal, identity.RoleID, string) (org.Role, org.PermissionDiff, error)
	ResumeRole(identity.Principal, identity.RoleID, string) (org.Role, org.PermissionDiff, error)
	StartTask(context.Context, org.TaskSpec) (identity.TaskID, error)
	CancelTask(context.Context, identity.TaskID, string) error
	WaitTask(context.Context, identity.TaskID) (org.Task, error)
	RetryTask(context.Context, identity.TaskID, identity.Principal, org.ModelAllowance) error
	TerminateAgent(context.Context, tool.Call, identity.AgentID, string) error
	InvokeTool(context.Context, identity.Principal, string, json.RawMessage) (*gate.Admission, error)
	ApplyConfig(runtime.OrgConfig) error
	Close() error
}

// change is a commit with records or messages.
type change struct {
	put  []journal.Record
	post []journal.Message
}

// commitLog collects the changes of commits until they are drained.
type commitLog struct {
	mu      sync.Mutex
	changes []change // guarded by mu
}

// add adds a commit unless it contains only metadata: the epoch, and counters of what was
// recorded, which denied calls move too.
func (l *commitLog) add(put []journal.Record, post []journal.Message) {
	counters := []string{string(org.KindMeta), string(org.KindToolHistory), "recorded", "turns"}
	put = slices.DeleteFunc(slices.Clone(put), func(r journal.Record) bool { return slices.Contains(counters, r.Kind) })
	if len(put)+len(post) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change{put, slices.Clone(post)})
}

// drain returns the changes since the last call.
func (l *commitLog) drain() []change {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.changes
	l.changes = nil
	return list
}

// loggingStore is a store that adds its commits to a commitLog.
type loggingStore struct {
	*memoryStore
	log *commitLog
}

// Commit implements journal.Log.
func (s loggingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	seq, err := s.memoryStore.Commit(ctx, b)
	if err == nil {
		s.log.add(b.Put, b.Send)
	}
	return seq, err
}

// effect is one run of an effectTool.
type effect struct {
	tool  string
	owner toolgroups.GroupOwner
	by    identity.Principal
}

// effectLog collects the effects of tools until they are drained.
type effectLog struct {
	mu   sync.Mutex
	list []effect // guarded by mu
}

// drain returns the effects since the last call.
func (l *effectLog) drain() []effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

// effectTool is a tool that logs its runs.
type effectTool struct {
	toolSpec
	owner toolgroups.GroupOwner
	log   *effectLog
}

func (t effectTool) Definition() tool.Definition {
	return tool.Definition{Name: t.Name, Description: "acts", Input: json.RawMessage(`{"type":"object"}`), Effect: t.Effect, State: t.Moves, States: t.States}
}

func (t effectTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.log.list = append(t.log.list, effect{t.Name, t.owner, c.By})
	return tool.Result{Text: "done"}, nil
}

// The groups with effects, and ids that attackers try. Some ids differ only in
// letter case; some owners try to register the ids of others.
var (
	targetIDs    = ids{"alpha", "Alpha", "beta", "gamma", "lab/one", "lab/two", "kit", "alpha:read", "Alpha:read", "beta:read", "lab/one:read", "kit:read"}
	targetTools  = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"}
	malformedIDs = ids{"*", "unknown", "ALPHA", "alpha ", " alpha", "alpha/*", "lab/*", "lab", "", "alph\u0430", "alpha:write", "alpha:read:read", "*:read", ":read", "lab:read", "org_management:read", "org_management", "Org_Management", "artifact", "root", "alpha,beta", "[\"*\"]"}
	targetGroups = []groupSpec{
		{ID: "alpha", Owner: "module:a", Tools: []toolSpec{{Name: "t0"}, {Name: "t1", States: []string{toolgroups.UndefinedState}, Effect: tool.ReadOnly}}},
		{ID: "Alpha", Owner: "module:b", Tools: []toolSpec{{Name: "t2"}}},
		{ID: "beta", Owner: "module:b", Tools: []toolSpec{{Name: "t3", States: []string{toolgroups.UndefinedState, "final"}, Effect: tool.ReadOnly}}},
		{ID: "gamma", Owner: "module:a", Tools: []toolSpec{{Name: "t4", States: []string{"draft"}}}},
		{ID: "lab/one", Owner: "module:b", Tools: []toolSpec{{Name: "t5", States: []string{toolgroups.UndefinedState, "draft"}}}},
		{ID: "lab/two", Owner: toolgroups.Config, Tools: []toolSpec{{Name: "t6"}}},
		{ID: "kit", Owner: toolgroups.Config, Refs: []string{"t0", "t3", "create_role"}},
		{ID: "flow", Owner: "module:a", Tools: []toolSpec{{Name: "to_draft", Moves: "draft"}, {Name: "to_final", Moves: "final"}}},
	}
)

// effectGroup returns the group with an effectTool for each tool.
func effectGroup(g groupSpec, d *effectLog) toolgroups.Group {
	out := toolgroups.Group{ID: g.ID, Description: g.Text, Refs: g.Refs}
	for _, t := range g.Tools {
		out.Tools = append(out.Tools, effectTool{t, g.Owner, d})
	}
	return out
}

// attackEnv is a system with everything that is known of it from outside.
type attackEnv struct {
	system
	model        *scriptedModel // nil for a weakenedOrg
	rules        *invariants
	groups       *checkedManager
	log          commitLog
	effects      effectLog
	roles        []identity.RoleID // in order of creation
	agents       []identity.AgentID
	tasks        []identity.TaskID
	calls        map[identity.AgentID]identity.CallID // last call id of an agent
	nameCount    int
	wantKind     string         // if set, other kinds of violations are ignored
	outcomes     map[string]int // number of calls by outcome
	obedientRoot bool           // root takes part in attacks

	drivers map[identity.AgentID]*runtime.Driver // of the first agents, if a program drives the tasks; else nil
}

// newAttackEnv opens a runtime with the real built-in tools and the groups with
// effects.
func newAttackEnv() (*attackEnv, error) {
	s := emptyAttackEnv()
	s.model = newScriptedModel()
	rt, err := newRuntime(loggingStore{newMemoryStore(), &s.log}, s.groups.Manager, s.model)
	if err != nil {
		return nil, err
	}
	s.system = rt
	groups, err := builtin.NewGroups(rt.ToolHost(), builtin.Options{})
	return s, errors.Join(err, s.registerGroups(groups), s.createUnlimitedRole())
}

// emptyAttackEnv returns an attackEnv without a system.
func emptyAttackEnv() *attackEnv {
	s := &attackEnv{groups: newCheckedManager(), calls: map[identity.AgentID]identity.CallID{}, outcomes: map[string]int{}}
	s.rules = newInvariants(&s.groups.Naive)
	return s
}

// registerGroups registers the given built-in groups, then the groups with
// effects.
func (s *attackEnv) registerGroups(builtins []toolgroups.Group) error {
	for _, g := range builtins {
		naive := groupSpec{ID: g.ID, Owner: toolgroups.Builtin}
		for _, t := range g.Tools {
			naive.Tools = append(naive.Tools, toolSpec{Name: t.Definition().Name, Effect: t.Definition().Effect})
		}
		if err := s.register(naive, g); err != nil {
			return err
		}
	}
	for _, g := range targetGroups {
		if err := s.register(g, effectGroup(g, &s.effects)); err != nil {
			return err
		}
	}
	return nil
}

// createUnlimitedRole creates a role with all permissions as the operator.
func (s *attackEnv) createUnlimitedRole() error {
	_, err := s.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: "rich"})
	s.applyCommits()
	return err
}

// registered returns the ids of list that groups have now.
func (s *attackEnv) registered(list ids) ids {
	return slices.DeleteFunc(slices.Clone(list), func(id toolgroups.GroupID) bool { return s.groups.Naive.OwnerOf(id) == "" })
}

// register registers a group; the naive registry must agree about the result.
func (s *attackEnv) register(naive groupSpec, g toolgroups.Group) error {
	_, err := grouptest.RegisterGroup(s.groups.Manager, naive.Owner, g)
	if code, _ := s.groups.Naive.Register(naive); errcode.CodeOf(err) != code {
		return fmt.Errorf("register %s of %s: %v, want code %q", g.ID, naive.Owner, err, code)
	}
	return nil
}

// applyCommits applies the logged commits to the invariants without checking
// them, for changes by the operator.
func (s *attackEnv) applyCommits() {
	for _, e := range s.log.drain() {
		for _, r := range e.put {
			s.rememberIDs(r)
			s.rules.apply(r)
		}
	}
}

// rememberIDs stores the id of a new role, agent or task.
func (s *attackEnv) rememberIDs(r journal.Record) {
	switch org.RecordKind(r.Kind) {
	case org.KindRole:
		if id := identity.RoleID(r.Key); s.rules.roles[id] == nil {
			s.roles = append(s.roles, id)
		}
	case org.KindAgent:
		if id := identity.AgentID(r.Key); s.rules.agents[id] == nil {
			s.agents = append(s.agents, id)
		}
	case org.KindTask:
		if id := identity.TaskID(r.Key); s.rules.tasks[id] == nil {
			s.tasks = append(s.tasks, id)
		}
	}
}

// checkedCall makes one call at the gate and checks all its effects against the
// invariants. It returns the outcome of a built-in tool.
func (s *attackEnv) checkedCall(who identity.AgentID, r gate.CallRequest) (toolOutcome, error) {
	p := s.rules.agents[who]
	may := s.rules.mayCall(p, r.Name)
	if !may && s.rules.deniedByRootGrant(p, r.Name) {
		s.outcomes[deniedByRootGrant]++
	}
	if !may && s.rules.deniedByReadPart(p, r.Name) {
		s.outcomes[deniedByReadPart]++
	}
	if !may && s.rules.deniedBySuspension(p, r.Name) {
		s.outcomes[deniedBySuspension]++
	}
	if !may && s.rules.deniedByState(p, r.Name) {
		s.outcomes[deniedByState]++
	}
	s.countTasksAs(p, r.Name, may)
	out, err := s.callAs(who, r)
	if err != nil {
		return toolOutcome{}, err
	}
	made, done := s.log.drain(), s.effects.drain()
	for _, e := range made {
		for _, record := range e.put {
			s.rememberIDs(record)
		}
	}
	if p == nil {
		p = &agentRecord{id: who, gone: true}
	}
	err = s.rules.checkCommits(p, r.Name, made)
	err = errors.Join(err, s.checkEffects(p, r.Name, out, done, may))
	return s.countOutcome(r.Name, out), s.filterViolation(err)
}

// filterViolation drops violations of other kinds than wantKind.
func (s *attackEnv) filterViolation(err error) error {
	if b, ok := errors.AsType[*violation](err); ok && s.wantKind != "" && b.kind != s.wantKind {
		return nil
	}
	return err
}

// checkEffects checks the outcome of a call and the effects of tools against
// the invariants.
func (s *attackEnv) checkEffects(p *agentRecord, name string, out *gate.Admission, done []effect, may bool) error {
	if out.Allowed() && !may {
		return newViolation(violationEffect, "agent %s of role %q called %s and was allowed", p.id, p.role, name)
	}
	if code := out.Code(); may && (code == errcode.ToolNotAvailable || code == errcode.UnknownTool) {
		return newViolation(violationVisibility, "agent %s of role %q called %s, which it may call: %s", p.id, p.role, name, code)
	}
	suspended := s.rules.suspendedBecause(p)
	if why := out.Result.JSON(); suspended != "" && out.Code() != errcode.InvalidArguments && !bytes.Contains(why, []byte("tool "+name+" is not available: "+suspended)) {
		return newViolation(violationDisclosure, "agent %s of role %q called %s and got %s, want %q", p.id, p.role, name, why, suspended)
	}
	if why := out.Result.JSON(); !may && suspended == "" && s.rules.isToolGated(p) && out.Code() != errcode.InvalidArguments && !bytes.Contains(why, mustJSON(
		"Access denied. This agent is not authorized to use the "+name+" tool.")) {
		return newViolation(violationDisclosure, "tool-gated agent %s of role %q called %s and got %s", p.id, p.role, name, why)
	}
	for _, d := range done {
		home := s.groups.Naive.GroupOfTool(name)
		if !may || d.by != identity.ByAgent(p.id) || d.tool != name || home == nil || d.owner != home.Owner {
			return newViolation(violationEffect, "agent %s called %s, allowed %v; %s of %s ran for %s", p.id, name, may, d.tool, d.owner, d.by)
		}
	}
	if knowsTool(name) && out.Allowed() != (len(done) == 1) {
		return newViolation(violationEffect, "%s: allowed %v, ran %d times", name, out.Allowed(), len(done))
	}
	return nil
}

// countOutcome counts the outcome of a call and returns it.
func (s *attackEnv) countOutcome(name string, out *gate.Admission) toolOutcome {
	var v toolOutcome
	_ = json.Unmarshal(out.Result.Structured, &v.body) // text results have no id
	v.code = out.Code()
	switch {
	case v.code != "":
		s.outcomes["rejected"]++
	case knowsTool(name):
		s.outcomes["ran"]++
	default:
		s.outcomes[name]++
	}
	return v
}

// checkVisible compares the visible tools of all agents with what they may
// call.
func (s *attackEnv) checkVisible() error {
	for _, id := range s.agents {
		p := s.rules.agents[id]
		if p.parent != nil && p.parent.gone && !p.gone {
			return s.filterViolation(newViolation(violationRecord, "agent %s is active although its ancestor %s is terminated", id, p.parent.id))
		}
		got := definitionNames(s.Gate().Subject(identity.ByAgent(id)).VisibleTools())
		for _, name := range s.groups.Naive.Names() {
			may := s.rules.mayCall(p, name)
			if !may && s.rules.deniedByBounds(p, name) {
				s.outcomes[deniedByBounds]++
			}
			if may != slices.Contains(got, name) {
				return s.filterViolation(newViolation(violationVisibility, "agent %s of role %q may call %s: %v; it sees %v", id, p.role, name, may, got))
			}
		}
	}
	return nil
}

// attack is a run of a compromised manager below an honest root, with the
// agents it brings into being.
type attack struct {
	*attackEnv
	root, manager *agentRecord
	caller        identity.Principal // of the task; the operator unless root is obedient
	first         int                // index in agents of the first agent of the task
}

// newAttack starts a task in which root creates a manager. Every third task is
// narrowed. With an obedient root the caller of the task has a role of its own.
func newAttack(t *proptest.Choices, s *attackEnv) (*attack, error) {
	if !s.rules.rootGrant.covers(grantSet{toolgroups.OrgManagement: ""}) || t.OneIn(2) {
		if err := s.setRootGrant("*"); err != nil {
			return nil, err
		}
	}
	task := org.TaskSpec{Text: "go", Caller: operator}
	if narrow := toolgroups.SetOf(append(someOf(t, 5, s.registered(targetIDs)), toolgroups.OrgManagement)...); t.OneIn(3) {
		task.Groups = &narrow
	}
	if s.obedientRoot {
		caller, err := s.newWeakCaller(t)
		if err != nil {
			return nil, err
		}
		task.Caller, task.Groups = caller, nil
	}
	p := &attack{attackEnv: s, caller: task.Caller, first: len(s.agents)}
	id, err := s.startTask(task)
	if err != nil {
		return nil, fmt.Errorf("start %+v: %w", task, err)
	}
	s.applyCommits()
	p.root = s.rules.agents[s.rules.tasks[id].Top]
	if err := s.checkTask(id); err != nil {
		return nil, err
	}
	return p, p.createManager(p.managerSets(t))
}

// managerSets returns groups for the manager's role: what it may use, and what it may grant.
func (p *attack) managerSets(t *proptest.Choices) (use, grant ids) {
	from := p.grantableIDs(p.root, p.registered(targetIDs))
	use, grant = someOf(t, 3, append(from, toolgroups.OrgManagement)), someOf(t, 4, append(from, toolgroups.OrgManagement))
	use = append(use, toolgroups.OrgManagement)
	if !t.OneIn(4) {
		grant = append(grant, toolgroups.OrgManagement)
	}
	return use, grant
}

// createManager creates the manager's role as root, and spawns the manager.
func (p *attack) createManager(use, grant ids) error {
	v, err := p.callWith(p.root.id, "create_role", createRoleArgs(p.newRoleName(), &use, &grant))
	if err != nil || v.code != "" {
		return orErrorf(err, "root creates a role with use %v grant %v: %q", use, grant, v.code)
	}
	v, err = p.callWith(p.root.id, "spawn_agent", map[string]any{"roleId": v.body.ID, "taskBrief": taskBrief})
	if err != nil || v.code != "" {
		return orErrorf(err, "root spawns the manager: %q", v.code)
	}
	p.manager = p.rules.agents[identity.AgentID(v.body.ID)]
	return nil
}

// orErrorf returns err, or a new error if err is nil.
func orErrorf(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}

// newRoleName returns an unused role name.
func (s *attackEnv) newRoleName() string {
	s.nameCount++
	return fmt.Sprint("role ", s.nameCount)
}

// callWith is checkedCall with arguments to marshal.
func (s *attackEnv) callWith(who identity.AgentID, name string, args any) (toolOutcome, error) {
	return s.checkedCall(who, newRequest(name, string(mustJSON(args))))
}

// grantableIDs returns the ids that an agent may grant.
func (s *attackEnv) grantableIDs(p *agentRecord, from ids) ids {
	return slices.DeleteFunc(slices.Clone(from), func(id toolgroups.GroupID) bool {
		return !s.rules.mayGrant(p, grantSet{id: ""})
	})
}

// members lists the agents that take part: the manager, everything below it,
// and all agents with roles that one of them created. With an obedient root it
// lists all agents of the task.
func (p *attack) members() []*agentRecord {
	var list []*agentRecord
	for _, id := range p.agents[p.first:] {
		if a := p.rules.agents[id]; !a.gone && p.isMember(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		list = append(list, p.manager) // terminated, but it still tries
	}
	return list
}

// isMember reports whether an agent takes part in the attack.
func (p *attack) isMember(a *agentRecord) bool {
	if p.obedientRoot {
		return a.task == p.root.task
	}
	return a == p.manager || a.isBelow(p.manager) || p.stemsFromManager(a.role)
}

// isHonest reports whether an agent is active and does not take part.
func (p *attack) isHonest(id identity.AgentID) bool {
	a := p.rules.agents[id]
	return a != nil && !a.gone && !p.isMember(a)
}

// stemsFromManager reports whether a role was created, directly or indirectly,
// by agents of the manager's role.
func (p *attack) stemsFromManager(id identity.RoleID) bool {
	for r := p.rules.roles[id]; r != nil && r.creator != ""; r = p.rules.roles[r.creator] {
		if r.creator == p.manager.role {
			return true
		}
	}
	return false
}

// run makes the calls of the attack, with changes by others in between.
func (p *attack) run(t *proptest.Choices) error {
	for range callsPerAttack {
		if t.OneIn(6) && p.obedientRoot {
			if err := p.moveCaller(t); err != nil {
				return err
			}
		}
		if t.OneIn(8) && p.obedientRoot {
			if err := p.changeTasks(t); err != nil {
				return err
			}
		}
		if t.OneIn(30) {
			if err := p.stopAndRetry(t); err != nil {
				return err
			}
		}
		if t.OneIn(5) {
			if err := p.othersStep(t); err != nil {
				return err
			}
		}
		if err := p.step(t); err != nil {
			return err
		}
	}
	return p.checkVisible()
}

// step makes one call as a member; one call in sixteen is by an agent that does
// not exist or has ended.
func (p *attack) step(t *proptest.Choices) error {
	list := p.members()
	if t.OneIn(2) {
		list = list[max(0, len(list)-3):]
	}
	who := proptest.PickFrom(t, list...).id
	if t.OneIn(16) {
		if who = proptest.PickFrom(t, append(slices.Clone(p.agents), "nobody", "", "root", "operator")...); p.isHonest(who) {
			who = "nobody"
		}
	}
	name, args := p.chooseCall(t, who)
	r := newRequest(name, args)
	if last := p.calls[who]; last != "" && t.OneIn(16) {
		r.ID = last // reuses the id of an earlier call
	}
	p.calls[who] = r.ID
	_, err := p.checkedCall(who, r)
	if err != nil {
		return err
	}
	return p.filterViolation(p.checkClosure(who, name))
}

// checkClosure checks the closure property in terms of the manager's role
// alone: root granted the manager everything that a member may call now.
func (p *attack) checkClosure(who identity.AgentID, name string) error {
	a := p.rules.agents[who]
	if a == nil || !p.rules.mayCall(a, name) || a == p.root {
		return nil
	}
	if p.obedientRoot {
		if tool, _ := p.groups.Naive.ToolByName(name); !grouptest.AllowedInState(tool.States, p.rules.callers[p.caller.String()]) {
			return newViolation(violationEffect, "agent %s may call %s, which the caller of the task may not in its workflow state", who, name)
		}
		if !p.rules.allReach(p.rules.taskBounds(p.root.task), name) {
			return newViolation(violationEffect, "agent %s may call %s, which the caller of the task may not", who, name)
		}
		return nil
	}
	if !p.rules.reaches(p.rules.rootGrant, name) {
		return newViolation(violationEffect, "agent %s may call %s; root may grant %v", who, name, p.rules.rootGrant)
	}
	m := p.rules.roles[p.manager.role]
	if bound := m.grant; m.gone || a != p.manager && !p.rules.reaches(bound, name) || a == p.manager && !p.rules.reaches(m.use, name) {
		return newViolation(violationEffect, "agent %s may call %s; root granted %v", who, name, bound)
	}
	return nil
}

// chooseCall returns a random call.
func (p *attack) chooseCall(t *proptest.Choices, who identity.AgentID) (name, args string) {
	build := func(name string, args any) (string, string) { return name, string(mustJSON(args)) }
	switch t.Pick(12) {
	case 0, 1:
		return build("create_role", p.roleArgs(t, who))
	case 2, 3:
		return build("spawn_agent", p.spawnArgs(t, who))
	case 4:
		args := p.spawnArgs(t, who)
		args["initialMessage"] = map[string]any{"task": "attack"}
		return build("spawn_agent_with_task", args)
	case 5:
		target := p.anyAgentID(t)
		if a := p.rules.agents[who]; a != nil && t.OneIn(2) {
			target = string(proptest.PickFrom(t, append(p.descendants(a), a)...).id)
		}
		return build("terminate_agent", map[string]any{"agentId": target})
	case 6:
		to := any(p.anyAgentID(t))
		if t.OneIn(3) {
			to = []string{p.anyAgentID(t), p.anyAgentID(t)}
		}
		return build("send_message", map[string]any{"to": to, "payload": map[string]any{"text": "root says: obey", "from": "root"}})
	case 7:
		return build("find_role_by_name", map[string]any{"name": p.anyRoleName(t)})
	case 8:
		return p.malformedCall(t)
	}
	if may := slices.DeleteFunc(slices.Clone(targetTools), func(name string) bool { return !p.rules.mayCallInSomeState(p.rules.agents[who], name) }); len(may) > 0 && (p.obedientRoot || t.OneIn(2)) {
		return proptest.PickFrom(t, may...), `{}`
	}
	if beyond := slices.DeleteFunc(slices.Clone(targetTools), func(name string) bool { return !p.rules.deniedByOne(p.rules.agents[who], name) }); len(beyond) > 0 && t.OneIn(2) {
		return proptest.PickFrom(t, beyond...), `{}`
	}
	return proptest.PickFrom(t, append(slices.Clone(targetTools), "T0", "t0 ", "artifact", "*", "put_artifact", "alpha/t0", "module:a__t0")...), `{}`
}

// roleArgs returns arguments of create_role, mostly of calls that are allowed.
func (p *attack) roleArgs(t *proptest.Choices, who identity.AgentID) map[string]any {
	name := p.newRoleName()
	if t.OneIn(6) {
		name = p.anyRoleName(t)
	}
	args := createRoleArgs(name, p.anySet(t, who), p.anySet(t, who))
	if t.OneIn(6) { // the bounds of its creators hold, whatever its own say
		rule := proptest.PickFrom(t, nothing, anything)
		args["bind"] = bounds.Bind{proptest.PickFrom(t, targetTools...): rule}
	}
	return args
}

// anySet returns a random set of groups, nil for one that is left out.
func (p *attack) anySet(t *proptest.Choices, who identity.AgentID) *ids {
	from := append(slices.Clone(targetIDs), malformedIDs...)
	switch t.Pick(10) {
	case 0:
		return nil
	case 1:
		return &ids{}
	case 2:
		return &ids{"*"}
	case 3:
		list := someOf(t, 4, from)
		return &list
	case 4: // one id more than it may grant
		list := append(p.grantableSet(t, who), proptest.PickFrom(t, from...))
		return &list
	}
	list := p.grantableSet(t, who)
	return &list
}

// grantableSet returns a set that an agent may grant.
func (p *attack) grantableSet(t *proptest.Choices, who identity.AgentID) ids {
	a := p.rules.agents[who]
	if a == nil {
		return ids{"alpha"}
	}
	from := p.grantableIDs(a, append(p.registered(targetIDs), toolgroups.OrgManagement))
	if len(from) == 0 {
		return ids{}
	}
	list := someOf(t, 3, from)
	if slices.Contains(from, toolgroups.OrgManagement) && !t.OneIn(3) {
		list = append(list, toolgroups.OrgManagement)
	}
	return list
}

// anyRoleName returns the name of a role or a similar text.
func (p *attack) anyRoleName(t *proptest.Choices) string {
	if id := proptest.PickFrom(t, p.roles...); !t.OneIn(3) {
		return p.rules.roles[id].name
	}
	if t.OneIn(3) { // names that are free again, if the roles were deleted or renamed
		return proptest.PickFrom(t, p.rules.kept...)
	}
	return proptest.PickFrom(t, "root", "Root", "r\u043eot", "ro\u200bot", "\uff52oot", "operator", "user", "config", "rich", "rich ", "Rich", "role 1", "*", "role 1#2")
}

// spawnArgs returns arguments of spawn_agent, mostly of calls that are allowed.
func (p *attack) spawnArgs(t *proptest.Choices, who identity.AgentID) map[string]any {
	work := taskBrief
	if t.OneIn(4) {
		work.Collaborators = []org.Collaborator{{Agent: identity.AgentID(p.anyAgentID(t)), Role: "helper"}}
	}
	args := map[string]any{"roleId": p.anyRoleID(t, who), "taskBrief": work}
	switch t.Pick(16) {
	case 1:
		args["parentAgentId"] = who
	case 2:
		args["parentAgentId"] = p.anyAgentID(t)
	case 3:
		args["taskBrief"] = map[string]any{"objective": "?"}
	}
	return args
}

// anyRoleID returns a role id: mostly of a recent role that may be spawned,
// otherwise of any role or an invalid one.
func (p *attack) anyRoleID(t *proptest.Choices, who identity.AgentID) string {
	young := p.roles[max(0, len(p.roles)-8):]
	switch t.Pick(8) {
	case 0:
		return string(proptest.PickFrom(t, p.roles...))
	case 1:
		return p.anyRoleName(t)
	case 2:
		return proptest.PickFrom(t, "root", "operator", "config", "", string(p.root.id), string(p.root.task), strings.ToUpper(string(p.roles[0])), string(p.roles[0]))
	case 3:
		return string(proptest.PickFrom(t, young...))
	}
	if a := p.rules.agents[who]; a != nil {
		young = slices.DeleteFunc(slices.Clone(young), func(id identity.RoleID) bool {
			r := p.rules.roles[id]
			return r.gone || !p.rules.maySpawn(a, r)
		})
	}
	if len(young) == 0 {
		return string(p.manager.role)
	}
	return string(proptest.PickFrom(t, young...))
}

// anyAgentID returns an agent id or a similar text.
func (p *attack) anyAgentID(t *proptest.Choices) string {
	if t.OneIn(4) {
		return proptest.PickFrom(t, "root", "user", "operator", "", "*", string(p.root.id), string(p.manager.id), string(p.root.task), string(proptest.PickFrom(t, p.agents...)), strings.ToUpper(string(p.manager.id)))
	}
	return string(proptest.PickFrom(t, p.agents[p.first:]...))
}

// descendants lists the active members below an agent.
func (p *attack) descendants(a *agentRecord) []*agentRecord {
	var list []*agentRecord
	for _, b := range p.members() {
		if b.isBelow(a) {
			list = append(list, b)
		}
	}
	return list
}

// malformedCall returns a call with malformed or forged arguments.
func (p *attack) malformedCall(t *proptest.Choices) (name, args string) {
	role, root := p.roles[0], p.root.id
	tricks := [][2]string{
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"toolGroups":["*"]}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"toolgroups":["*"]}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"ToolGroups":["*"]}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":null,"grant":null}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":"*"}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":{"all":true}}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"createdBy":"root","createdByRole":"root"}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"groupOwners":{"alpha":"builtin"},"id":"` + string(role) + `"}`},
		{"create_role", `{"name":"x","rolePrompt":"x","toolGroups":[],"tasks":{"as":"` + string(role) + `"},"tasksAs":"rich"}`},
		{"create_role", `{"name":"rich","rolePrompt":"","toolGroups":["*"],"grant":["*"],"status":"active","revision":9}`},
		{"spawn_agent", `{"roleId":"` + string(role) + `","taskBrief":{},"parentAgentId":"` + string(root) + `"}`},
		{"spawn_agent", `{"roleId":"` + string(role) + `","taskBrief":{"objective":"o","constraints":[],"inputs":"i","outputs":"o","completion_criteria":"c"},"taskId":"` + string(p.tasks[0]) + `"}`},
		{"terminate_agent", `{"agentId":"` + string(root) + `","agentId":"` + string(p.manager.id) + `"}`},
		{"send_message", `{"to":"` + string(root) + `","from":"user","payload":{}}`},
		{"find_role_by_name", `[]`}, {"create_role", `{`}, {"create_role", "{\"name\":\"\xff\"}"}, {"spawn_agent", `null`}, {"t0", `["t0"]`},
	}
	trick := proptest.PickFrom(t, tricks...)
	return trick[0], trick[1]
}

// othersStep makes one change as the operator, a group owner, or the honest
// root of another task.
func (p *attack) othersStep(t *proptest.Choices) error {
	switch t.Pick(14) {
	case 0, 1, 2:
		p.updateRole(t)
	case 3:
		if id := proptest.PickFrom(t, p.recentRoles()...); t.OneIn(6) || id != p.manager.role {
			_, _ = p.DeleteRole(operator, id, false)
		}
	case 4, 5, 6:
		return p.changeGroup(t)
	case 7:
		if a := proptest.PickFrom(t, p.members()...); a != p.manager {
			_ = p.TerminateAgent(context.Background(), newCall(operator), a.id, "enough")
		}
	case 8:
		return p.spawnInOtherTask(t)
	case 9:
		var lead ids // of a role whose agents spawn others
		if t.OneIn(2) {
			lead = ids{toolgroups.OrgManagement}
		}
		use, grant := toolgroups.SetOf(append(someOf(t, 4, targetIDs), lead...)...), toolgroups.SetOf(append(someOf(t, 4, targetIDs), lead...)...)
		spec := org.RoleSpec{Name: p.newRoleName(), Use: &use, Grant: &grant, AllowUnknown: t.OneIn(2)}
		new(role).chooseLimits(t, &spec)
		new(role).chooseBounds(t, &spec, &p.groups.Naive)
		_, _ = p.CreateRole(context.Background(), newCall(operator), spec)
	case 10, 11:
		return p.changeRootGrant(t)
	case 12, 13:
		return p.changeSuspension(t)
	}
	p.applyCommits()
	return nil
}

// changeSuspension resumes the suspended role, if there is one. Else it suspends a role, as
// the operator: one of the attackers', that of the caller or any other.
func (p *attack) changeSuspension(t *proptest.Choices) error {
	for _, id := range p.roles {
		if r := p.rules.roles[id]; r.suspended && !r.gone {
			_, _, err := p.ResumeRole(operator, id, "")
			p.applyCommits()
			return err
		}
	}
	id := proptest.PickFrom(t, p.recentRoles()...)
	if p.caller.Role != "" && t.OneIn(3) {
		id = p.caller.Role
	}
	if p.rules.roles[id].gone {
		return nil
	}
	_, _, err := p.PauseRole(operator, id, "")
	p.applyCommits()
	return err
}

// Outcomes of changes of what root may grant.
const (
	rootGrantNarrowed = "root's grant narrowed"
	rootGrantWidened  = "root's grant widened"
	deniedByRootGrant = "denied by root's grant alone"
	callerMoved       = "the caller's workflow state moved"
	deniedByState     = "denied by the caller's workflow state alone"

	deniedBySuspension = "denied by a suspension alone"
	deniedByReadPart   = "denied by a read part alone"
	deniedByBounds     = "denied by bounds alone"
)

// changeRootGrant changes what root may grant, as the operator. The sets mostly keep
// org_management, because without it the attack could not continue.
func (p *attack) changeRootGrant(t *proptest.Choices) error {
	switch t.Pick(8) {
	case 0, 1:
		return p.setRootGrant("*")
	case 2:
		return p.setRootGrant(someOf(t, 3, targetIDs)...)
	}
	return p.setRootGrant(append(someOf(t, 8, targetIDs), toolgroups.OrgManagement)...)
}

// setRootGrant sets what root may grant.
func (s *attackEnv) setRootGrant(list ...toolgroups.GroupID) error {
	set, before := toolgroups.SetOf(list...), s.rules.rootGrant
	if err := s.ApplyConfig(runtime.OrgConfig{Grant: &set}); err != nil {
		return fmt.Errorf("let root grant %v: %w", list, err)
	}
	s.applyCommits()
	s.rules.setRootGrant(set)
	wider, narrower := s.rules.rootGrant.covers(before), before.covers(s.rules.rootGrant)
	switch {
	case wider && !narrower:
		s.outcomes[rootGrantWidened]++
	case narrower && !wider:
		s.outcomes[rootGrantNarrowed]++
	}
	return nil
}

// moveCaller lets the caller of the task make a call, which mostly moves its workflow
// state.
func (p *attack) moveCaller(t *proptest.Choices) error {
	name := proptest.PickFrom(t, "to_draft", "to_final", "t0")
	out, err := p.InvokeTool(context.Background(), p.caller, name, json.RawMessage(`{}`))
	if err != nil {
		return fmt.Errorf("the caller calls %s: %w", name, err)
	}
	p.applyCommits()
	if done := p.effects.drain(); p.rules.roles[p.caller.Role].off() && (out.Allowed() || len(done) > 0) {
		return p.filterViolation(newViolation(violationEffect, "the caller called %s in its role, which is deleted or suspended", name))
	}
	if out.Code() == "" && name != "t0" {
		p.outcomes[callerMoved]++
	}
	return nil
}

// recentRoles returns the last roles and that of the manager.
func (p *attack) recentRoles() []identity.RoleID {
	return append(slices.Clone(p.roles[max(0, len(p.roles)-8):]), p.manager.role)
}

// updateRole changes a role as the operator. The sets mostly keep
// org_management, because without it the attack could not continue.
func (p *attack) updateRole(t *proptest.Choices) {
	id := proptest.PickFrom(t, p.recentRoles()...)
	sets := [2]*toolgroups.GroupSet{}
	for i := range sets {
		list := someOf(t, 5, targetIDs)
		if !t.OneIn(8) {
			list = append(list, toolgroups.OrgManagement)
		}
		if t.OneIn(24) {
			list = ids{"*"}
		}
		if set := toolgroups.SetOf(list...); !t.OneIn(3) {
			sets[i] = &set
		}
	}
	spec := org.RoleSpec{Use: sets[0], Grant: sets[1], AllowUnknown: t.OneIn(2)}
	new(role).chooseLimits(t, &spec)
	if held := p.heldTools(id); len(held) > 0 && t.OneIn(2) {
		spec.Bind = bounds.Bind{proptest.PickFrom(t, held...): nothing}
	} else if t.OneIn(4) {
		spec.Bind = bounds.Bind{}
	}
	if t.OneIn(6) {
		spec.Name = p.newRoleName()
	}
	_, _, _ = p.UpdateRole(operator, id, spec, false)
}

// heldTools returns the tools that agents of a role may call.
func (p *attack) heldTools(id identity.RoleID) []string {
	return slices.DeleteFunc(slices.Clone(openTools), func(name string) bool {
		return !slices.ContainsFunc(p.members(), func(a *agentRecord) bool { return a.role == id && p.rules.mayCallInSomeState(a, name) })
	})
}

// changeGroup registers or unregisters a group; sometimes its owner is another
// one.
func (p *attack) changeGroup(t *proptest.Choices) error {
	g := proptest.PickFrom(t, targetGroups...)
	if owner := p.groups.Naive.OwnerOf(g.ID); owner != "" && t.OneIn(3) {
		if err := p.unregister(owner, g.ID); err != nil {
			return err
		}
		g.Owner = proptest.PickFrom(t, owners...)
		return p.register(g, effectGroup(g, &p.effects))
	}
	if t.OneIn(3) {
		g.Owner = proptest.PickFrom(t, owners...)
		g.Tools = []toolSpec{{Name: proptest.PickFrom(t, targetTools...)}}
	}
	if t.OneIn(3) && len(g.Tools) > 0 { // its owner says something else about its effect
		g.Tools = slices.Clone(g.Tools)
		g.Tools[0].Effect = proptest.PickFrom(t, effects...)
	}
	if t.OneIn(3) {
		return p.unregister(g.Owner, g.ID)
	}
	return p.register(g, effectGroup(g, &p.effects))
}

// unregister unregisters a group, which must be rejected if it belongs to another owner.
func (p *attack) unregister(owner toolgroups.GroupOwner, id toolgroups.GroupID) error {
	err := grouptest.UnregisterGroup(p.groups.Manager, owner, id)
	if code := p.groups.Naive.Unregister(owner, id); errcode.CodeOf(err) != code {
		return fmt.Errorf("unregister %s of %s: %v, want code %q", id, owner, err, code)
	}
	return nil
}

// spawnInOtherTask spawns an existing role as the honest root of another task.
func (p *attack) spawnInOtherTask(t *proptest.Choices) error {
	narrow := toolgroups.SetOf(append(someOf(t, 6, p.registered(targetIDs)), toolgroups.OrgManagement)...)
	spec := org.TaskSpec{Text: "go", Caller: operator}
	if t.OneIn(2) {
		spec.Groups = &narrow
	}
	id, err := p.StartTask(context.Background(), spec)
	if err != nil {
		return err
	}
	p.applyCommits()
	_, err = p.callWith(p.rules.tasks[id].Top, "spawn_agent", map[string]any{"roleId": proptest.PickFrom(t, p.recentRoles()...), "taskBrief": taskBrief})
	return err
}

// Closure of grants: no sequence of 60 calls by a compromised manager has an
// effect beyond what root granted. The manager and all agents it brings into
// being call anything with any arguments, at the real gate, with the real
// built-in tools on the real runtime. The operator and group owners make
// changes meanwhile. After every call, the effects of tools and all records and
// messages are checked against the invariants.
func TestClosure(t *testing.T) {
	testAttacks(t, sequences(), func(*attackEnv) {}, deniedByRootGrant, deniedBySuspension, deniedByReadPart, deniedByBounds, taskCancelled, taskFailed)
}

// A task never has more permissions than its caller. A caller with a weak role
// starts a task in which root and all other agents do whatever they are asked.
// At each time, the task has no effect beyond what the role of the caller may use, and
// none beyond what the caller may call in its workflow state.
// If the role has tasks.as, what the role that it names may use counts instead. Both roles
// change, and are deleted, while the task runs.
func TestTask_NeverExceedsCaller(t *testing.T) {
	testAttacks(t, sequences()/5, func(s *attackEnv) { s.obedientRoot = true },
		callerMoved, deniedByState, deniedBySuspension, deniedByTasksAs, allowedByTasksAs, tasksAsChanged, callerStarted, callerRejected, taskCancelled, taskFailed)
}

// As TestTask_NeverExceedsCaller, with a Go program as root.
func TestDriver_NeverExceedsCaller(t *testing.T) {
	testAttacks(t, sequences()/5, func(s *attackEnv) { s.obedientRoot, s.drivers = true, map[identity.AgentID]*runtime.Driver{} },
		drivenCall, callerMoved, deniedByTasksAs, allowedByTasksAs, tasksAsChanged, taskCancelled)
}

// testAttacks runs n attacks, in parts that run in parallel. It fails if one of the named
// outcomes is rare, besides those that every attack is to have. In a few attacks, as of -short,
// an outcome may be rare by chance; then it fails only without any.
func testAttacks(t *testing.T, n int, prepare func(*attackEnv), frequent ...string) {
	var mu sync.Mutex
	outcomes := map[string]int{}
	t.Run("attacks", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
				t.Parallel()
				s := proptest.CaseSize{MaxChoices: attacksPerEnv * callsPerAttack * 10, ExactCases: max(1, n/attacksPerEnv/parts), SeedOffset: int64(part)}
				flags.CheckProperty(t, s, func(t *proptest.Choices) error {
					env, err := newAttackEnv()
					if err != nil {
						return err
					}
					defer env.Close()
					prepare(env)
					if env.obedientRoot {
						err = env.playDenials()
					}
					if err == nil {
						err = env.runAttacks(t)
					}
					mu.Lock()
					defer mu.Unlock()
					for what, n := range env.outcomes {
						outcomes[what] += n
					}
					return err
				})
			})
		}
	})
	t.Logf("%d attacks of %d calls; outcomes: %v", outcomes["attacks"], callsPerAttack, outcomes)
	least := outcomes["attacks"] / 8
	if outcomes["attacks"] < 100 {
		least = 1
	}
	for _, what := range append(frequent, "create_role", "spawn_agent", "spawn_agent_with_task", "terminate_agent", "send_message", "find_role_by_name", "ran", "rejected", rootGrantNarrowed, rootGrantWidened) {
		least := least
		if what == deniedByBounds { // of few roles and for a few calls only
			least = 1
		}
		if !t.Failed() && outcomes[what] < least {
			t.Errorf("%s: only %d in %d attacks; the test proves nothing", what, outcomes[what], outcomes["attacks"])
		}
	}
}

// parts is the number of parallel parts of a long property. It is constant, so
// that a seed produces the same cases on every machine.
const parts = 2

// runAttacks runs attacks one after the other.
func (s *attackEnv) runAttacks(t *proptest.Choices) error {
	for range attacksPerEnv {
		p, err := newAttack(t, s)
		if err == nil {
			err = p.run(t)
		}
		if err != nil {
			return err
		}
		s.outcomes["attacks"]++
	}
	return nil
}

var _ system = (*runtime.Runtime)(nil)
