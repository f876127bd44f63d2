package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/tool"
)

// handbook reads the chapters of a handbook: handbook:1, handbook:2 and so on.
type handbook struct{}

func (handbook) Source() string                  { return "handbook" }
func (handbook) Answers(k tool.CatalogKind) bool { return k == tool.ReadResource }

func (handbook) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	chapter, ok := strings.CutPrefix(r.URI, "handbook:")
	args, _ := json.Marshal(map[string]string{"chapter": chapter})
	return args, ok && r.Kind == tool.ReadResource
}

func (handbook) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	return tool.CatalogAnswer{Contents: []tool.Content{{Type: tool.ResourceContent, URI: r.URI, MIMEType: "text/plain", Text: result.Text}}}, nil
}

// A tool whose catalog makes clients read resources with it.
func ExampleCatalog() {
	read := func(_ context.Context, in struct{ Chapter string }) (string, error) {
		return "Chapter " + in.Chapter + ": be kind.", nil
	}
	chapter, err := tool.New("read_chapter", "Read a chapter of the handbook.", read, &tool.Options{Effect: tool.ReadOnly, Catalog: handbook{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	catalog := chapter.Definition().Catalog
	request := tool.CatalogRequest{Kind: tool.ReadResource, URI: "handbook:2"}
	args, ok := catalog.Arguments(request)
	fmt.Println(string(args), ok)
	result, err := chapter.Call(context.Background(), tool.Call{Name: "read_chapter", Args: json.RawMessage(`{"Chapter":"2"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := catalog.Answer(request, result)
	fmt.Println(answer.Contents[0].URI, answer.Contents[0].Text, err)
	// Output:
	// {"chapter":"2"} true
	// handbook:2 Chapter 2: be kind. <nil>
}
