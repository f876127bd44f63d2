package org

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// SpawnableRoles returns roles that an agent may spawn agents of now. These are declared
// roles, and roles that agents of its task created. It leaves out what agents of other
// tasks named and described, also of tasks of the same caller. With a query it returns
// the roles that match a word of it, the best first. Without a query it returns all
// roles, sorted by name. It returns at most limit roles, and how many there are in all.
func (o *Org) SpawnableRoles(id identity.AgentID, query string, limit int) (list []Role, total int) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	p, ok := o.agents[id]
	if !ok {
		return nil, 0
	}
	found := o.spawnable(p)
	if words := wordsOf(query); len(words) > 0 {
		found = bestMatches(found, words)
	}
	for _, r := range found[:min(len(found), limit)] {
		list = append(list, *r)
	}
	return list, len(found)
}

// DeclaredRoles returns the declared roles of which an agent may spawn agents. These are the
// SpawnableRoles without the roles that agents have created. It returns at most limit roles, and
// the number of all.
func (o *Org) DeclaredRoles(id identity.AgentID, limit int) (list []Role, total int) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	p, ok := o.agents[id]
	if !ok {
		return nil, 0
	}
	for _, r := range o.spawnable(p) {
		if !r.isDeclared() {
			continue
		}
		if total++; total <= limit {
			list = append(list, *r)
		}
	}
	return list, total
}

// spawnable returns the roles of SpawnableRoles, sorted by name.
func (o *Org) spawnable(p *agentNode) (list []*Role) {
	grantors := map[bool]grantor{} // by Role.isDeclared, which alone matters to grantorFor
	for _, r := range o.sortedRoles() {
		if !r.isDeclared() && r.Task != p.task || o.isShadowed(r) {
			continue
		}
		g, known := grantors[r.isDeclared()]
		if !known {
			g = o.grantorFor(p, r)
			grantors[r.isDeclared()] = g
		}
		if o.checkSpawns(g, r) == nil {
			list = append(list, r)
		}
	}
	return list
}

// spawnableHint lists for an error the names of roles that an agent may spawn agents of. Names are
// texts of others, so they are quoted. It must be called with mu held.
func (o *Org) spawnableHint(p *agentNode) string {
	var names []string
	for _, r := range o.spawnable(p) {
		names = append(names, strconv.Quote(textutil.Sanitize(r.Name)))
	}
	if len(names) == 0 {
		return "there are no roles yet"
	}
	return "roles you may hire: " + textutil.ListNames(names)
}

// SpawnedAgentTools returns the names of the tools that an agent of a role would have below an
// agent, in some workflow state, sorted.
func (o *Org) SpawnedAgentTools(parent identity.AgentID, role identity.RoleID) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	p, ok := o.agents[parent]
	if !ok {
		return nil
	}
	s := &scope{role: role, parent: p.scope.canonical()}
	return slices.Sorted(slices.Values(s.compile(o.config.Groups.CurrentSnapshot(), o.lookupRole).ToolNames()))
}

// wordsOf returns the words of a text, in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// bestMatches returns the roles that match a word, the best first.
func bestMatches(roles []*Role, words []string) []*Role {
	scores := map[*Role]int{}
	list := slices.DeleteFunc(roles, func(r *Role) bool {
		scores[r] = r.matchScore(words)
		return scores[r] == 0
	})
	slices.SortStableFunc(list, func(a, b *Role) int { return cmp.Compare(scores[b], scores[a]) })
	return list
}

// Scores of a word of a query that a role has in its name, in its description or in the
// ids of its groups. A word that is only part of one there scores half.
const (
	nameScore        = 8
	descriptionScore = 4
	groupScore       = 2
)

// matchScore returns how well r matches the words of a query, 0 for not at all.
func (r *Role) matchScore(words []string) (score int) {
	var groups []string
	for _, id := range r.Use.GroupIDs() {
		groups = append(groups, wordsOf(string(id))...)
	}
	name, description := wordsOf(r.Name), wordsOf(r.Description)
	for _, word := range words {
		score += nameScore*wordScore(name, word)/2 + descriptionScore*wordScore(description, word)/2 + groupScore*wordScore(groups, word)/2
	}
	return score
}

// wordScore returns 2 if list has a word, 1 if a word of list contains it, else 0. A word
// of less than 3 bytes, such as "of", is not looked for in others.
func wordScore(list []string, word string) int {
	switch {
	case slices.Contains(list, word):
		return 2
	case len(word) >= 3 && slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, word) }):
		return 1
	}
	return 0
}
