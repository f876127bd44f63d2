package resource_test

import (
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/resource"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// A resource is read by a tool. Its Catalog knows the URI.
func Example() {
	m, err := resource.New([]toolboxfile.Resource{{Name: "hours", Type: toolboxfile.ResourceText, URI: "text://hours", Text: "9 to 5"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := m.ToolGroups()[0].Tools[0].Definition()
	args, ok := d.Catalog.Arguments(tool.CatalogRequest{Kind: tool.ReadResource, URI: "text://hours"})
	fmt.Println(d.Name, d.Description, string(args), ok)
	// Output: resource_hours Read text://hours. {} true
}
