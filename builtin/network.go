package builtin

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// networkTools makes http_request.
func networkTools() ([]tool.Tool, error) {
	var s set
	s.add(tool.New("http_request", httpRequestText, refuseRequest, options(tool.Mutating, httpRequestInput)))
	return s.tools, s.err
}

const httpRequestText = `Send one HTTPS request to a public address. NOT AVAILABLE in this version: every call is refused, because requests cannot be kept from internal addresses yet. ` +
	`Ask the user, or the agent that gave you the task, for the data, as a file of the workspace or an artifact. ` +
	`Will answer {status, statusText, headers, body, latencyMs, requestId}; a status of 400 or more is not an error. ` +
	`Example: {"url":"https://example.com/data.json","headers":{"accept":"application/json"}}`

const httpRequestInput = `{
	"type": "object",
	"properties": {
		"url": {
			"type": "string",
			"description": "Where to send the request; https only.",
			"pattern": "^[hH][tT][tT][pP][sS]://",
			"minLength": 9,
			"maxLength": 8192
		},
		"method": {
			"type": "string",
			"enum": ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"],
			"default": "GET"
		},
		"headers": {
			"type": "object",
			"description": "Header names and their values.",
			"additionalProperties": {"type": "string", "maxLength": 8192},
			"maxProperties": 100
		},
		"body": {
			"description": "Sent with POST, PUT and PATCH: a string as it is, any other value as JSON."
		},
		"timeoutMs": {
			"type": "integer",
			"description": "After how many milliseconds to give up, counted to the end of the answer.",
			"minimum": 1,
			"maximum": 300000,
			"default": 30000
		}
	},
	"required": ["url"],
	"additionalProperties": false
}`

type httpRequest struct {
	URL       string            `json:"url"`
	Method    string            `json:"method,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"`
	TimeoutMs int               `json:"timeoutMs,omitempty"`
}

type httpResponse struct {
	Status     int               `json:"status"`
	StatusText string            `json:"statusText"`
	Headers    map[string]string `json:"headers"`
	Body       json.RawMessage   `json:"body"`
	LatencyMs  int               `json:"latencyMs"`
	RequestID  string            `json:"requestId"`
}

func refuseRequest(context.Context, httpRequest) (httpResponse, error) {
	return httpResponse{}, errcode.New(errcode.ToolUnavailable,
		"http_request is not available: it could reach internal addresses, the guard against that arrives with a later version, and there is no unsafe default; "+
			"ask whoever gave you the task for the data, as a workspace file (read_file) or an artifact (get_artifact)")
}
