package scripts_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/rolecall/rolecall/modules/toolservice/service"
)

// toolService is the program "tool-service ID NAME=DESCRIPTION…": a service that announces these tools.
// It says on stdout when it is connected, and ends with SIGINT.
func toolService() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := service.Options{ID: os.Args[1], URL: os.Getenv("NATS_URL"), Key: os.Getenv("ROLECALL_SERVICE_KEY")}
	for _, arg := range os.Args[2:] {
		name, description, _ := strings.Cut(arg, "=")
		o.Tools = append(o.Tools, service.Tool{Name: name, Description: description, Effect: "readOnly"})
	}
	s, err := service.Start(o, func(_ context.Context, c *service.Call) (string, error) {
		return fmt.Sprintf("%s of %s for %s", c.Token.Tool, o.ID, c.User), nil
	})
	if err == nil {
		fmt.Println("connected")
		<-ctx.Done()
		err = s.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
