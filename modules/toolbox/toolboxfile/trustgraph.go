package toolboxfile

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// trustGraphCall is a service of TrustGraph's gateway, and how a tool uses it.
type trustGraphCall struct {
	service string            // the last part of its path
	fixed   map[string]any    // fields of every request
	fields  map[string]string // fields of a request by the parameter that they have
	answer  []string          // fields of an answer that can hold the result
}

// defaultTrustGraphFlow is the flow of tools that name none.
const defaultTrustGraphFlow = "default"

// knowledgeQueryFields returns the fields of a tool that asks TrustGraph's knowledge graph.
func knowledgeQueryFields(it item, p *pendingTool) yamldoc.Fields {
	return p.collectionFields(it, trustGraphCall{service: "graph-rag", fields: map[string]string{"query": "question"}, answer: []string{"response"}})
}

// structuredQueryFields returns the fields of a tool that asks TrustGraph's structured data.
func structuredQueryFields(it item, p *pendingTool) yamldoc.Fields {
	return p.collectionFields(it, trustGraphCall{service: "structured-query", fields: map[string]string{"question": "question"}, answer: []string{"data"}})
}

// completionFields returns the fields of a tool that asks TrustGraph's language model.
func completionFields(it item, p *pendingTool) yamldoc.Fields {
	call := trustGraphCall{service: "text-completion", fixed: map[string]any{"system": ""}, fields: map[string]string{"prompt": "question"}, answer: []string{"response"}}
	return p.questionFields(it, &call)
}

// collectionFields returns the fields of a tool with a question about a collection.
func (p *pendingTool) collectionFields(it item, call trustGraphCall) yamldoc.Fields {
	collection := "default"
	call.fixed = map[string]any{}
	fields := p.questionFields(it, &call)
	fields["collection"] = func(v yamldoc.Value) {
		yamldoc.NonEmptyField(&collection)(v)
		call.fixed["collection"] = collection
	}
	call.fixed["collection"] = collection
	return fields
}

// questionFields returns the fields of a tool with one parameter, question.
func (p *pendingTool) questionFields(it item, call *trustGraphCall) yamldoc.Fields {
	p.fixedSpecs = []parameter.Spec{{Name: "question", Type: parameter.TypeString, Description: "The question to ask."}}
	return p.trustGraphFields(it, call)
}

// promptToolFields returns the fields of a tool that fills in a prompt of TrustGraph.
func promptToolFields(it item, p *pendingTool) yamldoc.Fields {
	call := trustGraphCall{service: "prompt", fixed: map[string]any{}, answer: []string{"text", "object"}}
	fields := p.trustGraphFields(it, &call)
	fields["template"] = func(v yamldoc.Value) {
		id, ok := v.ReadNonEmpty()
		if ok {
			call.fixed["id"] = id
		}
	}
	fields["arguments"] = specList(&p.specs, "arguments")
	return fields
}

// trustGraphFields returns the fields of all tools that call TrustGraph. The request is made
// when the document is read.
func (p *pendingTool) trustGraphFields(_ item, call *trustGraphCall) yamldoc.Fields {
	flow := defaultTrustGraphFlow
	p.finish = func() {
		request := &HTTPRequest{Method: "POST", Path: "/api/v1/flow/" + url.PathEscape(flow) + "/service/" + call.service, ResultFields: call.answer, OnlyReads: true}
		request.Body, request.BodyParams = call.body(p.specs)
		p.tool.HTTP = request
	}
	return yamldoc.Fields{"flow": yamldoc.NonEmptyField(&flow)}
}

// body returns the template of a request's body, and the names of its parameters. Parameters
// of a prompt are its variables.
func (c *trustGraphCall) body(variables []parameter.Spec) (template string, names []string) {
	var fields []string
	for name, value := range c.fixed {
		fields = append(fields, jsonText(name)+":"+jsonText(value))
	}
	for name, parameter := range c.fields {
		fields = append(fields, jsonText(name)+":{{json ."+parameter+"}}")
		names = append(names, parameter)
	}
	if c.service == "prompt" {
		list := make([]string, len(variables))
		for i, spec := range variables {
			list[i], names = fmt.Sprintf("%s:{{json (index . %s)}}", jsonText(spec.Name), jsonText(spec.Name)), append(names, spec.Name)
		}
		fields = append(fields, `"variables":{`+strings.Join(list, ",")+"}")
	}
	slices.Sort(fields)
	return "{" + strings.Join(fields, ",") + "}", names
}

// jsonText returns a value as JSON in which {{ has no meaning.
func jsonText(value any) string {
	text, _ := json.Marshal(value) // texts always marshal
	return strings.ReplaceAll(string(text), "{{", `\u007b\u007b`)
}
