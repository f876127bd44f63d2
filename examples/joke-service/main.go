// Command joke-service is a tool service in Go. joke.py and joke.mjs are the same one in Python and
// JavaScript.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/rolecall/rolecall/modules/toolservice/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := service.Options{ID: "joke-service", Queue: "request:tg:joke", URL: os.Getenv("NATS_URL"), Key: os.Getenv("ROLECALL_SERVICE_KEY")}
	if err := service.Run(ctx, o, tellJoke); err != nil {
		log.Fatal(err)
	}
}

func tellJoke(_ context.Context, c *service.Call) (string, error) {
	var joke struct{ Style, Topic string }
	err := c.Decode(&joke)
	return fmt.Sprintf("Hey %s! Here's a %s for you:\n\n%s", c.User, joke.Style, pickJoke(joke.Topic)), err
}
