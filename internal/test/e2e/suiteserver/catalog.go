package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/tool"
)

// catalog has the resources and prompts that the suite reads, with one tool: read_suite.
type catalog struct{}

// templatePrefix and templateSuffix are around the variable of the suite's template.
const templatePrefix, templateSuffix = "test://template/", "/data"

// readSuite returns the contents of a resource of the suite.
func readSuite(_ context.Context, in struct {
	URI string `json:"uri"`
}) (tool.Result, error) {
	c := tool.Content{Type: tool.ResourceContent, URI: in.URI, MIMEType: "text/plain"}
	switch id, ok := strings.CutPrefix(in.URI, templatePrefix); {
	case ok:
		id = strings.TrimSuffix(id, templateSuffix)
		c.MIMEType, c.Text = "application/json", fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id)
	case in.URI == "test://static-binary":
		c.MIMEType, c.Data = "image/png", pictures.Dot
	default:
		c.Text = "This is the content of the static text resource."
	}
	return tool.Result{Content: []tool.Content{c}}, nil
}

// Source implements tool.Catalog.
func (catalog) Source() string { return "suite" }

// Answers implements tool.Catalog.
func (catalog) Answers(tool.CatalogKind) bool { return true }

// Arguments implements tool.Catalog. Only a read needs a call.
func (catalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	switch r.Kind {
	case tool.ReadResource:
		args, _ := json.Marshal(map[string]string{"uri": r.URI}) // a string always marshals
		isTemplate := strings.HasPrefix(r.URI, templatePrefix) && strings.HasSuffix(r.URI, templateSuffix)
		return args, isTemplate || slices.Contains(staticURIs(), r.URI)
	case tool.GetPrompt:
		return nil, isPrompt(r.Name)
	case tool.Complete:
		return nil, isPrompt(r.Name)
	}
	return nil, true
}

func isPrompt(name string) bool {
	return slices.ContainsFunc(prompts(), func(p tool.Prompt) bool { return p.Name == name })
}

func staticURIs() []string {
	return []string{"test://static-text", "test://static-binary", "test://watched-resource"}
}

// Answer implements tool.Catalog.
func (catalog) Answer(r tool.CatalogRequest, result tool.Result) (a tool.CatalogAnswer, _ error) {
	switch r.Kind {
	case tool.ListResources:
		for _, uri := range staticURIs() {
			a.Resources = append(a.Resources, tool.Resource{URI: uri, Name: uri, Description: "A resource of the suite."})
		}
	case tool.ListTemplates:
		a.Templates = []tool.ResourceTemplate{{URITemplate: templatePrefix + "{id}" + templateSuffix, Name: "data", MIMEType: "application/json"}}
	case tool.ReadResource:
		a.Contents = result.Content
	case tool.ListPrompts:
		a.Prompts = prompts()
	case tool.Complete:
		a.Values = []string{r.Value + "paris", r.Value + "park"}
	case tool.GetPrompt:
		a.Messages = messages(r.Name, r.Arguments)
	}
	return a, nil
}

func prompts() []tool.Prompt {
	text := func(name string) tool.PromptArgument {
		return tool.PromptArgument{Name: name, Description: "A text.", Required: true}
	}
	const about = "A prompt of the suite."
	return []tool.Prompt{
		{Name: "test_simple_prompt", Description: about},
		{Name: "test_prompt_with_arguments", Description: about, Arguments: []tool.PromptArgument{text("arg1"), text("arg2")}},
		{Name: "test_prompt_with_embedded_resource", Description: about, Arguments: []tool.PromptArgument{text("resourceUri")}},
		{Name: "test_prompt_with_image", Description: about},
	}
}

// messages returns the messages of a prompt.
func messages(name string, args map[string]string) []tool.PromptMessage {
	said := func(text string) tool.PromptMessage {
		return tool.PromptMessage{Role: "user", Content: tool.Content{Type: tool.TextContent, Text: text}}
	}
	switch name {
	case "test_prompt_with_arguments":
		return []tool.PromptMessage{said(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"]))}
	case "test_prompt_with_embedded_resource":
		embedded := tool.Content{Type: tool.ResourceContent, URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}
		return []tool.PromptMessage{{Role: "user", Content: embedded}, said("Please process the embedded resource above.")}
	case "test_prompt_with_image":
		image := tool.Content{Type: tool.ImageContent, MIMEType: "image/png", Data: pictures.Dot}
		return []tool.PromptMessage{{Role: "user", Content: image}, said("Please analyze the image above.")}
	}
	return []tool.PromptMessage{said("This is a simple prompt for testing.")}
}
