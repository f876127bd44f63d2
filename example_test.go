package rolecall_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rolecall/rolecall"
)

// A program adds a tool, creates a role that may use it, and starts a task of an agent of that
// role.
func Example() {
	ctx := context.Background()
	org, err := rolecall.Open(ctx, rolecall.Options{Model: rolecall.ModelFunc(callForecast)})
	check(err)
	defer org.Close()

	forecast, err := rolecall.NewTool("forecast", "Tell the weather of a city.", forecast, nil)
	check(err)
	// README: begin
	check(org.Register(ctx, rolecall.ToolGroup{ID: "weather", Tools: []rolecall.Tool{forecast}}))
	_, err = org.CreateRole(ctx, rolecall.RoleSpec{Name: "guide", ToolGroups: []rolecall.GroupID{"weather"}})
	check(err)
	me := rolecall.Operator("me")
	answer, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: me, Role: "guide", Text: "Vienna"})
	// README: end
	check(err)
	fmt.Println(answer)
	// Output: sunny in Vienna
}

// A program is the first agent of a task: it hires an agent and reads its answer.
func ExampleOrganization_Begin() {
	ctx := context.Background()
	org, err := rolecall.Open(ctx, rolecall.Options{Model: rolecall.ModelFunc(agree)})
	check(err)
	defer org.Close()
	task, err := org.Begin(ctx, rolecall.TaskSpec{As: rolecall.Operator("me"), Text: "Ask a clerk."})
	check(err)
	defer task.Close()
	_, err = task.CreateRole(ctx, rolecall.RoleSpec{Name: "clerk", Prompt: "Agree."})
	check(err)
	_, err = task.Spawn(ctx, rolecall.AgentSpec{Role: "clerk", Brief: "Agree.", Message: "Do you?"})
	check(err)
	answers, err := task.Receive(ctx)
	check(err)
	check(task.End(ctx, answers[0].Text()))
	fmt.Println(answers[0].FromRole, "says", answers[0].Text())
	// Output: clerk says yes
}

// agree answers "yes" for all agents.
func agree(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
	return rolecall.ModelAnswer{Text: "yes"}, nil
}

// callForecast calls forecast for Vienna, and ends with its result.
func callForecast(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
	if last := r.Items[len(r.Items)-1]; last.Result != nil {
		return rolecall.ModelAnswer{Value: last.Result.Content}, nil
	}
	return rolecall.ModelAnswer{Calls: []rolecall.ModelCall{{Name: "forecast", Args: []byte(`{"city":"Vienna"}`)}}}, nil
}

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func forecast(_ context.Context, in place) (string, error) { return "sunny in " + in.City, nil }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
