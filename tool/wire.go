package tool

import "encoding/json"

// MarshalTools serialises definitions the way chat models take them: a JSON array of
// function tools, in order.
func MarshalTools(definitions []Definition) ([]byte, error) {
	list := make([]wireTool, 0, len(definitions))
	for _, d := range definitions {
		list = append(list, wireTool{"function", wireFunction{d.Name, d.Description, d.Input}})
	}
	return json.Marshal(list)
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
