package org_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
)

// pauseTree is a random organization, and what a naive reader knows of it.
type pauseTree struct {
	*fixture
	random *rand.Rand
	tasks  []identity.TaskID
	agents []treeAgent
	roles  map[identity.RoleID]treeRole
	ids    []identity.RoleID

	heldTasks map[identity.TaskID]bool
	heldRoles map[identity.RoleID]bool
	all       bool
}

type treeAgent struct {
	id     identity.AgentID
	task   int
	role   identity.RoleID // "" for root
	parent int             // index in agents; -1 for none
}

type treeRole struct {
	creator identity.RoleID // the role of the agent that created it; "" for the operator and root
}

func newPauseTree(t *testing.T, seed uint64) *pauseTree {
	p := &pauseTree{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 0)), roles: map[identity.RoleID]treeRole{},
		heldTasks: map[identity.TaskID]bool{}, heldRoles: map[identity.RoleID]bool{}}
	for range 3 {
		p.addRole(operator, "")
	}
	for n := range 1 + p.random.IntN(3) {
		top := p.task(org.TaskSpec{})
		a, _ := p.AgentByID(top)
		p.tasks, p.agents = append(p.tasks, a.Task), append(p.agents, treeAgent{id: top, task: n, parent: -1})
	}
	for range 4 + p.random.IntN(12) {
		p.grow()
	}
	return p
}

func (p *pauseTree) addRole(by identity.Principal, creator identity.RoleID) identity.RoleID {
	role := p.role(by, org.RoleSpec{Use: of("org_management", "docs"), Grant: of("org_management", "docs")})
	p.roles[role.ID], p.ids = treeRole{creator}, append(p.ids, role.ID)
	return role.ID
}

// grow lets a random agent hire one, of a declared role if it is root, or of a role that it creates.
func (p *pauseTree) grow() {
	at := p.random.IntN(len(p.agents))
	parent := p.agents[at]
	role := p.ids[p.random.IntN(3)]
	if parent.role != "" || p.random.IntN(2) == 0 {
		role = p.addRole(identity.ByAgent(parent.id), parent.role)
	}
	p.agents = append(p.agents, treeAgent{p.spawn(parent.id, role), parent.task, role, at})
}

// held is the oracle: an agent is paused with its task, with the organization, or with one of
// the roles above it. Root is no role.
func (p *pauseTree) held(a treeAgent) bool {
	if p.all || p.heldTasks[p.tasks[a.task]] {
		return true
	}
	for at := a; at.role != ""; at = p.agents[at.parent] {
		for id := at.role; id != ""; id = p.roles[id].creator {
			if p.heldRoles[id] {
				return true
			}
		}
	}
	return false
}

// change pauses or resumes something.
func (p *pauseTree) change() error {
	var changes []org.RecordChange
	var err error
	switch p.random.IntN(4) {
	case 0:
		if p.all = !p.all; p.all {
			changes, err = p.PauseOrg(operator, "")
		} else {
			changes, err = p.ResumeOrg(operator)
		}
	case 1:
		id := p.tasks[p.random.IntN(len(p.tasks))]
		stored, _ := p.TaskByID(id)
		if p.heldTasks[id] = !p.heldTasks[id]; p.heldTasks[id] {
			changes, err = p.HoldTask(operator, &stored, "")
		} else {
			changes, err = p.ReleaseTask(operator, &stored)
		}
	default:
		id := p.ids[p.random.IntN(len(p.ids))]
		if p.heldRoles[id] = !p.heldRoles[id]; p.heldRoles[id] {
			_, _, changes, err = p.PauseRole(operator, id, "")
		} else {
			_, _, changes, err = p.ResumeRole(operator, id)
		}
	}
	p.store.put(changes)
	return err
}

// In random organizations, exactly the agents below what is paused are paused, also after a
// restart.
func TestPause_HoldsWhatIsBelow(t *testing.T) {
	for seed := range uint64(short.Count(25, 400)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPauseTree(t, seed)
			for range 10 {
				if err := p.change(); err != nil {
					t.Fatal(err)
				}
				if p.random.IntN(3) == 0 {
					p.reopen()
				}
				for n, a := range p.agents {
					if got, want := p.PauseReason(a.id) != "", p.held(a); got != want {
						t.Fatalf("agent %d of %v: paused %v, want %v", n, p.agents, got, want)
					}
				}
			}
		})
	}
}

// A record of the pause of the organization that cannot be read counts as a pause, which the
// operator can end.
func TestPauseOrg_DamagedRecordPauses(t *testing.T) {
	for name, damage := range map[string]func(*memoryStore){
		"unreadable": func(m *memoryStore) { m.damaged = append(m.damaged, "pause") },
		"no JSON":    func(m *memoryStore) { m.set("meta", "pause", `{`) },
		"null":       func(m *memoryStore) { m.set("meta", "pause", `null`) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			worker := f.spawn(f.task(org.TaskSpec{}), f.role(operator, org.RoleSpec{Use: of("docs")}).ID)
			changes, err := f.PauseOrg(operator, "")
			f.store.put(changes)
			if err != nil {
				t.Fatal(err)
			}
			changes, err = f.ResumeOrg(operator)
			f.store.put(changes)
			if err != nil {
				t.Fatal(err)
			}
			f.wantTools(worker, "search")
			damage(f.store)
			f.reopen()
			f.wantTools(worker)
			if _, err := f.ResumeOrg(operator); err != nil {
				t.Error(err)
			}
			f.wantTools(worker, "search")
		})
	}
}
