package chat

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
)

// HiredAgent is an agent as the result of the call names it that hired it.
type HiredAgent struct {
	ID, Name string
	Rest     json.RawMessage // the result without the name
}

// HiredBy returns the agent that a call hired. It reports false for results of other tools, and
// for results of old versions, which have no name. The number in a name depends on the order in
// which agents are hired, so two results are alike if their rests are.
func HiredBy(r *model.CallResult) (HiredAgent, bool) {
	if r.IsError || r.Tool != "spawn_agent" && r.Tool != "spawn_agent_with_task" {
		return HiredAgent{}, false
	}
	id, name := gjson.GetBytes(r.Content, "id"), gjson.GetBytes(r.Content, "name")
	if id.Str == "" || name.Str == "" {
		return HiredAgent{}, false
	}
	return HiredAgent{id.Str, name.Str, bytes.Replace(r.Content, []byte(`,"name":`+name.Raw), nil, 1)}, true
}
