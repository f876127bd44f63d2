package builtin

import (
	"context"

	"github.com/rolecall/rolecall/tool"
)

// consoleTools makes console_print over c.
func consoleTools(c Console) ([]tool.Tool, error) {
	var s toolBuilder
	s.add(tool.New("console_print", consolePrintText, guarded(printer{c}.print), options(tool.Mutating, consolePrintInput)))
	return s.tools, s.err
}

// printer handles the calls of the console group.
type printer struct{ console Console }

const consolePrintText = `Print a line on the console of the person who runs this system. ` +
	`Use it for short news about long work; it reaches no agent and is not your answer: use send_message for that. ` +
	`At most 20,000 characters. Answers {"ok":true}. Example: {"text":"3 of 10 files done"}`

const consolePrintInput = `{
	"type": "object",
	"properties": {
		"text": {
			"type": "string",
			"description": "What to print, as plain text.",
			"maxLength": 20000
		}
	},
	"required": ["text"],
	"additionalProperties": false
}`

type consolePrint struct {
	Text string `json:"text"`
}

type printed struct {
	OK bool `json:"ok"`
}

func (p printer) print(ctx context.Context, in consolePrint) (printed, error) {
	return printed{true}, p.console.Print(ctx, caller(ctx).By, in.Text)
}
