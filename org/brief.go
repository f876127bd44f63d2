package org

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// TaskBrief is the assignment of a new agent. A model writes it as JSON.
type TaskBrief struct {
	Objective          string         `json:"objective"`
	Constraints        TextLines      `json:"constraints"`
	Inputs             Text           `json:"inputs"`
	Outputs            Text           `json:"outputs"`
	CompletionCriteria Text           `json:"completion_criteria"`
	Collaborators      []Collaborator `json:"collaborators,omitempty"`
	References         TextLines      `json:"references,omitempty"`
	Priority           string         `json:"priority,omitempty"`
}

// Collaborator is another agent of the same task that the new agent may message.
type Collaborator struct {
	Agent       identity.AgentID `json:"agentId"`
	Role        string           `json:"role"`
	Description string           `json:"description,omitempty"`
}

// TextLines is a list of lines. Models may also write it as one string.
type TextLines []string

// UnmarshalJSON accepts a string or a list of strings. null is a missing list.
func (l *TextLines) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil && one != nil {
		*l = TextLines{*one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// Text is a text. Models may also write it as a list of lines.
type Text string

// UnmarshalJSON accepts a string or a list of strings, which it joins by newlines.
func (t *Text) UnmarshalJSON(data []byte) error {
	var lines TextLines
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	*t = Text(strings.Join(lines, "\n"))
	return nil
}

// InObjective is the value of the other fields of a brief that is only a text.
const InObjective = "see the objective"

// UnmarshalJSON also accepts the spelling completionCriteria. If both are present,
// completion_criteria is used. A text is a brief with this objective.
func (b *TaskBrief) UnmarshalJSON(data []byte) error {
	var objective *string
	if json.Unmarshal(data, &objective) == nil && objective != nil {
		*b = TaskBrief{Objective: *objective, Constraints: TextLines{}, Inputs: InObjective, Outputs: InObjective, CompletionCriteria: InObjective}
		return nil
	}
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

// Check returns an error if required fields are missing or blank. The message and the
// detail "missing_fields" name all of them. The constraints may be empty but not missing.
// The error has the code InvalidTaskBrief.
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
	return errcode.New(errcode.InvalidTaskBrief, "taskBrief lacks %s; provide a text for each, and [] for constraints if there are none", strings.Join(missing, ", ")).With("missing_fields", missing)
}
