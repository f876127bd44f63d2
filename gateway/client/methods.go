package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A ref names a role by id or exact name, and an agent by id, by its name in the task or by role name. With
// dryRun, methods return the result of a change without making it.

// ListRoles lists the active roles, sorted by name.
func (c *Client) ListRoles(ctx context.Context) iter.Seq2[Role, error] {
	return listAll[Role](ctx, c, apiPath("roles"), nil)
}

// FindRole returns one role.
func (c *Client) FindRole(ctx context.Context, ref string) (Role, error) {
	return doJSON[Role](ctx, c, request{method: http.MethodGet, path: apiPath("roles", ref)})
}

// CreateRole creates a role. With dryRun it returns the role, without an id.
func (c *Client) CreateRole(ctx context.Context, q RoleRequest, dryRun bool) (Role, error) {
	q.Defaults = nil // what a new role leaves out has its default
	return doJSON[Role](ctx, c, request{method: http.MethodPost, path: apiPath("roles"), query: dryRunQuery(dryRun), body: q})
}

// UpdateRole changes a role and returns the effects. If q.Revision is not 0 and the role has
// another revision, nothing changes and the error has the code Conflict.
func (c *Client) UpdateRole(ctx context.Context, ref string, q RoleRequest, dryRun bool) (RoleChange, error) {
	header := http.Header{}
	if q.Revision != 0 {
		header.Set("If-Match", wire.RevisionTag(q.Revision))
	}
	return doJSON[RoleChange](ctx, c, request{method: http.MethodPatch, path: apiPath("roles", ref), query: dryRunQuery(dryRun), header: header, body: q})
}

// DeleteRole deletes a role and returns the effects.
func (c *Client) DeleteRole(ctx context.Context, ref string, dryRun bool) (RoleChange, error) {
	return doJSON[RoleChange](ctx, c, request{method: http.MethodDelete, path: apiPath("roles", ref), query: dryRunQuery(dryRun)})
}

// LintRole compares what a role holds with what the record shows as used. It counts events
// from one time to before another ("" is no bound; see wire.ParseTime). It recommends the
// smallest groups that would have allowed the same.
func (c *Client) LintRole(ctx context.Context, ref, from, to string) (RoleLint, error) {
	return doJSON[RoleLint](ctx, c, request{method: http.MethodGet, path: apiPath("roles", ref, "lint"), query: spanParams(from, to)})
}

// ListJoins lists the roles whose tools have all flags together, sorted by name.
func (c *Client) ListJoins(ctx context.Context) iter.Seq2[RoleJoins, error] {
	return listAll[RoleJoins](ctx, c, apiPath("role-joins"), nil)
}

// spanParams returns the query parameters of a span of time.
func spanParams(from, to string) url.Values {
	params := url.Values{}
	for name, value := range map[string]string{"from": from, "to": to} {
		if value != "" {
			params.Set(name, value)
		}
	}
	return params
}

// dryRunQuery returns the query of a change.
func dryRunQuery(run bool) url.Values {
	if run {
		return url.Values{"dryRun": {"1"}}
	}
	return nil
}

// ListAgents lists the agents of a task with a status, sorted by creation time. An empty task or status selects all.
func (c *Client) ListAgents(ctx context.Context, task identity.TaskID, status org.AgentStatus) iter.Seq2[Agent, error] {
	return listAll[Agent](ctx, c, apiPath("agents"), url.Values{"task": {string(task)}, "status": {string(status)}})
}

// ListChildren lists the agents that an agent has spawned, sorted by creation time, with the counts of their own.
func (c *Client) ListChildren(ctx context.Context, ref string) iter.Seq2[Agent, error] {
	return listAll[Agent](ctx, c, apiPath("agents"), url.Values{"parent": {ref}})
}

// FindAgent returns one agent.
func (c *Client) FindAgent(ctx context.Context, ref string) (AgentDetail, error) {
	return doJSON[AgentDetail](ctx, c, request{method: http.MethodGet, path: apiPath("agents", ref)})
}

// AgentTools lists the tools that an agent may call now, sorted by name.
func (c *Client) AgentTools(ctx context.Context, ref string) iter.Seq2[Tool, error] {
	return listAll[Tool](ctx, c, apiPath("agents", ref, "tools"), nil)
}

// AgentFunctions lists the tools that an agent may call now in the shape of model APIs, sorted
// by name.
func (c *Client) AgentFunctions(ctx context.Context, ref string) iter.Seq2[tool.FunctionTool, error] {
	return listAll[tool.FunctionTool](ctx, c, apiPath("agents", ref, "tools"), url.Values{"format": {"functions"}})
}

// AgentJournal lists the events of an agent's stream, oldest first.
func (c *Client) AgentJournal(ctx context.Context, ref string) iter.Seq2[journal.Event, error] {
	return listAll[journal.Event](ctx, c, apiPath("agents", ref, "journal"), nil)
}

// SendMessage sends a message to an agent on behalf of the operator.
func (c *Client) SendMessage(ctx context.Context, ref string, q MessageRequest) (SentMessage, error) {
	return doJSON[SentMessage](ctx, c, request{method: http.MethodPost, path: apiPath("agents", ref, "messages"), body: q})
}

// AbortTurn aborts the current turn of an agent.
func (c *Client) AbortTurn(ctx context.Context, ref string) (Agent, error) {
	return doJSON[Agent](ctx, c, request{method: http.MethodPost, path: apiPath("agents", ref, "abort")})
}

// TerminateAgent terminates an agent and all its descendants.
func (c *Client) TerminateAgent(ctx context.Context, ref, reason string) (Agent, error) {
	return doJSON[Agent](ctx, c, request{method: http.MethodDelete, path: apiPath("agents", ref), query: reasonQuery(reason)})
}

// reasonQuery returns the query with a reason; "" sends none.
func reasonQuery(reason string) url.Values {
	if reason == "" {
		return nil
	}
	return url.Values{"reason": {reason}}
}

// ListGroups lists the tool groups, sorted by id.
func (c *Client) ListGroups(ctx context.Context) iter.Seq2[toolgroups.GroupInfo, error] {
	return listAll[toolgroups.GroupInfo](ctx, c, apiPath("tool-groups"), nil)
}

// FindGroup returns one tool group.
func (c *Client) FindGroup(ctx context.Context, id string) (toolgroups.GroupInfo, error) {
	return doJSON[toolgroups.GroupInfo](ctx, c, request{method: http.MethodGet, path: apiPath("tool-groups", id)})
}

// ListTools lists the tools of a group, sorted by name; an empty group selects all.
func (c *Client) ListTools(ctx context.Context, group string) iter.Seq2[Tool, error] {
	return listAll[Tool](ctx, c, apiPath("tools"), url.Values{"group": {group}})
}

// FindTool returns one tool.
func (c *Client) FindTool(ctx context.Context, name string) (Tool, error) {
	return doJSON[Tool](ctx, c, request{method: http.MethodGet, path: apiPath("tools", name)})
}

// CallTool calls a tool in a role on behalf of the operator. A denied or failed call is an
// outcome and not an error.
func (c *Client) CallTool(ctx context.Context, name string, q CallRequest) (CallResult, error) {
	return doJSON[CallResult](ctx, c, request{method: http.MethodPost, path: apiPath("tools", name, "call"), body: q})
}

// ListQuarantine lists the tools whose definitions wait for acceptance, sorted by
// name.
func (c *Client) ListQuarantine(ctx context.Context) iter.Seq2[QuarantinedTool, error] {
	return listAll[QuarantinedTool](ctx, c, apiPath("quarantine"), nil)
}

// AcceptTool accepts the pending definition of a tool with the digest of q.
func (c *Client) AcceptTool(ctx context.Context, name string, q AcceptRequest) (QuarantinedTool, error) {
	return doJSON[QuarantinedTool](ctx, c, request{method: http.MethodPost, path: apiPath("tools", name, "accept"), body: q})
}

// CheckAccess reports whether the gate would allow a call of q.Tool by q.Role or
// q.Agent.
func (c *Client) CheckAccess(ctx context.Context, q Question) (Verdict, error) {
	return doJSON[Verdict](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
}

// CheckTools reports which tools the gate would allow to q.Role or q.Agent.
func (c *Client) CheckTools(ctx context.Context, q Question) ([]Verdict, error) {
	answer, err := doJSON[wire.Verdicts](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
	return answer.Verdicts, err
}

// DiffTools reports which tools the role q.Role gained and lost since the epoch q.Diff.
func (c *Client) DiffTools(ctx context.Context, q Question) (org.ToolDiff, error) {
	return doJSON[org.ToolDiff](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
}

// ListHolders lists the roles and agents that may call the tool q.Who.
func (c *Client) ListHolders(ctx context.Context, q Question) (Holders, error) {
	return doJSON[Holders](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
}

// TaskSpans lists what took time in a task: answers of models, calls and waits for approval, oldest first.
func (c *Client) TaskSpans(ctx context.Context, id identity.TaskID) iter.Seq2[Span, error] {
	return listAll[Span](ctx, c, apiPath("tasks", string(id), "spans"), nil)
}

// MatrixQuery selects a part of a Matrix. The zero value selects the first roles and tools.
type MatrixQuery struct {
	Group    string // only the tools of this group; "" for all
	State    string // the workflow state to check in
	Limit    int    // at most so many roles; 0 for the default
	FromTool string // NextTool of the answer before
	Cursor   string // Next of the answer before
}

// FetchMatrix returns which roles may call which tools: one page of roles and tools.
func (c *Client) FetchMatrix(ctx context.Context, q MatrixQuery) (Matrix, error) {
	query := url.Values{"group": {q.Group}, "state": {q.State}, "fromTool": {q.FromTool}, "cursor": {q.Cursor}}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	maps.DeleteFunc(query, func(_ string, v []string) bool { return v[0] == "" })
	return doJSON[Matrix](ctx, c, request{method: http.MethodGet, path: apiPath("matrix"), query: query})
}

// ListTasks lists the tasks with a status, newest first. It has the first 4 KiB of their texts,
// and neither inputs nor results. An empty status selects all.
func (c *Client) ListTasks(ctx context.Context, status org.TaskStatus) iter.Seq2[Task, error] {
	return c.QueryTasks(ctx, TaskQuery{Status: status})
}

// TaskQuery selects tasks.
type TaskQuery struct {
	Status org.TaskStatus // "" for all
	Since  string         // a time (RFC 3339) or a duration before now, such as 2h; "" for all
	Limit  int            // lists the newest ones, at most so many; 0 for all
	Agents bool           // lists the agents of each task with it
}

// QueryTasks lists the tasks that a query selects, newest first, as ListTasks does.
func (c *Client) QueryTasks(ctx context.Context, q TaskQuery) iter.Seq2[Task, error] {
	query := url.Values{"status": {string(q.Status)}, "since": {q.Since}, "agents": {""}}
	if q.Agents {
		query.Set("agents", "1")
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(min(q.Limit, wire.MaxPageItems)))
	}
	return func(yield func(Task, error) bool) {
		n := 0
		for t, err := range listAll[Task](ctx, c, apiPath("tasks"), query) {
			if n++; !yield(t, err) || n == q.Limit {
				return
			}
		}
	}
}

// StartTask starts a task. With a key the same request starts it only once; "" is no key.
func (c *Client) StartTask(ctx context.Context, q TaskRequest, key string) (Task, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return doJSON[Task](ctx, c, request{method: http.MethodPost, path: apiPath("tasks"), header: header, body: q})
}

// AskAgent asks an agent in a role and waits for its answer. A key makes the request idempotent. ""
// means no key. The task is then cancelled when ctx ends.
func (c *Client) AskAgent(ctx context.Context, q AgentRequest, key string) (AgentAnswer, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return doJSON[AgentAnswer](ctx, c, request{method: http.MethodPost, path: apiPath("agent"), header: header, body: q})
}

// ConfigDigest returns the digest of the active configuration; "" if there is none.
func (c *Client) ConfigDigest(ctx context.Context) (string, error) {
	answer, err := doJSON[wire.Configuration](ctx, c, request{method: http.MethodGet, path: apiPath("config")})
	return answer.Digest, err
}

// FetchUsage counts calls, tokens and costs in the record, grouped by some of caller, role, server
// and tool. It counts events from one time to before another ("" is no bound; see
// wire.ParseTime).
func (c *Client) FetchUsage(ctx context.Context, by []string, from, to string) (UsageReport, error) {
	params := spanParams(from, to)
	if len(by) > 0 {
		params.Set("by", strings.Join(by, ","))
	}
	return doJSON[UsageReport](ctx, c, request{method: http.MethodGet, path: apiPath("usage"), query: params})
}

// ListTokens lists the tokens of the configuration, sorted by name. The tokens themselves
// are stored nowhere.
func (c *Client) ListTokens(ctx context.Context) iter.Seq2[Token, error] {
	return listAll[Token](ctx, c, apiPath("tokens"), nil)
}

// FindTask returns one task with its result.
func (c *Client) FindTask(ctx context.Context, id string) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodGet, path: apiPath("tasks", id)})
}

// WaitTask returns a task when it has ended, or after a time of at most ten minutes, whatever
// its status is then.
func (c *Client) WaitTask(ctx context.Context, id string, limit time.Duration) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodGet, path: apiPath("tasks", id), query: url.Values{"wait": {limit.String()}}})
}

// RetryTask lets a paused task go on. Its models may use so much more than before.
func (c *Client) RetryTask(ctx context.Context, id string, more Budget) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodPost, path: apiPath("tasks", id, "retry"), body: wire.RetryRequest(more)})
}

// CancelTask cancels a task. A task that has ended is returned unchanged.
func (c *Client) CancelTask(ctx context.Context, id, reason string) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodPost, path: apiPath("tasks", id, "cancel"), query: reasonQuery(reason)})
}

// ListToolQuestions returns the questions of the tools of a task that wait for an answer.
func (c *Client) ListToolQuestions(ctx context.Context, task string) (ToolQuestions, error) {
	return doJSON[ToolQuestions](ctx, c, request{method: http.MethodGet, path: apiPath("tasks", task, "questions")})
}

// AnswerToolQuestion answers a question of a tool. It returns the questions of the task that still
// wait.
func (c *Client) AnswerToolQuestion(ctx context.Context, task, question string, a ToolAnswer) (ToolQuestions, error) {
	return doJSON[ToolQuestions](ctx, c, request{method: http.MethodPost, path: apiPath("tasks", task, "questions", question), body: a})
}

// TaskEvents yields the public events of a task after an event number, until its
// result. With follow it waits for further events and yields the text that models
// are generating. It reports an error if the stream ends before the task.
func (c *Client) TaskEvents(ctx context.Context, task string, after uint64, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		query := url.Values{"after": {strconv.FormatUint(after, 10)}}
		if follow {
			query.Set("follow", "1")
			query.Set("deltas", "1")
		}
		answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("tasks", task, "events"), query: query})
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		defer answer.Body.Close()
		ended := false // a result came; the stream goes on if the task was retried since
		for d := json.NewDecoder(answer.Body); ; {
			var e journal.Event
			err := d.Decode(&e)
			if errors.Is(err, io.EOF) && (ended || !follow) {
				return
			}
			if err != nil {
				yield(e, fmt.Errorf("follow task %s: %w", task, err))
				return
			}
			switch e.Body.(type) {
			case journal.TaskEnded:
				ended = true
			case journal.TaskRetried:
				ended = false
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// ListArtifacts lists the artifacts of a task, sorted by creation time. An empty
// task selects all.
func (c *Client) ListArtifacts(ctx context.Context, task identity.TaskID) iter.Seq2[Artifact, error] {
	return listAll[Artifact](ctx, c, apiPath("artifacts"), url.Values{"task": {string(task)}})
}

// FindArtifact returns the record of an artifact, given its id or reference.
func (c *Client) FindArtifact(ctx context.Context, ref string) (Artifact, error) {
	return doJSON[Artifact](ctx, c, request{method: http.MethodGet, path: apiPath("artifacts", ref)})
}

// ArtifactContent returns the content of an artifact: text and bytes as stored, other
// values as JSON.
func (c *Client) ArtifactContent(ctx context.Context, ref string) ([]byte, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("artifacts", ref), query: url.Values{"content": {"1"}}})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// CollectGarbage deletes stored contents that no artifact references. With dryRun it
// only counts them.
func (c *Client) CollectGarbage(ctx context.Context, dryRun bool) (SweepResult, error) {
	return doJSON[SweepResult](ctx, c, request{method: http.MethodPost, path: apiPath("sweep"), query: dryRunQuery(dryRun)})
}

// OpenBackup returns a backup of the organization's file. The caller must read and
// close it. The backup is complete if reading ends with io.EOF; persist.VerifyBackup
// checks its contents.
func (c *Client) OpenBackup(ctx context.Context) (io.ReadCloser, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("backup")})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// CheckHealth reports whether the process answers.
func (c *Client) CheckHealth(ctx context.Context) (Health, error) {
	return doJSON[Health](ctx, c, request{method: http.MethodGet, path: "/healthz"})
}

// CheckReady reports whether the process can take work. Otherwise the error has the code
// wire.NotReady, and in its details the reasons.
func (c *Client) CheckReady(ctx context.Context) (Health, error) {
	return doJSON[Health](ctx, c, request{method: http.MethodGet, path: "/readyz"})
}
