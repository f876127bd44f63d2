package script_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// What a random brain is made of: each line runs with the state of all lines
// before it in x.
var lines = []string{
	`x = [x, yield call("echo", {n: size(x)})];`,
	`x = [x, yield call("fail", {n: size(x)})];`,
	`x = [x, yield [call("echo", {n: size(x)}), call("fail"), call("echo", {state: self.state})]];`,
	`x = [x, yield []];`,
	`x = [x, (yield receive()).payload];`,
	`x = [x, (yield receive()).id];`,
	`yield say(digest(x));`,
	`x = [x, self.state, ...tools];`,
	`console.log(digest(x));`,
	`top++; x = [x, top];`,
	`if (size(x) % 2) return x;`,
	`if (size(x) % 11 === 10) null.x;`,
	`for (let i = size(x) % 3; i > 0; i--) x = [x, yield call("echo", {i})];`,
	`try { x = [x, Date.now()] } catch (e) { x = [x, e.message] }`,
}

// source writes a brain out of lines.
func source(ops []int) string {
	var body strings.Builder
	for _, op := range ops {
		body.WriteString("\t" + lines[op] + "\n")
	}
	return `let top = 0;
const digest = (x) => JSON.stringify(x);
const size = (x) => digest(x).length;
role("root", function* (task) {
	let x = [task.payload];
` + body.String() + `	return x;
});`
}

// Property: a kept brain is a cache. Whatever the brain does, and whatever
// comes in while it does it, a model that keeps brains, one that keeps none,
// and one that forgets now and then give equal answers at every step.
func TestKeptBrainsChangeNothing(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = cases
	parameters.MaxShrinkCount = 50
	properties := gopter.NewProperties(parameters)
	properties.Property("kept, fed anew and forgetful models agree", prop.ForAll(
		func(ops []int, worldSeed int64) (string, error) {
			return agree(t, source(ops), rand.New(rand.NewSource(worldSeed))), nil
		},
		gen.SliceOf(gen.IntRange(0, len(lines)-1)), gen.Int64(),
	))
	properties.TestingRun(t)
}

// agree plays a brain in a random world and gives the first difference between
// the models, "" when there is none.
func agree(t *testing.T, source string, world *rand.Rand) string {
	kept, anew := load(t, script.Config{}, source), load(t, script.Config{CacheSize: -1}, source)
	defer kept.Close()
	defer anew.Close()
	forgetful := load(t, script.Config{}, source)
	defer func() { forgetful.Close() }()

	p := newPlay("root")
	p.terse = world.Intn(4) == 0
	for range 15 {
		stir(p, world)
		if world.Intn(3) == 0 {
			forgetful.Close()
			forgetful = load(t, script.Config{}, source)
		}
		a, failure := outcome(t, kept, p.request())
		for name, other := range map[string]*script.Model{"fed anew": anew, "forgetful": forgetful} {
			b, otherFailure := outcome(t, other, p.request())
			if diff := cmp.Diff(a, b); diff != "" || failure != otherFailure {
				return fmt.Sprintf("%s\n%s\nkept and %s differ: %s\n%s %s", source, strings.Join(p.lines, "\n"), name, diff, failure, otherFailure)
			}
		}
		if failure != "" {
			return ""
		}
		if world.Intn(6) > 0 { // else the answer is lost, and the step is asked for again
			p.record(a)
		}
		if world.Intn(4) == 0 {
			p.items = reread(p.items)
		}
	}
	return ""
}

// stir lets the world move before a step.
func stir(p *play, world *rand.Rand) {
	for range world.Intn(3) {
		p.tell(fmt.Sprint(world.Intn(100)))
	}
	if world.Intn(4) == 0 {
		p.self.State = fmt.Sprint("s", world.Intn(3))
	}
	if world.Intn(4) == 0 {
		p.tools = []string{"echo", "fail", "more"}[:world.Intn(4)]
	}
}

// outcome gives what a model answers, or the text of its error.
func outcome(t *testing.T, m *script.Model, r model.Request) (*model.Answer, string) {
	a, err := ask(t, m, r)
	if err != nil {
		return nil, err.Error()
	}
	return a, ""
}

// reread gives equal items that share no pointer, as after a restart.
func reread(items []model.Item) []model.Item {
	items = slices.Clone(items)
	for i, item := range items {
		switch {
		case item.Message != nil:
			entry := *item.Message
			items[i].Message = &entry
		case item.Answer != nil:
			entry := *item.Answer
			items[i].Answer = &entry
		case item.Result != nil:
			entry := *item.Result
			items[i].Result = &entry
		}
	}
	return items
}
