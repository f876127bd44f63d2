package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// A model that repeats a call with the same result is warned from the third
// time on, and its turn ends after the sixth.
func TestRepetition_WarnsThenEndsTurn(t *testing.T) {
	same := func(int) model.Answer { return callTools("look", obj{"n": 1}) }
	for _, c := range []struct {
		name   string
		nth    func(n int) model.Answer
		warned []int // requests with the warning
		code   errcode.Code
	}{
		{"the same call", same, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"the same two calls", func(int) model.Answer { return callTools("look", obj{"n": 1}, "look", obj{"n": 2}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"a call that is denied", func(int) model.Answer { return callTools("run_command", obj{}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"an unknown tool", func(int) model.Answer { return callTools("no_such_tool", obj{}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"invalid arguments", func(int) model.Answer { return callTools("look", json.RawMessage(`{"n":`)) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"other arguments each time", func(n int) model.Answer { return callTools("look", obj{"n": n}) }, nil, ""},
		{"another result each time", func(int) model.Answer { return callTools("tick", obj{}) }, nil, ""},
		{"another call in between", func(n int) model.Answer {
			if n%5 == 4 {
				return callTools("tick", obj{})
			}
			return same(n)
		}, []int{3, 4, 8, 9}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ticks := 0
			tools := []tool.Tool{
				newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil }),
				newTool(t, "tick", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { ticks++; return ticks, nil }),
			}
			var warned []int
			fx := fixtureConfig{tools: tools, model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
				n := answerCount(r)
				if strings.Contains(r.Note, "You repeat yourself") {
					warned = append(warned, n)
				}
				if n == 10 {
					return endWith("done")
				}
				return c.nth(n)
			}))}.open(t)
			task := fx.run(t, fx.groupTask(t, "probe"))
			if !slices.Equal(warned, c.warned) {
				t.Errorf("warned in requests %v, want %v", warned, c.warned)
			}
			if result := map[errcode.Code]string{"": `"done"`}[c.code]; c.code != "" {
				fx.wantResult(t, task, result, c.code)
				if n := len(bodiesOf[journal.ModelAnswered](t, fx)); n != 6 {
					t.Errorf("%d answers, want 6", n)
				}
			} else {
				fx.wantResult(t, task, result, "")
			}
		})
	}
}

// Repetitions of one turn do not count in the next.
func TestRepetition_ResetsWithTurn(t *testing.T) {
	ended := make(chan struct{})
	var warned []int
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	fx := fixtureConfig{tools: []tool.Tool{look}, model: withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		if strings.Contains(r.Note, "You repeat yourself") {
			warned = append(warned, answerCount(r))
		}
		if n := answerCount(r); n%3 == 2 {
			ended <- struct{}{}
			return endWith("turn"), nil
		}
		return callTools("look", obj{}), nil
	}))}.open(t)
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet("probe")})
	for n := range 4 {
		fx.send(t, agent, fmt.Sprint(n))
		<-ended
	}
	if len(warned) > 0 {
		t.Errorf("warned in requests %v", warned)
	}
}

// A script may repeat calls any number of times.
func TestRepetition_IgnoresScripts(t *testing.T) {
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	fx := fixtureConfig{tools: []tool.Tool{look}, model: answerFunc(func(r model.Request) model.Answer {
		if strings.Contains(r.Note, "You repeat yourself") {
			return endWith("told")
		}
		if answerCount(r) < 20 {
			return callTools("look", obj{})
		}
		return endWith("done")
	})}.open(t)
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "probe")), `"done"`, "")
}

// Repetitions count across a restart.
func TestRepetition_SurvivesRestart(t *testing.T) {
	var warned []int
	stop := make(chan struct{})
	stopped := false
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{look}, model: withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if n := answerCount(r); n == 2 && !stopped {
			stopped = true
			close(stop)
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		if strings.Contains(r.Note, "You repeat yourself") {
			warned = append(warned, answerCount(r))
		}
		return callTools("look", obj{}), nil
	}))}
	fx := cfg.open(t)
	id := fx.start(t, fx.groupTask(t, "probe"))
	<-stop
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), "", errcode.MaxToolRounds)
	if want := []int{3, 4, 5}; !slices.Equal(warned, want) {
		t.Errorf("warned in requests %v, want %v", warned, want)
	}
}
