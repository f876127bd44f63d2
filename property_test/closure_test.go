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
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// sequencesFlag is how many compromised managers -closure asks for.
var sequencesFlag = flag.Int("closure", 0, "sequences of the closure property; 0 is 1,000, or 300 with -short")

// sequences returns how many sequences the closure properties play.
func sequences() int { return cmp.Or(*sequencesFlag, short.N(300, 1000)) }

// A compromised manager makes 60 calls. So many managers in turn meet in one
// organization, with what those before them left behind.
const (
	callsOfAPlot = 60
	plotsOfAHost = 10
)

// realm is an organization that can be plotted against: the runtime, or a
// model of it with a rule switched off (lax).
type realm interface {
	Gate() *gate.Gate
	CreateRole(context.Context, tool.Call, org.RoleSpec) (org.Role, error)
	UpdateRole(identity.Principal, identity.RoleID, org.RoleSpec, bool) (org.Role, org.Diff, error)
	DeleteRole(identity.Principal, identity.RoleID, bool) (org.Diff, error)
	Start(context.Context, org.TaskSpec) (identity.TaskID, error)
	Terminate(context.Context, tool.Call, identity.AgentID, string) error
	Close() error
}

// change is a commit that changed something for others than its writer.
type change struct {
	put  []journal.Record
	post []journal.Message
}

// diary keeps what was put on record since it was last read.
type diary struct {
	mu      sync.Mutex
	changes []change // guarded by mu
}

func (d *diary) note(put []journal.Record, post []journal.Message) {
	put = slices.DeleteFunc(slices.Clone(put), func(r journal.Record) bool { return r.Kind == string(org.KindMeta) })
	if len(put)+len(post) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes = append(d.changes, change{put, slices.Clone(post)})
}

func (d *diary) read() []change {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.changes
	d.changes = nil
	return list
}

// watched is a store whose commits a diary notes.
type watched struct {
	*memory
	diary *diary
}

// Commit implements journal.Log.
func (w watched) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	seq, err := w.memory.Commit(ctx, b)
	if err == nil {
		w.diary.note(b.Put, b.Send)
	}
	return seq, err
}

// deed says which tool acted, whose it is and for whom.
type deed struct {
	tool  string
	owner toolgroups.Owner
	by    identity.Principal
}

// deeds is everything that tools did since it was last read.
type deeds struct {
	mu   sync.Mutex
	list []deed // guarded by mu
}

func (d *deeds) read() []deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}

// doer is a tool of an owner; what it does is on the list.
type doer struct {
	name  string
	owner toolgroups.Owner
	deeds *deeds
}

func (d doer) Definition() tool.Definition {
	return tool.Definition{Name: d.name, Description: "acts", Input: json.RawMessage(`{"type":"object"}`)}
}

func (d doer) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	d.deeds.mu.Lock()
	defer d.deeds.mu.Unlock()
	d.deeds.list = append(d.deeds.list, deed{d.name, d.owner, c.By})
	return tool.Result{Text: "done"}, nil
}

// The groups with effects. Some ids differ in letter case only; some owners
// come for the ids of others.
var (
	spoilIDs   = ids{"alpha", "Alpha", "beta", "gamma", "lab/one", "lab/two", "kit"}
	spoilTools = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"}
	oddIDs     = ids{"*", "unknown", "ALPHA", "alpha ", " alpha", "alpha/*", "lab/*", "lab", "", "alph\u0430", "org_management", "Org_Management", "artifact", "root", "alpha,beta", "[\"*\"]"}
	spoils     = []spec{
		{id: "alpha", owner: "module:a", tools: []toolSpec{{name: "t0"}, {name: "t1"}}},
		{id: "Alpha", owner: "module:b", tools: []toolSpec{{name: "t2"}}},
		{id: "beta", owner: "module:b", tools: []toolSpec{{name: "t3"}}},
		{id: "gamma", owner: "module:a", tools: []toolSpec{{name: "t4"}}},
		{id: "lab/one", owner: "module:b", tools: []toolSpec{{name: "t5"}}},
		{id: "lab/two", owner: toolgroups.Config, tools: []toolSpec{{name: "t6"}}},
		{id: "kit", owner: toolgroups.Config, refs: []string{"t0", "t3", "create_role"}},
	}
)

// doers gives a group whose tools are doers.
func (g spec) doers(d *deeds) toolgroups.Group {
	out := toolgroups.Group{ID: g.id, Description: g.text, Refs: g.refs}
	for _, t := range g.tools {
		out.Tools = append(out.Tools, doer{t.name, g.owner, d})
	}
	return out
}

// scene is a realm, and everything that is known of it from outside.
type scene struct {
	realm
	law      *law
	groups   *desk
	diary    diary
	deeds    deeds
	roles    []identity.RoleID // in order of creation
	agents   []identity.AgentID
	tasks    []identity.TaskID
	calls    map[identity.AgentID]identity.CallID // somebody's last
	names    int
	only     string         // if set, no other kind of breach counts
	told     map[string]int // how many calls ended how
	gullible bool           // root does what the plotters ask of it
}

// newScene opens the runtime with the real built-in tools and the groups with
// effects.
func newScene() (*scene, error) {
	s := emptyScene()
	rt, err := newRuntime(watched{newMemory(), &s.diary}, s.groups.Manager, newBrain())
	if err != nil {
		return nil, err
	}
	s.realm = rt
	groups, err := builtin.Groups(rt.ToolHost(), builtin.Options{})
	return s, errors.Join(err, s.furnish(groups), s.endow())
}

func emptyScene() *scene {
	s := &scene{groups: newDesk(), calls: map[identity.AgentID]identity.CallID{}, told: map[string]int{}}
	s.law = newLaw(&s.groups.naive)
	return s
}

// furnish registers built-in groups, then the others.
func (s *scene) furnish(builtins []toolgroups.Group) error {
	for _, g := range builtins {
		naive := spec{id: g.ID, owner: toolgroups.Builtin}
		for _, t := range g.Tools {
			naive.tools = append(naive.tools, toolSpec{name: t.Definition().Name})
		}
		if err := s.bring(naive, g); err != nil {
			return err
		}
	}
	for _, g := range spoils {
		if err := s.bring(g, g.doers(&s.deeds)); err != nil {
			return err
		}
	}
	return nil
}

// endow has the operator make a role that holds everything.
func (s *scene) endow() error {
	_, err := s.CreateRole(context.Background(), call(operator), org.RoleSpec{Name: "rich"})
	s.learn()
	return err
}

// bring registers a group; the naive registry must agree.
func (s *scene) bring(naive spec, g toolgroups.Group) error {
	_, err := s.groups.Register(naive.owner, g)
	if code, _ := s.groups.naive.register(naive); errcode.Of(err) != code {
		return fmt.Errorf("register %s of %s: %v, want code %q", g.ID, naive.owner, err, code)
	}
	return nil
}

// learn takes what is on record for what is so: the operator's doing.
func (s *scene) learn() {
	for _, e := range s.diary.read() {
		for _, r := range e.put {
			s.remember(r)
			s.law.learn(r)
		}
	}
}

// remember notes ids that were not there before.
func (s *scene) remember(r journal.Record) {
	switch org.Kind(r.Kind) {
	case org.KindRole:
		if id := identity.RoleID(r.Key); s.law.roles[id] == nil {
			s.roles = append(s.roles, id)
		}
	case org.KindAgent:
		if id := identity.AgentID(r.Key); s.law.agents[id] == nil {
			s.agents = append(s.agents, id)
		}
	case org.KindTask:
		if id := identity.TaskID(r.Key); s.law.tasks[id] == nil {
			s.tasks = append(s.tasks, id)
		}
	}
}

// act takes one call to the gate and judges everything that came of it. The
// answer of a built-in tool is in the verdict.
func (s *scene) act(who identity.AgentID, r gate.Request) (verdict, error) {
	p := s.law.agents[who]
	may := s.law.may(p, r.Name)
	out, err := ask(s.Gate(), identity.ByAgent(who), r)
	if err != nil {
		return verdict{}, err
	}
	made, done := s.diary.read(), s.deeds.read()
	for _, e := range made {
		for _, record := range e.put {
			s.remember(record)
		}
	}
	if p == nil {
		p = &person{id: who, gone: true}
	}
	err = s.law.judge(p, r.Name, made)
	err = errors.Join(err, s.judgeDeeds(p, r.Name, out, done, may))
	return s.tell(r.Name, out), s.counts(err)
}

// counts drops breaches that are not looked for.
func (s *scene) counts(err error) error {
	if b, ok := errors.AsType[*breach](err); ok && s.only != "" && b.kind != s.only {
		return nil
	}
	return err
}

// judgeDeeds holds what tools did, and whether the call was let through,
// against the law.
func (s *scene) judgeDeeds(p *person, name string, out *gate.Admission, done []deed, may bool) error {
	if out.Allowed() && !may {
		return breached(ran, "agent %s of role %q called %s and was let through", p.id, p.role, name)
	}
	if code := out.Code(); may && (code == errcode.ToolNotAvailable || code == errcode.UnknownTool) {
		return breached(sees, "agent %s of role %q called %s, which it may: %s", p.id, p.role, name, code)
	}
	if why := out.Result.JSON(); !may && s.law.gated(p) && out.Code() != errcode.InvalidArguments && !bytes.Contains(why, mustJSON(
		"Access denied. This agent is not authorized to use the "+name+" tool.")) {
		return breached(told, "tool-gated agent %s of role %q called %s and was told %s", p.id, p.role, name, why)
	}
	for _, d := range done {
		home := s.groups.naive.home(name)
		if !may || d.by != identity.ByAgent(p.id) || d.tool != name || home == nil || d.owner != home.owner {
			return breached(ran, "agent %s called %s, which it may %v; %s of %s acted for %s", p.id, name, may, d.tool, d.owner, d.by)
		}
	}
	if s.groups.runs.knows(name) && out.Allowed() != (len(done) == 1) {
		return breached(ran, "%s: allowed %v, acted %d times", name, out.Allowed(), len(done))
	}
	return nil
}

// tell counts how a call ended.
func (s *scene) tell(name string, out *gate.Admission) verdict {
	var v verdict
	_ = json.Unmarshal(out.Result.Structured, &v.body) // a text has no id
	v.code = out.Code()
	switch {
	case v.code != "":
		s.told["refused"]++
	case s.groups.runs.knows(name):
		s.told["acted"]++
	default:
		s.told[name]++
	}
	return v
}

// checkSight compares what everybody sees with what the law lets them call.
func (s *scene) checkSight() error {
	for _, id := range s.agents {
		p := s.law.agents[id]
		if p.parent != nil && p.parent.gone && !p.gone {
			return s.counts(breached(forged, "agent %s outlived %s above it", id, p.parent.id))
		}
		got := definitionNames(s.Gate().Subject(identity.ByAgent(id)).Visible())
		for _, name := range s.groups.naive.names() {
			if may := s.law.may(p, name); may != slices.Contains(got, name) {
				return s.counts(breached(sees, "agent %s of role %q may call %s: %v; it sees %v", id, p.role, name, may, got))
			}
		}
	}
	return nil
}

// plot is a compromised manager below an honest root, and whoever it brought
// into being.
type plot struct {
	*scene
	root, manager *person
	first         int // of scene.agents that is the plot's
}

// newPlot has the operator give a task and root make a manager for it. Every
// third task is narrowed; a gullible root's caller has a role of his own.
func newPlot(t *proptest.Choices, s *scene) (*plot, error) {
	task := org.TaskSpec{Text: "go", Caller: operator}
	if narrow := toolgroups.Of(append(someOf(t, 5, spoilIDs), toolgroups.OrgManagement)...); t.Chance(3) {
		task.Groups = &narrow
	}
	if s.gullible {
		use := toolgroups.Of(append(someOf(t, 4, spoilIDs), toolgroups.OrgManagement)...)
		spec := org.RoleSpec{Name: s.name(), Use: &use}
		new(role).bound(t, &spec)
		weak, err := s.CreateRole(context.Background(), call(operator), spec)
		if err != nil {
			return nil, err
		}
		task.Caller, task.Groups = identity.ByCaller("ann", weak.ID), nil
	}
	p := &plot{scene: s, first: len(s.agents)}
	id, err := s.Start(context.Background(), task)
	if err != nil {
		return nil, fmt.Errorf("start %+v: %w", task, err)
	}
	s.learn()
	p.root = s.law.agents[s.law.tasks[id].Top]
	return p, p.hire(t)
}

// hire has root make a role that may grant some groups, and spawn the manager.
func (p *plot) hire(t *proptest.Choices) error {
	from := p.grantable(p.root, spoilIDs)
	use, grant := someOf(t, 3, append(from, toolgroups.OrgManagement)), someOf(t, 4, append(from, toolgroups.OrgManagement))
	use = append(use, toolgroups.OrgManagement)
	if !t.Chance(4) {
		grant = append(grant, toolgroups.OrgManagement)
	}
	v, err := p.plea(p.root.id, "create_role", rolePlea(p.name(), &use, &grant))
	if err != nil || v.code != "" {
		return cause(err, "root makes a role with use %v grant %v: %q", use, grant, v.code)
	}
	v, err = p.plea(p.root.id, "spawn_agent", map[string]any{"roleId": v.body.ID, "taskBrief": brief})
	if err != nil || v.code != "" {
		return cause(err, "root spawns the manager: %q", v.code)
	}
	p.manager = p.law.agents[identity.AgentID(v.body.ID)]
	return nil
}

func cause(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}

// name gives a role a name nobody has.
func (s *scene) name() string {
	s.names++
	return fmt.Sprint("role ", s.names)
}

// plea is act with arguments that marshal.
func (s *scene) plea(who identity.AgentID, name string, args any) (verdict, error) {
	return s.act(who, request(name, string(mustJSON(args))))
}

// grantable lists those of some ids that a person may give.
func (s *scene) grantable(p *person, from ids) ids {
	return slices.DeleteFunc(slices.Clone(from), func(id toolgroups.GroupID) bool {
		return !s.law.mayGive(p, gift{id: ""})
	})
}

// gang lists who plots: the manager, all below it, and whoever else was made
// of a role that one of them made; below a gullible root everybody, root too.
func (p *plot) gang() []*person {
	var list []*person
	for _, id := range p.agents[p.first:] {
		if a := p.law.agents[id]; !a.gone && p.plots(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		list = append(list, p.manager) // ended, and asking still
	}
	return list
}

func (p *plot) plots(a *person) bool {
	if p.gullible {
		return a.task == p.root.task
	}
	return a == p.manager || a.under(p.manager) || p.planted(a.role)
}

// honest says whether an agent lives and is none of the gang.
func (p *plot) honest(id identity.AgentID) bool {
	a := p.law.agents[id]
	return a != nil && !a.gone && !p.plots(a)
}

// planted says whether a role stems from the manager's.
func (p *plot) planted(id identity.RoleID) bool {
	for r := p.law.roles[id]; r != nil && r.maker != ""; r = p.law.roles[r.maker] {
		if r.maker == p.manager.role {
			return true
		}
	}
	return false
}

// play is the plot: 60 calls of the gang's, and what others do meanwhile.
func (p *plot) play(t *proptest.Choices) error {
	for range callsOfAPlot {
		if t.Chance(5) {
			if err := p.meanwhile(t); err != nil {
				return err
			}
		}
		if err := p.move(t); err != nil {
			return err
		}
	}
	return p.checkSight()
}

// move is one call by one of the gang, once in sixteen by somebody who is gone.
func (p *plot) move(t *proptest.Choices) error {
	list := p.gang()
	if t.Chance(2) {
		list = list[max(0, len(list)-3):]
	}
	who := proptest.OneOf(t, list...).id
	if t.Chance(16) {
		if who = proptest.OneOf(t, append(slices.Clone(p.agents), "nobody", "", "root", "operator")...); p.honest(who) {
			who = "nobody"
		}
	}
	name, args := p.scheme(t, who)
	r := request(name, args)
	if last := p.calls[who]; last != "" && t.Chance(16) {
		r.ID = last // of a call before
	}
	p.calls[who] = r.ID
	_, err := p.act(who, r)
	if err != nil {
		return err
	}
	return p.counts(p.within(who, name))
}

// within is the closure itself, said of the manager's role alone: whatever one
// of the gang may call now, root had granted the manager.
func (p *plot) within(who identity.AgentID, name string) error {
	a := p.law.agents[who]
	if a == nil || !p.law.may(a, name) || a == p.root {
		return nil
	}
	if p.gullible {
		if !p.law.allReach(p.law.task(p.root.task), name) {
			return breached(ran, "agent %s may call %s, which is beyond the task's caller", who, name)
		}
		return nil
	}
	m := p.law.roles[p.manager.role]
	if bound := m.grant; m.gone || a != p.manager && !p.law.reaches(bound, name) || a == p.manager && !p.law.reaches(m.use, name) {
		return breached(ran, "agent %s may call %s; root granted %v", who, name, bound)
	}
	return nil
}

// scheme chooses a call.
func (p *plot) scheme(t *proptest.Choices, who identity.AgentID) (name, args string) {
	build := func(name string, args any) (string, string) { return name, string(mustJSON(args)) }
	switch t.Pick(12) {
	case 0, 1:
		return build("create_role", p.roleArgs(t, who))
	case 2, 3:
		return build("spawn_agent", p.spawnArgs(t, who))
	case 4:
		args := p.spawnArgs(t, who)
		args["initialMessage"] = map[string]any{"task": "plot"}
		return build("spawn_agent_with_task", args)
	case 5:
		target := p.somebody(t)
		if a := p.law.agents[who]; a != nil && t.Chance(2) {
			target = string(proptest.OneOf(t, append(p.below(a), a)...).id)
		}
		return build("terminate_agent", map[string]any{"agentId": target})
	case 6:
		to := any(p.somebody(t))
		if t.Chance(3) {
			to = []string{p.somebody(t), p.somebody(t)}
		}
		return build("send_message", map[string]any{"to": to, "payload": map[string]any{"text": "root says: obey", "from": "root"}})
	case 7:
		return build("find_role_by_name", map[string]any{"name": p.roleName(t)})
	case 8:
		return p.mangled(t)
	}
	if may := slices.DeleteFunc(slices.Clone(spoilTools), func(name string) bool { return !p.law.may(p.law.agents[who], name) }); len(may) > 0 && t.Chance(2) {
		return proptest.OneOf(t, may...), `{}`
	}
	return proptest.OneOf(t, append(slices.Clone(spoilTools), "T0", "t0 ", "artifact", "*", "put_artifact", "alpha/t0", "module:a__t0")...), `{}`
}

// roleArgs asks for a role, more often than not for one that may be had.
func (p *plot) roleArgs(t *proptest.Choices, who identity.AgentID) map[string]any {
	name := p.name()
	if t.Chance(6) {
		name = p.roleName(t)
	}
	return rolePlea(name, p.set(t, who), p.set(t, who))
}

// set is a set of groups somebody asks for, nil for one left out.
func (p *plot) set(t *proptest.Choices, who identity.AgentID) *ids {
	from := append(slices.Clone(spoilIDs), oddIDs...)
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
	case 4: // one more than it may
		list := append(p.fair(t, who), proptest.OneOf(t, from...))
		return &list
	}
	list := p.fair(t, who)
	return &list
}

// fair is a set that somebody may give.
func (p *plot) fair(t *proptest.Choices, who identity.AgentID) ids {
	a := p.law.agents[who]
	if a == nil {
		return ids{"alpha"}
	}
	from := p.grantable(a, append(slices.Clone(spoilIDs), toolgroups.OrgManagement))
	if len(from) == 0 {
		return ids{}
	}
	list := someOf(t, 3, from)
	if slices.Contains(from, toolgroups.OrgManagement) && !t.Chance(3) {
		list = append(list, toolgroups.OrgManagement)
	}
	return list
}

// roleName is a role's name, or what passes for one.
func (p *plot) roleName(t *proptest.Choices) string {
	if id := proptest.OneOf(t, p.roles...); !t.Chance(3) {
		return p.law.roles[id].name
	}
	return proptest.OneOf(t, "root", "Root", "r\u043eot", "ro\u200bot", "\uff52oot", "operator", "user", "config", "rich", "rich ", "Rich", "role 1", "*", "role 1#2")
}

// spawnArgs asks for an agent, more often than not of a role that may be had.
func (p *plot) spawnArgs(t *proptest.Choices, who identity.AgentID) map[string]any {
	work := brief
	if t.Chance(4) {
		work.Collaborators = []org.Collaborator{{Agent: identity.AgentID(p.somebody(t)), Role: "helper"}}
	}
	args := map[string]any{"roleId": p.roleRef(t, who), "taskBrief": work}
	switch t.Pick(16) {
	case 1:
		args["parentAgentId"] = who
	case 2:
		args["parentAgentId"] = p.somebody(t)
	case 3:
		args["taskBrief"] = map[string]any{"objective": "?"}
	}
	return args
}

// roleRef names a role: of the young ones, of those that may be spawned, any.
func (p *plot) roleRef(t *proptest.Choices, who identity.AgentID) string {
	young := p.roles[max(0, len(p.roles)-8):]
	switch t.Pick(8) {
	case 0:
		return string(proptest.OneOf(t, p.roles...))
	case 1:
		return p.roleName(t)
	case 2:
		return proptest.OneOf(t, "root", "operator", "config", "", string(p.root.id), string(p.root.task), strings.ToUpper(string(p.roles[0])), string(p.roles[0]))
	case 3:
		return string(proptest.OneOf(t, young...))
	}
	if a := p.law.agents[who]; a != nil {
		young = slices.DeleteFunc(slices.Clone(young), func(id identity.RoleID) bool {
			r := p.law.roles[id]
			return r.gone || !p.law.mayGive(a, r.use, r.grant)
		})
	}
	if len(young) == 0 {
		return string(p.manager.role)
	}
	return string(proptest.OneOf(t, young...))
}

// somebody names an agent, or what passes for one.
func (p *plot) somebody(t *proptest.Choices) string {
	if t.Chance(4) {
		return proptest.OneOf(t, "root", "user", "operator", "", "*", string(p.root.id), string(p.manager.id), string(p.root.task), string(proptest.OneOf(t, p.agents...)), strings.ToUpper(string(p.manager.id)))
	}
	return string(proptest.OneOf(t, p.agents[p.first:]...))
}

// below lists the living descendants of somebody.
func (p *plot) below(a *person) []*person {
	var list []*person
	for _, b := range p.gang() {
		if b.under(a) {
			list = append(list, b)
		}
	}
	return list
}

// mangled is a call whose arguments are no honest ones.
func (p *plot) mangled(t *proptest.Choices) (name, args string) {
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
		{"create_role", `{"name":"rich","rolePrompt":"","toolGroups":["*"],"grant":["*"],"status":"active","revision":9}`},
		{"spawn_agent", `{"roleId":"` + string(role) + `","taskBrief":{},"parentAgentId":"` + string(root) + `"}`},
		{"spawn_agent", `{"roleId":"` + string(role) + `","taskBrief":{"objective":"o","constraints":[],"inputs":"i","outputs":"o","completion_criteria":"c"},"taskId":"` + string(p.tasks[0]) + `"}`},
		{"terminate_agent", `{"agentId":"` + string(root) + `","agentId":"` + string(p.manager.id) + `"}`},
		{"send_message", `{"to":"` + string(root) + `","from":"user","payload":{}}`},
		{"find_role_by_name", `[]`}, {"create_role", `{`}, {"create_role", "{\"name\":\"\xff\"}"}, {"spawn_agent", `null`}, {"t0", `["t0"]`},
	}
	trick := proptest.OneOf(t, tricks...)
	return trick[0], trick[1]
}

// meanwhile is what others do: the operator, owners of groups, and the honest
// roots of other tasks, who spawn what they find.
func (p *plot) meanwhile(t *proptest.Choices) error {
	switch t.Pick(10) {
	case 0, 1, 2:
		p.revise(t)
	case 3:
		if id := proptest.OneOf(t, p.young()...); t.Chance(6) || id != p.manager.role {
			_, _ = p.DeleteRole(operator, id, false)
		}
	case 4, 5, 6:
		return p.regroup(t)
	case 7:
		if a := proptest.OneOf(t, p.gang()...); a != p.manager {
			_ = p.Terminate(context.Background(), call(operator), a.id, "enough")
		}
	case 8:
		return p.elsewhere(t)
	case 9:
		use, grant := toolgroups.Of(someOf(t, 4, spoilIDs)...), toolgroups.Of(someOf(t, 4, spoilIDs)...)
		spec := org.RoleSpec{Name: p.name(), Use: &use, Grant: &grant}
		new(role).bound(t, &spec)
		_, _ = p.CreateRole(context.Background(), call(operator), spec)
	}
	p.learn()
	return nil
}

// young lists the roles made last, and the manager's.
func (p *plot) young() []identity.RoleID {
	return append(slices.Clone(p.roles[max(0, len(p.roles)-8):]), p.manager.role)
}

// revise has the operator give a role other rights; the manager's keeps that
// of org_management, mostly, or nothing more would happen.
func (p *plot) revise(t *proptest.Choices) {
	id := proptest.OneOf(t, p.young()...)
	sets := [2]*toolgroups.Set{}
	for i := range sets {
		list := someOf(t, 5, spoilIDs)
		if !t.Chance(8) {
			list = append(list, toolgroups.OrgManagement)
		}
		if t.Chance(24) {
			list = ids{"*"}
		}
		if set := toolgroups.Of(list...); !t.Chance(3) {
			sets[i] = &set
		}
	}
	spec := org.RoleSpec{Use: sets[0], Grant: sets[1]}
	new(role).bound(t, &spec)
	_, _, _ = p.UpdateRole(operator, id, spec, false)
}

// regroup has an owner bring or take away a group; now and then it is not its own.
func (p *plot) regroup(t *proptest.Choices) error {
	g := proptest.OneOf(t, spoils...)
	if t.Chance(3) {
		g.owner = proptest.OneOf(t, owners...)
		g.tools = []toolSpec{{name: proptest.OneOf(t, spoilTools...)}}
	}
	if t.Chance(3) {
		err := p.groups.Unregister(g.owner, g.id)
		if code := p.groups.naive.unregister(g.owner, g.id); errcode.Of(err) != code {
			return fmt.Errorf("unregister %s of %s: %v, want code %q", g.id, g.owner, err, code)
		}
		return nil
	}
	return p.bring(g, g.doers(&p.deeds))
}

// elsewhere has the honest root of another task spawn a role it finds.
func (p *plot) elsewhere(t *proptest.Choices) error {
	narrow := toolgroups.Of(append(someOf(t, 6, spoilIDs), toolgroups.OrgManagement)...)
	spec := org.TaskSpec{Text: "go", Caller: operator}
	if t.Chance(2) {
		spec.Groups = &narrow
	}
	id, err := p.Start(context.Background(), spec)
	if err != nil {
		return err
	}
	p.learn()
	_, err = p.plea(p.law.tasks[id].Top, "spawn_agent", map[string]any{"roleId": proptest.OneOf(t, p.young()...), "taskBrief": brief})
	return err
}

// Closure (issue "Adversarial properties"; seed 002, property 3): no sequence
// of 60 calls by a compromised manager reaches an effect outside what root
// granted. It and all it brings into being call whatever they like with
// whatever arguments, at the real gate, with the real built-in tools over the
// real runtime, while the operator and owners of groups go about their work.
// After every call all that came of it, what tools did and for whom, roles,
// agents, ends and messages on record, is held against the law.
func TestClosure(t *testing.T) {
	conspire(t, sequences(), func(*scene) {})
}

// Task ceiling: "asking root for a stronger agent gains nothing". A caller with
// a weak role starts a task whose root, and every agent there, does whatever
// it is asked: nothing in the task acts beyond what the caller's role may use,
// now.
func TestATaskNeverExceedsItsCaller(t *testing.T) {
	conspire(t, sequences()/5, func(s *scene) { s.gullible = true })
}

// conspire plays plots, in two parts side by side.
func conspire(t *testing.T, n int, prepare func(*scene)) {
	var mu sync.Mutex
	told := map[string]int{}
	t.Run("plots", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
				t.Parallel()
				s := proptest.Size{Choices: plotsOfAHost * callsOfAPlot * 10, Exactly: max(1, n/plotsOfAHost/parts), Part: int64(part)}
				flags.Check(t, s, func(t *proptest.Choices) error {
					scene, err := newScene()
					if err != nil {
						return err
					}
					defer scene.Close()
					prepare(scene)
					err = scene.host(t)
					mu.Lock()
					defer mu.Unlock()
					for what, n := range scene.told {
						told[what] += n
					}
					return err
				})
			})
		}
	})
	t.Logf("%d sequences of %d calls; what they came to: %v", told["plots"], callsOfAPlot, told)
	for _, what := range []string{"create_role", "spawn_agent", "spawn_agent_with_task", "terminate_agent", "send_message", "find_role_by_name", "acted", "refused"} {
		if !t.Failed() && told[what] < told["plots"]/8 {
			t.Errorf("%s: %d in %d sequences; the property says nothing when so little happens", what, told[what], told["plots"])
		}
	}
}

// parts is into how many a long property is split, to use the cores there are;
// a number of its own, so that a seed means the same everywhere.
const parts = 2

// host has plots play one after the other.
func (s *scene) host(t *proptest.Choices) error {
	for range plotsOfAHost {
		p, err := newPlot(t, s)
		if err == nil {
			err = p.play(t)
		}
		if err != nil {
			return err
		}
		s.told["plots"]++
	}
	return nil
}

var _ realm = (*runtime.Runtime)(nil)
