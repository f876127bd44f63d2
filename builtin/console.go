package builtin

import (
	"context"

	"github.com/rolecall/rolecall/tool"
)

// consoleTools returns console_print.
func consoleTools(c Console) ([]tool.Tool, error) {
	var s toolBuilder
	s.add(tool.New("console_print", consolePrintText, withErrorCode(consoleHandler{c}.print), toolOptions(tool.Mutating, tool.FlagsOf(), consolePrintInput)))
	return s.tools, s.err
}

// consoleHandler handles the calls of the console group.
type consoleHandler struct{ console Console }

const consolePrintText = `Print a line on the console of the operator. No agent reads it.`

const consolePrintInput = `{
	"type": "object",
	"properties": {
		"text": {
			"type": "string",
			"description": "A plain text.",
			"maxLength": 20000
		}
	},
	"required": ["text"],
	"additionalProperties": false
}`

// consolePrint holds the arguments of console_print.
type consolePrint struct {
	Text string `json:"text"`
}

// printResult is the result of console_print.
type printResult struct {
	OK bool `json:"ok"`
}

// print handles console_print.
func (h consoleHandler) print(ctx context.Context, in consolePrint) (printResult, error) {
	return printResult{true}, h.console.PrintLine(ctx, currentCall(ctx).By, in.Text)
}
