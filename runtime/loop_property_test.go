package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// naiveLoop returns after how many answers a turn ends. That is the first number after which
// the calls end with one call six times, or with a cycle. A cycle has two to four calls and
// comes six times, or is 16 calls long. It returns the number of calls if there is no loop.
func naiveLoop(calls []int) int {
	for n := range len(calls) + 1 {
		for length := 1; length <= 4; length++ {
			run := length
			for run < n && calls[n-1-run] == calls[n-1-run+length] {
				run++
			}
			if run <= n && (run/length >= 6 || length > 1 && run >= 16) {
				return n
			}
		}
	}
	return len(calls)
}

// A turn ends at the first loop, and never before, whatever the model calls.
func TestLoop_EndsTurnAsNaiveModelSays(t *testing.T) {
	parameters := gopter.DefaultTestParameters()
	parameters.MinSuccessfulTests, parameters.MaxSize = 60, 60
	properties := gopter.NewProperties(parameters)
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	properties.Property("a turn ends at the first loop", prop.ForAll(func(tape []uint8, period, noise int) string {
		calls := make([]int, len(tape))
		for i, b := range tape { // mostly a cycle, with other calls in between
			calls[i] = i % period
			if int(b) < noise {
				calls[i] = 10 + int(b)%3
			}
		}
		fx := fixtureConfig{tools: []tool.Tool{look}, model: withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
			if n := answerCount(r); n < len(calls) {
				return callTools("look", obj{"n": calls[n]})
			}
			return endWith("done")
		}))}.open(t)
		defer fx.shutdown(t)
		fx.run(t, fx.groupTask(t, "probe"))
		answers := bodiesOf[journal.ModelAnswered](t, fx)
		answers = slices.DeleteFunc(answers, func(a journal.ModelAnswered) bool { return a.Answer.Finish != model.FinishToolCalls })
		if want := naiveLoop(calls); len(answers) != want {
			return fmt.Sprintf("%v: %d calls were made, want %d", calls, len(answers), want)
		}
		return ""
	}, gen.SliceOf(gen.UInt8()), gen.IntRange(1, 6), gen.IntRange(0, 30)))
	properties.TestingRun(t)
}
