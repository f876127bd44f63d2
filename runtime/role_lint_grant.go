package runtime

import (
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// placeFinder knows the places of agents, also of terminated agents.
type placeFinder map[identity.AgentID]agentOrigin

// agentOrigin is what the record says of a new agent.
type agentOrigin struct {
	role   identity.RoleID
	parent identity.AgentID
	task   identity.TaskID
}

// add adds an agent.
func (f placeFinder) add(e journal.Event, b journal.AgentSpawned) {
	f[e.Agent] = agentOrigin{b.RoleID, b.Parent, e.Task}
}

// find returns the place of an agent. It reports false if the record does not have the agent
// and all agents above it.
func (f placeFinder) find(id identity.AgentID) (at org.AgentPlace, ok bool) {
	var upwards []identity.RoleID
	for id != "" {
		agent, known := f[id]
		if !known || len(upwards) > len(f) { // a circle is no place
			return org.AgentPlace{}, false
		}
		upwards, at.Task, id = append(upwards, agent.role), agent.task, agent.parent
	}
	for i := len(upwards) - 1; i >= 0; i-- {
		at.Roles = append(at.Roles, upwards[i])
	}
	return at, len(upwards) > 0
}

// addSpawn adds a new agent: what its parent may grant, or its task may use, must contain all
// that its role has.
func (l *linter) addSpawn(e journal.Event, b journal.AgentSpawned) {
	role, ok := l.rt.org.RoleByID(b.RoleID)
	if !ok {
		return
	}
	if b.Parent != "" {
		l.addGrant(b.Parent, role)
		return
	}
	task, _ := l.rt.org.TaskByID(e.Task)
	if own := task.Asked && b.RoleID == task.CallerRole; task.CallerRole != "" && !own {
		l.addGroups(l.rt.org.TaskShare(l.query.Role, task.CallerRole), groupsOfRole(role)...)
	}
}

// addRole adds a role that an agent has created.
func (l *linter) addRole(e journal.Event, b journal.RoleChanged) {
	var role org.Role
	if e.Agent != "" && b.Change == "created" && json.Unmarshal(b.Record, &role) == nil {
		l.addGrant(e.Agent, role)
	}
}

// addGrant adds a role that an agent has created, or of which it has spawned an agent.
func (l *linter) addGrant(by identity.AgentID, role org.Role) {
	if place, ok := l.places.find(by); ok {
		l.addGroups(l.rt.org.GrantShare(l.query.Role, place, role.ID), groupsOfRole(role)...)
	}
}

// groupsOfRole returns the groups that a role uses or may grant.
func groupsOfRole(r org.Role) (ids []toolgroups.GroupID) {
	for _, name := range append(r.Use.Names(), r.Grant.Names()...) {
		ids = append(ids, toolgroups.GroupID(name))
	}
	return ids
}

// addTask adds a task of an external caller. What bounds the task must contain the groups
// that its request named. A task other than a request to an agent of the caller's role also
// needs the group that lets a caller start tasks.
func (l *linter) addTask(e journal.Event, b journal.TaskStarted) {
	task, _ := l.rt.org.TaskByID(e.Task)
	if task.CallerRole == "" {
		return
	}
	named := b.Requested
	if named == nil && !b.Asked {
		named = b.Groups
	}
	l.addGroups(l.rt.org.TaskShare(l.query.Role, task.CallerRole), groupIDs(named)...)
	role := &l.out.Role
	ownAgent := b.Asked && role.Agent != nil && e.Role == role.Name
	if task.CallerRole == role.ID && role.Tasks.As == "" && b.Trigger == "" && !ownAgent {
		l.addGroups(org.RoleShare{Use: true}, toolgroups.OrgManagement)
	}
}

// addGroups counts a grant, and adds its groups, if it depends on a set of the role.
func (l *linter) addGroups(share org.RoleShare, ids ...toolgroups.GroupID) {
	if share.Any() {
		l.out.Grants++
		l.needGroups(share, ids...)
	}
}

// groupIDs converts recorded names of groups.
func groupIDs(names []string) []toolgroups.GroupID {
	ids := make([]toolgroups.GroupID, len(names))
	for i, name := range names {
		ids[i] = toolgroups.GroupID(name)
	}
	return ids
}
