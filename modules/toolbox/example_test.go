package toolbox_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/toolgroups"
)

const flights = `kind: source
name: flights
type: sqlite
database: ":memory:"
---
kind: tool
name: search_flights
type: sqlite-sql
source: flights
description: Find flights by number.
statement: SELECT ?1 AS number
parameters:
  - {name: number, type: integer, description: The flight's number.}
`

// The declared tools of a source become a tool group. Loading does not connect.
func Example() {
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "flights.yaml", Data: []byte(flights)}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var pools toolbox.Pools
	m, err := toolbox.New(toolbox.Config{Source: cfg.Sources[0], Tools: cfg.Tools, Pools: &pools})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, ctx := toolgroups.NewManager(toolgroups.ReservedIDs()...), context.Background()
	loader := modules.NewLoader(groups)
	defer loader.Close(ctx)
	if err := loader.LoadModule(ctx, m); err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups.CurrentSnapshot().ListGroups() {
		fmt.Println(g.ID, g.Tools)
	}
	// Output:
	// source/flights [search_flights]
}
