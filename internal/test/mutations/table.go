package main

// mutations are the ways to break the code. To add one, take the test from -find.
var mutations = []mutation{
	// Package toolgroups: the registry.
	{
		"console is not reserved", "toolgroups/toolgroups.go",
		`{Artifact, Command, Console, Context,`, `{Artifact, Command, Context,`,
		"./property_test TestProperty3ReservedIDConflict",
	},
	{
		"an owner replaces a group of another owner", "toolgroups/tx.go",
		`if e.before != nil && !e.dropped && e.before.Owner != e.after.Owner {`, `if false {`,
		"./toolgroups TestRegister_RejectsInvalidGroups",
	},
	{
		"an owner unregisters a group of another owner", "toolgroups/tx.go",
		`case e.before != nil && e.before.Owner == owner.name && !e.dropped:`, `case e.before != nil && !e.dropped:`,
		"./toolgroups TestUnregister_RejectsOtherOwner",
	},
	{
		"a name has the rights of an owner", "toolgroups/owner.go",
		`if o == nil || o.manager != m {`, `if o == nil {`,
		"./toolgroups TestOwner_CannotBeMadeFromName",
	},
	{
		"a closed group keeps its tools", "toolgroups/snapshot.go",
		"if g.isClosed() {", "if g.isClosed() && len(g.refs) > 2 {",
		"./toolgroups TestSwitchGroup_ClosedGroupHasNothing",
	},
	{
		"a closed group keeps its prompts", "toolgroups/prompt.go",
		"!g.isClosed() && ", "",
		"./toolgroups TestSwitchGroup_ClosedGroupHasNothing",
	},
	{
		"a toolset starts open, whatever the clock says", "internal/app/hours.go",
		"t.schedule.IsOpen(wall.Now())", "true",
		"./internal/app TestHours_AfterRestart",
	},
	{
		"a group takes the name of another group's tool", "toolgroups/tx.go",
		`ok && !tx.replaces(other.registeredGroup()) {
		return other`, `ok && !tx.replaces(other.Group) && other.Owner != Builtin {
		return other`,
		"./property_test TestProperty3ReservedIDConflict",
	},
	{
		"WaitIdle does not wait for the watchers", "toolgroups/manager.go",
		"func (m *Manager) WaitIdle() {\n	m.mu.Lock()\n	defer m.mu.Unlock()\n", "func (m *Manager) WaitIdle() {\n",
		"./toolgroups TestManager_WaitIdleWaitsForWatchers",
	},
	{
		"InGroups finds a built-in tool in any built-in group", "toolgroups/snapshot.go",
		`ok && slices.Contains(s.members(g), h) {`, `ok && (slices.Contains(s.members(g), h) || g.Owner == Builtin && h.Owner == Builtin) {`,
		"./property_test TestProperty4DefinitionsCorrectness",
	},
	{
		"the definitions of a Snapshot end after eight tools", "toolgroups/snapshot.go",
		`if !seen.has(h.index) {`, `if !seen.has(h.index) && len(list) < 8 {`,
		"./property_test TestProperty4DefinitionsCorrectness",
	},
	{
		"a toolset of the configuration references a built-in tool", "toolgroups/snapshot.go",
		`ok && g.Owner == Config && !target.Reserved`, `ok && g.Owner == Config && target != nil`,
		"./toolgroups TestSnapshot_Toolsets",
	},
	{
		"a reference follows its name to another owner", "toolgroups/snapshot.go",
		`ok && h.Owner == r.owner {`, `ok {`,
		"./property_test TestProperty6QueryCompleteness",
	},
	{
		"a grant of any group covers every child", "toolgroups/hierarchy.go",
		`return b.lists(id) || s.isBelow(id, b) }`, `return b.lists(id) || len(s.above[id]) > 0 }`,
		"./property_test TestHierarchy_GrantsDescendantsAlone",
	},
	{
		"a read part covers its group", "toolgroups/hierarchy.go",
		`	return b.Set.Has(id) || b.Set.Has(whole)
`, `	return b.Set.Has(id) || b.Set.Has(whole) || b.Set.Has(id.ReadPart())
`,
		"./property_test TestHierarchy_GrantsDescendantsAlone",
	},
	{
		"a read part covers the children of its group", "toolgroups/hierarchy.go",
		`	if len(s.above[id]) == 0 {
		return nil
	}
`, `	if len(s.above[id]) == 0 {
		return nil
	}
	defer func() { ids = withReadParts(ids) }()
`,
		"./property_test TestHierarchy_GrantsDescendantsAlone",
	},
	{
		"a read part has the tools that may be repeated", "toolgroups/readpart.go",
		`return h.Definition.Effect == tool.ReadOnly }`, `return h.Definition.Effect != tool.Mutating }`,
		"./property_test TestClosure",
	},
	{
		"flags that are not set count as none", "tool/flags.go",
		`return !f.Known() || f&Flags(flag) != 0`, `return f.Known() && f&Flags(flag) != 0`,
		"./tool TestFlags_NotSetCountAsAll",
	},
	{
		"a lint overlooks tools of groups that are closed now", "toolgroups/narrow.go",
		`		list = appendNew(list, seen, s.allMembers(g))
	}
	list = slices`, `		list = appendNew(list, seen, s.members(g))
	}
	list = slices`,
		"./runtime TestFindJoins_AgreesWithVisibleTools",
	},
	{
		"a lint judges what a role may grant without what it uses", "runtime/role_lint_finding.go",
		`flaggedTools{slices.Concat(use.tools, grant.tools)`, `flaggedTools{slices.Concat(grant.tools)`,
		"./runtime TestFindJoins_AgreesWithVisibleTools",
	},
	{
		"a lint recommends a read part that has the flag, too", "runtime/role_lint_finding.go",
		`g.reads != 0 && g.reads&flag == 0}`, `g.reads != 0}`,
		"./runtime TestFindJoins_AgreesWithVisibleTools",
	},
	{
		"a server's label does not replace the flags of a module", "modules/labels.go",
		`		if flags.Known() {`, `		if flags.Known() && !d.Flags.Known() {`,
		"./modules TestLabels_Apply",
	},
	{
		"a lint drops the read part of a group that is away", "toolgroups/narrow.go",
		`[]GroupID{id, id.ReadPart()} { // the read part alone may be needed`, `[]GroupID{id} {`,
		"./toolgroups TestNarrowSet_Cases",
	},
	{
		"the read part of a group has whole children", "toolgroups/hierarchy.go",
		`		if g.onlyReads {
			child`, `		if g.onlyReads && len(child.refs) > 0 {
			child`,
		"./toolgroups TestReadPart_HasReadOnlyToolsAlone",
	},
	{
		"a group is registered under the id of a read part", "toolgroups/toolgroups.go",
		`	if _, reads := id.WholeGroup(); reads {
`, `	if whole, reads := id.WholeGroup(); reads {
		return CheckID(whole)
	}
	if _, reads := id.WholeGroup(); reads {
`,
		"./property_test TestProperty3ReservedIDConflict",
	},
	{
		"a group of another owner becomes a child", "toolgroups/hierarchy.go",
		`		if child, isNew := tx.groupAfter(id); child != nil && !isNew && child.Owner != g.Owner {`, `		if child, isNew := tx.groupAfter(id); child != nil && !isNew && child.Owner == "" {`,
		"./property_test TestProperty1RegistrationConsistency",
	},
	{
		"another owner registers the id of a child", "toolgroups/hierarchy.go",
		`isNew && parent.Owner != g.Owner {`, `isNew && parent.Owner == "" {`,
		"./toolgroups TestRegister_InvalidHierarchies",
	},
	{
		"a group covers the children of a group that has another owner now", "toolgroups/hierarchy.go",
		`return b.Set.Has(id) && b.Owners[id] == s.GroupOwner(id)`, `return b.Set.Has(id)`,
		"./toolgroups TestChildren_OfAnotherOwner",
	},
	{
		"a group covers its siblings and parents", "toolgroups/hierarchy.go",
		`		case s.hasID(limit, id):
`, `		case true:
`,
		"./toolgroups TestIntersectSets",
	},
	{
		"the views of a parent stay when a child changes", "toolgroups/snapshot.go",
		`slices.Concat(base.ancestors(id), s.ancestors(id))`, `s.ancestors(id)`,
		"./toolgroups TestWatchGroups_ReportsAncestors",
	},
	{
		"a fallback names tools of other roles", "toolgroups/fallback.go",
		`!one.isSameTool(failed) && s.HasTool(one) &&`, `!one.isSameTool(failed) &&`,
		"./gate TestFallback_NamesToolsOfCaller",
	},
	{
		"two APIs of servers have one name", "toolgroups/callname.go",
		`"_", "-u", ".", "-d")`, `"_", "-u", ".", "-u")`,
		"./toolgroups TestCallName_Injective",
	},

	// Package toolgroups: Views.
	{
		"a View offers a tool under two names", "toolgroups/view.go",
		"handles = withoutAPIs(handles)", "handles = slices.Clone(handles)",
		"./toolgroups TestCompile_ServerAPIs",
	},
	{
		"an API takes the name of another group's tool", "toolgroups/api.go",
		"ids[api.ID] || tx.conflictingTool(names, h) != nil", "ids[api.ID]",
		"./toolgroups TestManager_ServerAPIsTakeNothing",
	},
	{
		"an owner that is no module reserves ids of a server", "toolgroups/snapshot.go",
		"ok && g.openAPIs", "ok || g.openAPIs",
		"./toolgroups TestManager_ServerAPIsTakeNothing",
	},
	{
		"the definitions of a View end after eight tools", "toolgroups/view.go",
		"	for i, h := range s.handles {\n		s.definitions[i]", "	for i, h := range s.handles[:min(8, len(s.handles))] {\n		s.definitions[i]",
		"./property_test TestProperty4DefinitionsCorrectness",
	},
	{
		"an old View allows a tool with a reused index", "toolgroups/view.go",
		`return h.since <= s.revision && s.bits.has(h.index) }`, `return s.bits.has(h.index) }`,
		"./toolgroups TestView_ReusedIndexDenied",
	},
	{
		"a View follows a group to another owner", "toolgroups/view.go",
		`ok && g.Owner == b.Owners[id] {`, `ok {`,
		"./toolgroups TestSnapshot_Compile",
	},
	{
		"a View keeps the first of its limits only", "toolgroups/view.go",
		"	for _, limit := range limits {\n		if !limit.IsAll() {", "	for _, limit := range limits[:min(1, len(limits))] {\n		if !limit.IsAll() {",
		"./toolgroups TestSnapshot_Compile",
	},
	{
		"a set that is restricted to a server has the tools of all", "toolgroups/view.go",
		`{ return b.Only == "" || h.Owner == b.Only }`, `{ return true }`,
		"./toolgroups TestPinnedSet_OnlyRestrictsToOwner",
	},
	{
		"a tool of no state is visible in all states", "toolgroups/view.go",
		`if h.Definition.States == nil || slices.Contains(h.Definition.States, "*") ||`, `if len(h.Definition.States) == 0 || slices.Contains(h.Definition.States, "*") ||`,
		"./toolgroups TestStateView_States",
	},
	{
		"a list of groups covers all groups", "toolgroups/set.go",
		`		return []GroupID{"*"}`, `		return nil`,
		"./toolgroups TestSet_OnlyAllCoversAll",
	},
	{
		"a set that is null is all groups", "toolgroups/set.go",
		`	*s = SetOf(ids...)`, `	*s = GroupSet{all: ids == nil, ids: SetOf(ids...).ids}`,
		"./toolgroups TestSet_UnmarshalJSON",
	},
	{
		"prompts ignore the limits", "toolgroups/prompt.go",
		`&& !slices.ContainsFunc(limits, excludes) {`, `&& (true || !slices.ContainsFunc(limits, excludes)) {`,
		"./toolgroups TestView_PromptsAgainstModel",
	},
	{
		"a tool-gated View says which tools exist", "toolgroups/view.go",
		`		v.evaluations[rule].Gating = g`, `		if DecisionRule(rule) != NoSuchTool {
			v.evaluations[rule].Gating = g
		}`,
		"./toolgroups TestView_SetGating",
	},
	{
		"a set covers a group that another owner has registered", "toolgroups/view.go",
		`b.Set.Has(id) && b.Owners[id] == owner ||`, `b.Set.Has(id) ||`,
		"./toolgroups TestPinnedSet_OtherOwnerDoesNotInherit",
	},
	{
		"a View shows tools that it does not allow", "toolgroups/view.go",
		`			v.states[name].fill(s, visibleIn(handles, name))`, `			v.states[name].fill(s, handles)`,
		"./toolgroups TestStateView_States",
	},

	// Package gate.
	{
		"everybody may call console_print", "gate/gate.go",
		`	return Decision{name, handle, sv.EvaluateTool(handle)}`, "	if name == \"console_print\" {\n		return Decision{name, handle, sv.BaseView().RuleEvaluation(toolgroups.Granted)}\n	}\n	return Decision{name, handle, sv.EvaluateTool(handle)}",
		"./property_test TestProperty5UnauthorisedCallRefused",
	},
	{
		"a cached StateView outlives its View", "gate/gate.go",
		`if sv == nil || sv.BaseView() != view {`, `if sv == nil {`,
		"./gate TestSubject_FollowsViewRef",
	},
	{
		"a role calls the tools of all groups", "toolgroups/view.go",
		`	return &v.evaluations[NotGranted]`, `	return &v.evaluations[Granted]`,
		"./property_test TestProperty5UnauthorisedCallRefused",
	},
	{
		"a role calls its tools in every workflow state", "toolgroups/view.go",
		`		return &v.evaluations[WrongState]`, `		return &v.evaluations[Granted]`,
		"./property_test TestProperty5UnauthorisedCallRefused",
	},
	{
		"a decision that denies says that it allows", "gate/gate.go",
		`return d.outcome != nil && d.outcome.Rule == toolgroups.Granted }`, `return d.outcome != nil && d.outcome.Rule != toolgroups.NoSuchTool }`,
		"./gate TestSubject_Authorize",
	},
	{
		"a superseded decision starts", "gate/steps.go",
		`return a.Allowed() && !(a.Subject.isCurrent(a.Decision) && a.claimsCurrent())`, `return false`,
		"./gate TestCall_DecidesAgainWhenSuperseded",
	},
	{
		"a call starts with claims of a removed service", "gate/steps.go",
		`!(a.Subject.isCurrent(a.Decision) && a.claimsCurrent())`, `!a.Subject.isCurrent(a.Decision)`,
		"./gate TestAuthenticate_DecidesAgainWhenServiceChanges",
	},
	{
		"arguments are not validated", "gate/steps.go",
		`	return a.handle.Schema.ValidateShown(a.Request.Args, a.handle.Definition.ModelSchema(), a.handle.Definition.Input)`, `	return nil`,
		"./gate TestCall_RefusalResult",
	},
	{
		"a name is taken apart although a tool has it", "runtime/dialect.go",
		`plain == name || s.AuthorizeTool(name).Code() != errcode.UnknownTool`, `plain == name || s.AuthorizeTool(name).Code() == errcode.Conflict`,
		"./runtime TestMeantTool_ExactNameIsNotTakenApart",
	},
	{
		"a denial lists the tools of other workflow states", "gate/advice.go",
		`toolsAdvice(d.Tool, s.ToolNames())`, `toolsAdvice(d.Tool, s.view().ToolNames())`,
		"./gate TestAdvice_NamesNoHiddenTool",
	},
	{
		"a denial of a tool-gated agent lists its tools", "gate/advice.go",
		` || d.ToolGated() || d.Suspended() != "" {`, ` {`,
		"./gate TestAdvice_NamesNoHiddenTool",
	},
	{
		"an error repeats the arguments of an external caller", "gate/malformed.go",
		`a.Subject.Principal.Kind != identity.Agent`, `a.Subject.Principal.Kind == identity.Operator`,
		"./gate TestCall_RepeatsNoArgumentsOfCallers",
	},
	{
		"a call that may have acted runs again if its tool is repeatable now", "gate/steps.go",
		`!(isRepeatable(a.Request.Effect) && isRepeatable(a.handle.Definition.Effect))`, `!isRepeatable(a.handle.Definition.Effect)`,
		"./gate TestCall_RetriesOnlyRepeatableCalls",
	},
	{
		"a registry change in progress denies a call", "gate/steps.go",
		`		g.config.Groups.WaitIdle()
`, ``,
		"./gate TestCall_WaitsForRegistryChange",
	},
	{
		"a token is not required", "gate/auth.go",
		`	if err := v.check(ctx, need); err != nil {`, `	if err := v.check(ctx, need); err != nil && g == nil {`,
		"./gate TestAuthenticate_RequiresValidToken",
	},
	{
		"a scope is not required", "gate/auth.go",
		`if !slices.Contains(verified.Scopes, scope) {`, `if len(verified.Scopes) == 0 {`,
		"./gate TestAuthenticate_RequiresValidToken",
	},
	{
		"a Mutating call joins a batch", "gate/run.go",
		`		if alone && reading > 0 {`, `		if alone && reading > 2 {`,
		"./gate TestCall_BatchesReadOnlyCalls",
	},
	{
		"calls after a transition are decided in the old state", "gate/run.go",
		`		if alone || reading == maxConcurrent || a.Allowed() && a.handle.Definition.State != "" {`, `		if alone || reading == maxConcurrent {`,
		"./gate TestCall_BatchesReadOnlyCalls",
	},
	{
		"a failed call moves the workflow state", "gate/run.go",
		`	if !result.IsError {`, `	if err == nil || result.IsError {`,
		"./gate TestCall_ClassifiesToolOutcome",
	},
	{
		"the caller's word decides who calls", "gate/run.go",
		`call.By, call.Claims, call.Secure = a.Subject.Principal, a.claims, a.secure`, `call.Claims, call.Secure = a.claims, a.secure`,
		"./gate TestCall_PassesAuthorizedArguments",
	},
	{
		"a tool gets the caller's credentials", "gate/run.go",
		`BindInput(tool.WithoutCredentials(ctx), call,`, `BindInput(ctx, call,`,
		"./gate TestAuthenticate_RequiresValidToken",
	},
	{
		"a Mutating call without an outcome is safe to repeat", "gate/run.go",
		`	case !isRepeatable(a.handle.Definition.Effect):`, `	case !isRepeatable(a.handle.Definition.Effect) && !expired:`,
		"./gate TestCall_Timeout",
	},
	{
		"a call runs without the lease that was refused", "gate/lease.go",
		`		if !a.Allowed() || slices.Contains(q.ended, a.handle) || a.acquire() {`, `		if !a.Allowed() || slices.Contains(q.ended, a.handle) || a.acquire() || true {`,
		"./gate TestCall_DecidesAgainWhenModuleEnds",
	},
	{
		"a tool-gated caller learns that a tool does not exist", "gate/gate.go",
		`case d.handle == nil && !d.ToolGated() &&`, `case d.handle == nil &&`,
		"./gate TestDecision_ToolGatedDenialsAreIdentical",
	},
	{
		"a caller of a suspended role learns that a tool does not exist", "gate/gate.go",
		`!d.ToolGated() && d.Suspended() == "":`, `!d.ToolGated():`,
		"./gate TestDecision_SuspendedDenialsAreIdentical",
	},
	{
		"a tool that is not visible moves the state", "gate/gate.go",
		`	for _, d := range s.VisibleTools() {`, `	for _, d := range s.ListableTools() {`,
		"./gate TestSubject_AfterCall",
	},
	{
		"arguments have no limit", "gate/steps.go",
		`n > g.config.MaxArgs {`, `n > 8*g.config.MaxArgs {`,
		"./gate TestCall_RequiresStrictJSONObject",
	},
	{
		"a result has no limit", "gate/run.go",
		`n > g.config.MaxResult {`, `n > 8*g.config.MaxResult {`,
		"./gate TestCall_ClassifiesToolOutcome",
	},
	{
		"a call runs although its record failed", "gate/run.go",
		`			return batch, err
		}
	}`, `			return batch, nil
		}
	}`,
		"./gate TestCall_StopsOnRecorderError",
	},
	{
		"a call goes on although its outcome was not recorded", "gate/run.go",
		`rec.CallFinished(ctx, batch); err != nil {`, `rec.CallFinished(ctx, batch); err != nil && len(requests) == 0 {`,
		"./gate TestCall_StopsOnRecorderError",
	},
	{
		"a call that did not start keeps its lease", "gate/run.go",
		`			releaseAll(batch)
`, ``,
		"./gate TestCall_ReleasesLeaseWhenNotStarted",
	},
	{
		"a call that ended keeps its lease", "gate/run.go",
		`	defer a.release()
`, ``,
		"./gate TestCall_ReleasesLeaseWhenEnded",
	},
	{
		"a tool runs after its caller has ended", "gate/run.go",
		`	if err := ctx.Err(); err != nil {
		return result, err
	}
`, ``,
		"./gate TestCall_SkipsToolAfterCancel",
	},

	// Package org.
	{
		"the number of an agent shows a role of another caller", "org/agent_name.go",
		`if _, err := o.findActiveRole(by, name); err != nil {`, `if len(o.activeRoles[name]) == 0 {`,
		"./org TestAgentName_ShowsNoRolesOfOthers",
	},
	{
		"a name stands for any agent of the task", "org/agent_name.go",
		`	return cmp.Or(from.descendantNamed(string(name)), name)`, `	top := from
	for top.parent != nil {
		top = top.parent
	}
	return cmp.Or(top.descendantNamed(string(name)), name)`,
		"./org TestResolveRecipient_FindsRecipients",
	},
	{
		"a name is given again after a restart", "org/agent_name.go",
		`	if number == 0 || number != o.highest[m.task][role] {`, `	if number >= 0 {`,
		"./org TestAgentName_IsGivenOnce",
	},
	{
		"the role root without the flag is root", "org/scope.go",
		`key := scopeKey{role: m.role, root: m.root}`, `key := scopeKey{role: m.role, root: m.root || m.role == RootRole}`,
		"./org TestLoad_RejectsImpossiblePosition",
	},
	{
		"a record makes an agent below another root", "org/load.go",
		`case ok && p.task == m.task && !m.root && !o.isTopAgent(m):`, `case ok && p.task == m.task && !o.isTopAgent(m):`,
		"./org TestLoad_RejectsImpossiblePosition",
	},
	{
		"a role has the ceiling of its creator alone", "org/grants.go",
		`		r = creator
`, `		return bounds
`,
		"./org TestCeiling_LiveAndRecursive",
	},
	{
		"every role has the tools of all groups", "org/scope.go",
		`snapshot.Compile(use.PinnedSet, sets...)`, `snapshot.Compile(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}, sets...)`,
		"./rolecalltest TestCheckProperties_Holds",
	},
	{
		"an agent keeps what its parent lost", "org/scope.go",
		`	return role.useLimit("the toolGroups of role " + role.Name).as(LimitUse), append(ceiling(find, role), s.parentLimits(find)...)`, `	return role.useLimit("the toolGroups of role " + role.Name).as(LimitUse), ceiling(find, role)`,
		"./org TestCeiling_ParentGrant",
	},
	{
		"a manager grants more than its parent may", "org/scope.go",
		`	return append(append(ceiling(find, role), own), s.parentLimits(find)...)`, `	return append(ceiling(find, role), own)`,
		"./org TestCeiling_ParentGrant",
	},
	{
		"a task keeps what its caller's role lost", "org/scope.go",
		`return slices.Concat(s.bounds, ofCaller(callerTaskLimits(find, s.caller)...))`, `return slices.Concat(s.bounds, ofCaller(callerTaskLimits(find, s.caller)[:0]...))`,
		"./org TestTask_LosesWhatCallerLoses",
	},
	{
		"a caller retries a task that was cancelled", "org/task_pause.go",
		`	case t.Status == Cancelled && by.Kind != identity.Operator:`, `	case t.Status == Cancelled && by.Kind == identity.None:`,
		"./property_test TestTask_NeverExceedsCaller",
	},
	{
		"a suspended caller retries its task", "org/task_pause.go",
		`	if err := o.checkRetry(by, t); err != nil {
		return nil, err
	}
`, ``,
		"./org TestRetryTask_OnlyWhatMayStart",
	},
	{
		"every agent sees the user's images", "runtime/request.go",
		`return a.agent.Parent == ""`, `return true`,
		"./runtime TestTaskFiles_ImagesOfOthers",
	},
	{
		"a retry does not wait for the end of an idle task", "runtime/tracker.go",
		`run.ended, run.newMessages, run.refs = true, false, 1`, `run.ended, run.newMessages = true, false`,
		"./runtime TestRetry_WaitsForIdleEnd",
	},
	{
		"an agent retries its task", "org/task_pause.go",
		`by.Kind != identity.Operator && !t.StartedBy(by):`, `by.Kind == identity.None && !t.StartedBy(by):`,
		"./property_test TestClosure",
	},
	{
		"a task of tasks.as keeps what that role lost", "org/scope.go",
		`return slices.Concat(s.bounds, ofCaller(callerTaskLimits(find, s.caller)...))`, `return slices.Concat(s.bounds, ofCaller(callerTaskLimits(find, s.caller)[:0]...))`,
		"./org TestTasksAs_FollowsRole",
	},
	{
		"a change of the role in tasks.as is not published", "org/scope.go",
		`			x.addCreators(s, caller.Tasks.As, find)
`, ``,
		"./org TestTasksAs_FollowsRole",
	},
	{
		"a task of tasks.as has what its caller's role may use instead", "org/role_tasks.go",
		`	case !given || !caller.isActive():`, `	case given || !caller.isActive():`,
		"./org TestTasksAs_BoundsTasks",
	},
	{
		"a task of tasks.as outlives its caller's role", "org/role_tasks.go",
		`	case !given || !caller.isActive():`, `	case !given:`,
		"./org TestTasksAs_FollowsRole",
	},
	{
		"tasks.as is followed twice", "org/role_tasks.go",
		`	as, _ := find(r.Tasks.As)
`, `	as, _ := find(r.Tasks.As)
	if as != nil && as.Tasks.As != "" {
		as, _ = find(as.Tasks.As)
	}
`,
		"./org TestTasksAs_Circle",
	},
	{
		"the creators of the role in tasks.as do not bound tasks", "org/role_tasks.go",
		`	return append(ceiling(find, as), as.useLimit(`, `	return append(ceiling(find, as)[:0], as.useLimit(`,
		"./org TestTasksAs_BoundedByCreators",
	},
	{
		"any sender writes as the operator", "runtime/message.go",
		`		return errcode.New(errcode.InsufficientPermissions, "send to %q: only agents and the operator send messages", m.To)`, `		return rt.setParties(identity.ByOperator(""), m)`,
		"./runtime TestRuntime_OthersDoNotActAsOperator",
	},
	{
		"an agent starts a task", "org/role_tasks.go",
		`if by.Kind != identity.Operator && by.Kind != identity.Caller {`, `if by.Kind == identity.None {`,
		"./org TestTask_OnlyOperatorAndCallersStart",
	},
	{
		"a task starts although the role in tasks.as was deleted", "org/role_tasks.go",
		`; given && !as.isActive() {`, `; given && as == nil {`,
		"./org TestTasksAs_DeletedRoleDeniesEverything",
	},
	{
		"an agent sets tasks.as", "org/role_tasks.go",
		`	case editor.createdBy != CreatorOperator || !r.isDeclared():`, `	case !r.isDeclared() && r == nil:`,
		"./org TestTasksAs_OnlyForRolesOfOperator",
	},
	{
		"the record of an agent's role has tasks.as", "org/load.go",
		`	forged := (role.Tasks.As != "" ||`, `	forged := (role.Tasks.As == "x" ||`,
		"./org TestTasksAs_ForgedRecords",
	},
	{
		"a group below a built-in one is registered", "toolgroups/manager.go",
		`		if id[at] == '/' && m.reserved[id[:at]] {`, `		if id[at] == '/' && at > len(id) {`,
		"./toolgroups TestReserved_SortedAndBuiltinOnly",
	},
	{
		"callers ask agents of a role that does not say so", "org/ask_settings.go",
		`	case own == nil || own.Agent == nil:`, `	case own == nil:`,
		"./org TestAsk_OnlyWhereAllowed",
	},
	{
		"callers that may start no tasks ask agents of other roles", "org/ask_settings.go",
		`	case s.Role != own.Name && s.Role != string(own.ID):`, `	case s.Role == "":`,
		"./org TestAsk_OnlyWhereAllowed",
	},
	{
		"default groups exceed what the caller may use", "org/ask_settings.go",
		`o.registry().IntersectSets(byDefault, o.pinOwners(ceiling))`, `role.Agent.groupsOrDefault()`,
		"./org TestAsk_DefaultGroupsOfOther",
	},
	{
		"a hook starts tasks beyond its network", "gateway/hook.go",
		`return a.sessions.LimitSender(r, hook.By)`, `return hook.By, nil`,
		"./internal/app TestHook_StaysWithinNetwork",
	},
	{
		"default groups outlast the hours of a group above them", "org/ask_settings.go",
		`!o.registry().CoversAlways(byDefault, id)`, `id == "*"`,
		"./gateway TestAskAgent_ClosedDefaultGroup",
	},
	{
		"a task outlasts the hours of its network's groups", "org/task.go",
		`	if t.Network != nil {`, `	if t.Network != nil && false {`,
		"./gateway TestNetworks_ClosedParentLimitsTasks",
	},
	{
		"a request without groups is not restricted", "org/task.go",
		`	case s.Groups == nil && s.Ask:`, `	case s.Groups == nil && s.Ask && s.Role == "":`,
		"./org TestAsk_GroupsOfRequest",
	},
	{
		"a caller begins in any state", "org/ask_settings.go",
		`	case !slices.Contains(o.roles[s.Caller.Role].States, s.State):`, `	case s.State == "*":`,
		"./org TestAsk_StateOfRequest",
	},
	{
		"a caller leaves the state on record", "org/ask_settings.go",
		`	case now != "":`, `	case now == "*":`,
		"./org TestAsk_StateOfRequest",
	},
	{
		"the record of an agent's role lets callers ask", "org/load.go",
		`|| role.Agent != nil || role.States != nil) &&`, `) &&`,
		"./org TestAsk_ForgedRecords",
	},
	{
		"a task begins in the initial workflow state, not in its caller's", "org/task.go",
		`			return o.callers.stateOf(caller)`, `			_ = caller`,
		"./property_test TestTask_NeverExceedsCaller",
	},
	{
		"an agent's call does not move the workflow state of the caller", "org/agent.go",
		`			return o.setCallerState(caller, state), nil`, `			_ = caller`,
		"./org TestCaller_AgentsShareState",
	},
	{
		"one caller takes the agents of all callers", "org/limits.go",
		`limit > 0 && held >= most {`, `limit > 0 && held >= most+1000 {`,
		"./org TestCallerShare_Agents",
	},
	{
		"callers take the agents reserved for the operator", "org/limits.go",
		`	reserved := limit`, `	reserved := limit * 0`,
		"./org TestCallerShare_Agents",
	},
	{
		"roles of ended tasks count to no caller", "org/limits.go",
		`r.owner() == owner {`, `r.owner() == owner && o.tasks[r.Task].Status == Running {`,
		"./org TestCallerShare_Roles",
	},
	{
		"an agent finds the role of another caller", "org/role_owner.go",
		`w != roleOwner{} && r.owner() == w`, `w != roleOwner{}`,
		"./org TestRoleOwner_ExistsForTasksOfCallerOnly",
	},
	{
		"an agent spawns the role of another caller by its id", "org/role.go",
		`case known && o.mayFind(by, found):`, `case known:`,
		"./org TestRoleOwner_ExistsForTasksOfCallerOnly",
	},
	{
		"a role without an owner belongs to tasks without one", "org/role_owner.go",
		`w != roleOwner{} && r.owner() == w`, `r.owner() == w`,
		"./org TestRoleOwner_TaskThatIsGoneHasDeclaredRolesOnly",
	},
	{
		"the name of a deleted declared role means a caller's role", "org/role_owner.go",
		`w.has(r) && !x.isShadowed(r)`, `w.has(r)`,
		"./org TestRoleOwner_DeclaredRoleTakesName",
	},
	{
		"an agent is told of roles of other tasks", "org/role_search.go",
		`!r.isDeclared() && r.Task != p.task || o.isShadowed(r)`, `o.isShadowed(r)`,
		"./org TestSpawnableRoles_AreDeclaredOrOfSameTask",
	},
	{
		"a description leaves its quotes", "runtime/prompt_roles.go",
		`	return string(quoted)`, "	_ = quoted\n	return `\"` + text + `\"`",
		"./runtime TestPrompt_DescriptionCannotLeaveItsQuotes",
	},
	{
		"a role has the name of the program", "org/name.go",
		`CreatorOperator, CreatorConfig, programName}`, `CreatorOperator, CreatorConfig}`,
		"./org TestCheckRoleName",
	},
	{
		"a task is not narrowed to its groups", "org/task.go",
		`	if !t.Groups.IsAll() {`, `	if !t.Groups.IsAll() && len(list) > 0 {`,
		"./org TestTask_Groups",
	},
	{
		"a task has more groups than its caller", "org/task.go",
		`len(missing) > 0 && !s.Groups.IsAll() {`, `len(missing) > 1 && !s.Groups.IsAll() {`,
		"./org TestTask_Groups",
	},
	{
		"removing one limit of a role removes its budget", "org/role_defaults.go",
		`		l.Rounds = 0`, `		*l = AgentLimits{}`,
		"./org TestUpdateRole_RemovesSingleLimits",
	},
	{
		"a limit of null keeps its value", "gateway/request.go",
		`			nulls = append(nulls, nullMembers(key.Str, value, nullable)...)
`, "",
		"./gateway TestUpdateRole_RemovesSingleLimits",
	},
	{
		"a limit of 0 removes all limits of a role", "cmd/command_role.go",
		`org.RoleField("limits."+name)`, `org.LimitsField`,
		"./cmd TestRoleUpdate_RemovesSingleLimits",
	},
	{
		"a deleted role keeps its permissions", "org/role.go",
		`	if r.Status != Active {
		return constraint`, `	if r.Status == "" {
		return constraint`,
		"./org TestDeleteRole_RemovesPermissions",
	},
	{
		"a suspended role keeps its permissions", "org/role.go",
		`	if r.Suspended() {
		return constraint{`, `	if false {
		return constraint{`,
		"./property_test TestClosure",
	},
	{
		"a configuration resumes a role", "org/role.go",
		`, next.Suspension = old.Caller, old.CallerRole, old.Suspension`, ` = old.Caller, old.CallerRole`,
		"./org TestSuspendRole_IsNotLiftedByOthers",
	},
	{
		"deleting a role and creating it again resumes it", "org/suspension.go",
		`	return last.Suspension`, `	return Suspension{}`,
		"./org TestSuspendRole_IsNotLiftedByOthers",
	},
	{
		"a damaged record resumes a role of the configuration", "org/load.go",
		`o.lost.add(r.Value)`, ``,
		"./org TestSuspendRole_DamagedRecord",
	},
	{
		"a damaged record is of a role of no name", "org/lost_role.go",
		`l.any = true`, ``,
		"./org TestSuspendRole_DamagedRecord",
	},
	{
		"an agent resumes a role", "org/suspension.go",
		`	case by.Kind != identity.Operator:`, `	case by.Kind != identity.Operator && by.Kind != identity.Agent:`,
		"./org TestSuspendRole_Errors",
	},
	{
		"an agent is spawned with a suspended role", "org/agent.go",
		`	if role.Suspended() {`, `	if false {`,
		"./property_test TestClosure",
	},
	{
		"a task starts with a suspended role", "org/task.go",
		`	if role.Suspended() {`, `	if false {`,
		"./org TestSuspendRole_NothingBegins",
	},
	{
		"a role grants beyond its creator's grant", "org/role.go",
		`o.checkGrant(creator, spec.Name, use, grant)`, `o.checkGrant(creator, spec.Name, use, use)`,
		"./org TestCreateRole_RejectsMoreThanGrant",
	},
	{
		"an agent spawns a stronger agent", "org/grants.go",
		`o.missing(g, role.Use, role.Grant) == nil`, `o.missing(g, role.Use) == nil`,
		"./org TestSpawn_Permission",
	},
	{
		"an agent terminates an agent that is not below it", "org/agent.go",
		`ok && m.descendsFrom(caller) {`, `ok && m != caller {`,
		"./org TestTerminate_Permission",
	},
	{
		"an agent writes to a collaborator in another task", "org/agent.go",
		`	case m.task != from.task:`, `	case m.task != from.task && !slices.Contains(from.contacts, to):`,
		"./org TestOrg_MayMessage",
	},
	{
		"a change of a role is published later", "org/role.go",
		`	changes := o.advance(old.ID)
	o.recompile(affected)
	o.notifyChanged()`, `	changes := o.advance(old.ID)
	_ = affected
	o.notifyChanged()`,
		"./org TestOrg_UpdateRole",
	},
	{
		"a change of the registry changes the tools of no role on record", "org/org.go",
		`	o.observeChange(changed, edited)
`, ``,
		"./org TestDiffTools_FollowsEveryChange",
	},
	{
		"a role's tools are on record without those of the roles that it created", "org/tool_history.go",
		`o.isBelowAny(r, roles) || o.dependsOn(r, groups)`, `roles[r.ID] || o.dependsOn(r, groups)`,
		"./org TestDiffTools_FollowsEveryChange",
	},
	{
		"a caller with a damaged record starts from the initial state", "org/caller.go",
		`	return "", !c.unknownDamaged && (len(c.damaged) == 0 || !c.damaged[p.Key()])`, `	return "", !c.unknownDamaged`,
		"./org TestCaller_DamagedRecordDenies",
	},
	{
		"a role has the name of root in other letters", "org/name.go",
		`		if looksLike(name, reserved) {`, `		if name == reserved {`,
		"./org TestCheckRoleName_RejectsConfusables",
	},
	{
		"a task record without its caller's role has no limits", "org/task.go",
		`return t.CallerRole != "" || t.Caller != "" && !strings.HasPrefix(t.Caller, "user:")`, `return strings.Contains(t.Caller, "")`,
		"./org TestLoad_IgnoresCorruptRecords",
	},
	{
		"an agent may have its parent in another task", "org/load.go",
		`case ok && p.task == m.task && !m.root`, `case ok && !m.root`,
		"./org TestLoad_RejectsImpossiblePosition",
	},
	{
		"a change of the registry is published later", "org/org.go",
		`	o.recompile(slices.Collect(maps.Keys(dirty)))
`, `	_ = slices.Collect(maps.Keys(dirty))
`,
		"./org TestOrg_RegistryChangesApplyAtOnce",
	},
	{
		"a View does not follow the groups it depends on", "org/scope.go",
		`			addTo(x.byGroup, whole, s)
`, `			addTo(x.byGroup, whole+"?", s)
`,
		"./org TestOrg_RegistryChangesApplyAtOnce",
	},
	{
		"a View of a read part does not follow its group", "org/scope.go",
		`			addTo(x.byGroup, whole, s)
`, `			_ = whole
			addTo(x.byGroup, id, s)
`,
		"./org TestReadPart_FollowsTheEffect",
	},
	{
		"a View does not follow the creators of its role", "org/scope.go",
		`		id = identity.RoleID(role.CreatedByRole)`, `		_ = role.CreatedByRole
		return`,
		"./org TestCeiling_LiveAndRecursive",
	},
	{
		"a View does not follow the roles of its parents", "org/scope.go",
		`		x.addCreators(s, at.role, find)`, `		x.addCreators(s, s.role, find)`,
		"./org TestCeiling_ParentGrant",
	},
	{
		"a role may grant everything by default", "org/role.go",
		`	case use.Has(toolgroups.OrgManagement):
		grant = use`, `	case use.Has(toolgroups.OrgManagement):
		grant = toolgroups.AllGroups()`,
		"./org TestCreateRole_DefaultGrant",
	},
	{
		"a role without groups gets more than its creator may grant", "org/role_defaults.go",
		`	return o.groupsWithin(o.defaultGroups, limits)`, `	return o.groupsWithin(o.defaultGroups, nil)`,
		"./org TestCreateRole_DefaultLimitedByCreator",
	},
	{
		"an unknown group is granted to any owner that registers it", "org/unknown_group.go",
		`			if !held && o.registry().KnownOwner(id) == "" && !slices.Contains(unknown, id) {
`, `			if held {
`,
		"./org TestRole_RejectsUnknownGroup",
	},
	{
		"a suggestion names groups of others", "org/unknown_group.go",
		`return !registry.ReachesGroup(limit.PinnedSet, part) })
`, `return !registry.ReachesGroup(limit.PinnedSet, part) && false })
`,
		"./org TestUnknownGroup_SuggestsOnlyOwnGroups",
	},
	{
		"an allowed tool is named by the group that owns it", "toolgroups/granting.go",
		`	if id, ok := v.through[h.index]; ok {
`, `	if id, ok := v.through[h.index]; ok && id == "" {
`,
		"./toolgroups TestView_GrantingGroup",
	},
	{
		"an update overwrites a newer revision", "org/role.go",
		`spec.Revision != 0 && spec.Revision != old.Revision`, `spec.Revision > old.Revision`,
		"./org TestUpdateRole_RejectsOtherRevision",
	},
	{
		"a caller changes roles", "org/role.go",
		`	case by.Kind != identity.Operator && by.Kind != identity.Configuration:`, `	case by.Kind == identity.Agent:`,
		"./org TestOrg_UpdateRole",
	},
	{
		"the operator changes a role of the configuration", "org/role.go",
		`	if (old.CreatedBy == CreatorConfig) != (m.createdBy == CreatorConfig) {`, `	if old.CreatedBy != CreatorConfig && m.createdBy == CreatorConfig {`,
		"./org TestOrg_UpdateRole",
	},
	{
		"the server of a role does not limit its agents", "org/role.go",
		`	if r.Server != "" {`, `	if r.Server != "" && r.CreatedBy == "" {`,
		"./org TestRole_ServerRestrictsTools",
	},
	{
		"a dry run changes the role", "org/role.go",
		`	if dryRun {
		return diff, nil
	}
	affected`, `	affected`,
		"./org TestOrg_UpdateRole",
	},
	{
		"an update pins a role to new owners", "org/role.go",
		`	next.GroupOwners = rebindOwners(old, next, spec)
`, ``,
		"./org TestUpdateRole_KeepsOwnersOfOtherSets",
	},
	{
		"an unknown principal reaches every host", "org/hosts.go",
		`	return []constraint{denyAll("the principal is unknown")}`, `	return nil`,
		"./org TestMayReach_UnknownPrincipals",
	},

	{
		"what root may grant does not limit roles that it has created", "org/grants.go",
		`			return append(bounds, rootLimits(find)...)`, `			return bounds`,
		"./org TestRootGrant_IsLive",
	},
	{
		"what root may grant does not limit what it creates", "org/scope.go",
		`		return slices.Concat(s.taskLimits(find), rootLimits(find))`, `		return s.taskLimits(find)`,
		"./property_test TestClosure",
	},
	{
		"root creates roles although it may grant nothing", "org/root_grant.go",
		`	if g.role != CreatorRoot || !o.root.grantsNothing() {`, `	if true {`,
		"./org TestRootGrant_EmptyCreatesNothing",
	},
	{
		"a group that root has lost is not listed", "org/lost_group.go",
		`	list := o.root.lostGroups(snapshot)`, `	list := o.root.lostGroups(snapshot)[:0]`,
		"./org TestLostGroups_NamesRoot",
	},

	// Package runtime: the end of a task.
	{
		"a task ends while calls run", "runtime/tracker_ending.go",
		`	case <-quiet:
		return run, nil
`, `	case <-quiet:
		return run, nil
	default:
		return run, nil
`,
		"./runtime TestResult_WaitsForOpenCalls",
	},
	{
		"an agent below the first ends the task", "runtime/result.go",
		`	if a.isFirst() {
		return a.endWithResult`, `	if true {
		return a.endWithResult`,
		"./runtime TestResult_OfAgentBelowEndsItsTurn",
	},
	{
		"an agent is asked for its result again and again", "runtime/result_schema.go",
		`case !a.state.corrected:`, `case a.state.answers < 5:`,
		"./runtime TestRoleResult_OfAgentBelow",
	},
	{
		"a model is asked again and again for an answer that can be used", "runtime/repair.go",
		`case !slices.Contains(x.a.state.repairs(), need):`, `case true:`,
		"./runtime TestRepair_AnswersOfFirstAgent",
	},
	{
		"a text that holds a call among other words counts as a call", "runtime/written_call.go",
		`if !chat.ValidJSON(text) {
		return ""
	}`, `if !chat.ValidJSON(text) {
		text = text[max(0, strings.Index(text, "{")):]
	}`,
		"./runtime TestRepair_TextsThatCall",
	},
	{
		"a parent gets a result that does not fit", "runtime/result_schema.go",
		`a.report(b, a.errorPayload(problem), "error")`, `a.reportAnswer(b, answer)`,
		"./runtime TestRoleResult_OfAgentBelow",
	},
	{
		"an agent is asked while its task ends", "runtime/tracker_agent.go",
		`run != nil && run.stops(a.agent.ID):`, `run != nil && run.stops(a.agent.ID) && false:`,
		"./runtime TestResult_MessageWhileTaskEndsStartsNoTurn",
	},
	{
		"the agents below stay when the task ends", "runtime/result.go",
		`		a.terminateBelow(b)
`, ``,
		"./runtime TestResult_ReturnOfFirstAgentEndsTask",
	},
	{
		"a call that an earlier process has started has no outcome when the task ends", "runtime/result.go",
		`if _, started := a.state.started[c.ID]; started {`, `if false {`,
		"./runtime TestResult_CrashAtAnyCommitEndsTask",
	},
	{
		"a task that has ended accepts messages", "runtime/message.go",
		`	case task.Status.Ended():`, `	case false:`,
		"./runtime TestSend_AfterTaskEndIsRejected",
	},
	{
		"a model that reads nothing is asked again", "runtime/answer.go",
		`own.MessagesRead <= 0 ||`, `own.MessagesRead < 0 ||`,
		"./runtime TestAnswer_ReadOfZeroMeansAll",
	},
	{
		"the turns of earlier processes do not count", "runtime/turns.go",
		`	if err == nil && text != nil {`, `	if err == nil && false {`,
		"./runtime TestLimits_TurnsOfTask",
	},

	// Package runtime: limits.
	{
		"requests of earlier processes do not count", "runtime/usage.go",
		`		used[requestQuantity]++
`, ``,
		"./runtime TestLimits_RequestsOfTask",
	},
	{
		"a task may make any number of requests", "runtime/budget.go",
		`	n.used[requestQuantity]++
`, ``,
		"./runtime TestLimits_RequestsOfTask",
	},
	{
		"an agent may spawn any number of agents", "runtime/limits.go",
		`	if limit == 0 || a.state.hires < limit {`, `	if true {`,
		"./runtime TestLimits_HiresOfAgent",
	},
	{
		"roles do not bound how many agents one agent spawns", "runtime/limits.go",
		`limit := rt.org.HiresOf(id)`, `limit := 0`,
		"./runtime TestLimits_HiresOfAgent",
	},
	{
		"the depth of a role holds for its own agents only", "org/line_limits.go",
		`for at := p; at != nil; at = at.parent {
		if most`, `for at := p; at == p; at = at.parent {
		if most`,
		"./org TestLineLimits_Depth",
	},
	{
		"a role that an agent creates has limits of its own", "org/line_limits.go",
		`least, id = least.within(role.Limits.LineLimits), identity.RoleID(role.CreatedByRole)`, `least = least.within(role.Limits.LineLimits)`,
		"./org TestLineLimits_Hires",
	},
	{
		"a task takes longer than its role allows", "org/task.go",
		`	o.limitTaskTime(&task, agent.Role)
`, ``,
		"./org TestLineLimits_Time",
	},
	{
		"a task without a budget may use any number of tokens", "runtime/runtime.go",
		`TaskBudget{Tokens: defaultTokens, WarnAt: defaultWarnAt}`, `TaskBudget{WarnAt: defaultWarnAt}`,
		"./runtime TestLimits_OfTask",
	},
	{
		"the budget of an agent is not taken from its parent's", "runtime/budget_tree.go",
		`		if p.kept {`, `		if false {`,
		"./runtime TestBudget_IsConserved",
	},
	{
		"an agent spends more than its own budget", "runtime/budget_tree.go",
		`	for id != "" {
		if n := t.agents[id]; n != nil {`, `	for id != "" {
		if n := t.agents[id]; n != nil && id == "" {`,
		"./runtime TestBudget_AgentFailsWithoutItsTask",
	},
	{
		"what an ended agent did not use is lost", "runtime/organization.go",
		`		rt.tracker.endBudget(t.Task, t.Agent)
`, ``,
		"./runtime TestBudget_SpawnTakesFromParent",
	},
	{
		"what an ended agent has used returns, too", "runtime/budget_tree.go",
		`	p.used.add(n.used)
`, ``,
		"./runtime TestBudget_IsConserved",
	},
	{
		"a rejected spawn keeps its budget", "runtime/organization.go",
		`			undo()
`, `			_ = undo
`,
		"./runtime TestBudget_RejectedSpawnTakesNothing",
	},
	{
		"an agent that has answered keeps its budget", "runtime/budget_warning.go",
		`func(s *budgetTree) { s.stopKeeping(a.agent.ID) }`, `func(*budgetTree) {}`,
		"./runtime TestBudget_IsConserved",
	},
	{
		"the budget of an agent is not read from the record", "runtime/budget_agent.go",
		`part: allowanceOf(b.Budget), `, ``,
		"./runtime TestBudget_IsConserved",
	},
	{
		"a repeated call takes a budget twice", "runtime/budget_agent.go",
		`	if _, exists := rt.org.AgentByID(id); exists {`, `	if false {`,
		"./runtime TestBudget_IsConserved",
	},
	{
		"a warning is recorded with each answer", "runtime/budget_warning.go",
		`n.warned[w.quantity] != n.limit[w.quantity]`, `true`,
		"./runtime TestBudget_IsConserved",
	},
	{
		"the budget of a role does not hold", "runtime/budget_agent.go",
		`, most: rt.org.SpawnLimit(parent, s.Role)}`, `}`,
		"./runtime TestBudget_OfRole",
	},
	{
		"the budget of a role is reserved for each agent", "runtime/budget_agent.go",
		`	for q, n := range amountsOf(b.part) {
		if n > 0 {`, `	for q := range amountsOf(b.part) {
		if true {`,
		"./runtime TestBudget_OfRole",
	},
	{
		"the budget of a role does not bound its tasks", "org/task.go",
		`task.Budget.Within(role.Limits.Budget)`, `task.Budget.Within(ModelAllowance{Cost: role.Limits.Budget.Cost})`,
		"./runtime TestBudget_OfRoleOfTask",
	},
	{
		"tool calls do not count", "runtime/budget_warning.go",
		`.used[callQuantity] += int64(started)`, `.used[callQuantity] += 0`,
		"./runtime TestBudget_CallsPauseTask",
	},
	{
		"tool calls of earlier processes do not count", "runtime/usage.go",
		`			t.nodeOf(e.Agent).used[callQuantity]++
`, ``,
		"./runtime TestBudget_CallsPauseTask",
	},
	{
		"tool calls start beyond the budget", "runtime/record.go",
		`, r.a.checkCallBudget(calls)); err != nil {`, `); err != nil {`,
		"./runtime TestBudget_CallsOfDriver",
	},
	{
		"an answer whose calls do not fit the budget is lost", "runtime/budget_calls.go",
		`		if err := r.recordAnswer(); err != nil {
			return err
		}
`, ``,
		"./runtime TestBudget_CallsOfOrganization",
	},
	{
		"calls of a paused task start", "runtime/person_pause.go",
		`	if a.rt.org.PauseReason(a.agent.ID) != "" {
		return errPausedByPerson`, `	if a.rt.org.PauseReason(a.agent.ID) != "" {
		return nil`,
		"./runtime TestPause_Plan",
	},
	{
		"a paused task does not say who has paused it", "runtime/person_pause.go",
		`p := rt.org.PauseOf(id); p != nil {`, `p := rt.org.PauseOf(id); p != nil && id == "" {`,
		"./runtime TestPauseTask_Who",
	},
	{
		"a paused task is not shown as paused", "runtime/person_pause.go",
		`	for agent = range run.resting {
		return agent, true
	}
`, ``,
		"./runtime TestPause_KeepsWhatRuns",
	},
	{
		"a caller pauses the organization", "org/pause.go",
		`	if by.Kind == identity.Operator {
		return nil
	}
	return errcode.New(`, `	if by.Kind != identity.Agent {
		return nil
	}
	return errcode.New(`,
		"./runtime TestPauseTask_Who",
	},
	{
		"a new id makes a result new", "runtime/steady.go",
		`return newSteadyHasher().sumOf(`, `return newHasher().sumOf(`,
		"./runtime TestLoop_ResultsThatDifferInSubstance",
	},
	{
		"no result is new", "runtime/repetition.go",
		`	return one.results == two.results`, `	return true`,
		"./runtime TestLoop_ResultsThatDifferInSubstance",
	},
	{
		"cycles do not count", "runtime/repetition.go",
		`	maxCycle        = 4`, `	maxCycle        = 1`,
		"./runtime TestLoop_EndsTask",
	},
	{
		"a reply that says nothing new ends a loop of messages", "runtime/repetition.go",
		`	if m.From != User && slices.Contains(r.received, sum) {`, `	if false {`,
		"./runtime TestLoop_MessagesAcrossTurns",
	},
	{
		"an id stands before the tools", "runtime/prompt.go",
		`	return prompt + a.rt.roleResultPrompt(a.agent) + toolGatingPrompt(offer)`, `	return string(a.agent.ID) + prompt + a.rt.roleResultPrompt(a.agent) + toolGatingPrompt(offer)`,
		"./runtime TestCache_SecondTaskBeginsAsTheFirst",
	},
	{
		"a note stands in the system prompt", "runtime/request.go",
		`	req.Note = strings.TrimSpace(req.Note)`, `	req.System, req.Note = req.System+strings.TrimSpace(req.Note), ""`,
		"./runtime TestCache_RequestsOfAConversationOnlyGrow",
	},
	{
		"a plan is made without tools", "runtime/plan.go",
		`		r.Note += planSection(r.subject, p.problem)
		r.NoCalls = true`, `		r.Note += planSection(r.subject, p.problem)
		r.Tools, r.ToolJSON = nil, nil`,
		"./runtime TestCache_RequestsOfAConversationOnlyGrow",
	},
	{
		"one sender fills the inbox of an agent", "runtime/mail.go",
		`	if n := c.bySender[m.From]; n >= share {`, `	if n := c.bySender[m.From]; false {`,
		"./runtime TestLimits_Mail",
	},
	{
		"all senders together fill the inbox of an agent", "runtime/mail.go",
		`	if n := c.placesTaken(limit); n >= limit {`, `	if n := c.placesTaken(limit); n > limit {`,
		"./runtime TestLimits_Mail",
	},
	{
		"results of one sender take the places of the others", "runtime/mail.go",
		`		taken += min(n, senderShare(limit))`, `		taken += n`,
		"./runtime TestLimits_MailKeepsResults",
	},
	{
		"messages that waited at the start are not counted", "runtime/mail.go",
		`		w.apply(&journal.Batch{Send: inbox}) //`, `		_ = inbox //`,
		"./runtime TestLimits_Mail",
	},
	{
		"messages that were read still count", "runtime/mail.go",
		`			w.remove(b.Stream, received.Message.From)
`, `			_ = received
`,
		"./runtime TestLimits_Mail",
	},

	// Workspaces.
	{
		"workspaces: a caller's task names the workspace of others", "runtime/workspace_policy.go",
		`if spec.WorkspaceName != "" && (ws.Path == "" || ws.Name != spec.WorkspaceName) {`, `if spec.WorkspaceName != "" && ws.Path == "" {`,
		"./runtime TestWorkspacePolicy_TaskOfCaller",
	},
	{
		"workspaces: a session leaves the workspace of its caller", "runtime/workspace_policy.go",
		`case narrowed != "" && !isBelow(ws.Path, narrowed):`, `case false:`,
		"./runtime TestWorkspacePolicy_SessionDir",
	},
	{
		"workspaces: a task keeps what its caller has lost", "runtime/workspace_policy.go",
		`if !isBelow(allowed.Path, task.Workspace) {`, `if false {`,
		"./runtime TestWorkspacePolicy_ChangeHoldsAtOnce",
	},
	{
		"workspaces: a task writes where its caller only reads", "runtime/workspace_policy.go",
		`task.ReadOnly || allowed.ReadOnly`, `task.ReadOnly`,
		"./runtime TestWorkspacePolicy_ChangeHoldsAtOnce",
	},
	{
		"workspaces: a token's workspace goes with its name", "runtime/workspace_policy.go",
		`return ok && role.ID == id`, `return ok && (role.ID == id || id != "")`,
		"./runtime TestWorkspacePolicy_Precedence",
	},
	{
		"workspaces: a configured one is in the data directory", "runtime/workspace_policy.go",
		`err == nil && isBelow(name, dir) {`, `err == nil && name == dir {`,
		"./runtime TestRuntime_ResolveWorkspace",
	},
	{
		"workspaces: a folder of one has a quota of its own", "runtime/workspace_policy.go",
		`		at.dir = narrowed
`, `		at.dir, at.shared = narrowed, narrowed
`,
		"./runtime TestWorkspacePolicy_OneCallerDoesNotFillIt",
	},
	{
		"workspaces: what a program adds is not charged", "builtin/workspace/share.go",
		`if err == nil && c.charged != nil {`, `if false {`,
		"./builtin/workspace TestSharedQuota_ChargesPrograms",
	},
	{
		"workspaces: a caller adds more than its quota", "builtin/workspace/share.go",
		`		if !had.adjusted(more.Bytes, more.Files).fits(q.quota) {
			return`, `		if false {
			return`,
		"./builtin/workspace TestSharedQuota_OneHolderDoesNotFillIt",
	},
	{
		"workspaces: a root outside is taken", "gateway/mcpserver/roots.go",
		`if err == nil && !s.rt.IsInWorkspace(caller, dir) {`, `if false {`,
		"./gateway/mcpserver TestRoots_FirstInWorkspace",
	},
	{
		"workspaces: a path is accepted over HTTP", "gateway/task_start.go",
		`case !auth.IsLocalOwner(r) || spec.Caller.Kind`, `case spec.Caller.Kind`,
		"./gateway TestStartTask_WorkspaceByName",
	},
	{
		"workspaces: roots are accepted over HTTP", "gateway/mcp.go",
		`if !auth.IsLocalOwner(r) || auth.SenderOf(r).Kind`, `if auth.SenderOf(r).Kind`,
		"./gateway TestClientMCP_Workspace",
	},
	{
		"tokens: a route takes every scope", "gateway/auth/scope.go",
		`return set&(1<<s) != 0 }`, `return true }`,
		"./gateway TestRoutes_TakeDocumentedScopes",
	},
	{
		"tokens: metrics has the scope of a role", "gateway/auth/scope.go",
		`		return ScopeMetrics
`, `		return ScopeRole
`,
		"./gateway TestRoutes_TakeDocumentedScopes",
	},
	{
		"tokens: a token without a scope is accepted", "gateway/auth/token.go",
		`case token.Scope == ScopeNone || int(`, `case int(`,
		"./gateway/auth TestTokensReplace_IsAtomic",
	},
	{
		"issuers: a claim that contains the value matches", "gateway/auth/claim.go",
		`return claim == r.Value`, `return strings.Contains(claim, r.Value)`,
		"./gateway/auth TestIssuers_MapClaimsToPrincipals",
	},
	{
		"issuers: a user has an invisible name", "gateway/auth/claim.go",
		` || strings.ContainsFunc(text, isHidden)`, ``,
		"./gateway/auth TestIssuers_MapClaimsToPrincipals",
	},
	{
		"issuers: the name of an issuer does not begin those of its users", "gateway/auth/claim.go",
		`identity.UserName(i.Name + ":" + text)`, `identity.UserName(text)`,
		"./gateway/auth TestIssuers_MapClaimsToPrincipals",
	},
	{
		"issuers: a static token has the name of a user", "internal/config/gateway_issuer.go",
		`if cut && slices`, `if false && cut && slices`,
		"./internal/config TestReadFiles_RejectedCases",
	},
	{
		"issuers: an own token is shown to an issuer", "gateway/auth/issuer.go",
		`s == nil || strings.HasPrefix(token, TokenPrefix)`, `s == nil`,
		"./gateway/auth TestIssuers_KeepOwnTokens",
	},
	{
		"issuers: a token is remembered after its expiry", "gateway/auth/verified.go",
		`!now.Before(token.until) || token.version`, `token.version`,
		"./gateway/auth TestIssuers_RememberUntilExpiryAndReload",
	},
	{
		"issuers: a token outlives the key of its issuer", "gateway/auth/verified.go",
		` || token.version != token.from.issuer.Verifier.KeyVersion()`, ``,
		"./gateway/auth TestIssuers_RotatedKeyEndsRememberedTokens",
	},
	{
		"issuers: a verification outlives a reload", "gateway/auth/issuer_guard.go",
		`if t.issuers.Load() == set {`, `if true {`,
		"./gateway/auth TestIssuers_ReloadOvertakesVerification",
	},
	{
		"issuers: failures are not limited", "gateway/auth/issuer_guard.go",
		`		g.failures.Take(address)
`, ``,
		"./gateway/auth TestIssuers_LimitFailures",
	},
	{
		"an applied item ends the triggers", "internal/app/triggers.go",
		`	if ch.restored {
		e.SuspendRules()`, `	if ch.orgConfig.KeepRoles {
		e.SuspendRules()`,
		"./internal/app TestHook_StaysWhenItemsChange",
	},
	{
		"issuers: a recorded configuration brings them back", "internal/app/issuers.go",
		`		service, ok := ch.issuers[i.Name]
		if !ok {
			continue
		}
`, `		all, _ := a.issuers.prepare(ch.cfg, issuerServices(ch.cfg), signInClients(ch.cfg))
		service := all[i.Name]
`,
		"./internal/app TestIssuers_NotOfRecordedConfiguration",
	},
	{
		"issuers: metadata has the address of an unchecked Host header", "gateway/auth/resource.go",
		`	return base
`, `	if base == "" {
		return "http://" + r.Host
	}
	return base
`,
		"./gateway TestResource_NoURLFromUncheckedHost",
	},
	{
		"tls: old versions are served", "gateway/tls.go",
		`MinVersion: tls.VersionTLS12,`, `MinVersion: tls.VersionTLS10,`,
		"./gateway TestTLS_RejectsOldVersionsAndPlainHTTP",
	},
	{
		"tls: its connections are all alike", "gateway/conn.go",
		`		conn = secure.NetConn()
`, `		_ = secure
`,
		"./gateway TestTLS_ConnectionsAreLimited",
	},
	{
		"tls: a broken certificate replaces the one before", "gateway/tls.go",
		`the one before stays", "error", err)
		}
		return
`, `the one before stays", "error", err)
		}
		loaded = new(tls.Certificate)
`,
		"./gateway TestTLS_ReloadsCertificate",
	},
	{
		"tls: a certificate that could not be read is not tried again", "gateway/tls.go",
		`	loaded, err := ReadCertificate(c.certFile, c.keyFile)
`, `	c.seen = files
	loaded, err := ReadCertificate(c.certFile, c.keyFile)
`,
		"./gateway TestTLS_TriesAgain",
	},
	{
		"a stream ends at a pause that was retried", "gateway/agent_request.go",
		`		return !ok || task.Status == org.Paused`, `		return !ok || task.Status != ""`,
		"./gateway TestAskAgent_StreamAfterRetry",
	},
	{
		"rates: all senders share one", "gateway/request_rate.go",
		`l.senders.Take(sender.Holder())`, `l.senders.Take(identity.Principal{})`,
		"./gateway TestRequestRates_LimitEachSender",
	},
	{
		"readyz: everybody reads names of modules", "gateway/ready.go",
		`if !monitors.Has(scope) {`, `if !monitors.Has(scope) && false {`,
		"./gateway TestReady_ListsReasons",
	},
	{
		"retention: the workspace of a task that may be retried is removed", "internal/app/retention.go",
		`task.Status != org.Done ||`, `task.Status == org.Running ||`,
		"./internal/app TestSweep_KeepsWhatTasksNeed",
	},
	{
		"retention: the recording of a running task is removed", "internal/app/retention.go",
		`file.ended = time.Time{}`, `file.ended = info.ModTime()`,
		"./internal/app TestSweep_KeepsWhatTasksNeed",
	},
	// Package modules: the life of an instance.
	{
		"a module is closed while calls hold it", "modules/instance.go",
		"func (i *instance) waitIdle(ctx context.Context) error {\n", "func (i *instance) waitIdle(ctx context.Context) error {\n	return nil\n",
		"./modules TestLoader_UnloadWaitsForCalls",
	},
	{
		"a module is closed while calls hold it after Unload gave up", "modules/stage.go",
		`		<-i.idle
`, ``,
		"./modules TestLoader_ClosesAfterLastCall",
	},
	{
		"an ended module grants a lease", "modules/instance.go",
		`	if i.ended {
		return false`, `	if i.ended && i.leases == 0 {
		return false`,
		"./modules TestLoader_UnloadWaitsForCalls",
	},
	{
		"any caller resumes a driven task", "runtime/driver.go",
		` || by.Kind != identity.Operator && !task.StartedBy(by)`, ``,
		"./runtime TestDriver_OnlyTheStarterHasIt",
	},
	{
		"a driver that was closed goes on", "runtime/tracker_driver.go",
		`t.driven[d.top] != d.mail`, `false`,
		"./runtime TestDriver_ClosedMakesNoCall",
	},
	{
		"steps of two drivers overlap", "runtime/tracker_driver.go",
		`t.active[d.top] != nil`, `false`,
		"./runtime TestDriver_StepsDoNotOverlap",
	},
	{
		"a driver that may still get a message stalls", "runtime/tracker_driver.go",
		`run == nil || !run.isQuiet()`, `run == nil`,
		"./runtime TestDriver_ReceiveNoticesStall",
	},
	{
		"a model answers for a driven root", "runtime/tracker_agent.go",
		` || run.driven && agent.Parent == ""`, ``,
		"./runtime TestDriver_MakesCallsAndEndsTheTask",
	},
	{
		"an approval is used with other secure arguments", "runtime/approval.go",
		`, need.Sender)`, `)`,
		"./runtime TestApproval_SecureArguments",
	},
	{
		"a user votes as operator and in a role", "runtime/approval_decide.go",
		`return v.User == string(by.User)`, `return v.User == string(by.User) && (v.Role == "") == (by.Kind == identity.Operator)`,
		"./runtime TestApproval_OperatorAndCallerOfOneName",
	},
	{
		"a user approves its own call as operator", "runtime/approval_decide.go",
		`a.Starter == string(by.User) || by.Kind`, `by.Kind != identity.Operator && a.Starter == string(by.User) || by.Kind`,
		"./runtime TestApproval_OperatorAndCallerOfOneName",
	},
	{
		"a person reads that an approval counts that does not", "runtime/approval_decide.go",
		`return rt.refusalOf(by, vote, a)`, `return rt.notNamedReason(vote, a)`,
		"./runtime TestApproval_OwnTask",
	},
	{
		"the depth of a caller's role does not bound its tasks", "org/line_limits.go",
		`if most := o.callerLimits(o.tasks[p.task]).Depth; most > 0 && levels > most {`, `if most := o.callerLimits(nil).Depth; most > 0 && levels > most {`,
		"./org TestLineLimits_OfCaller",
	},
	{
		"the role of tasks.as does not bound hires and time", "org/line_limits.go",
		`o.lineLimits(task.CallerRole).within(o.lineLimits(task.As))`, `o.lineLimits(task.CallerRole)`,
		"./org TestLineLimits_OfCaller",
	},
	{
		"the time of a task is warned of at each answer", "runtime/time_warning.go",
		` || run.spent.budgets.warnedTime == used.limitSeconds()`, ``,
		"./runtime TestTimeWarning_IsRecordedOnce",
	},
	{
		"a warning about time is forgotten in a restart", "runtime/budget_warning.go",
		`t.warnedTime = w.Limit`, `t.warnedTime = 0`,
		"./runtime TestTimeWarning_IsRecordedOnce",
	},
	{
		"people who edit arguments are asked for an approval", "gate/approve.go",
		`Edited: id}, checks)`, `Edited: id}, steps)`,
		"./runtime TestApproval_EditedForCaller",
	},
	{
		"an approver votes in a network with a limit", "runtime/approval_decide.go",
		`, ok && by.Within == ""`, `, ok`,
		"./runtime TestApproval_LimitedNetwork",
	},
	{
		"one person fills two places of a rule", "toolgroups/approval/approval.go",
		`return other.Role == s.Role`, `return false`,
		"./toolgroups/approval TestRule_Check",
	},
	{
		"sessions of a removed token come back", "gateway/auth/session.go",
		`ended := len(s.sessions) < before`, `ended := false && len(s.sessions) < before`,
		"./gateway/auth TestSessionStore_KeepsRemovalOfToken",
	},

	// Approvals.
	{
		"unless leaves out calls without the value", "toolgroups/bounds/tree.go",
		`if !p.allowMissing && n.required < 0 {`, `if false {`,
		"./toolgroups/approval TestRules_ForArguments",
	},
	{
		"a tool is shown whose bounds let nothing through", "toolgroups/bound.go",
		`if !bounds.Satisfiable(checks) {`, `if false {`,
		"./property_test TestVisible_EqualsCallableInEveryState",
	},
	{
		"the diff of a role change hides a bound that is removed", "org/diff.go",
		`Removed: rulesWithout(was[name], is[name])`, `Removed: rulesWithout(is[name], is[name])`,
		"./org TestDiff_NamesBounds",
	},
	{
		"a pause ends the requests of the role", "runtime/approval_record.go",
		`d.Rule() == toolgroups.NotGranted && d.Suspended() == "" {`, `!d.Allowed() {`,
		"./runtime TestApproval_ToolKept",
	},
	{
		"a task ends before the agent of a lost request goes on", "runtime/approval_record.go",
		`if run := rt.tracker.acquire(a.Task); run != nil {`, `if run := rt.tracker.acquire(a.Task); run != nil && false {`,
		"./runtime TestApproval_ToolLostKeepsTask",
	},
	{
		"requests whose tool was lost in a pause go on waiting", "runtime/person_pause.go",
		`lost = rt.voidLost(b, rt.lostInPause(id))`, ``,
		"./runtime TestApproval_ToolLostInPause",
	},
	{
		"requests of roles below go on waiting", "runtime/approval_record.go",
		`rt.approvals.callRequestsOf(rt.org.RolesConcerned(role))`, `rt.approvals.callRequestsOf([]identity.RoleID{role})`,
		"./runtime TestApproval_ToolLostBelow",
	},
	{
		"requests go on waiting when a role was deleted", "runtime/organization.go",
		`"deleted", &diff, changes)
		lost = rt.voidLost(b, callable)`, `"deleted", &diff, changes)
		lost = rt.voidLost(b, callable[:0])`,
		"./runtime TestApproval_ToolLost",
	},
	{
		"a path with the same beginning as another one is not checked", "toolgroups/bounds/tree.go",
		`			return i
		}
		last = i`, `			return i
		}
		last = -1`,
		"./toolgroups/bounds TestRead_AsReference",
	},
	{
		"a tool may read an argument that differs in case from the bounded one", "toolgroups/bounds/evaluate.go",
		`case similar:`, `case similar && value == "":`,
		"./toolgroups/bounds TestRead_AsReference",
	},
	{
		"an unless that may be missing leaves out calls", "toolgroups/approval/approval.go",
		`return r.Unless.Readable() && !r.Unless.AllowsMissing() &&`, `return r.Unless.Readable() &&`,
		"./toolgroups/approval TestRule_StoredUnless",
	},
	{
		"one rule that leaves out a call leaves it out for all", "gate/approve.go",
		`if len(rules) > 0 || a.Request.Edited != "" {`, `if len(rules) == len(all) || a.Request.Edited != "" {`,
		"./gate TestApprove_Unless",
	},
	{
		"edited arguments that no rule selects run without their approval", "gate/approve.go",
		`if len(rules) > 0 || a.Request.Edited != "" {`, `if len(rules) > 0 {`,
		"./gate TestApprove_EditedArgumentsUseTheirApproval",
	},
	{
		"edited arguments use the approval of another call with these arguments", "runtime/approval.go",
		`if need.Edited != "" {`, `if false {`,
		"./runtime TestApproval_EditedToArgumentsOfOtherCall",
	},
	{
		"the bytes of a body that was read are never given back", "gateway/request_body.go",
		`defer func() { body.release() }()`, `defer body.release()`,
		"./gateway TestRequest_BodiesShareBudgetOfSender",
	},
	{
		"edited arguments need the rules of the call alone", "runtime/approval_decide.go",
		`a.Rules.Add(edited)`, `a.Rules`,
		"./runtime TestApproval_EditedAboveUnlessByStarter",
	},
	{
		"a call that was started with an approval is repeated", "gate/approve.go",
		`if a.Request.Started {`, `if false {`,
		"./gate TestApprove_IsTheLastStep",
	},
	{
		"an approval is used twice", "runtime/approval_record.go",
		`			rt.approvals.remove(b, c.Approval())
			continue`, `			continue`,
		"./runtime TestApproval_Caller",
	},
	{
		"a pattern lets arguments differ that it does not name", "runtime/standing.go",
		`&& s.Pattern.RestDigest(call.Args) == s.Rest`, ``,
		"./runtime TestStanding_CoversCalls",
	},
	{
		"a use of a pattern is not counted", "runtime/standing.go",
		`if s.Left--; s.Pattern.Uses > 0`, `if s.Pattern.Uses > 0`,
		"./runtime TestStanding_CoversCalls",
	},
	{
		"one of several approvers sets a pattern", "runtime/standing.go",
		`return v.Pattern == nil || !v.Pattern.Equal(*pattern)`, `return false`,
		"./runtime TestStanding_TwoRoles",
	},
	{
		"a pattern outlives the rights of its approvers", "runtime/standing.go",
		`return s.Rules.Satisfied(rt.votesNow(s.Votes), s.Waited)`, `return true`,
		"./runtime TestStanding_Ends",
	},
	{
		"a pattern outlives a change of the rules", "runtime/standing.go",
		`s.Bound == rt.bindingHash(p, call, need) && s.Rules.Contains(need.Rules) &&`, ``,
		"./runtime TestStanding_Ends",
	},
	{
		"a pattern comes back with the tool", "runtime/approval_record.go",
		`	rt.voidLostStanding(b)
`, ``,
		"./runtime TestStanding_Ends",
	},
	{
		"a pattern is checked only before the commit", "runtime/approval_record.go",
		`!rt.covers(&s, p, c.Request.Call, need) {`, `false {`,
		"./runtime TestStanding_EndsAfterDecision",
	},
	{
		"a pattern outlives its task", "runtime/task.go",
		`		rt.voidStanding(b, "its task has ended", func(s *StandingApproval) bool { return s.Task == task.ID })
`, ``,
		"./runtime TestStanding_EndsWithTask",
	},
	{
		"a pattern outlives the retry of its task", "runtime/pause.go",
		`		rt.voidStanding(b, "its task was retried", func(s *StandingApproval) bool { return s.Task == id })
`, ``,
		"./runtime TestStanding_EndsWithRetry",
	},
	{
		"calls that were decided are listed for all", "runtime/approval_ended.go",
		`return e.voters[by.String()] || e.Request.isShownTo(vote, e.At)`, `_ = vote; return true`,
		"./gateway TestApprovals_ListsWhatBecameOfThem",
	},
	{
		"an approval outlives a change of the rules", "runtime/approval.go",
		`return a.Bound == rt.bindingHash(p, call, need) && a.Rules.Contains(need.Rules)`, `return true`,
		"./runtime TestApproval_ChangedMeanwhile",
	},
	{
		"a vote outlives its token", "runtime/approval.go",
		`case v.Credential != "" && !rt.isActiveCredential(v.Credential):`, `case false:`,
		"./runtime TestApproval_RemovedTokenBeforeLastVote",
	},
	{
		"a person approves the calls of a task that follows from its own", "runtime/approval.go",
		`starter = cmp.Or(task.Trigger.Starter, starter)`, `starter = cmp.Or(starter, task.Trigger.Starter)`,
		"./runtime TestApproval_TaskAfterTask",
	},
	{
		"a broker lets in the tool services of other brokers", "internal/app/brokers.go",
		`cmp.Or(s.Broker, embeddedBroker) != a.broker`, `cmp.Or(s.Broker, embeddedBroker) == ""`,
		"./internal/app TestToolService_HasAnAccountAtItsBrokerOnly",
	},
	{
		"the password of a broker is not redacted", "internal/app/secrets.go",
		`		list = append(list, string(b.Password))
`, "		_ = b\n",
		"./internal/app TestConfigSecrets_HasPasswordsOfBrokers",
	},
	{
		"a key in use is dropped before a key that was replaced", "internal/app/secrets.go",
		`return count[k.model] > 1`, `return count[k.model] > 0`,
		"./internal/app TestFetchedKeys_KeepTheKeysInUse",
	},
	{
		"a chain of tasks forgets who started it", "internal/app/trigger/due.go",
		`Starter: cmp.Or(task.Trigger.Starter, task.Caller)}`, `Starter: cmp.Or(task.Caller, task.Trigger.Starter)}`,
		"./internal/app TestFireDue_AfterRole",
	},
	{
		"a rule by the read part of a group misses the tools that come later", "org/scope.go",
		`group, _ := toolgroups.GroupID(id).WholeGroup()`, `group := toolgroups.GroupID(id)`,
		"./org TestApproval_ReadPartThatComesLater",
	},
	{
		"a rule by a group with hours is off while the group is closed", "toolgroups/approval.go",
		`members = s.membersOf(SetOfNames(r.Groups...))`, `members = s.bits(s.PinOwners(SetOfNames(r.Groups...)))`,
		"./toolgroups TestView_ApprovalRulesOfClosedGroup",
	},
	{
		"a role gains a group above its own without approval", "org/gain.go",
		`!s.CoversAlways(held, id)`, `!s.CoversAlways(held, id) && len(s.AllTools(id)) == 0`,
		"./runtime TestOversight_GroupsWithSameTools",
	},
	{
		"a role gains a part of a group that it has lost", "org/gain.go",
		`return owner == "" || owner != old.GroupOwners[id]`, `return owner == ""`,
		"./runtime TestOversight_GroupOfAnotherOwner",
	},
	{
		"a definition is accepted that comes after the check of its approval", "gateway/tool.go",
		`		return p, errcode.New(errcode.Conflict, "accept %s: its definition has changed meanwhile and has the digest %s; review it again", name, list[0].Digest)
`, `		return list[0], nil
`,
		"./gateway TestOversight_AcceptOfDefinitionToCome",
	},
	{
		"a token that is removed during a request cannot be revoked", "gateway/auth/credential.go",
		`return removedCredential
`, `return ""
`,
		"./gateway/auth TestCredential_OfTokens",
	},
	{
		"a vote is bound to the token that replaced that of its sender", "gateway/auth/credential.go",
		`; ok && stored.holder() == sender {`, `; ok {`,
		"./gateway/auth TestCredential_OfTokens",
	},
	{
		"an approval outlives the tokens of its approvers", "runtime/approval.go",
		`if a.Status == ApprovalGranted && !rt.isApproved(a) {`, `if false {`,
		"./runtime TestApproval_RemovedTokenBeforeUse",
	},
	{
		"the rules of the organization do not hold for roles", "org/approval.go",
		`rules := slices.Clone(organizationApproval(find))`, `var rules []approval.Rule`,
		"./org TestOrganizationApproval_HoldsForAllRoles",
	},
	{
		"a damaged record removes the rules of the organization", "org/root_approval.go",
		`				o.root.Approval = operatorRules()
			}
			return`, `				o.root.Approval = nil
			}
			return`,
		"./org TestOrganizationApproval_DamagedRecordAsksOperator",
	},
	{
		"a rule does not select tools that its group gets later", "org/scope.go",
		`for _, id := range r.Groups { // the tools`, `for _, id := range r.Groups[:0] { // the tools`,
		"./org TestApproval_GroupThatComesLater",
	},
	{
		"a caller lists the artifacts of another caller", "runtime/artifact_list.go",
		`|| !a.sameOwner(owner) || listKey(a) != key `, ``,
		"./runtime TestListArtifacts_RecordDecides",
	},
	{
		"agents list artifacts", "builtin/artifact.go",
		`case c.By.Kind != identity.Caller:`, `case c.By.Kind == identity.Caller && false:`,
		"./builtin TestGetArtifact_ListIsForCallers",
	},
	{
		"a lost call goes on for ever", "gateway/mcpserver/held_call.go",
		"h.timer = time.AfterFunc(h.window, h.cancel)", "h.timer = time.AfterFunc(h.window, func() {})",
		"./gateway/mcpserver TestResume_LostCallEnds",
	},
	{
		"a lost call does not count", "gateway/mcpserver/held_call.go",
		"	held.wait(until)\n", "	_ = until\n",
		"./gateway/mcpserver TestResume_LostCallCounts",
	},
	{
		"events of one sender take the room of others", "gateway/mcpserver/event_store.go",
		"min(s.maxOfOne, s.maxOfAll-s.total)", "s.maxOfAll",
		"./gateway/mcpserver TestEventStore_IsSharedFairly",
	},
	{
		"headers of arguments are not compared", "gateway/mcpserver/param_header.go",
		`!fitsHeader(argument) || !headerEquals(text, argument)`, `!fitsHeader(argument) || text == "\x00"`,
		"./gateway/mcpserver TestParamHeaders_Compared",
	},
	{
		"a header repeats a number in any form", "gateway/mcpserver/param_header.go",
		`return whole == strconv.FormatFloat(v.Num, 'f', -1, 64) && strings.Trim(fraction, "0") == ""`,
		`n, err := strconv.ParseFloat(text, 64); return err == nil && n == v.Num && (whole != "" || fraction != "")`,
		"./gateway/mcpserver TestParamHeaders_Compared",
	},
	{
		"arguments are copied to compare them with headers", "gateway/mcpserver/param_header.go",
		`v = memberOf(v, name)`, `v = v.Map()[name]`,
		"./gateway/mcpserver TestParamHeaders_ManyArguments",
	},
	{
		"a header tells that a tool exists", "gateway/mcpserver/param_header.go",
		` || !s.offers(sc, q.name) {`, ` {`,
		"./gateway/mcpserver TestParamHeaders_ForeignToolStaysUnknown",
	},
	{
		"matrix: a caller is shown all roles", "gateway/matrix.go",
		`return []org.Role{v.role}`, `return a.org().ListRoles()`,
		"./gateway TestMatrix_CallerSeesItsOwnRole",
	},
	{
		"matrix: a role is checked without the state", "gateway/matrix.go",
		`query := a.roleQuery(role.ID, state, nil)`, `query := a.roleQuery(role.ID, "", nil)`,
		"./gateway TestMatrix_AgreesWithCan",
	},
	{
		"matrix: an answer has any number of tools", "gateway/matrix.go",
		`if len(list) > maxMatrixTools {`, `if len(list) > 2*maxMatrixTools {`,
		"./gateway TestMatrix_HasPagesOfRolesAndTools",
	},
	{
		"matrix: an answer has any number of pairs", "gateway/matrix.go",
		`return min(limit, max(1, maxMatrixCells/max(1, tools)))`, `return limit`,
		"./gateway TestMatrixRows_BoundsPairs",
	},
	{
		"agents: a list by parent has the agents of the whole task", "gateway/agent.go",
		`return agent.Parent != parent.ID || status`, `return status`,
		"./gateway TestListAgents_ByParent",
	},
	{
		"spans: a page does not know what was before it", "gateway/span_list.go",
		`if after > task.FirstSeq {`, `if after > task.FirstSeq && false {`,
		"./gateway TestSpans_OfTask",
	},
	{
		"spans: a caller reads events unmasked", "gateway/span_list.go",
		`f.add(v.mask(e))`, `f.add(e)`,
		"./gateway TestSpans_OfCaller",
	},
	{
		"spans: a denied call goes on", "gateway/span.go",
		`if b.Decision == journal.Allowed {`, `if b.Decision != "" {`,
		"./gateway TestSpanFold_Spans",
	},
	{
		"spans: a message wakes an agent that works", "gateway/span.go",
		`!known || at.Before(asked)`, `true || !known || at.Before(asked)`,
		"./gateway TestSpanFold_Spans",
	},
	{
		"pause: a caller reads whether the organization is paused", "gateway/routes.go",
		`scopes: operators, answer: wire.ActivePauses{}`, `scopes: toolUsers, answer: wire.ActivePauses{}`,
		"./gateway TestPause_IsShown",
	},
	{
		"roles: the preview of a role of the configuration is made", "org/role.go",
		`diff, _ = o.replaceRole(old, revised, DryRun)`, `diff, _ = o.replaceRole(old, revised, Apply)`,
		"./org TestPreviewUpdate_ChangesNothing",
	},
	{
		"reach: a role that is changed is no target", "org/reach.go",
		`targets = []*Role{{ID: next.ID}}`, `targets = nil`,
		"./org TestReach_NamesRolesAndTools",
	},
	{
		"reach: agents without the tool spawn", "org/reach.go",
		`if !spawns {`, `if !spawns && false {`,
		"./org TestReach_AgreesWithSpawnableRoles",
	},
	{
		"reach: what may be granted does not count", "org/reach.go",
		`&& o.covers(g, role) {`, `{`,
		"./org TestReach_AgreesWithSpawnableRoles",
	},
	{
		"a cancelled call that the SDK carries out leaves its task", "gateway/mcpserver/carrier.go",
		`ctx, end = context.WithValue(ctx, callKey{}, call), call.end`, `end = call.end`,
		"./gateway/mcpserver TestAskOrganization_CancelledWhileAsked",
	},
	{
		"a question that is answered elsewhere stays with the client", "gateway/mcpserver/ask_relay.go",
		`if r.cancel != nil && !r.isOpen(r.current) {`, `if false {`,
		"./gateway/mcpserver TestAskOrganization_QuestionAnsweredElsewhere",
	},
	{
		"log messages of a server reach another owner", "modules/mcpclient/logging.go",
		`n.shared || `, ``,
		"./modules/mcpclient TestRelayLog",
	},
	{
		"log messages of a server reach one of several calls", "modules/mcpclient/logging.go",
		` || len(n.open) != 1 {`, ` {`,
		"./modules/mcpclient TestRelayLog",
	},
	{
		"a connection is renewed while it is new", "modules/mcpclient/elicit.go",
		`time.Since(n.since) >= n.renewAfter`, `time.Since(n.since) >= 0`,
		"./modules/mcpclient TestElicit_ConnectionIsRenewed",
	},
	{
		"a connection with an abandoned call serves questions again", "modules/mcpclient/elicit.go",
		`if len(n.open) != 1 || n.abandoned {`, `if len(n.open) != 1 {`,
		"./modules/mcpclient TestElicit_OfCancelledCall",
	},
	{
		"the requests of a batch are not counted", "gateway/mcpserver/scope.go",
		`if !q.batch || !ok {`, `if !ok || q.batch {`,
		"./gateway TestRequestRates_CountRequestsOfBatch",
	},
	{
		"a browser comes back from another issuer than it was sent to", "gateway/auth/signin.go",
		`case !a.cameBack(q):`, `case false:`,
		"./gateway TestSignIn_CodeOfOtherIssuer",
	},
	{
		"a body of any number of values is decoded", "internal/strictjson/check.go",
		`if err == nil && r.Values > MaxDecoded {`, `if err != nil && r.Values > MaxDecoded {`,
		"./internal/strictjson TestCheckDecodable",
	},
	{
		"an MCP server fills the log", "internal/failurelog/failurelog.go",
		`	if !ok {
		return nil
	}
	if leftOut > 0 {
		r =`, `	if !ok && b.limit == nil {
		return nil
	}
	if leftOut > 0 {
		r =`,
		"./internal/failurelog TestBound",
	},
	{
		"a receiver passes over calls if its position could not be read at first", "internal/app/notify/position.go",
		`return next[name], p.set(ctx, next)`, `return last, p.set(ctx, next)`,
		"./internal/app/notify TestEngine_FailedRead",
	},
	{
		"a position that could not be stored is never stored", "internal/app/notify/position.go",
		` && !p.unsaved {`, ` {`,
		"./internal/app/notify TestEngine_FailedWrite",
	},
	{
		"a notified change of tools is lost with the call that listed it", "modules/mcpclient/reconnect.go",
		`	if err == nil {
		n.listed`, `	if err == nil || ctx.Err() != nil {
		n.listed`,
		"./modules/mcpclient TestReconnector_ListsAgainAfterCancelledCall",
	},
	{
		"the end of an MCP client waits for a list of changed tools", "modules/mcpclient/reconnect.go",
		`	ctx, cancel := untilEnd(ctx, r.ctx)
	defer cancel()
	n := r.conn`, `	n := r.conn`,
		"./modules/mcpclient TestReconnector_CloseEndsListOfChanges",
	},
	{
		"a page of the port of HTTP is of the origin of HTTPS", "org/hosts/authority.go",
		`if a.Port == defaultPorts[scheme] {`, `if a.Port == "80" || a.Port == "443" {`,
		"./gateway/auth TestHostCheck_HostAndOrigin",
	},
	{
		"an agent is asked from a network that leaves no right to start tasks", "org/ask_settings.go",
		`o.mayStartTasksAs(o.config.Groups.CurrentSnapshot(), o.lookupRole, p)`, `o.mayStartTasks(o.config.Groups.CurrentSnapshot(), o.lookupRole, p.Role)`,
		"./org TestAsk_NetworkWithoutOrgManagement",
	},
	{
		"the tools of a caller are computed for each role that it may ask", "org/ask_settings.go",
		`!others && o.checkMayAskOwn(`, `!others && o.checkMayAsk(`,
		"./org TestAskableRoles_ComputesToolsOnce",
	},
	{
		"a question of many computes what the sender sees", "gateway/authzen.go",
		`a.answerQuestion(r, v, q)`, `a.answerQuestion(r, a.visibilityFor(r), q)`,
		"./gateway TestEvaluations_CostOfManyQuestions",
	},
	{
		"the questions of a request outlive its client", "gateway/authzen.go",
		`if err := context.Cause(r.Context()); err != nil {`, `if err := context.Cause(r.Context()); err != nil && false {`,
		"./gateway TestEvaluations_EndWithRequest",
	},
	{
		"a retry removes the item after the failure", "runtime/state.go",
		`if !failed || s.items[len(s.items)-1].Answer == nil {`, `if !failed {`,
		"./runtime TestRetry_KeepsMessageAfterAbortedTurn",
	},
	{
		"a retry ends with its request after the commit", "runtime/pause.go",
		`return rt.ResumeTask(rt.uncancelled, id)`, `return rt.ResumeTask(ctx, id)`,
		"./runtime TestRetry_GoesOnAfterRequestEnds",
	},
	{
		"an MCP server lists definitions without end", "modules/mcpclient/list.go",
		`if l.size > maxDefinitions {`, `if false {`,
		"./modules/mcpclient TestModule_BoundsLists",
	},
	{
		"cursors of an MCP server's list are kept without end", "modules/mcpclient/list.go",
		`	l.size += len(page.NextCursor)
`, ``,
		"./modules/mcpclient TestModule_BoundsLists",
	},
	{
		"the library keeps all pages of an MCP server's list", "modules/mcpclient/conn.go",
		`AddSendingMiddleware(limitPages, keepLast)`, `AddSendingMiddleware(keepLast)`,
		"./modules/mcpclient TestModule_BoundsLists",
	},
	{
		"a tool is offered although another page has its name", "modules/mcpclient/list.go",
		`count > 1 {`, `count > 2 {`,
		"./modules/mcpclient TestModule_ListsPages",
	},
	{
		"a caller's usage names the servers of tools that it does not see", "gateway/usage.go",
		`	q.ServerOf = a.visibilityFor(r).serverOf
`, ``,
		"./gateway TestUsage_HidesServersFromCallers",
	},
	{
		"an agent that was resumed does not keep its task before it is active", "runtime/person_pause.go",
		`				list = append(list, id)
			}
		}
	}
	return list`, `				delete(run.resting, id)
				list = append(list, id)
			}
		}
	}
	return list`,
		"./runtime TestTracker_ResumedAgentsKeepTask",
	},
	{
		"the library keeps each resource of an MCP server", "modules/mcpclient/cache.go",
		`p.URI = ""`, `p.URI += ""`,
		"./modules/mcpclient TestConn_KeepsNoResults",
	},
	{
		"the library keeps each page of resources of an MCP server", "modules/mcpclient/cache.go",
		`		case *sdk.ListResourcesParams:
			p.Cursor = ""
`, ``,
		"./modules/mcpclient TestConn_KeepsNoResults",
	},
	{
		"a page of resources of an MCP server is answered with another one", "modules/mcpclient/cache.go",
		`		case *sdk.ListResourcesResult:
			r.TTLMs = 0
`, ``,
		"./modules/mcpclient TestConn_KeepsNoResults",
	},
	{
		"a module registers changes without end", "modules/refresh.go",
		`if wait := l.changes.Take(i.name); wait > 0 {`, `if wait := l.changes.Take(i.name); wait > 0 && false {`,
		"./modules TestLoader_LimitsChanges",
	},
	{
		"those who wait for a module wait for one that changes too often", "modules/refresh.go",
		`	l.addBackground(-1)
	defer l.addBackground(1)
`, ``,
		"./modules TestLoader_LimitsChanges",
	},
	{
		"a line for an earlier question answers the next one", "cmd/question.go",
		`if text, late := lines.Late(); late {`, `if text, late := "", false; late {`,
		"./cmd TestQuestioner_LateLine",
	},
	{
		"a line that was typed before a question answers it", "cmd/chat.go",
		`case line, ok := <-t.lines:
			if ok {
				t.early`, `case line, ok := <-make(chan inputLine):
			if ok {
				t.early`,
		"./cmd TestChat_LineBeforeQuestion",
	},
	{
		"two questions are shown at once", "cmd/terminal.go",
		`	t.asking.Lock()
`, `	t.asking.TryLock()
	defer t.asking.Unlock()
`,
		"./cmd TestTerminal_OneQuestionAtATime",
	},
	{
		"a question is written over what is drawn", "cmd/terminal.go",
		`t.held, t.area = true, nil`, `t.held = true`,
		"./cmd TestTerminal_QuestionLeavesArea",
	},
	{
		"a call is made with the arguments of an approval that are not on disk yet", "runtime/approval_decide.go",
		`args.Asked != nil && (!a.Edited || approval.DigestJSON(args.Edited) == a.Digest) {`, `args.Asked != nil {`,
		"./runtime TestApproval_UsedBeforeItIsOnDisk",
	},
	{
		"what releases a task releases the task that was resumed since", "runtime/tracker.go",
		`if t.tasks[run.id] != run { // a retry`, `if t.tasks[run.id] == nil { // a retry`,
		"./runtime TestTracker_ReleaseOfOtherRun",
	},
	{
		"the end of a task ends the task that was retried since", "runtime/tracker.go",
		`if run == nil || t.tasks[id] != run {`, `if run = t.tasks[id]; run == nil {`,
		"./runtime TestTracker_ReleaseOfOtherRun",
	},
	{
		"a second cancellation ends the task that was retried since", "runtime/task.go",
		`	rt.tracker.end(task.ID, run, task)
`, `	run = rt.tracker.run(task.ID)
	rt.tracker.end(task.ID, run, task)
`,
		"./runtime TestRetry_BeforeSecondCancelReturns",
	},
	{
		"a task is retried although an agent of it has not stopped", "runtime/pause.go",
		`(now.Status != task.Status || now.Status != org.Running && rt.tracker.isTracked(id)) {`, `now.Status != task.Status && false {`,
		"./runtime TestRetry_TaskEndsMeanwhile",
	},
	{
		"a task that has ended is resumed", "runtime/task.go",
		`!ok || task.Status != org.Running { // also`, `!ok { // also`,
		"./runtime TestResume_TaskEndsMeanwhile",
	},
	{
		"a task that was taken up ends with the request that resumed it", "runtime/task.go",
		`	err := rt.loadTurns(rt.uncancelled, id)
	if err == nil {
		err = rt.wakeTask(rt.uncancelled, id)`, `	err := rt.loadTurns(ctx, id)
	if err == nil && ctx.Err() == nil {
		err = rt.wakeTask(ctx, id)
	}
	if err == nil {
		err = ctx.Err()`,
		"./runtime TestResume_GoesOnAfterRequestEnds",
	},
	{
		"a delayed message is lost when its task is cancelled", "runtime/schedule.go",
		`!ok || task.Status == org.Done {`, `!ok || task.Status != org.Running {`,
		"./runtime TestRetry_DelayedMessageDueAtCancel",
	},
	{
		"a driver waits for people who decide about its own call", "runtime/tracker.go",
		`driven = org.TopAgentID(run.id)`, `driven = ""`,
		"./runtime TestDriver_ReceiveWhileOwnCallWaits",
	},
	{
		"a call that does not start uses a standing approval", "runtime/agent.go",
		`			a.rt.standing.releaseAll(a.agent.ID)
`, ``,
		"./runtime TestStanding_AbortedTurnUsesNothing",
	},
	{
		"the names of a refused task are counted", "org/task.go",
		`agent.Role, agent.Root, agent.Name = role.ID, false, ""`, `agent.Role, agent.Root, agent.Name = role.ID, false, o.newAgentName(s.Caller, task.ID, role.Name)`,
		"./org TestTaskLimits_RefusedTaskLeavesNothing",
	},
	{
		"put_artifact stores what a bound of read_file forbids", "gate/approve.go",
		`	if err := g.checkBounds(ctx, a); err != nil {
		return err
	}
	if g.setNeed`, `	if g.setNeed`,
		"./gate TestCheckCall",
	},
	{
		"put_artifact stores what read_file needs an approval for", "gate/approve.go",
		`if g.setNeed(ctx, a); a.need != nil {`, `if false {`,
		"./gate TestCheckCall",
	},
	{
		"put_artifact asks for another path than it reads", "builtin/artifact.go",
		`"read_file", map[string]string{"path": name}`, `"read_file", map[string]string{}`,
		"./builtin TestArtifacts_NeedTheOtherToolForItsData",
	},
	{
		"files that are stored as artifacts are in memory without a limit", "builtin/artifact.go",
		`if in.Path != "" { // the content`, `if false { // the content`,
		"./builtin TestReads_OwnersShareSlots",
	},
	{
		"artifacts that are written as files are in memory without a limit", "builtin/workspace_write.go",
		`if in.Artifact != "" { // the content`, `if false { // the content`,
		"./builtin TestReads_OwnersShareSlots",
	},
	{
		"a child that a module withdraws stays", "modules/refresh.go",
		`slices.Equal(a.Children, b.Children) && `, ``,
		"./modules TestLoader_RefreshWithdrawsChild",
	},
	{
		"a chunk of the log has 256 events of any size", "persist/read.go",
		` || c.decoded >= chunkBytes`, ``,
		"./persist TestRead_LargeEventsInParts",
	},
	{
		"a chunk of the log looks at 256 events of any size", "persist/read.go",
		` || c.scanned >= scanBytes`, ``,
		"./persist TestRead_LargeEventsInParts",
	},
	{
		"a transaction reads 256 events of a stream of any size", "persist/read.go",
		`if size += len(value); size >= chunkBytes {`, `if size += len(value); size < 0 {`,
		"./persist TestRead_LargeEventsInParts",
	},
	{
		"a client that does not read blocks the handler", "gateway/gateway.go",
		`		w = mcpserver.WithWriteTimeout(w, 0)
`, ``,
		"./gateway TestHandler_DropsClientThatDoesNotRead",
	},
	{
		"checks of the server count as requests", "gateway/mcp.go",
		`return a.authenticate.Revalidate(admitted) == nil })`, `return a.authenticate.Revalidate(admitted) == nil && a.rates.count(admitted) == nil })`,
		"./gateway TestRequestRates_CountNoChecks",
	},
	{
		"messages on a connection with lines are not counted", "gateway/mcpserver/scope.go",
		`	if sc.count == nil {
		return nil
	}`, `	if sc.count != nil {
		return nil
	}`,
		"./gateway TestRequestRates_CountMessagesOfConnection",
	},
	{
		"progress goes on after the token was removed", "gateway/mcpserver/ask.go",
		`if err != nil || !sc.stillAuthorized() {`, `if err != nil {`,
		"./gateway TestMCP_AskEndsWithToken",
	},
	{
		"a slow batch keeps the turn of its list", "gateway/mcpserver/http.go",
		`maxListTurn = 2 * time.Second`, `maxListTurn = 2 * time.Hour`,
		"./gateway/mcpserver TestHTTP_SlowBatchEndsTurn",
	},
	{
		"the turn of a list ends before the list is encoded", "gateway/mcpserver/idwriter.go",
		`if w.encoded != nil && bytes.IndexByte(text, '{') >= 0 {`, `if w.encoded != nil {`,
		"./gateway/mcpserver TestHTTP_ListsKeepTurnUntilEncoded",
	},
	{
		"an id in progress takes a call that does not end", "gateway/mcpserver/lines.go",
		`case l.calls[id] != nil:`, `case false:`,
		"./gateway/mcpserver TestServeStdio_RejectsIDInProgress",
	},
	{
		"a client that disconnects causes a line of the log", "gateway/event.go",
		`if s.r.Context().Err() == nil && !errors.Is(err, context.Canceled) {`, `if true || errors.Is(err, context.Canceled) {`,
		"./gateway TestEvents_DisconnectIsNotLogged",
	},
	{
		"an end that is seen late fires nothing", "internal/app/trigger/due.go",
		`			if observed[task.ID] {
				seen = e.seenBefore[r.Name]
			}
`, ``,
		"./internal/app TestFireDue_AfterEndsInAnyOrder",
	},
	{
		"suspended triggers are forgotten", "internal/app/trigger/engine.go",
		`	if e.suspended {
		return nil, nil, false, false
	}
`, ``,
		"./internal/app TestFireDue_Suspended",
	},
	{
		"a page sends to a host that was revoked", "modules/chrome/proxy.go",
		`func (c *limitedConn) Write(b []byte) (int, error) {
	if denied := c.recheck(); denied != nil {
		return 0, denied
	}
`, `func (c *limitedConn) Write(b []byte) (int, error) {
`,
		"./modules/chrome TestProxy_EndsOpenConnectionsOfDeniedHost",
	},
	{
		"RabbitMQ sends all responses at once", "modules/toolservice/rabbitmq/session.go",
		`s.channel.Qos(maxResponses, 0, false)`, `s.channel.Qos(0, 0, false)`,
		"./modules/toolservice/rabbitmq TestLink_LimitsUnreadResponses",
	},
	{
		"a changed broker fights for the port of the old one", "internal/app/brokers.go",
		`if b.takesPort(cfg, c) {`, `if false {`,
		"./internal/app TestToolService_RejectedConfigurations",
	},
	{
		"an unset variable removes the flags of a tool", "cmd/flags.go",
		`case isList && len(list.GetSlice()) == 0 && `, `case isList && len(list.GetSlice()) < 0 && `,
		"./cmd TestRun_RejectsEmptyValues",
	},
	{
		"a standing approval whose time is over takes room", "runtime/approval_decide.go",
		`		rt.expireStanding(b) // they take no room for another
`, ``,
		"./runtime TestStanding_TimeOverMakesRoom",
	},
	{
		"a character without a glyph is shown in arguments", "internal/textutil/unprintable.go",
		` && !hasNoGlyph(r)`, ` && (true || !hasNoGlyph(r))`,
		"./internal/textutil TestEscapeUnprintable",
	},
}
