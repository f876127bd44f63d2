package client

import "github.com/rolecall/rolecall/gateway/wire"

// Requests.
type (
	RoleRequest    = wire.RoleRequest    // describes a new role or changes to a role
	TasksRequest   = wire.TasksRequest   // what bounds the tasks of callers in a role
	CallRequest    = wire.CallRequest    // a call of a tool in a role
	AcceptRequest  = wire.AcceptRequest  // names the pending definition that is accepted
	MessageRequest = wire.MessageRequest // a message to an agent
	TaskRequest    = wire.TaskRequest    // a task to start
	AgentRequest   = wire.AgentRequest   // a question to an agent in a role
	AgentStep      = wire.AgentStep      // a step of an earlier request
	Object         = wire.Object         // the text of a JSON object
	ResultSpec     = wire.ResultSpec     // what the result of a task must be
	Budget         = wire.Budget         // an amount of model usage
	BudgetUse      = wire.BudgetUse      // what was used of one limit of a budget
	Question       = wire.Question       // asks whether the gate would allow a call
	ToolAnswer     = wire.ToolAnswer     // the answer to a question of a tool
)

// Results.
type (
	Role            = wire.Role            // a role's record
	BoundingRole    = wire.BoundingRole    // the role that bounds the tasks of callers in another
	RoleChange      = wire.RoleChange      // a changed role and the effect on its agents
	RoleLint        = wire.RoleLint        // what a role holds, what was used, and what would be enough
	RoleJoins       = wire.RoleJoins       // how a role joins all flags
	LintFinding     = wire.LintFinding     // one thing that a lint says about a role
	JoinedFlag      = wire.JoinedFlag      // a flag of joined tools, and how it goes away
	LintChange      = wire.LintChange      // the removal of a group, or its read part in place of it
	LintSet         = wire.LintSet         // what a role uses, or what it may grant
	LintGroup       = wire.LintGroup       // a group that a role holds, or that would be enough
	LintTool        = wire.LintTool        // a tool that was called
	Agent           = wire.Agent           // an agent as listed
	AgentDetail     = wire.AgentDetail     // an agent with its task brief and tools
	SentMessage     = wire.SentMessage     // the record of a sent message
	Tool            = wire.Tool            // a tool, registered or in quarantine
	ToolFlags       = wire.ToolFlags       // the flags of a tool
	CallResult      = wire.CallResult      // the outcome of a call
	QuarantinedTool = wire.QuarantinedTool // a definition that waits for acceptance
	Verdict         = wire.Verdict         // the gate's decision with its reason
	Limit           = wire.Limit           // one limit on a call
	Span            = wire.Span            // something that took time in a task
	Matrix          = wire.Matrix          // the roles and the tools that they may call
	Holders         = wire.Holders         // the roles and agents that may call a tool
	Task            = wire.Task            // a task
	AgentAnswer     = wire.AgentAnswer     // the answer to an AgentRequest
	TaskLimits      = wire.TaskLimits      // the limits of a task
	ToolQuestion    = wire.ToolQuestion    // a question of a tool that waits for an answer
	ToolQuestions   = wire.ToolQuestions   // the questions of a task that wait for an answer
	Events          = wire.Events          // a page of events, newest first
	Artifact        = wire.Artifact        // an artifact's record
	SweepResult     = wire.SweepResult     // the contents that a sweep deleted
	UsageReport     = wire.UsageReport     // what the organization has used
	UsageRow        = wire.UsageRow        // a row of a UsageReport
	UsageTotal      = wire.UsageTotal      // a sum of calls, tokens and costs
	ConfigItem      = wire.ConfigItem      // a configuration item that the operator has applied
	MCPServer       = wire.MCPServer       // an MCP server with OAuth
	MCPLogin        = wire.MCPLogin        // a login at an MCP server
	MCPLoginRequest = wire.MCPLoginRequest // the beginning of a login
	MCPLoginOffer   = wire.MCPLoginOffer   // what a person needs to log in
	MCPLoginAnswer  = wire.MCPLoginAnswer  // what the issuer has answered
	Token           = wire.Token           // a token of the configuration
	Health          = wire.Health          // the process's answer to a health check
)
