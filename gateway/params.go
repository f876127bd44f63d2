package gateway

import (
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// Parameters that several routes have.
var (
	limitQuery  = parameter{name: "limit", kind: "integer", about: "items on a page: 1 to " + strconv.Itoa(wire.MaxPageItems) + ", default " + strconv.Itoa(defaultPageItems)}
	cursorQuery = parameter{name: "cursor", about: "next of the previous page"}
	dryRunQuery = parameter{name: "dryRun", kind: "boolean", about: "answers with the effects and changes nothing"}
	reasonQuery = parameter{name: "reason", about: "why, for the record"}
	followQuery = parameter{name: "follow", kind: "boolean", about: "waits for further events"}
	afterQuery  = parameter{name: "after", kind: "integer", about: "only events with higher numbers"}
	sinceQuery  = parameter{name: "since", about: "a time of RFC 3339, or a duration before now such as 2h"}
	taskQuery   = parameter{name: "task", about: "id of a task"}
	parentQuery = parameter{name: "parent", about: "an agent: only those that it has spawned, with the counts of those that they have spawned"}

	idempotencyKey = parameter{name: "Idempotency-Key", header: true, about: "the same key with the same body starts the task once; at most 200 bytes"}
	ifMatch        = parameter{name: "If-Match", header: true, about: "the ETag of the revision that the change is for; another revision is answered with 412"}
	lastEventID    = parameter{name: "Last-Event-ID", header: true, about: "number of the last event received; the stream goes on after it"}
)

// paged returns the parameters of a list with pages, and more.
func paged(more ...parameter) []parameter {
	return slices.Concat([]parameter{limitQuery, cursorQuery}, more)
}

// statusQuery returns the parameter that selects by status.
func statusQuery[T ~string](words []T) parameter {
	p := parameter{name: "status", about: "only those with this status"}
	for _, w := range words {
		p.allowed = append(p.allowed, string(w))
	}
	return p
}

// taskStatuses and agentStatuses are the words that select by status.
var (
	taskStatuses  = []org.TaskStatus{org.Running, org.Waiting, org.Paused, org.Interrupted, org.Done, org.Failed, org.Cancelled}
	agentStatuses = []org.AgentStatus{org.AgentStarting, org.AgentThinking, org.AgentCalling, org.AgentWaiting, org.AgentPaused, org.AgentFinished, org.AgentTerminated}
)

// eventParams are the query parameters that select events.
func eventParams() []parameter {
	types := parameter{name: "type", about: "only events of these types, separated by commas", repeats: true}
	return []parameter{
		taskQuery,
		{name: "agent", about: "id of an agent; the operator may name its role"},
		{name: "role", about: "id or name of a role"},
		{name: "caller", about: "name of a caller"},
		{name: "tool", about: "name of a tool"},
		types,
		{name: "denied", kind: "boolean", about: "only denied calls and tasks, and attempts to get more permissions"},
		afterQuery, sinceQuery,
	}
}

// answerStream is the media type of a stream that ends with an answer.
var answerStream = []media{{name: "text/event-stream"}}

// changeStreams are the media types of a stream of changes of calls that wait.
var changeStreams = []media{{wire.NDJSON, wire.ApprovalChange{}}, {"text/event-stream", wire.ApprovalChange{}}}

// eventStreams are the media types of a stream of events.
var eventStreams = []media{{wire.NDJSON, journal.Event{}}, {"text/event-stream", journal.Event{}}}
