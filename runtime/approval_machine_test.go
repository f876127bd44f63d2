package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

var machineFlags = proptest.NewFlags(200)

// Approvals are what a naive model of them says, after every command and after a restart behind
// any command. The model says which request waits with which votes, and which transfers were
// made.
func TestApproval_StateMachine(t *testing.T) {
	machineFlags.CheckProperty(t, proptest.CaseSize{MaxChoices: 120, ShortCases: 25}, func(choices *proptest.Choices) error {
		m := newMachine(t)
		defer m.close(t)
		steps := []string{}
		if err := m.compare(t); err != nil {
			return err
		}
		for !choices.IsEmpty() && !m.isDone() {
			step, err := m.step(t, choices)
			steps = append(steps, step)
			if err == nil {
				err = m.compare(t)
			}
			if err != nil {
				return &proptest.CaseError{Steps: steps, Err: err}
			}
		}
		m.checkApproved(t)
		if m.isDone() {
			m.noRequestLeft(t)
		}
		return nil
	})
}

// machineCalls is how many transfers an agent of the machine makes, one after the other.
const machineCalls = 3

// tellerModel makes the transfers, and ends.
var tellerModel = answerFunc(func(r model.Request) model.Answer {
	if n := len(results(r)); n < machineCalls {
		return callTools("transfer", obj{"amount": 10 * (n + 1)})
	}
	return endWith("done")
})

// requestModel is what the model knows of the open request.
type requestModel struct {
	id     string // "" until it is seen
	status runtime.ApprovalStatus
	amount int
	votes  []string // approvers: role and name
	stale  bool     // the role has changed since
}

// tellerState is the model: one agent, whose calls wait one after the other.
type tellerState struct {
	calls     int // that have ended
	request   *requestModel
	amounts   []int // the amounts of transfers
	cancelled bool
	lost      bool            // the role has no tools
	paused    bool            // the role is paused
	removed   map[string]bool // roles of approvers that are paused
}

// isDone reports whether the task has ended by itself.
func (s *tellerState) isDone() bool { return s.calls == machineCalls }

// settle lets the agent go on until it waits.
func (s *tellerState) settle() {
	for !s.cancelled && !s.paused && !s.isDone() {
		switch r := s.request; {
		case s.lost:
			s.request = nil
			s.calls++
		case r == nil, r.status != runtime.ApprovalWaiting && r.stale, r.status == runtime.ApprovalGranted && !s.isEnough(r.votes):
			s.request = &requestModel{status: runtime.ApprovalWaiting, amount: 10 * (s.calls + 1)}
		case r.status == runtime.ApprovalWaiting:
			return
		default:
			if r.status == runtime.ApprovalGranted {
				s.amounts = append(s.amounts, r.amount)
			}
			s.request = nil
			s.calls++
		}
	}
}

// counted returns the votes of people whose roles are active.
func (s *tellerState) counted(votes []string) []string {
	return slices.DeleteFunc(slices.Clone(votes), func(v string) bool { role, _, _ := strings.Cut(v, " "); return s.removed[role] })
}

// isEnough reports whether both roles have voted.
func (s *tellerState) isEnough(votes []string) bool {
	roles := map[string]bool{}
	for _, v := range s.counted(votes) {
		role, _, _ := strings.Cut(v, " ")
		roles[role] = true
	}
	return roles["finance"] && roles["security"]
}

// outcomeOf returns the outcome of a decision, or the code of its error. amount is that of a decision
// with other arguments, 0 without, and -1 for arguments that do not fit the schema.
func (s *tellerState) outcomeOf(by string, approves bool, amount int) string {
	role, user, _ := strings.Cut(by, " ")
	r, isOperator := s.request, by == ""
	switch {
	case r == nil, !isOperator && (role == "oncall" || s.removed[role]):
		return string(errcode.ApprovalNotFound)
	case amount != 0 && (s.paused || s.lost):
		return string(errcode.ToolNotAvailable)
	case amount < 0:
		return string(errcode.InvalidArguments)
	case r.status != runtime.ApprovalWaiting && (approves || r.status != runtime.ApprovalGranted):
		return string(errcode.ApprovalNotFound)
	case approves && isOperator:
		return string(errcode.InsufficientPermissions)
	case !approves:
		r.status = runtime.ApprovalDenied
		return "denied"
	}
	votes := s.counted(r.votes)
	if amount > 0 {
		r.amount, votes = amount, nil
	} else if slices.ContainsFunc(votes, func(v string) bool { return strings.HasSuffix(v, " "+user) }) {
		return string(errcode.Conflict)
	}
	if r.votes = append(votes, by); s.isEnough(r.votes) {
		r.status = runtime.ApprovalGranted
		return "approved"
	}
	return "vote"
}

// machine is a bank with one task, and the model of it.
type machine struct {
	*bank
	tellerState
	clock  atomic.Int64
	teller org.Role
	task   identity.TaskID
	seen   map[string]bool // ids of requests
}

func newMachine(t *testing.T) *machine {
	m := &machine{seen: map[string]bool{}, tellerState: tellerState{removed: map[string]bool{}}}
	m.clock.Store(time.Now().UnixNano())
	rule := approval.Rule{Tools: []string{"transfer"}, From: bothRoles, Deadline: time.Hour}
	m.bank = &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: rule, model: tellerModel, now: func() time.Time { return time.Unix(0, m.clock.Load()) }}
	m.bank.open(t)
	var err error
	spec := org.RoleSpec{Name: "teller", Use: groupSet("probe"), Grant: groupSet(), Approval: []approval.Rule{rule}}
	if m.teller, err = m.CreateRole(t.Context(), tool.Call{By: operator}, spec); err != nil {
		t.Fatal(err)
	}
	m.task = m.start(t, org.TaskSpec{Text: "pay", Role: "teller"})
	m.settle()
	return m
}

func (m *machine) close(t *testing.T) { m.shutdown(t) }

// restart opens the data directory as a new process.
func (m *machine) restart(t *testing.T) {
	m.shutdown(t)
	m.bank.open(t)
	if !m.cancelled && !m.isDone() {
		m.resume(t, m.task)
	}
}

// step makes one random command, restarts after some, and lets the model go on. It returns what
// it did.
func (m *machine) step(t *testing.T, c *proptest.Choices) (string, error) {
	name, got, want := m.command(t, c)
	m.settle()
	if got != want {
		return name, fmt.Errorf("%s: %q, want %q", name, got, want)
	}
	if c.OneIn(2) {
		if err := m.compare(t); err != nil {
			return name, err
		}
		m.restart(t)
		return name + ", restart", nil
	}
	return name, nil
}

// command makes one random command, and returns its outcome and that of the model.
func (m *machine) command(t *testing.T, c *proptest.Choices) (name, got, want string) {
	switch c.Pick(16) {
	case 0:
		return m.decideAs(t, proptest.PickFrom(c, "", "finance ann", "security eve", "oncall eve"), false, 0)
	case 1:
		return m.decideAs(t, m.anyone(c), true, proptest.PickFrom(c, -1, 7, 8))
	case 2:
		return m.expire(t)
	case 3:
		return m.cancelOrRetry(t)
	case 4:
		m.changeTeller(t, org.RoleSpec{Prompt: fmt.Sprint("prompt ", c.Pick(256))})
		return "change the prompt of the role", "", ""
	case 5:
		if !c.OneIn(4) && !m.lost { // a task whose role has no tools ends soon
			return "nothing", "", ""
		}
		return m.takeOrGive(t)
	case 6, 7:
		m.pauseOrResume(t, m.teller.ID, m.paused)
		m.paused = !m.paused
		return fmt.Sprint("pause the role: ", m.paused), "", ""
	case 8:
		role := proptest.PickFrom(c, "finance", "security")
		r, _ := m.Org().RoleByName(role)
		m.pauseOrResume(t, r.ID, m.removed[role])
		m.removed[role] = !m.removed[role]
		return fmt.Sprintf("pause %s: %v", role, m.removed[role]), "", ""
	}
	return m.decideAs(t, m.anyone(c), true, 0)
}

func (m *machine) anyone(c *proptest.Choices) string {
	return proptest.PickFrom(c, "finance ann", "security bob", "finance bob", "security eve", "oncall eve", "")
}

// decideAs decides about the open request, or about the last one.
func (m *machine) decideAs(t *testing.T, by string, approves bool, amount int) (name, got, want string) {
	d := runtime.ApprovalDecision{ID: m.lastID(), Approve: approves, Reason: "r"}
	if amount != 0 {
		d.Args = json.RawMessage(map[bool]string{true: fmt.Sprintf(`{"amount":%d}`, amount), false: `{"amount":"much"}`}[amount > 0])
	}
	who := operator
	if by != "" {
		who = m.approvers[by]
	}
	name = fmt.Sprintf("%s decides: approve %v %s", who, approves, d.Args)
	return name, m.decide(t, who, d), m.outcomeOf(by, approves, amount)
}

// lastID returns the id of the open request, or of one that has ended.
func (m *machine) lastID() string {
	if m.request != nil {
		return m.request.id
	}
	for id := range m.seen {
		return id
	}
	return "unknown"
}

// expire lets the time of the open request end. A decision is late then; the next process ends it.
func (m *machine) expire(t *testing.T) (name, got, want string) {
	m.clock.Add(int64(time.Hour))
	got = m.decide(t, m.approvers["finance ann"], approve(m.lastID()))
	if r := m.request; r != nil && r.status != runtime.ApprovalDenied {
		r.status = runtime.ApprovalExpired
	}
	m.restart(t)
	return "an hour passes", got, string(errcode.ApprovalNotFound)
}

// cancelOrRetry ends the agent, or lets the task begin again.
func (m *machine) cancelOrRetry(t *testing.T) (name, got, want string) {
	m.request = nil
	if m.cancelled {
		m.cancelled = false
		return "retry", fmt.Sprint(m.RetryTask(t.Context(), m.task, operator, org.ModelAllowance{})), "<nil>"
	}
	m.cancelled = true
	return "cancel", fmt.Sprint(m.CancelTask(t.Context(), m.task, "enough")), "<nil>"
}

func (m *machine) changeTeller(t *testing.T, spec org.RoleSpec) {
	if _, _, err := m.UpdateRole(operator, m.teller.ID, spec, false); err != nil {
		t.Fatal(err)
	}
	if m.request != nil {
		m.request.stale = true
	}
}

// takeOrGive takes the tools from the role, or gives them back.
func (m *machine) takeOrGive(t *testing.T) (name, got, want string) {
	m.lost = !m.lost
	use := groupSet("probe")
	if m.lost {
		use = groupSet()
	}
	m.changeTeller(t, org.RoleSpec{Use: use})
	return fmt.Sprint("take the tool: ", m.lost), "", ""
}

func (m *machine) pauseOrResume(t *testing.T, id identity.RoleID, paused bool) {
	pause := m.PauseRole
	if paused {
		pause = m.ResumeRole
	}
	if _, _, err := pause(operator, id, "r"); err != nil {
		t.Fatal(err)
	}
}

// compare waits until the runtime is where the model is, and returns how they differ.
func (m *machine) compare(t *testing.T) error {
	if m.isDone() {
		if task := m.wait(t, m.task); task.Status != org.Done {
			return fmt.Errorf("the task is %s: %v", task.Status, task.Error)
		}
	}
	if m.cancelled {
		m.wait(t, m.task)
	}
	if err := m.compareOpen(t); err != nil {
		return err
	}
	var paid []int
	for _, call := range bodiesOf[journal.ToolCall](t, m.fixture) {
		if call.Decision == journal.Allowed {
			var args struct{ Amount int }
			_ = json.Unmarshal(call.Args, &args) // 0 differs
			paid = append(paid, args.Amount)
		}
	}
	if !slices.Equal(paid, m.amounts) || m.bank.paid.Load() != int64(len(paid)) {
		return fmt.Errorf("transfers on record %v, %d made, want %v", paid, m.bank.paid.Load(), m.amounts)
	}
	return nil
}

// compareOpen waits for the open request of the model. An approval that was not used yet, a denial
// and an expired request are there while the role is paused.
func (m *machine) compareOpen(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		changed := m.ApprovalsChanged()
		err := m.differs()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

func (m *machine) differs() error {
	var list []runtime.Approval
	for _, a := range m.ListApprovals(operator) {
		if m.request == nil || m.request.id != "" || !m.seen[a.ID] {
			list = append(list, a)
		}
	}
	r := m.request
	switch {
	case r == nil && len(list) == 0:
		return nil
	case r != nil && r.status != runtime.ApprovalWaiting:
		if a, ok := m.LookupApproval(operator, r.id); !ok || a.Status != r.status {
			return fmt.Errorf("the request is %q, want %q", a.Status, r.status)
		}
		return nil
	case r == nil || len(list) != 1:
		return fmt.Errorf("requests %+v, want %+v", list, r)
	}
	if r.id == "" {
		r.id, m.seen[list[0].ID] = list[0].ID, true
	}
	var votes []string
	for _, v := range list[0].Votes {
		votes = append(votes, v.As+" "+v.User)
	}
	if list[0].ID != r.id || !slices.Equal(votes, r.votes) {
		return fmt.Errorf("the request %s has the votes %v, want %s with %v", list[0].ID, votes, r.id, r.votes)
	}
	return nil
}
