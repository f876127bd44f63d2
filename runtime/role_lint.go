package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// LintQuery selects the role and the events of a lint: those from From to before To. Zero is
// no bound.
type LintQuery struct {
	Role     identity.RoleID
	From, To time.Time
}

// RoleLint is what a role holds, what of it the record shows as used, and the smallest groups
// that would have allowed the same.
type RoleLint struct {
	Role        org.Role
	Since       time.Time // of the first event of the record; zero if it is empty
	First, Last time.Time // of the counted calls; zero without one

	Calls  int // allowed ones of its agents and callers
	Denied int // calls of its agents and callers
	Others int // allowed calls of others, within what it uses or grants

	Grants int // roles that were created, agents that were spawned and tasks that were started within what it uses or grants

	Use, Grant SetLint
	Tools      []LintedTool // that were called, by name
	Refused    []LintedTool // whose calls were denied, by name; at most 100

	Findings []LintFinding // of the record, if it shows a use, then what the role joins
}

// IsUsed reports whether the record shows a use. Without one there is nothing to recommend.
func (l *RoleLint) IsUsed() bool { return l.Calls+l.Others+l.Grants > 0 }

// Narrows reports whether less would have been enough.
func (l *RoleLint) Narrows() bool {
	return l.IsUsed() && !(l.Use.Kept.Equal(l.Use.Held) && l.Grant.Kept.Equal(l.Grant.Held))
}

// SetLint is about what a role uses, or what it may grant.
type SetLint struct {
	Held, Kept           toolgroups.GroupSet // Kept contains no more than Held
	HeldTools, KeptTools int                 // while all groups with hours are open
	Exact                bool                // no other choice of groups has fewer tools, or as many tools and fewer groups
	Groups               []GroupLint         // of Held, and of Kept; of all groups only those with a use
	Unused               int                 // groups that Groups leaves out
}

// GroupLint is a group that a role holds, or that would be enough in its place.
type GroupLint struct {
	ID        toolgroups.GroupID
	Held      bool // by itself
	Kept      bool
	Away      bool     // it is not registered, or has another owner than when the role was written
	Tools     int      // while all groups with hours are open
	Used      int      // the Tools that were called
	Calls     int      // of its tools
	Called    []string // names of the tools that were called: a group of these alone would be enough
	HasHours  bool
	Fallbacks []toolgroups.GroupID // groups that stand in for it and that the role would lose
}

// LintedTool is a tool in the record.
type LintedTool struct {
	Name  string
	Group toolgroups.GroupID // through which the last call was allowed; "" of denied calls
	Gone  bool               // it is not registered now
	Calls int                // of agents and callers of the role
	Other int                // of others, within what the role uses or grants

	share    org.RoleShare // of all calls
	ofUse    int           // calls that depended on what the role uses
	ofGrants int           // calls that depended on what it may grant
}

// LintRole compares what a role holds with what the record says was used. It reads all events
// since q.From, and the events of the tasks that ran then.
//
// What the role holds now allows some of the recorded calls, and of the recorded creations of
// roles, agents and tasks. The kept sets allow all of these calls and creations: by its agents
// and callers, and by others that the role limits. They contain no tool that the role does not
// hold.
//
// Errors: RoleNotFound; InvalidRole for root, whose role is fixed; the errors of the store and of
// ctx.
func (rt *Runtime) LintRole(ctx context.Context, q LintQuery) (RoleLint, error) {
	if q.Role == org.RootRole {
		return RoleLint{}, errcode.New(errcode.InvalidRole, "lint role root: it is fixed, and uses %s alone; organization.grant says what it may grant", toolgroups.OrgManagement)
	}
	role, ok := rt.org.RoleByID(q.Role)
	if !ok || role.Status != org.Active {
		return RoleLint{}, errcode.New(errcode.RoleNotFound, "lint role %.200q: there is no such role", q.Role)
	}
	if err := rt.Flush(); err != nil { // calls of external callers that wait for a shared commit
		return RoleLint{}, err
	}
	after, from, err := rt.lintStart(ctx, q.From)
	if err != nil {
		return RoleLint{}, err
	}
	l := newLinter(rt, q, role, from)
	for e, err := range rt.store.FollowMatching(ctx, l.matches, after, journal.StoredOnly) {
		if err != nil {
			return RoleLint{}, err
		}
		if e.Body != nil {
			l.add(e)
		}
	}
	l.finish()
	l.out.Since, err = rt.firstEventTime(ctx)
	return l.out, err
}

// lintStart returns the number after which the events of a lint are read, and the number after
// which they count. The two differ because the agents of tasks that ran then were spawned before.
func (rt *Runtime) lintStart(ctx context.Context, from time.Time) (after, countAfter uint64, err error) {
	if from.IsZero() {
		return 0, 0, nil
	}
	if countAfter, err = rt.store.SeqBefore(ctx, from.Add(-usageSlack)); err != nil {
		return 0, 0, err
	}
	after = countAfter
	for _, task := range rt.org.ListTasks() {
		if !task.Status.Ended() || task.EndSeq >= countAfter {
			after = min(after, task.FirstSeq)
		}
	}
	return after, countAfter, nil
}

// firstEventTime returns the time of the first event, zero if there is none.
func (rt *Runtime) firstEventTime(ctx context.Context) (time.Time, error) {
	for e, err := range rt.store.FollowEvents(ctx, 0, journal.StoredOnly) {
		return e.At, err
	}
	return time.Time{}, nil
}

// maxRefusedTools limits RoleLint.Refused: the names of denied calls are free.
const maxRefusedTools = 100

// linter folds events into a RoleLint.
type linter struct {
	rt         *Runtime
	query      LintQuery
	countAfter uint64 // events count whose numbers are higher
	out        RoleLint
	places     placeFinder
	shares     map[identity.AgentID]org.RoleShare // of the calls of agents
	tools      map[string]*LintedTool
	refused    map[string]*LintedTool
	use        toolgroups.Needs
	grant      toolgroups.Needs
}

func newLinter(rt *Runtime, q LintQuery, role org.Role, countAfter uint64) *linter {
	return &linter{
		rt: rt, query: q, countAfter: countAfter, out: RoleLint{Role: role}, places: placeFinder{},
		shares: map[identity.AgentID]org.RoleShare{}, tools: map[string]*LintedTool{}, refused: map[string]*LintedTool{},
	}
}

// matches reports whether a lint reads an event.
func (l *linter) matches(h journal.EventHead) bool {
	switch h.Type() {
	case journal.AgentSpawned{}.EventType():
		return true
	case journal.ToolCall{}.EventType(), journal.TaskStarted{}.EventType(), journal.RoleChanged{}.EventType():
		return h.Seq > l.countAfter && l.isInSpan(h.At())
	}
	return false
}

// isInSpan reports whether the events of a time count.
func (l *linter) isInSpan(at time.Time) bool {
	return !at.Before(l.query.From) && (l.query.To.IsZero() || at.Before(l.query.To))
}

// add adds an event.
func (l *linter) add(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		l.places.add(e, b)
		if e.Seq > l.countAfter && l.isInSpan(e.At) {
			l.addSpawn(e, b)
		}
	case journal.TaskStarted:
		l.addTask(e, b)
	case journal.RoleChanged:
		l.addRole(e, b)
	case journal.ToolCall:
		l.addCall(e, b)
	}
}

// addCall adds a call of an agent, or of an external caller.
func (l *linter) addCall(e journal.Event, call journal.ToolCall) {
	share := l.callShare(e, call)
	switch {
	case !share.Any() || call.Code == errcode.ToolInterrupted: // an interrupted call is not decided again
		return
	case call.Decision == journal.Allowed:
		l.addAllowed(e, call, share)
	case share.Use:
		l.out.Denied++
		toolEntry(l.refused, textutil.Truncate(call.Tool, 128), maxRefusedTools).Calls++
	}
}

// addAllowed adds a call that was allowed.
func (l *linter) addAllowed(e journal.Event, call journal.ToolCall, share org.RoleShare) {
	t := toolEntry(l.tools, call.Tool, maxUsageRows)
	t.Group = toolgroups.GroupID(call.Group)
	t.share = org.RoleShare{Use: t.share.Use || share.Use, UseLimit: t.share.UseLimit || share.UseLimit, Grant: t.share.Grant || share.Grant}
	if share.Use || share.UseLimit {
		t.ofUse++
	}
	if share.Grant {
		t.ofGrants++
	}
	if share.Use {
		t.Calls, l.out.Calls = t.Calls+1, l.out.Calls+1
	} else {
		t.Other, l.out.Others = t.Other+1, l.out.Others+1
	}
	l.out.Last = e.At
	if l.out.First.IsZero() {
		l.out.First = e.At
	}
}

// toolEntry returns the entry of a tool. If there are most entries already, it returns a new entry
// that is in no list.
func toolEntry(tools map[string]*LintedTool, name string, most int) *LintedTool {
	t := tools[name]
	if t == nil {
		if t = (&LintedTool{Name: name}); len(tools) < most {
			tools[name] = t
		}
	}
	return t
}

// callShare returns on which sets of the role a call depended.
func (l *linter) callShare(e journal.Event, call journal.ToolCall) org.RoleShare {
	if e.Agent == "" {
		p, ok := identity.ParseCaller(call.Caller)
		if !ok {
			return org.RoleShare{}
		}
		return l.rt.org.CallShare(l.query.Role, org.AgentPlace{Roles: []identity.RoleID{p.Role}})
	}
	share, known := l.shares[e.Agent]
	if !known {
		place, found := l.places.find(e.Agent)
		share = l.rt.org.CallShare(l.query.Role, place)
		if !found { // its beginning is not in the record: what has the name may be its role
			share.Use = e.Role == l.out.Role.Name || slices.Contains(l.out.Role.FormerNames, e.Role)
		}
		l.shares[e.Agent] = share
	}
	return share
}

// finish makes the lists and the sets.
func (l *linter) finish() {
	snapshot := l.rt.config.Groups.CurrentSnapshot()
	for _, t := range l.tools {
		l.addNeeds(snapshot, t)
	}
	l.out.Tools, l.out.Refused = sortedTools(snapshot, l.tools), sortedTools(snapshot, l.refused)
	role := &l.out.Role
	defer l.out.addFindings(snapshot)
	l.out.Use = lintSet(snapshot, role.Bound(role.Use), l.use, func(name string) int { return l.lintedTool(name).ofUse })
	l.out.Grant = lintSet(snapshot, role.Bound(role.Grant), l.grant, func(name string) int { return l.lintedTool(name).ofGrants })
}

// lintedTool returns the entry of a tool that was called, a zero one of another.
func (l *linter) lintedTool(name string) LintedTool {
	if t := l.tools[name]; t != nil {
		return *t
	}
	return LintedTool{}
}

// addNeeds adds what a tool that was called needs. A tool that is not registered needs its
// group while the group has no tools: its server may be away. The group may be below any held
// group that is away. This does not apply if it is held itself, or if it is below a held group
// that is there.
func (l *linter) addNeeds(s *toolgroups.Snapshot, t *LintedTool) {
	h, ok := s.LookupTool(t.Name)
	if !ok {
		if len(s.AllTools(t.Group)) == 0 {
			l.needGroups(t.share, t.Group)
			l.needAway(s, t)
		}
		return
	}
	if t.share.Use {
		l.use.Tools = append(l.use.Tools, h)
	}
	if t.share.UseLimit {
		l.use.Limits = append(l.use.Limits, h)
	}
	if t.share.Grant {
		l.grant.Limits = append(l.grant.Limits, h)
	}
}

// needAway adds the groups of the role that are not registered, if the group of a tool may be
// below one of them.
func (l *linter) needAway(s *toolgroups.Snapshot, t *LintedTool) {
	role := &l.out.Role
	for _, held := range []struct {
		toolgroups.PinnedSet
		share org.RoleShare
	}{{role.Bound(role.Use), org.RoleShare{UseLimit: t.share.Use || t.share.UseLimit}}, {role.Bound(role.Grant), org.RoleShare{Grant: t.share.Grant}}} {
		ids := slices.DeleteFunc(held.Set.GroupIDs(), func(id toolgroups.GroupID) bool { return s.GroupOwner(id) != "" })
		if !s.CoversAlways(held.PinnedSet, t.Group) {
			l.needGroups(held.share, ids...)
		}
	}
}

// needGroups adds groups that sets of the role must contain.
func (l *linter) needGroups(share org.RoleShare, ids ...toolgroups.GroupID) {
	if share.Use || share.UseLimit {
		l.use.Groups = appendNewIDs(l.use.Groups, ids)
	}
	if share.Grant {
		l.grant.Groups = appendNewIDs(l.grant.Groups, ids)
	}
}

func appendNewIDs(list, more []toolgroups.GroupID) []toolgroups.GroupID {
	for _, id := range more {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// sortedTools returns tools by name, and marks tools that are gone.
func sortedTools(s *toolgroups.Snapshot, tools map[string]*LintedTool) (list []LintedTool) {
	for _, t := range tools {
		_, registered := s.LookupTool(t.Name)
		t.Gone = !registered
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b LintedTool) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
