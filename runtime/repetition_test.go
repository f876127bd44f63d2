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

// A model that makes the same call and gets the same result is told so from
// the third time on, and its turn ends after the sixth.
func TestWhoRepeatsItselfIsToldAndThenStopped(t *testing.T) {
	same := func(int) model.Answer { return do("look", obj{"n": 1}) }
	for _, c := range []struct {
		name string
		nth  func(n int) model.Answer
		told []int // the requests that say so
		code errcode.Code
	}{
		{"the same call", same, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"the same two calls", func(int) model.Answer { return do("look", obj{"n": 1}, "look", obj{"n": 2}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"a call that is denied", func(int) model.Answer { return do("run_command", obj{}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"a call of nothing known", func(int) model.Answer { return do("no_such_tool", obj{}) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"arguments that are none", func(int) model.Answer { return do("look", json.RawMessage(`{"n":`)) }, []int{3, 4, 5}, errcode.MaxToolRounds},
		{"other arguments each time", func(n int) model.Answer { return do("look", obj{"n": n}) }, nil, ""},
		{"another result each time", func(int) model.Answer { return do("tick", obj{}) }, nil, ""},
		{"another call in between", func(n int) model.Answer {
			if n%5 == 4 {
				return do("tick", obj{})
			}
			return same(n)
		}, []int{3, 4, 8, 9}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ticks := 0
			tools := []tool.Tool{
				probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil }),
				probe(t, "tick", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { ticks++; return ticks, nil }),
			}
			var told []int
			h := plan{tools: tools, model: fluent(100_000, brain(func(r model.Request) model.Answer {
				n := answers(r)
				if strings.Contains(r.System, "You repeat yourself") {
					told = append(told, n)
				}
				if n == 10 {
					return end("done")
				}
				return c.nth(n)
			}))}.open(t)
			task := h.run(t, h.role(t, "probe"))
			if !slices.Equal(told, c.told) {
				t.Errorf("told with requests %v, want %v", told, c.told)
			}
			if result := map[errcode.Code]string{"": `"done"`}[c.code]; c.code != "" {
				h.want(t, task, result, c.code)
				if n := len(said[journal.ModelAnswered](t, h)); n != 6 {
					t.Errorf("%d answers, want 6", n)
				}
			} else {
				h.want(t, task, result, "")
			}
		})
	}
}

// What was repeated in one turn does not count in the next.
func TestRepetitionIsOfOneTurn(t *testing.T) {
	ended := make(chan struct{})
	var told []int
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	h := plan{tools: []tool.Tool{look}, model: fluent(100_000, mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		if strings.Contains(r.System, "You repeat yourself") {
			told = append(told, answers(r))
		}
		if n := answers(r); n%3 == 2 {
			ended <- struct{}{}
			return end("turn"), nil
		}
		return do("look", obj{}), nil
	}))}.open(t)
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use("probe")})
	for n := range 4 {
		h.tell(t, agent, fmt.Sprint(n))
		<-ended
	}
	if len(told) > 0 {
		t.Errorf("told with requests %v", told)
	}
}

// A script may poll as often as it likes.
func TestAScriptMayRepeatItself(t *testing.T) {
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	h := plan{tools: []tool.Tool{look}, model: brain(func(r model.Request) model.Answer {
		if strings.Contains(r.System, "You repeat yourself") {
			return end("told")
		}
		if answers(r) < 20 {
			return do("look", obj{})
		}
		return end("done")
	})}.open(t)
	h.want(t, h.run(t, h.role(t, "probe")), `"done"`, "")
}

// A process that starts anew counts on.
func TestARestartDoesNotForgetRepetition(t *testing.T) {
	var told []int
	stop := make(chan struct{})
	stopped := false
	look := probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	p := plan{dir: scratch(t), tools: []tool.Tool{look}, model: fluent(100_000, mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if n := answers(r); n == 2 && !stopped {
			stopped = true
			close(stop)
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		if strings.Contains(r.System, "You repeat yourself") {
			told = append(told, answers(r))
		}
		return do("look", obj{}), nil
	}))}
	h := p.open(t)
	id := h.start(t, h.role(t, "probe"))
	<-stop
	h.leave(t)
	h = p.open(t)
	h.resume(t, id)
	h.want(t, h.wait(t, id), "", errcode.MaxToolRounds)
	if want := []int{3, 4, 5}; !slices.Equal(told, want) {
		t.Errorf("told with requests %v, want %v", told, want)
	}
}
