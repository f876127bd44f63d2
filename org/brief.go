package org

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// TaskBrief tells a new agent what it is for.
type TaskBrief struct {
	Objective          string         `json:"objective"`
	Constraints        Lines          `json:"constraints"`
	Inputs             Text           `json:"inputs"`
	Outputs            Text           `json:"outputs"`
	CompletionCriteria Text           `json:"completion_criteria"`
	Collaborators      []Collaborator `json:"collaborators,omitempty"`
	References         Lines          `json:"references,omitempty"`
	Priority           string         `json:"priority,omitempty"`
}

// Collaborator is another agent of the task that the new one may write to.
type Collaborator struct {
	Agent       identity.AgentID `json:"agentId"`
	Role        string           `json:"role"`
	Description string           `json:"description,omitempty"`
}

// Lines is a list of lines that a model may also give as one string.
type Lines []string

// UnmarshalJSON takes a string or a list of strings; null is an absent list.
func (l *Lines) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil && one != nil {
		*l = Lines{*one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// Text is a text that a model may also give as a list of lines.
type Text string

// UnmarshalJSON takes a string or a list of strings.
func (t *Text) UnmarshalJSON(data []byte) error {
	var lines Lines
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	*t = Text(strings.Join(lines, "\n"))
	return nil
}

// UnmarshalJSON also takes the spelling completionCriteria.
func (b *TaskBrief) UnmarshalJSON(data []byte) error {
	type plain TaskBrief
	other := struct {
		*plain
		Camel Text `json:"completionCriteria"`
	}{plain: (*plain)(b)}
	if err := json.Unmarshal(data, &other); err != nil {
		return err
	}
	if b.CompletionCriteria == "" {
		b.CompletionCriteria = other.Camel
	}
	return nil
}

// Check names every required field that is missing, in the message and in the
// detail missing_fields. A list may be empty but not absent.
func (b *TaskBrief) Check() error {
	var missing []string
	need := func(ok bool, field string) {
		if !ok {
			missing = append(missing, field)
		}
	}
	need(strings.TrimSpace(b.Objective) != "", "objective")
	need(b.Constraints != nil, "constraints")
	need(strings.TrimSpace(string(b.Inputs)) != "", "inputs")
	need(strings.TrimSpace(string(b.Outputs)) != "", "outputs")
	need(strings.TrimSpace(string(b.CompletionCriteria)) != "", "completion_criteria")
	need(!slices.ContainsFunc(b.Collaborators, func(c Collaborator) bool { return c.Agent == "" }), "collaborators.agentId")
	if missing == nil {
		return nil
	}
	return errcode.New(errcode.InvalidTaskBrief, "taskBrief lacks %s; give each a text, and constraints [] if there are none", strings.Join(missing, ", ")).With("missing_fields", missing)
}
