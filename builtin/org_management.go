package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// organizationTools makes the six tools of org_management.
func organizationTools(r Roles, a Agents, m Messages) ([]tool.Tool, error) {
	h := organization{r, a, m}
	var s toolBuilder
	s.add(tool.New("find_role_by_name", findRoleText, guarded(requireAgent(h.findRole)), options(tool.ReadOnly, findRoleInput)))
	s.add(tool.New("create_role", createRoleText, guarded(requireAgent(h.createRole)), options(tool.Idempotent, createRoleInput)))
	s.add(tool.New("spawn_agent", spawnText, guarded(requireAgent(h.spawn)), options(tool.Idempotent, spawnInput)))
	s.add(tool.New("spawn_agent_with_task", spawnTaskText, guarded(requireAgent(h.spawnWithTask)), options(tool.Idempotent, spawnTaskInput)))
	s.add(tool.New("terminate_agent", terminateText, guarded(requireAgent(h.terminate)), options(tool.Idempotent, terminateInput)))
	s.add(tool.New("send_message", sendText, guarded(requireAgent(h.send)), options(tool.Idempotent, sendInput)))
	return s.tools, s.err
}

// organization handles the calls of org_management.
type organization struct {
	roles    Roles
	agents   Agents
	messages Messages
}

// requireAgent refuses those who are not part of the organization.
func requireAgent[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		if _, err = callingAgent(ctx, "give the organization a task instead"); err != nil {
			return out, err
		}
		return fn(ctx, in)
	}
}

const findRoleText = `Look up a role by its exact name. Use it before create_role when a role may exist already: you may spawn agents of any role whose tool groups you may give yourself. ` +
	`Answers the role (id, name, rolePrompt, toolGroups, grant, …), or null when there is none; letter case counts. ` +
	`Example: {"name":"analyst"}`

const findRoleInput = `{
	"type": "object",
	"properties": {"name": {"type": "string", "description": "The exact name, not the id.", "minLength": 1, "maxLength": 128}},
	"required": ["name"],
	"additionalProperties": false
}`

type findRole struct {
	Name string `json:"name"`
}

func (h organization) findRole(ctx context.Context, in findRole) (*roleView, error) {
	role, err := h.roles.FindRole(ctx, caller(ctx), in.Name)
	if role == nil || err != nil {
		return nil, err
	}
	return shown(*role), nil
}

// roleView is a role as a model reads it.
type roleView struct {
	org.Role
	Dangling []toolgroups.GroupID `json:"dangling,omitempty"` // groups nobody had registered when the role was written: they give nothing
}

func shown(r org.Role) *roleView {
	s := &roleView{Role: r}
	for _, id := range append(r.Use.IDs(), r.Grant.IDs()...) {
		if r.GroupOwners[id] == "" && !slices.Contains(s.Dangling, id) {
			s.Dangling = append(s.Dangling, id)
		}
	}
	return s
}

const createRoleText = `Create a role: what the agents that hold it are told and which tool groups they may use. ` +
	`Your system prompt lists the groups you may give; more is refused as insufficient_permissions. ` +
	`toolGroups left out gives every group you may give, [] gives none: name only what the work needs. ` +
	`grant lists the groups such an agent may put into roles it creates itself; left out it is toolGroups if those hold org_management, else nothing. ` +
	`Answers the role with its id, which spawn_agent needs; "dangling" lists groups that do not exist and give nothing. ` +
	`The same name and content again answers your existing role; another role of that name is role_exists. Roles cannot be changed by agents. ` +
	`Example: {"name":"analyst","rolePrompt":"You analyse logs and report figures.","toolGroups":["workspace","command"]}`

const createRoleInput = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "A short name, unique in the organization; not root or user.", "minLength": 1, "maxLength": 128},
		"rolePrompt": {"type": "string", "description": "What agents of this role are told about their work.", "maxLength": 100000},
		"toolGroups": {"type": "array", "description": "Ids of the tool groups its agents may use; leave out for all you may give, [] for none.", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 1000},
		"grant": {"type": "array", "description": "Ids of the tool groups its agents may give to roles they create; leave out unless they manage others.", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 1000}
	},
	"required": ["name", "rolePrompt"],
	"additionalProperties": false
}`

type createRole struct {
	Name   string          `json:"name"`
	Prompt string          `json:"rolePrompt"`
	Use    *toolgroups.Set `json:"toolGroups"`
	Grant  *toolgroups.Set `json:"grant"`
}

func (h organization) createRole(ctx context.Context, in createRole) (*roleView, error) {
	role, err := h.roles.CreateRole(ctx, caller(ctx), org.RoleSpec{Name: in.Name, Prompt: in.Prompt, Use: in.Use, Grant: in.Grant})
	return shown(role), err
}

// What a brief lacks has an error code of its own, which names all of it, so
// the schema requires none of its fields.
const briefInput = `{
	"type": "object",
	"description": "What the new agent is for. objective, constraints, inputs, outputs and completion_criteria are required; constraints may be [].",
	"properties": {
		"objective": {"type": "string", "description": "What is to be reached.", "maxLength": 100000},
		"constraints": {"type": ["array", "string"], "description": "What must be kept to; [] for nothing.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"inputs": {"type": ["string", "array"], "description": "What it starts from: files, artifacts, facts, or none.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"outputs": {"type": ["string", "array"], "description": "What it delivers, and where.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"completion_criteria": {"type": ["string", "array"], "description": "How it knows that the work is done.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"completionCriteria": {"type": ["string", "array"], "description": "Another spelling of completion_criteria; give one.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"collaborators": {
			"type": "array",
			"description": "Agents it may write to beside you, root, the user and those it spawns. Name only agents of this task that you may write to yourself. They may not write back unless they may write to it anyway.",
			"items": {
				"type": "object",
				"properties": {
					"agentId": {"type": "string", "description": "The agent's id.", "minLength": 1, "maxLength": 128},
					"role": {"type": "string", "description": "What it does, in a word.", "maxLength": 128},
					"description": {"type": "string", "description": "What to write to it about.", "maxLength": 1000}
				},
				"required": ["agentId", "role"],
				"additionalProperties": false
			},
			"maxItems": 100
		},
		"references": {"type": ["array", "string"], "description": "Artifacts, files or texts worth knowing.", "items": {"type": "string", "maxLength": 10000}, "maxItems": 1000, "maxLength": 100000},
		"priority": {"type": "string", "description": "How urgent it is, in your words.", "maxLength": 128}
	},
	"additionalProperties": false
}`

const parentInput = `{"type": "string", "description": "Leave out: the parent is always you.", "maxLength": 128}`

const spawnText = `Create an agent of a role, below you, without giving it work yet: it does nothing until somebody writes to it with send_message. ` +
	`Use it when agents have to know each other's ids before they begin; else use spawn_agent_with_task. ` +
	`You need a role whose toolGroups and grant you may give yourself. Answers {id, roleId, roleName}. ` +
	`Example: {"roleId":"b0c7e1d2-5a43-5a1e-9f6e-0c2d8a7b4e11","taskBrief":{"objective":"Count the errors in access.log","constraints":["change no file"],"inputs":"access.log in the workspace","outputs":"a message with the count","completion_criteria":"every line was read"}}`

const spawnInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "The id of the role, from create_role or find_role_by_name; not its name.", "minLength": 1, "maxLength": 128},
		"taskBrief": ` + briefInput + `,
		"parentAgentId": ` + parentInput + `
	},
	"required": ["roleId", "taskBrief"],
	"additionalProperties": false
}`

type spawnArgs struct {
	Role    identity.RoleID  `json:"roleId"`
	Brief   org.TaskBrief    `json:"taskBrief"`
	Parent  identity.AgentID `json:"parentAgentId"`
	Message json.RawMessage  `json:"initialMessage"`
}

func (h organization) spawn(ctx context.Context, in spawnArgs) (org.SpawnResult, error) {
	return h.make(ctx, in, nil)
}

const spawnTaskText = `Create an agent of a role, below you, and send it its first message: it begins at once. ` +
	`Its answer comes to you as a message when its turn ends; so does an error. Go on with other work, or end your turn to wait for it. ` +
	`You need a role whose toolGroups and grant you may give yourself. Nothing is made when the call is refused. Answers {id, roleId, roleName, messageId}. ` +
	`Example: {"roleId":"b0c7e1d2-5a43-5a1e-9f6e-0c2d8a7b4e11","taskBrief":{"objective":"Count the errors in access.log","constraints":[],"inputs":"access.log in the workspace","outputs":"a message with the count","completion_criteria":"every line was read"},"initialMessage":{"task":"Count the lines of access.log that hold ERROR and tell me the number."}}`

const spawnTaskInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "The id of the role, from create_role or find_role_by_name; not its name.", "minLength": 1, "maxLength": 128},
		"taskBrief": ` + briefInput + `,
		"initialMessage": {
			"type": ["object", "string"],
			"description": "The work: a text, or an object with task and, as needed, interfaces, deliverable, dependencies. Not empty.",
			"maxLength": 1000000,
			"properties": {
				"message_type": {"type": "string", "description": "What kind of message it is; task_assignment unless given.", "maxLength": 128},
				"task": {"description": "What to do: a text or any JSON."},
				"interfaces": {"description": "What it has to fit together with."},
				"deliverable": {"description": "What to hand over, and in which form."},
				"dependencies": {"type": ["array", "string"], "description": "What has to be there first.", "maxItems": 1000, "maxLength": 100000}
			}
		},
		"parentAgentId": ` + parentInput + `
	},
	"required": ["roleId", "taskBrief", "initialMessage"],
	"additionalProperties": false
}`

func (h organization) spawnWithTask(ctx context.Context, in spawnArgs) (org.SpawnResult, error) {
	first, err := firstMessage(in.Message)
	if err != nil {
		return org.SpawnResult{}, err
	}
	return h.make(ctx, in, first)
}

func (h organization) make(ctx context.Context, in spawnArgs, first json.RawMessage) (org.SpawnResult, error) {
	c := caller(ctx)
	if in.Parent != "" && in.Parent != c.By.Agent {
		return org.SpawnResult{}, errcode.New(errcode.InvalidParent, "the parent of a new agent is always its maker; leave parentAgentId out").
			With("expected", c.By.Agent).With("got", in.Parent)
	}
	return h.agents.Spawn(ctx, c, org.Spawn{Role: in.Role, Brief: in.Brief}, first)
}

// firstMessage completes a first message: a text becomes an object, and
// message_type is task_assignment unless it says otherwise.
func firstMessage(raw json.RawMessage) (json.RawMessage, error) {
	var text *string
	if json.Unmarshal(raw, &text) == nil && text != nil && strings.TrimSpace(*text) != "" {
		return json.Marshal(map[string]string{"message_type": taskAssignment, "text": *text})
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || len(fields) == 0 {
		return nil, errcode.New(errcode.MissingMessage, "initialMessage says nothing: give a text, or an object with task; without work use spawn_agent")
	}
	if fields["message_type"] == nil {
		fields["message_type"] = json.RawMessage(`"` + taskAssignment + `"`)
	}
	return json.Marshal(fields)
}

const taskAssignment = "task_assignment"

const terminateText = `End an agent you created, or one below it, and everything below it, at once. Use it when its work is done or no longer wanted. ` +
	`A call it is making is cut off, its unread messages are lost, and it cannot be brought back; its artifacts and files stay. ` +
	`Not for yourself, your parent or agents beside you: that is not_child_agent. Answers {"ok":true,"terminatedAgentId":"…"}. ` +
	`Example: {"agentId":"5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1","reason":"the figures are in"}`

const terminateInput = `{
	"type": "object",
	"properties": {
		"agentId": {"type": "string", "description": "The agent to end, by its id.", "minLength": 1, "maxLength": 128},
		"reason": {"type": "string", "description": "Why, for the record.", "maxLength": 1000}
	},
	"required": ["agentId"],
	"additionalProperties": false
}`

type terminateAgent struct {
	Agent  identity.AgentID `json:"agentId"`
	Reason string           `json:"reason"`
}

type terminated struct {
	OK    bool             `json:"ok"`
	Agent identity.AgentID `json:"terminatedAgentId"`
}

func (h organization) terminate(ctx context.Context, in terminateAgent) (terminated, error) {
	if err := h.agents.Terminate(ctx, caller(ctx), in.Agent, in.Reason); err != nil {
		return terminated{}, err
	}
	return terminated{true, in.Agent}, nil
}
