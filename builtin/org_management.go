package builtin

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// organizationTools makes the six tools of org_management.
func organizationTools(r Roles, a Agents, m Messages) ([]tool.Tool, error) {
	h := organization{r, a, m}
	var s set
	s.add(tool.New("find_role_by_name", findRoleText, guarded(h.findRole), options(tool.ReadOnly, findRoleInput)))
	s.add(tool.New("create_role", createRoleText, guarded(h.createRole), options(tool.Idempotent, createRoleInput)))
	s.add(tool.New("spawn_agent", spawnText, guarded(h.spawn), options(tool.Idempotent, spawnInput)))
	s.add(tool.New("spawn_agent_with_task", spawnTaskText, guarded(h.spawnWithTask), options(tool.Idempotent, spawnTaskInput)))
	s.add(tool.New("terminate_agent", terminateText, guarded(h.terminate), options(tool.Idempotent, terminateInput)))
	s.add(tool.New("send_message", sendText, guarded(h.send), options(tool.Idempotent, sendInput)))
	return s.tools, s.err
}

// organization handles the calls of org_management.
type organization struct {
	roles    Roles
	agents   Agents
	messages Messages
}

const findRoleText = `Look up a role by its exact name. Use it before create_role when a role may exist already. ` +
	`Answers the role (id, name, rolePrompt, toolGroups, …) or null when there is none. Example: {"name":"analyst"}`

const findRoleInput = `{
	"type": "object",
	"properties": {"name": {"type": "string", "description": "The exact name.", "minLength": 1, "maxLength": 512}},
	"required": ["name"],
	"additionalProperties": false
}`

type findRole struct {
	Name string `json:"name"`
}

func (h organization) findRole(ctx context.Context, in findRole) (*org.Role, error) {
	return h.roles.FindRole(ctx, caller(ctx), in.Name)
}

const createRoleText = `Create a role: what the agents that hold it are told and which tool groups they may use. ` +
	`toolGroups left out gives every group you may grant; [] gives none. grant lists the groups such an agent may put into roles it creates itself. ` +
	`You can only give what you may grant. Answers the role with its id, which spawn_agent needs. The same name and content again answers your existing role; another role of that name is role_exists. ` +
	`Example: {"name":"analyst","rolePrompt":"You analyse logs and report figures.","toolGroups":["workspace","command"]}`

const createRoleInput = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "A short name, unique in the organization.", "minLength": 1, "maxLength": 128},
		"rolePrompt": {"type": "string", "description": "What agents of this role are told about their work.", "maxLength": 100000},
		"toolGroups": {"type": "array", "description": "Ids of the tool groups its agents may use; leave out for all you may grant, [] for none.", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 1000},
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

func (h organization) createRole(ctx context.Context, in createRole) (org.Role, error) {
	return h.roles.CreateRole(ctx, caller(ctx), org.RoleSpec{Name: in.Name, Prompt: in.Prompt, Use: in.Use, Grant: in.Grant})
}

const briefInput = `{
	"type": "object",
	"description": "What the new agent is for. All five texts are needed.",
	"properties": {
		"objective": {"type": "string", "description": "What is to be reached."},
		"constraints": {"type": ["array", "string"], "description": "What must be kept to.", "items": {"type": "string"}},
		"inputs": {"type": ["string", "array"], "description": "What it starts from.", "items": {"type": "string"}},
		"outputs": {"type": ["string", "array"], "description": "What it delivers.", "items": {"type": "string"}},
		"completion_criteria": {"type": ["string", "array"], "description": "When the work is done.", "items": {"type": "string"}},
		"completionCriteria": {"type": ["string", "array"], "description": "Another spelling of completion_criteria.", "items": {"type": "string"}},
		"collaborators": {
			"type": "array",
			"description": "Other agents it may write to.",
			"items": {
				"type": "object",
				"properties": {"agentId": {"type": "string"}, "role": {"type": "string"}, "description": {"type": "string"}},
				"required": ["agentId", "role"],
				"additionalProperties": false
			}
		},
		"references": {"type": ["array", "string"], "description": "Artifacts, files or texts worth knowing.", "items": {"type": "string"}},
		"priority": {"type": "string"}
	},
	"additionalProperties": false
}`

const spawnText = `Create an agent of a role, below you, without giving it work yet; write to it with send_message. ` +
	`Use spawn_agent_with_task to create it and give it work at once. Answers {id, roleId, roleName}. ` +
	`Example: {"roleId":"…","taskBrief":{"objective":"…","constraints":[],"inputs":"…","outputs":"…","completion_criteria":"…"}}`

const spawnInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "The id of the role, from create_role or find_role_by_name.", "minLength": 1},
		"taskBrief": ` + briefInput + `,
		"parentAgentId": {"type": "string", "description": "Leave out: the parent is always you."}
	},
	"required": ["roleId", "taskBrief"],
	"additionalProperties": false
}`

type spawnAgent struct {
	Role    identity.RoleID  `json:"roleId"`
	Brief   org.TaskBrief    `json:"taskBrief"`
	Parent  identity.AgentID `json:"parentAgentId"`
	Message json.RawMessage  `json:"initialMessage"`
}

func (h organization) spawn(ctx context.Context, in spawnAgent) (Spawned, error) {
	return h.make(ctx, in, nil)
}

const spawnTaskText = `Create an agent of a role, below you, and send it its first message. Its answer comes to you as a message when it is done. ` +
	`Answers {id, roleId, roleName, messageId}. ` +
	`Example: {"roleId":"…","taskBrief":{"objective":"…","constraints":[],"inputs":"…","outputs":"…","completion_criteria":"…"},"initialMessage":{"task":"Count the errors in access.log."}}`

const spawnTaskInput = `{
	"type": "object",
	"properties": {
		"roleId": {"type": "string", "description": "The id of the role, from create_role or find_role_by_name.", "minLength": 1},
		"taskBrief": ` + briefInput + `,
		"initialMessage": {
			"type": ["object", "string"],
			"description": "The work: a text, or an object with task and, as needed, interfaces, deliverable, dependencies.",
			"properties": {
				"message_type": {"type": "string"}, "task": {}, "interfaces": {}, "deliverable": {},
				"dependencies": {"type": ["array", "string"]}
			}
		},
		"parentAgentId": {"type": "string", "description": "Leave out: the parent is always you."}
	},
	"required": ["roleId", "taskBrief", "initialMessage"],
	"additionalProperties": false
}`

func (h organization) spawnWithTask(ctx context.Context, in spawnAgent) (Spawned, error) {
	first, err := firstMessage(in.Message)
	if err != nil {
		return Spawned{}, err
	}
	return h.make(ctx, in, first)
}

func (h organization) make(ctx context.Context, in spawnAgent, first json.RawMessage) (Spawned, error) {
	c := caller(ctx)
	if in.Parent != "" && in.Parent != c.By.Agent {
		return Spawned{}, errcode.New(errcode.InvalidParent, "the parent of a new agent is always its maker; leave parentAgentId out").
			With("expected", c.By.Agent).With("got", in.Parent)
	}
	return h.agents.Spawn(ctx, c, org.Spawn{Role: in.Role, Brief: in.Brief}, first)
}

// firstMessage completes a first message: a text becomes an object, and
// message_type is task_assignment unless it says otherwise.
func firstMessage(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return json.Marshal(map[string]string{"message_type": taskAssignment, "text": text})
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, errcode.New(errcode.MissingMessage, "initialMessage is neither a text nor an object")
	}
	if fields["message_type"] == nil {
		fields["message_type"] = json.RawMessage(`"` + taskAssignment + `"`)
	}
	return json.Marshal(fields)
}

const taskAssignment = "task_assignment"

const terminateText = `End an agent you created, or one below it, and everything below it, at once. Its unread messages are lost; artifacts and files stay. ` +
	`Answers {"ok":true,"terminatedAgentId":"…"}. Example: {"agentId":"…","reason":"the work is done"}`

const terminateInput = `{
	"type": "object",
	"properties": {
		"agentId": {"type": "string", "description": "The agent to end.", "minLength": 1},
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

const sendText = `Send a message to an agent you created, your parent, a collaborator of your brief, "root" (the agent that leads this task) or "user". ` +
	`It is delivered when the recipient next looks; with delayMs not before that time. quickReplies offers the user up to 10 short answers. ` +
	`Answers {"messageId":"…"}. Example: {"to":"root","payload":{"text":"The figures are ready: artifact:…"}}`

const sendInput = `{
	"type": "object",
	"properties": {
		"to": {"type": "string", "description": "An agent's id, \"root\" or \"user\".", "minLength": 1},
		"payload": {"description": "What to say: usually an object with text; any JSON."},
		"delayMs": {"type": ["number", "string"], "description": "Milliseconds to hold the message back."},
		"quickReplies": {"description": "Up to 10 short answers offered to the user."}
	},
	"required": ["to", "payload"],
	"additionalProperties": false
}`

type sendMessage struct {
	To      string          `json:"to"`
	Payload json.RawMessage `json:"payload"`
	Delay   json.RawMessage `json:"delayMs"`
	Replies json.RawMessage `json:"quickReplies"`
}

func (h organization) send(ctx context.Context, in sendMessage) (Sent, error) {
	payload, err := withReplies(in.Payload, in.Replies)
	if err != nil {
		return Sent{}, err
	}
	return h.messages.Send(ctx, caller(ctx), in.To, payload, delay(in.Delay))
}

// maxDelay is a year.
const maxDelay = 365 * 24 * time.Hour

// delay reads milliseconds from a number or a numeric string; what is
// negative or no number is at once.
func delay(raw json.RawMessage) time.Duration {
	ms, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, float64(maxDelay/time.Millisecond)) * float64(time.Millisecond))
}

// withReplies merges quick replies into a payload.
func withReplies(payload, raw json.RawMessage) (json.RawMessage, error) {
	replies, err := quickReplies(raw)
	if err != nil || len(replies) == 0 {
		return payload, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{"text": payload}
	}
	fields["quickReplies"], _ = json.Marshal(replies) // strings always marshal
	return json.Marshal(fields)
}

const maxReplies = 10

func quickReplies(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts []*string
	if json.Unmarshal(raw, &texts) != nil || slices.Contains(texts, nil) {
		return nil, errcode.New(errcode.InvalidReplies, "quickReplies is not a list of texts")
	}
	if len(texts) > maxReplies {
		return nil, errcode.New(errcode.TooManyReplies, "quickReplies has %d entries; at most %d are allowed", len(texts), maxReplies)
	}
	var replies []string
	for _, text := range texts {
		if strings.TrimSpace(*text) == "" {
			return nil, errcode.New(errcode.BlankReply, "quickReplies has a blank entry")
		}
		replies = append(replies, *text)
	}
	return replies, nil
}
