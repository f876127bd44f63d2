package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// organizationTools returns the six tools of org_management.
func organizationTools(r RoleManager, a AgentManager, m MessageSender) ([]tool.Tool, error) {
	h := orgHandler{r, a, m}
	var s toolBuilder
	s.add(tool.New("find_role_by_name", findRoleText, withErrorCode(requireAgent(h.findRole)), toolOptions(tool.ReadOnly, tool.FlagsOf(), findRoleInput)))
	s.add(tool.New("create_role", createRoleText, withErrorCode(requireAgent(h.createRole)), toolOptions(tool.Idempotent, tool.FlagsOf(), createRoleInput)))
	s.add(tool.New("spawn_agent", spawnText, withErrorCode(requireAgent(h.spawn)), toolOptions(tool.Idempotent, tool.FlagsOf(), spawnInput)))
	s.add(tool.New("spawn_agent_with_task", spawnTaskText, withErrorCode(requireAgent(h.spawnWithTask)), toolOptions(tool.Idempotent, tool.FlagsOf(), spawnTaskInput)))
	s.add(tool.New("terminate_agent", terminateText, withErrorCode(requireAgent(h.terminate)), toolOptions(tool.Idempotent, tool.FlagsOf(), terminateInput)))
	s.add(tool.New("send_message", sendText, withErrorCode(requireAgent(h.send)), toolOptions(tool.Idempotent, tool.FlagsOf(), sendInput)))
	return s.tools, s.err
}

// orgHandler handles the calls of org_management.
type orgHandler struct {
	roles    RoleManager
	agents   AgentManager
	messages MessageSender
}

// requireAgent returns fn with a check that the caller is an agent.
func requireAgent[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		if _, err = callingAgent(ctx, "start a task of the organization instead"); err != nil {
			return out, err
		}
		return fn(ctx, in)
	}
}

const findRoleText = `Look up a role by its name, or list the roles that match a query.`

const findRoleInput = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "The exact name.", "minLength": 1, "maxLength": 128},
		"query": {"type": "string", "description": "Words to look for, instead of a name.", "maxLength": 200}
	},
	"additionalProperties": false
}`

// findRole holds the arguments of find_role_by_name.
type findRole struct {
	Name  string  `json:"name"`
	Query *string `json:"query"`
}

// findRole handles find_role_by_name. The result for a name is nil, JSON null, if there is
// no such role.
func (h orgHandler) findRole(ctx context.Context, in findRole) (any, error) {
	switch {
	case in.Name == "":
		return h.searchRoles(ctx, in.Query)
	case in.Query != nil:
		return nil, errcode.New(errcode.InvalidArguments, "find a role: name and query exclude each other; send the exact name, or words to look for")
	}
	role, err := h.roles.FindRole(ctx, currentCall(ctx), in.Name)
	switch {
	case err != nil:
		return nil, err
	case role == nil:
		return h.noRoleResult(ctx, in.Name)
	}
	return newRoleView(*role), nil
}

// maxOtherRoles limits the names in the result for a role that does not exist.
const maxOtherRoles = 20

// noRoleResult returns the result for a name that no role has. The result is null. A language model also
// gets the names of roles that it may spawn agents of.
func (h orgHandler) noRoleResult(ctx context.Context, name string) (tool.Result, error) {
	list, total, err := h.roles.SearchRoles(ctx, currentCall(ctx), "", maxOtherRoles)
	if err != nil {
		return tool.Result{}, err
	}
	var names []string
	for _, r := range list {
		names = append(names, strconv.Quote(textutil.Sanitize(r.Name)))
	}
	text := "there is no role " + strconv.Quote(textutil.OneLine(name, maxShownName))
	switch {
	case total == 0:
		text += ", and none that you may hire"
	case total > len(list):
		text += fmt.Sprintf("; roles you may hire are %s and %d more", strings.Join(names, ", "), total-len(list))
	default:
		text += "; roles you may hire: " + strings.Join(names, ", ")
	}
	return tool.Result{Structured: json.RawMessage("null"), Absent: text}, nil
}

// maxShownName is how many bytes of a name a result repeats.
const maxShownName = 128

// maxFoundRoles limits the roles that find_role_by_name lists.
const maxFoundRoles = 50

// foundRoles is the result of find_role_by_name without a name.
type foundRoles struct {
	Roles     []foundRole `json:"roles"`
	Truncated bool        `json:"truncated,omitempty"` // there are more
}

// foundRole is a role in a list.
type foundRole struct {
	ID          identity.RoleID     `json:"id"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Use         toolgroups.GroupSet `json:"toolGroups"`
}

// searchRoles lists the roles that match a query, all if it is nil or empty.
func (h orgHandler) searchRoles(ctx context.Context, query *string) (foundRoles, error) {
	words := ""
	if query != nil {
		words = *query
	}
	list, total, err := h.roles.SearchRoles(ctx, currentCall(ctx), words, maxFoundRoles)
	out := foundRoles{Roles: []foundRole{}, Truncated: total > len(list)}
	for _, r := range list {
		out.Roles = append(out.Roles, foundRole{r.ID, r.Name, textutil.Sanitize(r.Description), r.Use})
	}
	return out, err
}

// roleView is the form of a role that models read.
type roleView struct {
	org.Role
	Dangling []toolgroups.GroupID `json:"dangling,omitempty"` // groups that were not registered when the role was written; they grant nothing
}

// newRoleView returns the view of a role with its dangling groups. It does not name the
// caller whose tasks have the role, and not the role in its tasks.as.
func newRoleView(r org.Role) *roleView {
	s := &roleView{Role: r}
	s.Caller, s.CallerRole, s.Tasks, s.Agent, s.States = "", "", org.RoleTasks{}, nil, nil
	s.Description = textutil.Sanitize(r.Description)
	for _, id := range append(r.Use.GroupIDs(), r.Grant.GroupIDs()...) {
		if r.GroupOwners[id] == "" && !slices.Contains(s.Dangling, id) {
			s.Dangling = append(s.Dangling, id)
		}
	}
	return s
}

const createRoleText = `Create a role: instructions, and the tool groups its agents may use. Roles cannot be changed afterwards.`

const createRoleInput = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "A short, new name.", "minLength": 1, "maxLength": 128},
		"description": {"type": "string", "description": "What its agents do, in one line.", "maxLength": 500},
		"rolePrompt": {"type": "string", "description": "Instructions for its agents.", "maxLength": 100000},
		"toolGroups": {"type": "array", "description": "Tool groups its agents may use; only what the work needs, [] for none.", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 1000},
		"grant": {"type": "array", "description": "Tool groups its agents may grant to roles they create; only for agents that lead others.", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 1000},
		"bind": {"type": "object", "x-hidden": true, "description": "Bounds on arguments: by tool, a condition for each path. Your own bounds hold besides.", "additionalProperties": {"type": "object", "additionalProperties": {"type": "object"}}, "maxProperties": 256}
	},
	"required": ["name", "rolePrompt"],
	"additionalProperties": false
}`

// createRole holds the arguments of create_role. A nil set was left out.
type createRole struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Prompt      string               `json:"rolePrompt"`
	Use         *toolgroups.GroupSet `json:"toolGroups"`
	Grant       *toolgroups.GroupSet `json:"grant"`
	Bind        json.RawMessage      `json:"bind"`
}

// createRole handles create_role.
func (h orgHandler) createRole(ctx context.Context, in createRole) (*roleView, error) {
	spec := org.RoleSpec{Name: in.Name, Description: in.Description, Prompt: in.Prompt, Use: in.Use, Grant: in.Grant}
	if in.Bind != nil {
		bind, err := org.ParseBind(in.Name, in.Bind)
		if err != nil {
			return nil, err
		}
		spec.Bind = bind
	}
	role, err := h.roles.CreateRole(ctx, currentCall(ctx), spec)
	return newRoleView(role), err
}

// The schema requires no field of a brief, because missing fields have their own
// error code that names all of them. A text is a brief with this objective.
const briefFields = `,
	"properties": {
		"objective": {"type": "string", "description": "What to achieve.", "maxLength": 100000},
		"constraints": {"type": ["string", "array"], "description": "Rules to keep, or none.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"inputs": {"type": ["string", "array"], "description": "What it starts from: files, artifacts, facts, or none.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"outputs": {"type": ["string", "array"], "description": "What to deliver, and where.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"completion_criteria": {"type": ["string", "array"], "description": "When it is done.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"completionCriteria": {"type": ["string", "array"], "x-hidden": true, "description": "Another spelling of completion_criteria; use one.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"collaborators": {
			"type": "array",
			"description": "Other agents it may write to.",
			"items": {
				"type": "object",
				"properties": {
					"agentId": {"type": "string", "description": "Its name or id.", "minLength": 1, "maxLength": 256},
					"role": {"type": "string", "description": "Its role.", "maxLength": 128},
					"description": {"type": "string", "description": "What to write to it about.", "maxLength": 1000}
				},
				"required": ["agentId", "role"],
				"additionalProperties": false
			},
			"maxItems": 100
		},
		"references": {"type": ["string", "array"], "x-hidden": true, "description": "Artifacts, files or texts worth knowing.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"priority": {"type": "string", "x-hidden": true, "description": "How urgent it is, in your words.", "maxLength": 128}
	},
	"x-required": ["objective", "constraints", "inputs", "outputs", "completion_criteria"],
	"additionalProperties": false,
	"maxLength": 100000
}`

const (
	briefInput     = `{"type": ["object", "string"], "description": "The assignment. The agent sees nothing else of your conversation."` + briefFields
	briefTextInput = `{"type": ["string", "object"], "description": "The assignment. The agent sees nothing else of your conversation."` + briefFields
)

const parentInput = `{"type": "string", "x-hidden": true, "description": "The id of the caller, or left out.", "maxLength": 128}`

const budgetInput = `{
	"type": "object",
	"x-hidden": true,
	"description": "What it and the agents below it may use, taken from your budget; what is left returns when it has answered or ended.",
	"properties": {
		"tokens": {"type": "integer", "description": "Tokens, sent and generated.", "minimum": 1, "maximum": 1125899906842624},
		"requests": {"type": "integer", "description": "Requests to models.", "minimum": 1, "maximum": 1000000},
		"calls": {"type": "integer", "description": "Calls of tools.", "minimum": 1, "maximum": 1000000},
		"cost": {"type": "number", "description": "Cost, in the currency of the prices.", "minimum": 0.000000001, "maximum": 1000000}
	},
	"minProperties": 1,
	"additionalProperties": false
}`

const spawnText = `Hire an agent that waits for its first message. Use spawn_agent_with_task, unless agents must know each other's names first.`

const spawnInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "Role name or id.", "minLength": 1, "maxLength": 128},
		"taskBrief": ` + briefTextInput + `,
		"budget": ` + budgetInput + `,
		"parentAgentId": ` + parentInput + `
	},
	"required": ["roleId", "taskBrief"],
	"additionalProperties": false
}`

// spawnArgs holds the arguments of spawn_agent and spawn_agent_with_task; only
// the latter has a Message.
type spawnArgs struct {
	Role    identity.RoleID  `json:"roleId"`
	Brief   org.TaskBrief    `json:"taskBrief"`
	Parent  identity.AgentID `json:"parentAgentId"`
	Message json.RawMessage  `json:"initialMessage"`
	Budget  *spawnBudget     `json:"budget"` // nil: it shares the budget of its parent
}

// spawnBudget is the budget of a new agent. A field of zero was left out.
type spawnBudget struct {
	Tokens   int64   `json:"tokens"`
	Requests int64   `json:"requests"`
	Calls    int64   `json:"calls"`
	Cost     float64 `json:"cost"`
}

// allowance converts a budget. A budget without an amount is rejected, since it would be none.
func (b *spawnBudget) allowance() (org.ModelAllowance, error) {
	if b == nil {
		return org.ModelAllowance{}, nil
	}
	a, ok := org.ModelAllowance{Tokens: b.Tokens, Requests: b.Requests, Calls: b.Calls}.WithCost(b.Cost)
	if !ok || a == (org.ModelAllowance{}) {
		return org.ModelAllowance{}, errcode.New(errcode.InvalidArguments, "spawn an agent: its budget is out of range; all amounts are positive, a cost has at most 9 decimals").With("field", "budget")
	}
	return a, nil
}

// spawn handles spawn_agent.
func (h orgHandler) spawn(ctx context.Context, in spawnArgs) (org.SpawnResult, error) {
	return h.createAgent(ctx, in, nil)
}

const spawnTaskText = `Hire an agent and start it. Its answer, or an error, reaches you as a message: end your turn to wait for it.`

const spawnTaskInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "Role name or id.", "minLength": 1, "maxLength": 128},
		"taskBrief": ` + briefInput + `,
		"budget": ` + budgetInput + `,
		"initialMessage": {
			"type": ["string", "object"],
			"description": "The first message: what to do.",
			"maxLength": 1000000,
			"properties": {
				"message_type": {"type": "string", "x-hidden": true, "description": "What kind of message it is; task_assignment unless given.", "maxLength": 128},
				"task": {"x-hidden": true, "description": "What to do: a text or any JSON."},
				"interfaces": {"x-hidden": true, "description": "Interfaces it has to fit."},
				"deliverable": {"x-hidden": true, "description": "What to hand over, and in which form."},
				"dependencies": {"x-hidden": true, "type": ["array", "string"], "description": "What must exist first.", "maxItems": 1000, "maxLength": 100000}
			}
		},
		"parentAgentId": ` + parentInput + `
	},
	"required": ["roleId", "taskBrief", "initialMessage"],
	"additionalProperties": false
}`

// spawnWithTask handles spawn_agent_with_task.
func (h orgHandler) spawnWithTask(ctx context.Context, in spawnArgs) (org.SpawnResult, error) {
	first, err := firstMessage(in.Message)
	if err != nil {
		return org.SpawnResult{}, err
	}
	return h.createAgent(ctx, in, first)
}

// createAgent spawns an agent below the caller. first is its first message, nil
// for none.
func (h orgHandler) createAgent(ctx context.Context, in spawnArgs, first json.RawMessage) (org.SpawnResult, error) {
	c := currentCall(ctx)
	if in.Parent != "" && in.Parent != c.By.Agent {
		return org.SpawnResult{}, errcode.New(errcode.InvalidParent, "the parent of a new agent is always its creator; leave out parentAgentId").
			With("expected", c.By.Agent).With("got", in.Parent)
	}
	budget, err := in.Budget.allowance()
	if err != nil {
		return org.SpawnResult{}, err
	}
	return h.agents.SpawnAgent(ctx, c, org.SpawnSpec{Role: in.Role, Brief: in.Brief, Budget: budget}, first)
}

// firstMessage returns the first message as an object: text becomes an object with
// text, and message_type defaults to task_assignment.
func firstMessage(raw json.RawMessage) (json.RawMessage, error) {
	var text *string
	if json.Unmarshal(raw, &text) == nil && text != nil && strings.TrimSpace(*text) != "" {
		return json.Marshal(map[string]string{"message_type": taskAssignment, "text": *text})
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || len(fields) == 0 {
		return nil, errcode.New(errcode.MissingMessage, "initialMessage is empty: write a text, or an object with task; without work yet, use spawn_agent")
	}
	if fields["message_type"] == nil {
		fields["message_type"] = json.RawMessage(`"` + taskAssignment + `"`)
	}
	return json.Marshal(fields)
}

// taskAssignment is the default message_type of a first message.
const taskAssignment = "task_assignment"

const terminateText = `Stop an agent that you hired, and all agents below it. It cannot be resumed; its files and artifacts stay.`

const terminateInput = `{
	"type": "object",
	"properties": {
		"agentId": {"type": "string", "description": "Its name or id.", "minLength": 1, "maxLength": 256},
		"reason": {"type": "string", "description": "Why.", "maxLength": 1000}
	},
	"required": ["agentId"],
	"additionalProperties": false
}`

// terminateAgent holds the arguments of terminate_agent.
type terminateAgent struct {
	Agent  identity.AgentID `json:"agentId"`
	Reason string           `json:"reason"`
}

// terminated is the result of terminate_agent.
type terminated struct {
	OK    bool             `json:"ok"`
	Agent identity.AgentID `json:"terminatedAgentId"`
}

// terminate handles terminate_agent.
func (h orgHandler) terminate(ctx context.Context, in terminateAgent) (terminated, error) {
	id, err := h.agents.AgentBelow(ctx, currentCall(ctx), in.Agent)
	if err != nil {
		return terminated{}, err
	}
	if err := h.agents.TerminateAgent(ctx, currentCall(ctx), id, in.Reason); err != nil {
		return terminated{}, err
	}
	return terminated{true, id}, nil
}
