package scripts_test

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a program for scripts: an MCP server on stdin and stdout. A file lists the
// names and descriptions of its tools; the server reads it at the start and after each
// call. It creates a file "started" in its directory.
func mcpServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "script"}, nil)
	err := addTools(s)
	if err == nil {
		err = os.WriteFile("started", nil, 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// addTools adds the tools of the file to s.
func addTools(s *mcp.Server) error {
	var tools []*mcp.Tool
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &tools)
	}
	if err != nil {
		return err
	}
	for _, t := range tools {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
		s.AddTool(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t.Name + " says hello"}}}
			return result, addTools(s)
		})
	}
	return nil
}
