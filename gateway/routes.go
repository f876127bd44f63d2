package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// routes returns the routes of the whole API.
func (a *api) routes() []route {
	return slices.Concat(
		tagged("tasks", a.taskRoutes()), tagged("approvals", a.approvalRoutes()), tagged("events", a.eventRoutes()), tagged("agents", a.agentRoutes()), tagged("roles", a.roleRoutes()),
		tagged("tools", a.toolRoutes()), tagged("artifacts", a.artifactRoutes()), tagged("process", slices.Concat(a.processRoutes(), a.resourceRoutes())),
		tagged("toolbox", a.toolboxRoutes()), tagged("mcp", slices.Concat(a.mcpRoutes(), a.loginRoutes())), tagged("openai", a.openaiRoutes()),
		tagged("authzen", a.authzenRoutes()), tagged("hooks", a.hookRoutes()), tagged("sessions", a.sessionRoutes()),
	)
}

// tagged returns the routes with a tag.
func tagged(tag string, list []route) []route {
	for i := range list {
		list[i].tag = tag
	}
	return list
}

// rootPath is the pattern of /. Browsers are answered with the web page, see package ui.
const rootPath = "/{$}"

// processRoutes are about the process that serves the organization.
func (a *api) processRoutes() []route {
	return []route{
		{
			method: "GET", path: rootPath, id: "listRoutes", summary: "List the routes that the sender may use",
			scopes: toolUsers, answer: wire.Index{}, serve: jsonEndpoint(a.index),
		}, {
			method: "GET", path: "/healthz", id: "checkHealth", summary: "Report that the process is running",
			scopes: public, answer: wire.Health{}, serve: jsonEndpoint(a.health),
		}, {
			method: "GET", path: "/readyz", id: "checkReady", summary: "Report whether the process can take work",
			params: []parameter{{name: "exclude", repeats: true, about: "a reason of not_ready that does not count"}},
			scopes: public, answer: wire.Health{}, errors: []errcode.Code{wire.NotReady}, serve: jsonEndpoint(a.ready),
		}, {
			method: "GET", path: "/metrics", id: "showMetrics", summary: "Show the metrics in the text format of Prometheus",
			scopes: monitors, media: []media{{name: "text/plain"}}, errors: []errcode.Code{wire.RouteNotFound}, serve: a.showMetrics,
		}, {
			method: "GET", path: "/api/openapi.json", id: "showDocument", summary: "Show this document",
			scopes: toolUsers, answer: map[string]any{}, serve: showDocument,
		}, {
			method: "GET", path: "/api/v1/config", id: "showConfig", summary: "Show the digest of the active configuration",
			scopes: operators, answer: wire.Configuration{}, serve: jsonEndpoint(a.showConfig),
		}, {
			method: "GET", path: "/api/v1/config/items", id: "listConfigItems", summary: "List the applied configuration items, sorted by kind and name",
			params: paged(), scopes: operators, answer: wire.Page[wire.ConfigItem]{}, serve: jsonEndpoint(a.listItems),
		}, {
			method: "PUT", path: itemPath, id: "applyConfigItem", summary: "Apply a configuration item; one of the same kind and name is replaced",
			scopes: operators, body: wire.ConfigItemRequest{}, answer: wire.ConfigItem{},
			errors: append([]errcode.Code{errcode.InvalidConfig, errcode.Conflict}, heldErrors...), serve: jsonEndpoint(a.applyItem),
		}, {
			method: "DELETE", path: itemPath, id: "deleteConfigItem", summary: "Delete an applied configuration item",
			scopes: operators, answer: wire.ConfigItem{}, errors: append([]errcode.Code{errcode.ItemNotFound, errcode.InvalidConfig, errcode.Conflict}, heldErrors...), serve: jsonEndpoint(a.deleteItem),
		}, {
			method: "GET", path: "/api/v1/usage", id: "showUsage", summary: "Count calls, tokens and costs in the record",
			params: []parameter{
				{name: "by", about: "what the rows are grouped by: some of caller, role, server and tool, separated by commas", repeats: true},
				{name: "from", about: "counts events from this time: RFC 3339, or a duration before now such as 24h"},
				{name: "to", about: "counts events before this time"},
			},
			scopes: toolUsers, answer: wire.UsageReport{}, serve: a.listEndpoint(a.showUsage),
		}, {
			method: "GET", path: "/api/v1/tokens", id: "listTokens", summary: "List the tokens of the configuration, sorted by name",
			params: paged(), scopes: operators, answer: wire.Page[wire.Token]{}, serve: jsonEndpoint(a.listTokens),
		}, {
			method: "GET", path: "/api/v1/backup", id: "readBackup", summary: "Read a backup of the organization's file; only on this machine, through the socket of the data directory",
			scopes: operators, media: []media{{name: "application/octet-stream"}}, errors: []errcode.Code{wire.RouteNotFound}, serve: a.backup,
		},
	}
}

// askErrors are the codes of requests to an agent.
var askErrors = []errcode.Code{errcode.RoleNotFound, errcode.GroupNotFound, errcode.NoToolsAvailable, errcode.Conflict, errcode.StorageLow, errcode.LimitExceeded}

// pauseErrors are the codes of pauses.
var pauseErrors = []errcode.Code{errcode.TaskNotFound, errcode.RoleNotFound, errcode.Conflict}

// taskRoutes are about tasks. A caller sees those that it has started.
func (a *api) taskRoutes() []route {
	unknown := []errcode.Code{errcode.TaskNotFound}
	return []route{
		{
			method: "GET", path: "/api/v1/tasks", id: "listTasks", summary: "List tasks, newest first",
			params: paged(statusQuery(taskStatuses), sinceQuery, parameter{name: "agents", kind: "boolean", about: "lists the agents of each task with it"}),
			scopes: toolUsers, answer: wire.Page[wire.Task]{}, serve: a.listEndpoint(a.listTasks),
		}, {
			method: "POST", path: "/api/v1/tasks", id: "startTask", summary: "Start a task; the answer comes when it is recorded",
			params: []parameter{idempotencyKey}, scopes: toolUsers, body: wire.TaskRequest{}, answer: wire.Task{}, status: http.StatusAccepted,
			errors: []errcode.Code{errcode.RoleNotFound, errcode.GroupNotFound, errcode.NoToolsAvailable, errcode.Conflict, errcode.WorkspaceNotBound, errcode.StorageLow, errcode.LimitExceeded},
			serve:  jsonEndpoint(a.startTask),
		}, {
			method: "POST", path: "/api/v1/agent", id: "askAgent", summary: "Ask an agent in a role, and wait for its answer",
			params: []parameter{idempotencyKey}, scopes: toolUsers, body: wire.AgentRequest{}, answer: wire.AgentAnswer{}, media: answerStream,
			errors: askErrors, serve: a.askAgent,
		}, {
			method: "POST", path: "/api/v1/flow/{flow}/service/agent", id: "askFlowAgent", summary: "Ask an agent as TrustGraph's client does; the flow is its role, or default for that of the sender",
			params: []parameter{idempotencyKey}, scopes: toolUsers, body: wire.FlowAgentRequest{}, answer: wire.AgentAnswer{}, media: answerStream,
			errors: askErrors, serve: a.askFlowAgent,
		}, {
			method: "GET", path: "/api/v1/tasks/{id}", id: "findTask", summary: "Show one task with its result",
			params: []parameter{{name: "wait", about: "waits so long for the end of the task, such as 30s; at most 10m"}},
			scopes: toolUsers, answer: wire.Task{}, errors: unknown, serve: jsonEndpoint(a.showTask),
		}, {
			method: "GET", path: "/api/v1/tasks/{id}/events", id: "followTask", summary: "Stream the events of a task, oldest first, until its result",
			params: []parameter{followQuery, {name: "deltas", kind: "boolean", about: "with follow: adds the text that models are generating"}, afterQuery, lastEventID},
			scopes: toolUsers, media: eventStreams, errors: unknown, serve: a.taskEvents,
		}, {
			method: "GET", path: "/api/v1/tasks/{id}/spans", id: "listSpans", summary: "List what took time in a task: answers of models, calls and waits for approval, oldest first",
			params: paged(), scopes: toolUsers, answer: wire.Page[wire.Span]{}, errors: unknown, serve: a.listEndpoint(a.listSpans),
		}, {
			method: "POST", path: "/api/v1/tasks/{id}/retry", id: "retryTask", summary: "Let a paused, failed or cancelled task go on",
			scopes: toolUsers, body: wire.RetryRequest{}, optional: true, answer: wire.Task{}, status: http.StatusAccepted,
			errors: []errcode.Code{errcode.TaskNotFound, errcode.Conflict, errcode.StorageLow}, serve: a.countedEndpoint(a.retryTask),
		}, {
			method: "POST", path: "/api/v1/tasks/{id}/cancel", id: "cancelTask", summary: "Cancel a task; one that has ended is not changed",
			params: []parameter{reasonQuery}, scopes: toolUsers, answer: wire.Task{}, errors: unknown, serve: jsonEndpoint(a.cancelTask),
		}, {
			method: "GET", path: "/api/v1/pause", id: "findPause", summary: "Show the pauses of the organization and of roles, by whom and why",
			scopes: operators, answer: wire.ActivePauses{}, serve: jsonEndpoint(a.showPauses),
		}, {
			method: "POST", path: "/api/v1/pause", id: "pause", summary: "Pause a task, a role or the organization; no call of it starts after the answer",
			scopes: toolUsers, body: wire.PauseRequest{}, answer: wire.PauseChange{}, errors: pauseErrors, serve: jsonEndpoint(a.pause),
		}, {
			method: "POST", path: "/api/v1/resume", id: "resume", summary: "Let go on what was paused",
			scopes: toolUsers, body: wire.PauseRequest{}, answer: wire.PauseChange{}, errors: pauseErrors, serve: jsonEndpoint(a.resume),
		}, {
			method: "GET", path: "/api/v1/tasks/{id}/questions", id: "listToolQuestions", summary: "List the questions of the tools of a task that wait for an answer, oldest first",
			scopes: toolUsers, answer: wire.ToolQuestions{}, errors: unknown, serve: jsonEndpoint(a.listToolQuestions),
		}, {
			method: "POST", path: "/api/v1/tasks/{id}/questions/{question}", id: "answerToolQuestion", summary: "Answer a question of a tool, once; the answer lists those that still wait",
			scopes: toolUsers, body: wire.ToolAnswer{}, answer: wire.ToolQuestions{},
			errors: []errcode.Code{errcode.TaskNotFound, errcode.QuestionNotFound}, serve: jsonEndpoint(a.answerToolQuestion),
		},
	}
}

// approvalRoutes are about calls that wait for people. A caller sees those that it may approve.
func (a *api) approvalRoutes() []route {
	unknown := []errcode.Code{errcode.ApprovalNotFound}
	return []route{
		{
			method: "GET", path: "/api/v1/approvals", id: "listApprovals", summary: "List the calls and operations that wait for the sender's approval, oldest first",
			params: paged(), scopes: toolUsers, answer: wire.Page[wire.Approval]{}, serve: a.listEndpoint(a.listApprovals),
		}, {
			method: "POST", path: "/api/v1/approvals", id: "decideApprovals", summary: "Approve or deny several calls in one commit, with an outcome each",
			scopes: toolUsers, body: wire.ApprovalDecisions{}, answer: wire.ApprovalOutcomes{}, serve: jsonEndpoint(a.decideApprovals),
		}, {
			method: "GET", path: "/api/v1/approval-changes", id: "followApprovals", summary: "Stream the calls that wait for the sender's approval, and with follow what changes",
			params: []parameter{followQuery}, scopes: toolUsers, media: changeStreams, serve: a.followApprovals,
		}, {
			method: "GET", path: "/api/v1/approvals/{id}", id: "findApproval", summary: "Show a call that waits, with its arguments",
			scopes: toolUsers, answer: wire.Approval{}, errors: unknown, serve: jsonEndpoint(a.showApproval),
		}, {
			method: "POST", path: "/api/v1/approvals/{id}", id: "decideApproval", summary: "Approve or deny a call that waits",
			scopes: toolUsers, body: wire.ApprovalDecision{}, answer: wire.ApprovalOutcome{}, errors: slices.Concat(unknown, []errcode.Code{errcode.Conflict}, heldErrors), serve: jsonEndpoint(a.decideApproval),
		}, {
			method: "GET", path: "/api/v1/decided-approvals", id: "listDecidedApprovals", summary: "List the last calls and operations that were decided, and what became of them, newest first",
			scopes: toolUsers, answer: wire.DecidedApprovals{}, serve: a.listEndpoint(a.listDecidedApprovals),
		}, {
			method: "GET", path: "/api/v1/standing-approvals", id: "listStandingApprovals", summary: "List the patterns by which further calls of a task are approved, oldest first",
			params: paged(), scopes: toolUsers, answer: wire.Page[wire.StandingApproval]{}, serve: a.listEndpoint(a.listStanding),
		}, {
			method: "POST", path: "/api/v1/standing-approvals/{id}/revoke", id: "revokeStandingApproval", summary: "End a standing approval: no call that starts later uses it",
			scopes: toolUsers, body: wire.RevokeRequest{}, answer: wire.Revoked{}, errors: unknown, serve: jsonEndpoint(a.revokeStanding),
		},
	}
}

// eventRoutes are about the events of the organization.
func (a *api) eventRoutes() []route {
	return []route{{
		method: "GET", path: "/api/v1/events", id: "listEvents", summary: "List events, newest first, or stream them, oldest first",
		params: slices.Concat(paged(eventParams()...), []parameter{followQuery, lastEventID}), scopes: toolUsers,
		answer: wire.Events{}, media: eventStreams, errors: []errcode.Code{errcode.TaskNotFound, errcode.AgentNotFound, errcode.Conflict}, serve: a.listEvents,
	}}
}

// heldErrors are the codes of operations that may wait for other people.
var heldErrors = []errcode.Code{errcode.ApprovalRequired, errcode.ApprovalDenied, errcode.LimitExceeded}

// roleRoutes are about roles. A role is named by its id or its name.
func (a *api) roleRoutes() []route {
	unknown := []errcode.Code{errcode.RoleNotFound, errcode.Conflict}
	invalid := append([]errcode.Code{errcode.InvalidRole, errcode.GroupNotFound, errcode.RoleExists}, heldErrors...)
	return []route{
		{
			method: "GET", path: "/api/v1/roles", id: "listRoles", summary: "List the active roles, sorted by name",
			params: paged(), scopes: operators, answer: wire.Page[wire.Role]{}, serve: jsonEndpoint(a.listRoles),
		}, {
			method: "GET", path: "/api/v1/role-joins", id: "listJoins", summary: "List the roles whose tools have all flags together, sorted by name",
			params: paged(), scopes: operators, answer: wire.Page[wire.RoleJoins]{}, serve: jsonEndpoint(a.listJoins),
		}, {
			method: "POST", path: "/api/v1/roles", id: "createRole", summary: "Create a role",
			params: []parameter{dryRunQuery}, scopes: operators, body: wire.RoleRequest{}, answer: wire.Role{}, status: http.StatusCreated,
			errors: invalid, serve: jsonEndpoint(a.createRole),
		}, {
			method: "GET", path: "/api/v1/roles/{id}", id: "findRole", summary: "Show one role with its tools",
			scopes: operators, answer: wire.Role{}, errors: unknown, serve: jsonEndpoint(a.showRole),
		}, {
			method: "PATCH", path: "/api/v1/roles/{id}", id: "updateRole", summary: "Change a role; a field that is null gets its default",
			params: []parameter{dryRunQuery, ifMatch}, scopes: operators, body: wire.RoleRequest{}, answer: wire.RoleChange{},
			errors: slices.Concat(unknown, invalid), serve: jsonEndpoint(a.updateRole),
		}, {
			method: "GET", path: "/api/v1/roles/{id}/lint", id: "lintRole", summary: "Recommend the smallest groups that would have allowed what the record shows",
			params: []parameter{
				{name: "from", about: "reads events from this time: RFC 3339, or a duration before now such as 720h"},
				{name: "to", about: "reads events before this time"},
			},
			scopes: operators, answer: wire.RoleLint{}, errors: slices.Concat(unknown, []errcode.Code{errcode.InvalidRole}), serve: a.listEndpoint(a.lintRole),
		}, {
			method: "DELETE", path: "/api/v1/roles/{id}", id: "deleteRole", summary: "Delete a role",
			params: []parameter{dryRunQuery}, scopes: operators, answer: wire.RoleChange{}, errors: unknown, serve: jsonEndpoint(a.deleteRole),
		},
	}
}

// agentRoutes are about agents. The operator names an agent by its id, or by its role if that
// has only one.
func (a *api) agentRoutes() []route {
	unknown := []errcode.Code{errcode.AgentNotFound, errcode.Conflict}
	return []route{
		{
			method: "GET", path: "/api/v1/agents", id: "listAgents", summary: "List agents, oldest first, including terminated ones",
			params: paged(taskQuery, parentQuery, statusQuery(agentStatuses)), scopes: operators, answer: wire.Page[wire.Agent]{},
			errors: unknown, serve: jsonEndpoint(a.listAgents),
		}, {
			method: "GET", path: "/api/v1/agents/{id}", id: "findAgent", summary: "Show one agent with its brief and the tools that it may call",
			scopes: operators, answer: wire.AgentDetail{}, errors: unknown, serve: jsonEndpoint(a.showAgent),
		}, {
			method: "GET", path: "/api/v1/agents/{id}/tools", id: "listAgentTools", summary: "List the tools that an agent may call now, sorted by name",
			params: paged(parameter{name: "format", allowed: []string{formatFunctions}, about: "the shape of model APIs, with the schemas that models read"}),
			scopes: toolUsers, answer: answerOneOf{wire.Page[wire.Tool]{}, wire.Page[tool.FunctionTool]{}}, errors: unknown, serve: a.listEndpoint(a.agentTools),
		}, {
			method: "DELETE", path: "/api/v1/agents/{id}", id: "terminateAgent", summary: "Terminate an agent and those that it has hired",
			params: []parameter{reasonQuery}, scopes: operators, answer: wire.Agent{}, errors: append(slices.Clone(unknown), errcode.NotChildAgent), serve: jsonEndpoint(a.terminateAgent),
		}, {
			method: "GET", path: "/api/v1/agents/{id}/journal", id: "readJournal", summary: "List the events of an agent's journal, oldest first",
			params: paged(), scopes: operators, answer: wire.Page[journal.Event]{}, errors: unknown, serve: jsonEndpoint(a.agentJournal),
		}, {
			method: "POST", path: "/api/v1/agents/{id}/messages", id: "sendMessage", summary: "Send a message to an agent",
			scopes: operators, body: wire.MessageRequest{}, answer: wire.SentMessage{}, status: http.StatusAccepted,
			errors: append(slices.Clone(unknown), errcode.StorageLow), serve: jsonEndpoint(a.sendMessage),
		}, {
			method: "POST", path: "/api/v1/agents/{id}/abort", id: "abortTurn", summary: "Abort the current turn of an agent",
			scopes: toolUsers, answer: wire.Agent{}, status: http.StatusAccepted, errors: unknown, serve: jsonEndpoint(a.abortTurn),
		},
	}
}

// toolRoutes are about tools, and about who may call them. A caller sees what its role has.
func (a *api) toolRoutes() []route {
	answers := answerOneOf{wire.Verdict{}, wire.Verdicts{}, wire.Holders{}, org.ToolDiff{}}
	return []route{
		{
			method: "GET", path: "/api/v1/tool-groups", id: "listGroups", summary: "List the tool groups, sorted by id",
			params: paged(), scopes: toolUsers, answer: wire.Page[toolgroups.GroupInfo]{}, serve: a.listEndpoint(a.listGroups),
		}, {
			method: "GET", path: "/api/v1/tool-groups/{id}", id: "findGroup", summary: "Show one tool group",
			scopes: toolUsers, answer: toolgroups.GroupInfo{}, errors: []errcode.Code{errcode.GroupNotFound}, serve: a.listEndpoint(a.showGroup),
		}, {
			method: "GET", path: "/api/v1/tools", id: "listTools", summary: "List the tools, sorted by name",
			params: paged(parameter{name: "group", about: "only the tools of this group"}), scopes: toolUsers,
			answer: wire.Page[wire.Tool]{}, errors: []errcode.Code{errcode.GroupNotFound}, serve: a.listEndpoint(a.listTools),
		}, {
			method: "GET", path: "/api/v1/tools/{name}", id: "findTool", summary: "Show one tool",
			scopes: toolUsers, answer: wire.Tool{}, errors: []errcode.Code{errcode.UnknownTool}, serve: a.listEndpoint(a.showTool),
		}, {
			method: "POST", path: "/api/v1/tools/{name}/accept", id: "acceptTool", summary: "Accept the pending definition of a tool",
			scopes: operators, body: wire.AcceptRequest{}, answer: wire.QuarantinedTool{},
			errors: append([]errcode.Code{errcode.UnknownTool, errcode.Conflict}, heldErrors...), serve: jsonEndpoint(a.acceptTool),
		}, {
			method: "POST", path: "/api/v1/tools/{name}/call", id: "callTool", summary: "Call a tool in a role; a denial and a failure are outcomes",
			scopes: operators, body: wire.CallRequest{}, answer: wire.CallResult{},
			errors: []errcode.Code{errcode.RoleNotFound, errcode.StorageLow}, serve: jsonEndpoint(a.callTool),
		}, {
			method: "GET", path: "/api/v1/quarantine", id: "listQuarantine", summary: "List the tool definitions that wait for acceptance, sorted by name",
			params: paged(), scopes: operators, answer: wire.Page[wire.QuarantinedTool]{}, serve: jsonEndpoint(a.listQuarantine),
		}, {
			method: "GET", path: "/api/v1/matrix", id: "showMatrix", summary: "List which roles may call which tools",
			params: paged(
				parameter{name: "group", about: "only the tools of this group"},
				parameter{name: "fromTool", about: "only tools from this name on: the nextTool of the answer before"},
				parameter{name: "state", about: "the workflow state to check in"},
			),
			scopes: toolUsers, answer: wire.Matrix{}, errors: []errcode.Code{errcode.GroupNotFound}, serve: a.listEndpoint(a.showMatrix),
		}, {
			method: "POST", path: "/api/v1/can", id: "checkAccess", summary: "Ask whether the gate would allow a call",
			scopes: toolUsers, body: wire.Question{}, answer: answers,
			errors: []errcode.Code{errcode.RoleNotFound, errcode.AgentNotFound, errcode.GroupNotFound, errcode.Conflict}, serve: a.countedEndpoint(a.checkAccess),
		},
	}
}

// artifactRoutes are about artifacts and their contents.
func (a *api) artifactRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/v1/artifacts", id: "listArtifacts", summary: "List artifacts, oldest first",
			params: paged(taskQuery), scopes: operators, answer: wire.Page[wire.Artifact]{}, serve: jsonEndpoint(a.listArtifacts),
		}, {
			method: "GET", path: "/api/v1/artifacts/{id}", id: "findArtifact", summary: "Show an artifact's record, or its content",
			params: []parameter{{name: "content", kind: "boolean", about: "answers with the content: text, bytes, or a JSON value"}},
			scopes: operators, answer: answerOneOf{wire.Artifact{}, json.RawMessage{}}, media: artifactMedia(),
			errors: []errcode.Code{errcode.ArtifactNotFound}, serve: a.showArtifact,
		}, {
			method: "POST", path: "/api/v1/sweep", id: "collectGarbage", summary: "Delete stored contents that no artifact references",
			params: []parameter{dryRunQuery}, scopes: operators, answer: wire.SweepResult{}, serve: jsonEndpoint(a.collectGarbage),
		},
	}
}

// artifactMedia returns the media types of the contents of artifacts.
func artifactMedia() []media {
	list := []media{{name: "text/plain"}, {name: "application/octet-stream"}}
	for _, name := range imageTypes {
		list = append(list, media{name: name})
	}
	return list
}
