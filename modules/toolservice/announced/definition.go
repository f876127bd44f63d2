package announced

import (
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
)

// noArguments is the schema of a tool that announces none.
const noArguments = `{"type":"object","additionalProperties":false}`

// pinsOf returns the valid definitions of an announcement. It calls leftOut with each other one.
// Tools of one name are left out, since a call would be ambiguous.
func pinsOf(tools []protocol.AnnouncedTool, leftOut func(name string, err error)) []modules.ToolPin {
	count := map[string]int{}
	for _, t := range tools {
		count[t.Name]++
	}
	pins := []modules.ToolPin{}
	for _, t := range tools {
		p, err := pinOf(t)
		if err == nil && count[t.Name] > 1 {
			err = fmt.Errorf("the service has %d tools of this name", count[t.Name])
		}
		if err != nil {
			leftOut(textutil.OneLine(t.Name, 128), err)
			continue
		}
		pins = append(pins, p)
	}
	return pins
}

// pinOf converts a tool of an announcement with the rules for tools of MCP servers. The hint
// about its effect is only shown.
func pinOf(t protocol.AnnouncedTool) (modules.ToolPin, error) {
	if len(t.Input) == 0 || string(t.Input) == "null" {
		t.Input = json.RawMessage(noArguments)
	}
	var schema any
	if err := json.Unmarshal(t.Input, &schema); err != nil {
		return modules.ToolPin{}, fmt.Errorf("its arguments: %w", err)
	}
	p, err := mcpclient.PinOf("", &sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	if err != nil {
		return p, err
	}
	var effect tool.Effect
	if _ = effect.UnmarshalText([]byte(t.Effect)); t.Effect != "" && effect.String() != t.Effect { // it never fails
		return modules.ToolPin{}, fmt.Errorf("its effect is not readOnly, idempotent or mutating")
	}
	p.Annotations, err = json.Marshal(annotations{Announced: true, Effect: t.Effect})
	return p, err
}

// annotations are the annotations of a pin. Announced distinguishes it from the pin of an MCP
// server with the same name. So a definition that is accepted for the service is not accepted for
// the server, and the reverse.
type annotations struct {
	Announced bool   `json:"announced"`
	Effect    string `json:"effect,omitzero"`
}

// checkPin checks a stored definition like a definition that comes from a service.
func checkPin(p modules.ToolPin) error {
	if p.Kind != "" {
		return fmt.Errorf("this version has no tool of the kind %.100q", p.Kind)
	}
	var a annotations
	if err := json.Unmarshal(p.Annotations, &a); err != nil || !a.Announced {
		return errors.New("it was accepted for an MCP server of this name")
	}
	if err := tool.CheckName(p.Tool); err != nil {
		return err
	}
	_, err := argschema.Compile(p.Input)
	return err
}
