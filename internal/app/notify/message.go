package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Limits of a message, in bytes.
const (
	maxArgs   = 4096
	maxReason = 1000
)

// message is the body of a request, as Standard Webhooks asks for.
type message struct {
	Type      journal.EventType `json:"type"` // of the event
	Timestamp time.Time         `json:"timestamp"`
	Data      content           `json:"data"`
}

// content is what an approver needs to know about a request. Args and Reason come from an agent or a
// caller: they are data, not instructions.
type content struct {
	ID       string          `json:"id"`
	Tool     string          `json:"tool"`
	Role     string          `json:"role"`          // of the agent or the caller
	For      string          `json:"for,omitempty"` // the person for whom the call is made
	Task     identity.TaskID `json:"task,omitempty"`
	Digest   string          `json:"digest"`
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsText string          `json:"argsStart,omitempty"` // of arguments that are longer than maxArgs
	ArgsSize int             `json:"argsSize,omitempty"`  // bytes, with argsStart
	Reason   string          `json:"reason,omitempty"`    // of the agent, or of a decision
	Rules    json.RawMessage `json:"rules,omitempty"`
	Needs    []string        `json:"needs,omitempty"` // whose votes the rules ask for
	To       string          `json:"to,omitempty"`    // whose votes are enough since the escalation
	Until    *time.Time      `json:"until,omitempty"`
	Outcome  string          `json:"outcome,omitempty"`
	By       string          `json:"by,omitempty"`
	Override bool            `json:"override,omitempty"`
	Link     string          `json:"link,omitempty"` // to the web page
}

// messageID returns the id of the message about an event. It is the same for each attempt.
func messageID(e journal.Event) string { return fmt.Sprintf("%s-%d", approvalID(e), e.Seq) }

// approvalID returns the id of the request that an event is about.
func approvalID(e journal.Event) string {
	switch b := e.Body.(type) {
	case journal.ApprovalRequested:
		return b.Approval
	case journal.ApprovalEscalated:
		return b.Approval
	case journal.ApprovalDecided:
		return b.Approval
	}
	return ""
}

// encode returns the body of the message about an event.
func (r *receiver) encode(e journal.Event) ([]byte, error) {
	m := message{Type: e.Body.EventType(), Timestamp: e.At.UTC(), Data: r.contentOf(e)}
	if r.Format == config.NotifySlack {
		return json.Marshal(slackMessage(m))
	}
	return json.Marshal(m)
}

// contentOf returns what a receiver is told about an event.
func (r *receiver) contentOf(e journal.Event) content {
	c := content{ID: approvalID(e), Role: e.Role, Task: e.Task, Link: r.link(approvalID(e))}
	switch b := e.Body.(type) {
	case journal.ApprovalRequested:
		c.Tool, c.Digest, c.Until, c.Rules, c.For = b.Tool, b.Digest, &b.Until, b.Rules, b.For
		c.For, c.Needs, c.Reason = starterText(b.For), needsOf(b.Rules), r.reasonText(b.Reason)
		r.setArgs(&c, b.Args)
	case journal.ApprovalEscalated:
		c.Tool, c.Digest, c.Until, c.To = b.Tool, b.Digest, &b.Until, b.To
	case journal.ApprovalDecided:
		c.Tool, c.Digest, c.Outcome, c.By, c.Override = b.Tool, b.Digest, b.Outcome, b.By, b.Override
		c.Reason = r.reasonText(b.Reason)
		r.setArgs(&c, b.Args)
	}
	return c
}

// starterText returns the person for whom a call is made.
func starterText(name string) string {
	if name == "" {
		return "operator"
	}
	return name
}

// needsOf returns whose votes rules ask for.
func needsOf(encoded json.RawMessage) (list []string) {
	var rules approval.Rules
	if json.Unmarshal(encoded, &rules) != nil {
		return nil
	}
	for _, r := range rules {
		list = append(list, r.From.String())
	}
	return list
}

// reasonText returns the beginning of a reason, without secrets.
func (r *receiver) reasonText(text string) string {
	return textutil.Truncate(r.engine.config.Redact().RedactText(text), maxReason)
}

// setArgs sets the arguments of a call, without secrets, or their beginning.
func (r *receiver) setArgs(c *content, args json.RawMessage) {
	if len(args) == 0 {
		return
	}
	args = r.engine.config.Redact().RedactJSON(args)
	if len(args) <= maxArgs && json.Valid(args) {
		c.Args = args
		return
	}
	c.ArgsText, c.ArgsSize = textutil.Truncate(strings.ToValidUTF8(string(args), "\uFFFD"), maxArgs), len(args)
}

// link returns the address of a request on the web page; "" if the page has none.
func (r *receiver) link(id string) string {
	if r.Page == "" {
		return ""
	}
	return strings.TrimRight(r.Page, "/") + "/#/approvals/" + id
}
