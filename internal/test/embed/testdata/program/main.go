// Command program embeds rolecall with one model, and finishes a task of which it is the
// only agent.
package main

import (
	"context"
	"log"
	"os"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

func main() {
	sandbox, ctx := rolecall.Enter(), context.Background()
	model := openai.New(provider.Config{Name: "local", Model: "qwen3", BaseURL: "http://127.0.0.1:11434/v1"})
	org, err := rolecall.Open(ctx, rolecall.Options{Data: os.Args[1], Model: model, Sandbox: sandbox})
	check(err)
	defer org.Close()
	task, err := org.Begin(ctx, rolecall.TaskSpec{As: rolecall.Operator("me"), Text: "nothing"})
	check(err)
	check(task.End(ctx, "done"))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
