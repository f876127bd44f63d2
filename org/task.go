package org

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// TaskStatus is the state of a task.
type TaskStatus string

// The states of a task. Done, Failed and Cancelled are final. The record of a task that
// has not ended has Running or Paused. Waiting and Interrupted are never recorded: they say what a
// process does with such a task, see runtime.Runtime.TaskStatus.
const (
	Running     TaskStatus = "running"     // its agents are working
	Waiting     TaskStatus = "waiting"     // only delayed messages are left to do
	Interrupted TaskStatus = "interrupted" // no process works on it; it can be resumed
	Paused      TaskStatus = "paused"      // it goes on when it is resumed or retried
	Done        TaskStatus = "done"
	Failed      TaskStatus = "failed"
	Cancelled   TaskStatus = "cancelled"
)

// Ended reports whether the status is final.
func (s TaskStatus) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Task is an assignment that a caller has given to the organization. Its agents are
// limited by Ceiling, Groups, Network and CallerRole. Zero values of Ceiling and Groups allow
// nothing.
type Task struct {
	ID            identity.TaskID       `json:"id"`
	Text          string                `json:"text"`
	Caller        string                `json:"caller"`                  // identity.Principal.String
	Top           identity.AgentID      `json:"agent"`                   // its first agent: root, or an agent of the role it names
	CallerRole    identity.RoleID       `json:"callerRole,omitempty"`    // role of an external caller, whose current permissions limit the task
	As            identity.RoleID       `json:"as,omitempty"`            // tasks.as of that role when the task started
	Ceiling       toolgroups.PinnedSet  `json:"ceiling"`                 // what the caller may use, when the task started
	Groups        toolgroups.PinnedSet  `json:"groups"`                  // the requested restriction; All if there is none
	Hosts         []hosts.HostRule      `json:"hosts,omitempty"`         // limits on the caller's requests, when the task started
	Binds         []bounds.Bind         `json:"binds,omitempty"`         // bounds on the caller's arguments, when the task started
	State         string                `json:"state,omitempty"`         // initial workflow state of its agents; not of an external caller's task
	Workspace     string                `json:"workspace,omitempty"`     // a directory that all agents share
	WorkspaceName string                `json:"workspaceName,omitempty"` // of the configured workspace; "" if it has none
	Input         json.RawMessage       `json:"input,omitempty"`         // data of the caller, a JSON object; the first message has it
	Schema        json.RawMessage       `json:"schema,omitempty"`        // JSON schema that its result must fit, its own or that of the first agent's role; nil for any result
	Config        string                `json:"config,omitempty"`        // hash of the blob with the recorded configuration
	Status        TaskStatus            `json:"status"`
	Result        json.RawMessage       `json:"result,omitempty"`
	Incomplete    model.StopReason      `json:"incomplete,omitempty"` // why the answer with the result ended early; "" if it is whole
	Error         *TaskError            `json:"error,omitempty"`
	Pause         *TaskPause            `json:"pause,omitempty"`           // why it is paused; nil unless Status is Paused
	Held          *Pause                `json:"held,omitempty"`            // who has paused it until it is resumed; nil if it may run
	Requested     *toolgroups.GroupSet  `json:"requestedGroups,omitempty"` // the groups that the request named; nil if it named none
	ReadOnly      bool                  `json:"readOnly,omitempty"`        // its workspace is
	Asked         bool                  `json:"asked,omitempty"`           // a request to its first agent (TaskSpec.Ask)
	Open          bool                  `json:"open,omitempty"`            // it does not end with the turn of its first agent
	Driven        bool                  `json:"driven,omitempty"`          // a Go program makes the calls of its first agent, which is root and has no model
	Budget        ModelAllowance        `json:"budget,omitzero"`           // what its models may use, if that is less than the organization's budget
	Extra         ModelAllowance        `json:"extra,omitzero"`            // what its models may use beyond the budgets
	CreatedAt     time.Time             `json:"createdAt"`
	EndedAt       time.Time             `json:"endedAt,omitzero"`
	FirstSeq      uint64                `json:"firstSeq"`               // its events have higher sequence numbers
	EndSeq        uint64                `json:"endSeq,omitempty"`       // the event of its end has a higher sequence number, those of ends before a retry a lower one
	Key           string                `json:"key,omitempty"`          // idempotency key, unique among the tasks of its caller
	Timeout       time.Duration         `json:"timeout,omitempty"`      // from the start to Deadline; a retry moves Deadline
	Deadline      time.Time             `json:"deadline,omitzero"`      // when the task is cancelled, without the pauses of the organization since PausedBefore; zero for no limit
	PausedBefore  time.Duration         `json:"pausedBefore,omitempty"` // how long the organization had been paused when Deadline was set
	Request       string                `json:"request,omitempty"`      // digest of what its caller asked for; only with a key
	Trigger       *TaskTrigger          `json:"trigger,omitempty"`      // the trigger that started it; nil for none
	Network       *toolgroups.PinnedSet `json:"network,omitempty"`      // limit of the network from which it was started; nil for none
}

// TaskError is the reason why a task failed.
type TaskError struct {
	Code    errcode.Code `json:"code"`
	Message string       `json:"message"`
}

// TaskEnd is how a task ends.
type TaskEnd struct {
	Status     TaskStatus // Done, Failed or Cancelled
	Result     json.RawMessage
	Incomplete model.StopReason // why the answer with the result ended early; "" if it is whole
	Error      *TaskError
}

// TaskPause is the reason why a task is paused. The code is Paused if a person has paused it until it is
// resumed, with By. Others pause it until it is retried.
type TaskPause struct {
	TaskError
	By string    `json:"by,omitempty"` // identity.Principal.String
	At time.Time `json:"at"`
}

// ModelAllowance is an amount of model usage and of tool calls. A zero field is none.
type ModelAllowance struct {
	Tokens   int64 `json:"tokens,omitempty"`
	Cost     int64 `json:"costNano,omitempty"` // in billionths of the currency of the prices
	Requests int64 `json:"requests,omitempty"` // to language models; records of old versions have none
	Calls    int64 `json:"calls,omitempty"`    // of tools, that are started; likewise
}

// MaxAllowance is the largest amount of a field of a ModelAllowance that a request may name.
const MaxAllowance = 1 << 50

// maxCost is the largest cost of a budget that a request names.
const maxCost = 1e6

// WithCost returns a with a cost in the currency of the prices. It reports false if an amount is
// negative, too large or no number, or the cost is less than a billionth.
func (a ModelAllowance) WithCost(cost float64) (ModelAllowance, bool) {
	if !(cost >= 0 && cost <= maxCost) {
		return ModelAllowance{}, false
	}
	a.Cost = int64(math.Round(cost * 1e9))
	return a, a.IsValid() && (cost == 0 || a.Cost > 0)
}

// Within returns the smaller amount of each field of a and most. A zero field sets no limit.
func (a ModelAllowance) Within(most ModelAllowance) ModelAllowance {
	return ModelAllowance{
		Tokens: smallerAmount(a.Tokens, most.Tokens), Cost: smallerAmount(a.Cost, most.Cost),
		Requests: smallerAmount(a.Requests, most.Requests), Calls: smallerAmount(a.Calls, most.Calls),
	}
}

// smallerAmount returns the smaller of two amounts. An amount of 0 does not count.
func smallerAmount(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// IsValid reports whether no field of a is negative or more than MaxAllowance.
func (a ModelAllowance) IsValid() bool {
	for _, n := range []int64{a.Tokens, a.Cost, a.Requests, a.Calls} {
		if n < 0 || n > MaxAllowance {
			return false
		}
	}
	return true
}

// TaskSpec specifies a task to start.
type TaskSpec struct {
	Text          string
	Caller        identity.Principal
	Role          string               // id or name of the role of the top agent; "" is root
	Groups        *toolgroups.GroupSet // restricts what root grants and what all agents below it use; nil is no restriction
	State         string               // in which its agents start; "" is the state of the external caller, UndefinedState for others
	Workspace     string               // a directory; only of the operator
	WorkspaceName string               // of a configured workspace; not together with Workspace
	ReadOnly      bool                 // of the workspace
	Assigned      AssignedDir          // what the runtime has assigned; not part of the digest
	Input         json.RawMessage      // data for the first agent, a JSON object; nil for none
	Files         []TaskFile           // that the first agent is given; at most MaxTaskFiles
	Schema        json.RawMessage      // JSON schema that the result must fit; nil for the schema of the role, if any
	Timeout       time.Duration        // after which the task is cancelled; 0 for no limit
	Budget        ModelAllowance       // of the task's models; for a zero field, the organization's field counts
	Ask           bool                 // a request to an agent of Role, which is not ""; nil Groups are then the groups of the role (AskSettings)
	Open          bool                 // it does not end with the turn of its first agent, which then waits for a message
	Driven        bool                 // a Go program makes the calls of its first agent; set by runtime.Runtime.DriveTask
	Config        string
	Key           string       // idempotency key; "" for none
	Trigger       *TaskTrigger // the trigger that starts it; nil for none; not part of the digest
}

// AssignedDir is the directory that all agents of a task share. The zero AssignedDir means no
// shared directory: agents then have private directories.
type AssignedDir struct {
	Name     string // of the configured workspace; "" if it has none
	Path     string
	ReadOnly bool
}

// digest returns a hash of what the caller asks for. Two requests with the same
// idempotency key must have the same one.
func (s *TaskSpec) digest() string {
	asked, _ := json.Marshal(struct { // these types always marshal
		Text, Role, State, Workspace string
		Groups                       *toolgroups.GroupSet
		ReadOnly                     bool
		Input, Schema                []byte
		Timeout                      time.Duration
		Budget                       ModelAllowance
		Open                         bool
		WorkspaceName                string     `json:",omitempty"` // tasks of older versions have no such field in their digest
		Files                        []TaskFile `json:",omitempty"` // likewise
		Ask                          bool       `json:",omitempty"` // likewise
	}{s.Text, s.Role, s.State, s.Workspace, s.Groups, s.ReadOnly, s.Input, s.Schema, s.Timeout, s.Budget, s.Open, s.WorkspaceName, s.Files, s.Ask})
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:])
}

// PreparedTask is a checked TaskSpec, ready for StartTask. The zero value has no caller, so
// it starts no task.
type PreparedTask struct {
	spec    TaskSpec
	request string // digest of spec; "" without a key
}

// PrepareTask checks a spec and computes its digest. It reads the whole request, which may
// be large, and needs no lock.
//
// Its errors have the code InvalidArguments. s.Input is not a JSON object, or an open task
// has a schema. Or a driven task has a role or a key, or a request to an agent has no role.
func PrepareTask(s TaskSpec) (PreparedTask, error) {
	p := PreparedTask{spec: s}
	if s.Key != "" {
		p.request = s.digest()
	}
	return p, checkTaskSpec(&s)
}

// Spec returns what was checked.
func (p PreparedTask) Spec() TaskSpec { return p.spec }

// HasStarted reports whether the same request has started t.
func (p PreparedTask) HasStarted(t *Task) bool {
	return t.Request == p.request || t.Request == "" && t.Text == p.spec.Text // older versions recorded no request
}

// DuplicateKeyError is the error of StartTask for a key that the caller has used.
type DuplicateKeyError struct {
	Task identity.TaskID // the task that was started with the key
}

// Error implements error.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("the caller has started task %s with this idempotency key", e.Task)
}

// taskKey is an idempotency key and its scope: a caller in a role.
type taskKey struct {
	caller string
	role   identity.RoleID
	key    string
}

// end sets the fields of a task that has ended.
func (t *Task) end(e TaskEnd, at time.Time, seq uint64) {
	t.Status, t.Result, t.Incomplete, t.Error = e.Status, e.Result, e.Incomplete, e.Error
	t.Pause, t.Held, t.EndedAt, t.EndSeq = nil, nil, at, seq
}

// summary returns t without the fields that are not kept in memory.
func (t Task) summary() *Task {
	t.Text, t.Input, t.Result = "", nil, nil
	if t.Status.Ended() {
		t.Schema = nil
	}
	return &t
}

// StartedBy reports whether p is the external caller, in the same role, that started the
// task.
func (t *Task) StartedBy(p identity.Principal) bool {
	return p.Kind == identity.Caller && t.CallerRole == p.Role && t.CallerRole != "" && t.Caller == p.String()
}

// isValid reports whether the record has a caller and, for an external caller, the role
// that limits it.
func (t *Task) isValid() bool {
	return t.CallerRole != "" || t.Caller != "" && !strings.HasPrefix(t.Caller, "user:")
}

// bounds returns the limits of the task itself, without the limits of its caller's role.
func (t *Task) bounds() []constraint {
	var list []constraint
	if !t.Ceiling.IsAll() {
		list = append(list, constraint{PinnedSet: t.Ceiling, Hosts: hosts.AnyHost(), reason: "what the task's caller could use when the task started", serverReason: "the server of the task's caller", kind: LimitCallerStart, ofCaller: true})
	}
	if !t.Groups.IsAll() {
		list = append(list, constraint{PinnedSet: t.Groups, Hosts: hosts.AnyHost(), reason: "the groups the task is restricted to", kind: LimitTaskGroups})
	}
	if t.Network != nil {
		list = append(list, networkLimit(*t.Network))
	}
	for _, rule := range t.Hosts {
		list = append(list, constraint{PinnedSet: toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, Hosts: rule, reason: "what the task's caller may reach", kind: LimitHosts})
	}
	return append(list, startBounds(t.Binds)...)
}

// StartTask creates a task with the given id and its top agent, whose id is derived from
// the task's. seq is the number of an event before the task's.
//
// The error is a DuplicateKeyError if the caller has started a task with the key of the
// spec. RoleNotFound: there is no such role, or the role exceeds what the caller may grant.
// InsufficientPermissions: the groups exceed what the caller may use, or the role or the
// caller's role is suspended. GroupNotFound: a group does not exist for the caller. For an
// unknown caller there are other errors.
func (o *Org) StartTask(id identity.TaskID, seq uint64, p PreparedTask) (Task, Agent, []RecordChange, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, task := p.spec, o.newTask(id, seq, &p)
	if known, ok := o.tasksByKey[task.scopedKey()]; ok && task.Key != "" {
		return Task{}, Agent{}, nil, &DuplicateKeyError{known}
	}
	if err := o.setTaskBounds(&task, s); err != nil {
		return Task{}, Agent{}, nil, err
	}
	begin, err := o.newStartState(s)
	if err != nil {
		return Task{}, Agent{}, nil, err
	}
	task.State = begin.state
	agent, err := o.newTopAgent(&task, s)
	if err != nil {
		return Task{}, Agent{}, nil, err
	}
	if err := errors.Join(o.checkOffersTools(&task, &agent, s), o.checkAgentShare("start a task", &task, 1)); err != nil {
		return Task{}, Agent{}, nil, err
	}
	if role, ok := o.roles[agent.Role]; ok {
		task.Budget = task.Budget.Within(role.Limits.Budget)
		if !agent.Root {
			agent.Name = o.newAgentName(s.Caller, id, role.Name)
		}
	}
	o.limitTaskTime(&task, agent.Role)
	changes := o.setStartState(s, begin)
	o.addTask(task.summary())
	return task, agent, slices.Concat(changes, o.addAgent(&agent, nil), []RecordChange{newRecord(KindTask, string(id), task)}), nil
}

// TopAgentID returns the id of the first agent of a task.
func TopAgentID(id identity.TaskID) identity.AgentID {
	return identity.AgentID(identity.DeriveID(string(id), "top"))
}

// newTask returns the record of a new task without its bounds.
func (o *Org) newTask(id identity.TaskID, seq uint64, p *PreparedTask) Task {
	s := &p.spec
	task := Task{
		ID: id, Text: s.Text, Caller: s.Caller.String(), Asked: s.Ask, Requested: s.Groups, Status: Running,
		Workspace: s.Assigned.Path, WorkspaceName: s.Assigned.Name, ReadOnly: s.ReadOnly || s.Assigned.ReadOnly, Input: s.Input, Schema: s.Schema, Config: s.Config, Open: s.Open, Driven: s.Driven, Budget: s.Budget, Trigger: s.Trigger,
		CreatedAt: o.config.Now().UTC(), FirstSeq: seq, Key: s.Key, Request: p.request,
		Top: TopAgentID(id), CallerRole: s.Caller.Role,
	}
	if s.Timeout > 0 {
		o.setTimeout(&task, s.Timeout)
	}
	return task
}

// checkTaskSpec rejects what no task may have.
func checkTaskSpec(s *TaskSpec) error {
	if problem := StateProblem(s.State); s.State != "" && problem != "" {
		return errcode.New(errcode.InvalidArguments, "start a task: state %.200q %s", s.State, problem).With("field", "state")
	}
	if err := CheckNamedGroups("start a task", s.Groups); err != nil {
		return err
	}
	if s.Ask && s.Role == "" {
		return errcode.New(errcode.InvalidArguments, "ask an agent: name its role").With("field", "role")
	}
	if s.Input != nil && !(json.Valid(s.Input) && gjson.ParseBytes(s.Input).IsObject()) {
		return errcode.New(errcode.InvalidArguments, "start a task: its input must be a JSON object").With("field", "input")
	}
	if s.Open && s.Schema != nil {
		return errcode.New(errcode.InvalidArguments, "start a task: one that stays open has no result, so it has no schema of its result").With("field", "open")
	}
	if err := s.checkTrigger(); err != nil {
		return err
	}
	if s.Driven && (s.Role != "" || s.Open || s.Key != "") {
		return errcode.New(errcode.InvalidArguments, "start a task that a program drives: it has no role, no key and is not open")
	}
	return nil
}

// setTaskBounds sets the limits of a task: Ceiling, Groups, Network, Hosts and Binds.
func (o *Org) setTaskBounds(task *Task, s TaskSpec) error {
	m, err := o.taskGrantor(s.Caller)
	if err == nil && s.Ask {
		err = o.checkMayAsk(s)
	}
	if err != nil {
		return err
	}
	ceiling := o.groupsWithin(toolgroups.AllGroups(), m.limits)
	narrow, err := o.taskGroups(m, ceiling, s)
	if err != nil {
		return err
	}
	task.Ceiling, task.Groups, task.Hosts = o.pinOwners(ceiling), o.pinOwners(narrow), hostRules(m.limits)
	task.Binds = bindRules(m.limits)
	for _, limit := range networkLimits(s.Caller) { // Ceiling has ids only: groups above them may have hours
		task.Network = &limit.PinnedSet
	}
	if role, ok := o.roles[s.Caller.Role]; ok && s.Caller.Kind == identity.Caller {
		task.As = role.Tasks.As
	}
	for _, limit := range m.limits { // keep the owners to which the caller's own groups are pinned
		restrictOwner(&task.Ceiling, limit.Only)
		maps.DeleteFunc(task.Ceiling.Owners, func(id toolgroups.GroupID, owner toolgroups.GroupOwner) bool {
			return !limit.Set.IsAll() && limit.Owners[id] != owner && !o.registry().CoversGroup(limit.PinnedSet, id)
		})
	}
	return nil
}

// taskGroups returns the groups to which a task is restricted, within what its caller may use.
func (o *Org) taskGroups(m grantor, ceiling toolgroups.GroupSet, s TaskSpec) (toolgroups.GroupSet, error) {
	switch {
	case s.Groups == nil && s.Ask:
		return o.defaultAskGroups(m, ceiling, s)
	case s.Groups == nil:
		return toolgroups.AllGroups(), nil
	}
	if missing := o.registry().MissingFrom(o.pinOwners(ceiling), *s.Groups); len(missing) > 0 && !s.Groups.IsAll() {
		return *s.Groups, errcode.New(errcode.InsufficientPermissions, "start a task with groups %v: the caller may not use %v", s.Groups, missing)
	}
	if unknown := o.unknownTo(m, *s.Groups); len(unknown) > 0 {
		return *s.Groups, o.unknownGroupsError(m, "start a task", "; name groups that exist", unknown)
	}
	return *s.Groups, nil
}

// restrictOwner restricts b to the tools of an owner, "" for no restriction. If b is
// restricted to another owner already, it becomes empty.
func restrictOwner(b *toolgroups.PinnedSet, only toolgroups.GroupOwner) {
	switch {
	case only == "" || b.Only == only:
	case b.Only == "":
		b.Only = only
	default:
		b.Set = toolgroups.SetOf()
	}
}

// newTopAgent returns the top agent of a task. If the task has no schema, newTopAgent sets it to the
// schema of the agent's role. The role must be within what the caller may grant.
func (o *Org) newTopAgent(task *Task, s TaskSpec) (Agent, error) {
	agent := Agent{ID: task.Top, Role: RootRole, Task: task.ID, Root: true, Name: RootRole, Status: Active, State: s.State, CreatedAt: task.CreatedAt}
	if s.Role == "" {
		return agent, nil
	}
	role, err := o.findActiveRole(s.Caller, s.Role)
	if err != nil {
		return agent, err
	}
	m, err := o.taskGrantor(s.Caller)
	if err != nil {
		return agent, err
	}
	own := s.Ask && s.Caller.Kind == identity.Caller && role.ID == s.Caller.Role // bounded by the caller's use in any case
	if !own && !o.covers(m, role) {                                              // a role that is not the caller's does not exist for it
		return agent, notFound(errcode.RoleNotFound, "role", s.Role)
	}
	if role.Suspended() {
		return agent, errSuspended("start a task with", role)
	}
	agent.Role, agent.Root, agent.Name = role.ID, false, ""
	if task.Schema == nil && !task.Open { // recorded, so that a change of the role does not change the task
		task.Schema = role.Result.schema()
	}
	return agent, nil
}

// EndTask ends a task. stored is the record of the task; EndTask updates it. seq is the
// number of an event before the end. If the task is unknown or has ended already, EndTask
// changes nothing and returns no Changes.
func (o *Org) EndTask(stored *Task, end TaskEnd, seq uint64) []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tasks[stored.ID]
	if !ok || t.Status.Ended() {
		return nil
	}
	o.countRunning(t, -o.taskAgents[stored.ID])
	o.removeFromScopes(stored)
	stored.end(end, o.config.Now().UTC(), seq)
	t.end(end, stored.EndedAt, seq)
	t.Result, t.Schema = nil, nil // see summary
	if t.Status == Done {         // no agent is spawned in it any more
		delete(o.highest, t.ID)
	}
	return []RecordChange{newRecord(KindTask, string(stored.ID), stored)}
}

// TaskByID returns a task without its text and result.
func (o *Org) TaskByID(id identity.TaskID) (Task, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	t, ok := o.tasks[id]
	if !ok {
		return Task{}, false
	}
	return *t, true
}

// ListTasks returns all tasks without texts and results, oldest first.
func (o *Org) ListTasks() []Task {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Task, 0, len(o.tasksByAge))
	for _, t := range o.tasksByAge {
		list = append(list, *t)
	}
	return list
}

// NewestTasks returns up to limit tasks that are older than before, newest first and
// without texts and results. Nil is no bound. recorded are the statuses of their records; none
// selects all. Its time does not grow with the number of older tasks, unless few of them have
// one of the statuses.
func (o *Org) NewestTasks(before *Task, limit int, recorded ...TaskStatus) []Task {
	return o.newestTasks(before, limit, func(t *Task) bool { return len(recorded) == 0 || slices.Contains(recorded, t.Status) })
}

// PausedTasks returns up to limit tasks that an error, their budget or a person has paused, as
// NewestTasks does. Those of a paused organization or role are not among them.
func (o *Org) PausedTasks(limit int) []Task {
	return o.newestTasks(nil, limit, func(t *Task) bool { return t.Status == Paused || t.Held != nil })
}

// newestTasks returns up to limit tasks that are older than before and that selects accepts.
func (o *Org) newestTasks(before *Task, limit int, selects func(*Task) bool) []Task {
	o.mu.RLock()
	defer o.mu.RUnlock()
	end := len(o.tasksByAge)
	if before != nil {
		end, _ = slices.BinarySearchFunc(o.tasksByAge, before, compareAge)
	}
	var list []Task
	for _, t := range slices.Backward(o.tasksByAge[:end]) {
		if len(list) == limit {
			break
		}
		if selects(t) {
			list = append(list, *t)
		}
	}
	return list
}

// addTask adds a task. It must be called with mu held.
func (o *Org) addTask(t *Task) {
	o.tasks[t.ID] = t
	at, _ := slices.BinarySearchFunc(o.tasksByAge, t, compareAge) // the end, unless the clock was set back
	o.tasksByAge = slices.Insert(o.tasksByAge, at, t)
	o.addKey(t)
}

// addKey remembers the key of a task, if it has one. It must be called with mu held.
func (o *Org) addKey(t *Task) {
	if t.Key != "" {
		o.tasksByKey[t.scopedKey()] = t.ID
	}
}

func (t *Task) scopedKey() taskKey { return taskKey{t.Caller, t.CallerRole, t.Key} }

// compareAge orders tasks by creation time, then by id.
func compareAge(a, b *Task) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// initialState returns the workflow state in which the agents of a task start.
func (o *Org) initialState(id identity.TaskID) string {
	if t, ok := o.tasks[id]; ok {
		return t.State
	}
	return ""
}

// ExternalCaller returns the caller whose workflow state all agents of the task share. It
// reports false for a task of the operator, whose agents have states of their own.
func (t *Task) ExternalCaller() (identity.Principal, bool) {
	if t.CallerRole == "" {
		return identity.Principal{}, false
	}
	name := strings.TrimPrefix(t.Caller, "user:")
	return identity.ByCaller(identity.UserName(strings.TrimSuffix(name, "@"+string(t.CallerRole))), t.CallerRole), true
}

// stateOf returns the workflow state of an agent. It is the state of the caller of the
// task. So the task may never do what the caller may not do at that moment. It reports
// false if the state is lost. It must be called with mu held.
func (o *Org) stateOf(m *agentNode) (string, bool) {
	if t, ok := o.tasks[m.task]; ok {
		if caller, external := t.ExternalCaller(); external {
			return o.callers.stateOf(caller)
		}
	}
	return m.state, true
}
