// Command program embeds rolecall: store, runtime, built-in tools and one model.
package main

import (
	"log"
	"os"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

func main() {
	store, err := persist.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	only := openai.New(provider.Config{Name: "local", Model: "qwen3", BaseURL: "http://127.0.0.1:11434/v1"})
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: groups, Model: func(string) (model.Model, error) { return only, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		log.Fatal(err)
	}
}
