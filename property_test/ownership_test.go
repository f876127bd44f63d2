package property_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Ownership: whatever two hostile owners register and unregister, under
// whatever ids and with whatever tool names, nothing of another owner changes,
// is shadowed or goes: not its groups, not its tools, not what a role sees of
// them.
func TestHostileOwnersChangeNothingOfOthers(t *testing.T) {
	check(t, scale{choices: 250}, func(t *tape) error {
		d := newDesk()
		for _, g := range slices.Concat(builtins, modules) {
			if _, err := d.register(g); err != nil {
				return err
			}
		}
		for !t.done() {
			attacker := oneOf(t, []toolgroups.Owner{"mcp:a", "mcp:b"})
			before := propertyOf(d.Snapshot(), attacker)
			if err := d.attack(t, attacker); err != nil {
				return err
			}
			if after := propertyOf(d.Snapshot(), attacker); after != before {
				return fmt.Errorf("%s changed what others own:\n%s\nbecame\n%s", attacker, before, after)
			}
		}
		return nil
	})
}

// attack registers or unregisters in the attacker's name, mostly what is not
// its own. What the Manager answers is checked against the naive registry.
func (d *desk) attack(t *tape, attacker toolgroups.Owner) error {
	targets := append(ids{toolgroups.OrgManagement, toolgroups.Artifact}, groupIDs...)
	if t.chance(3) {
		_, err := d.unregister(attacker, oneOf(t, targets))
		return err
	}
	g := anySpec(t)
	g.id, g.owner = oneOf(t, targets), attacker
	if t.chance(4) {
		g.tools = append(g.tools, toolSpec{name: oneOf(t, []string{"create_role", "put_artifact"})})
	}
	_, err := d.register(g)
	return err
}

// propertyOf writes down everything that is not the attacker's: groups with
// their tools, handles by name, and what a role with these groups would let
// through. Toolsets may hold what is the attacker's, by reference; that is
// left out.
func propertyOf(s *toolgroups.Snapshot, attacker toolgroups.Owner) string {
	var text string
	for _, info := range s.Groups() {
		if info.Owner != attacker {
			text += fmt.Sprintln(info.ID, info.Owner, info.Description, info.RegisteredAt, foreign(s, info.Tools, attacker))
			role := s.Compile(s.Bind(toolgroups.Of(info.ID)))
			text += fmt.Sprintln(info.ID, "lets through", foreign(s, definitionNames(role.In("").Definitions()), attacker))
		}
	}
	for _, h := range s.Tools() {
		if h.Owner != attacker {
			found, _ := s.Lookup(h.Definition.Name)
			text += fmt.Sprintf("%s %s %s %p\n", h.Definition.Name, h.Group, h.Owner, found)
		}
	}
	return text
}

func foreign(s *toolgroups.Snapshot, names []string, attacker toolgroups.Owner) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		h, ok := s.Lookup(name)
		return ok && h.Owner == attacker
	})
}

// An id is bound to the owner it had when it was written: a role that names a
// group keeps nothing of it when the group goes, gets nothing of another
// owner's group of that id, and has it again when its owner brings it again.
func TestAnotherOwnerInheritsNoGrant(t *testing.T) {
	check(t, scale{choices: 60}, func(t *tape) error {
		d := newDesk()
		first, second := owners[0], owners[1]
		id := oneOf(t, groupIDs)
		if _, err := d.register(spec{id: id, owner: first, tools: []toolSpec{{name: "t0"}}}); err != nil {
			return err
		}
		role := d.Snapshot().Bind(toolgroups.Of(id))
		for !t.done() {
			if _, err := d.unregister(oneOf(t, []toolgroups.Owner{first, second}), id); err != nil {
				return err
			}
			owner := oneOf(t, []toolgroups.Owner{first, second})
			if _, err := d.register(spec{id: id, owner: owner, tools: []toolSpec{{name: oneOf(t, toolNames)}}}); err != nil {
				return err
			}
			var want []string
			if d.naive.owner(id) == first {
				want = d.naive.definitions(id)
			}
			if got := definitionNames(d.Snapshot().Compile(role).In("").Definitions()); !slices.Equal(got, want) {
				return fmt.Errorf("group %s belongs to %s; a role bound to %s sees %v, want %v", id, d.naive.owner(id), first, got, want)
			}
		}
		return nil
	})
}

// Readers and writers together: while groups come and go, no reader is ever
// allowed a tool whose group is unregistered, from the moment Unregister
// returned until it is registered again. (And the race detector is silent.)
func TestNoReaderIsAllowedAToolThatIsGone(t *testing.T) {
	house, agent := openReaders(t)
	var phases [2]atomic.Int64 // odd: the writer's group is unregistered for certain
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range phases {
		writers.Go(func() { house.comeAndGo(t, i, agent, &phases[i]) })
	}
	for range 3 {
		readers.Go(func() { house.ask(t, agent, &phases, stop) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// readers is an organization without a store, and its gate.
type readers struct {
	*desk
	gate *gate.Gate
}

// openReaders gives an organization with one agent whose role has all groups.
func openReaders(t *testing.T) (*readers, identity.Principal) {
	t.Helper()
	d := newDesk()
	log := slog.New(slog.DiscardHandler)
	o, err := org.Load(org.Config{Groups: d.Manager, Now: time.Now, Log: log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Groups: d.Manager, Directory: o, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := o.CreateRole(operator, "all", org.RoleSpec{Name: "all"})
	if err != nil {
		t.Fatal(err)
	}
	_, agent, _, err := o.StartTask("task", org.TaskSpec{Caller: operator, Role: string(role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	return &readers{d, g}, identity.ByAgent(agent.ID)
}

// pair gives the i-th writer's group and tools.
func pair(i int) toolgroups.Group {
	return spec{id: groupIDs[i], owner: owners[i], tools: []toolSpec{{name: toolNames[2*i]}, {name: toolNames[2*i+1]}}}.group(nil)
}

func (r *readers) comeAndGo(t *testing.T, i int, agent identity.Principal, phase *atomic.Int64) {
	seat := r.gate.Bind(agent)
	for range 300 {
		if _, err := r.Register(owners[i], pair(i)); err != nil {
			t.Error(err)
		}
		if err := r.Unregister(owners[i], groupIDs[i]); err != nil {
			t.Error(err)
		}
		phase.Add(1) // unregistered
		for range 50 {
			if seat.Authorize(toolNames[2*i]).Allowed() {
				t.Errorf("%s is allowed after its group was unregistered", toolNames[2*i])
			}
		}
		phase.Add(1) // about to come again
	}
}

func (r *readers) ask(t *testing.T, agent identity.Principal, phases *[2]atomic.Int64, stop <-chan struct{}) {
	seat := r.gate.Bind(agent)
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		i := n % 2
		before := phases[i].Load()
		allowed := seat.Authorize(toolNames[2*i+n/2%2]).Allowed()
		if allowed && before%2 == 1 && phases[i].Load() == before {
			t.Errorf("%s was allowed after its group was unregistered", toolNames[2*i])
			return
		}
		seat.Visible()
	}
}
