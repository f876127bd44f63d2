package toolgroups

import (
	"encoding/json"
	"fmt"
)

// Gating says whether the agents of a role may answer from the knowledge of their model, or only
// from results of their tools. Its zero value is NotGated. In JSON it is false, true or "strict".
type Gating uint8

// The levels, each of which includes the constraints of those before it.
const (
	NotGated      Gating = iota // from whatever their model knows
	Gated                       // from the results of their tools: they are told so, and denials do not reveal their reason
	StrictlyGated               // and an answer of a turn without a successful call is not delivered
)

// strictWord is StrictlyGated in text and JSON.
const strictWord = "strict"

// ParseGating returns the level that a text stands for: false, true or strict.
func ParseGating(text string) (Gating, error) {
	switch text {
	case "false":
		return NotGated, nil
	case "true":
		return Gated, nil
	case strictWord:
		return StrictlyGated, nil
	}
	return NotGated, fmt.Errorf("is %.40q, want true, false or %s", text, strictWord)
}

// String returns the level as ParseGating reads it.
func (g Gating) String() string {
	return [...]string{"false", "true", strictWord}[min(g, StrictlyGated)]
}

// MarshalJSON returns false, true or "strict".
func (g Gating) MarshalJSON() ([]byte, error) {
	if g >= StrictlyGated {
		return json.Marshal(strictWord)
	}
	return json.Marshal(g == Gated)
}

// UnmarshalJSON accepts false, true and "strict".
func (g *Gating) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		if text != strictWord {
			return fmt.Errorf("is %.40q, want true, false or %q", text, strictWord)
		}
	}
	parsed, err := ParseGating(text)
	if err == nil {
		*g = parsed
	}
	return err
}
